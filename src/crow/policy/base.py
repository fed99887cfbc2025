"""The policy's interface: verdicts (allow, ask, deny), rules with who made them, and what an "always" covers."""

import enum
from collections.abc import Callable
from typing import Literal, Protocol, TypeVar

import msgspec

from crow.actions import Deed
from crow.config.settings import MODES, Decision, Mode, PermissionRule
from crow.visible import code, one_line

T = TypeVar("T")
Where = Literal["session", "project"]
"""Where an "always" is kept: until the session ends, or for every session in this project."""


class Origin(enum.StrEnum):
    """Who made a rule. The value is how a person reads it."""

    BUILT_IN = "built-in"
    USER = "your config"
    PROJECT = "the project's config"
    SESSION_GRANT = "allowed in this session"
    PROJECT_GRANT = "allowed in this project"


GRANTED = frozenset({Origin.SESSION_GRANT, Origin.PROJECT_GRANT})
"""Rules that are answers of the person."""


class Scope(msgspec.Struct, frozen=True):
    """What an "always" would cover, in words and as data: the label says exactly what will be remembered."""

    label: str
    rules: tuple[PermissionRule, ...]


class Allow(msgspec.Struct, frozen=True):
    rule: str
    origin: Origin = Origin.BUILT_IN


class Ask(msgspec.Struct, frozen=True):
    rule: str
    reason: str
    """Why the person is asked, in a sentence for them; empty if what would be done is reason enough."""
    origin: Origin = Origin.BUILT_IN
    session: Scope | None = None
    """What may be allowed for the rest of the session; None where each time must be asked for."""
    project: Scope | None = None
    """The same for every session in this project."""


class Deny(msgspec.Struct, frozen=True):
    rule: str
    reason: str
    """Goes to the model, which may adapt."""
    origin: Origin = Origin.BUILT_IN


Verdict = Allow | Ask | Deny


class KnownRule(msgspec.Struct, frozen=True):
    """A rule with who made it."""

    rule: PermissionRule
    origin: Origin

    def __str__(self) -> str:
        return f"{self.rule.decision} {said(self.rule)} ({self.origin})"


def said(rule: PermissionRule) -> str:
    """What a rule is about, in as few words as it takes."""
    if rule.command is not None:
        return f"{rule.tool}: {code(rule.command)}"
    detail = rule.path if rule.path is not None else rule.host
    return rule.tool if detail is None else f"{rule.tool}: {one_line(detail)}"


class Policy(Protocol):
    """Decides from rules alone; asks nobody and does nothing. Each verdict names the rule that gave it."""

    mode: Mode
    """May change at any time; the next judgement follows it."""

    def judge(self, deed: Deed, *, reread: bool = True) -> Verdict:
        """Looks at folders and files, any of which may hang. Not `reread`: with what was allowed at the last look, and
        so without touching a disk where the deed names no path and no command.
        """
        ...

    async def run_off_loop(self, work: Callable[[], T]) -> T:
        """The result of work with this policy, such as judging, beside the event loop. FileSystemSilent."""
        ...

    def explain(self, deed: Deed) -> str:
        """The verdict on a deed and what led to it, in lines for a person."""
        ...

    def is_secret(self, path: str) -> bool:
        """Whether a resolved path may hold credentials: then it is never read unasked, not even as an attachment."""
        ...

    def remember(self, scope: Scope, where: Where) -> str:
        """The person allowed this scope. Gives a warning for them if it could not be kept for later sessions."""
        ...

    def rules(self, *, reread: bool = True) -> list[KnownRule]:
        """Every rule that has a say, the built-in ones of modes and paths aside."""
        ...

    def revoke(self, rule: PermissionRule) -> bool:
        """Forgets what was remembered. False if it was not: a rule in a file is changed in that file."""
        ...


GLOB_CHARACTERS = frozenset("*?")
"""What means something else than itself in the path of a rule."""


# --- what each mode decides where no rule does: the table of docs/permissions.md, as data


class Aspect(enum.StrEnum):
    """One thing that a deed does. The value is the rule's name in a verdict."""

    READ_INSIDE = "reading in the workspace"
    READ_OUTSIDE = "reading outside the workspace"
    READ_SECRET = "reading a secret"  # noqa: S105 -- no password
    WRITE_INSIDE = "writing in the workspace"
    WRITE_OUTSIDE = "writing outside the workspace"
    WRITE_PROTECTED = "writing to a protected path"
    TERMINAL = "running a command"
    WEB = "asking a host on the web"
    MCP = "calling a server's tool"
    LEAVE_MODE = "changing the mode"
    UNKNOWN = "doing what no rule knows"
    NOTHING = "nothing that needs permission"


# One decision for each of MODES, in their order: ask, edit, plan, auto.
_TABLE: dict[Aspect, tuple[Decision, Decision, Decision, Decision]] = {
    Aspect.READ_INSIDE: ("allow", "allow", "allow", "allow"),
    Aspect.READ_OUTSIDE: ("ask", "ask", "ask", "ask"),
    Aspect.READ_SECRET: ("ask", "ask", "ask", "ask"),
    Aspect.WRITE_INSIDE: ("ask", "allow", "deny", "allow"),
    Aspect.WRITE_OUTSIDE: ("ask", "ask", "deny", "ask"),
    Aspect.WRITE_PROTECTED: ("ask", "ask", "deny", "ask"),
    Aspect.TERMINAL: ("ask", "ask", "deny", "allow"),
    Aspect.WEB: ("ask", "ask", "ask", "allow"),
    Aspect.MCP: ("ask", "ask", "ask", "allow"),
    Aspect.LEAVE_MODE: ("ask", "ask", "ask", "ask"),
    Aspect.UNKNOWN: ("ask", "ask", "deny", "ask"),
    Aspect.NOTHING: ("allow", "allow", "allow", "allow"),
}

ALWAYS_ASKED = frozenset({Aspect.READ_SECRET, Aspect.WRITE_PROTECTED, Aspect.LEAVE_MODE, Aspect.UNKNOWN})
"""What no allow rule covers."""


def decision_of(mode: Mode, aspect: Aspect) -> Decision:
    return _TABLE[aspect][MODES.index(mode)]


# --- lists of names, written as text so that they can be read


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


def phrases(text: str) -> frozenset[tuple[str, ...]]:
    """Names of one or more words, these joined by a `+`: `rm git+push`."""
    return frozenset(tuple(phrase.split("+")) for phrase in text.split())
