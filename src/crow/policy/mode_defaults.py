"""What each mode decides where no rule does: the table of ask, edit, plan and auto, and what no allow rule covers.

It is the table of docs/permissions.md, as data.
"""

import enum

from crow.config.settings import MODES, Decision, Mode


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
