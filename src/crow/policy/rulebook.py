"""The rules that hold, prepared for being looked up."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from crow.config.settings import PermissionRule
from crow.policy.base import GRANTED, KnownRule, Origin
from crow.policy.commands import CommandPattern
from crow.policy.globs import PathGlob


class ReadyRule(msgspec.Struct, frozen=True):
    known: KnownRule
    pattern: CommandPattern | None
    glob: PathGlob | None

    @property
    def rule(self) -> PermissionRule:
        return self.known.rule

    @property
    def whole_tool(self) -> bool:
        return self.rule.command is None and self.rule.path is None and self.rule.host is None

    def is_for(self, tool: str) -> bool:
        name = self.rule.tool
        return tool.startswith(name[:-1]) if name.endswith("*") else tool == name

    def is_about(self, digest: str) -> bool:
        """A written rule is about whatever has the tool's name; an answer of the person is about what they saw."""
        written = self.known.origin not in GRANTED and self.rule.digest is None
        return written or (self.rule.digest or "") == digest

    def has_host(self, host: str) -> bool:
        if self.rule.host is None:
            return False
        wanted, host = _folded(self.rule.host), _folded(host)
        return host.endswith(wanted[1:]) and host != wanted[2:] if wanted.startswith("*.") else host == wanted


def _folded(host: str) -> str:
    return host.strip().strip("[]").rstrip(".").casefold()


class RuleBook:
    """The tightening rules of every origin; the allowing ones of all but a project's own config."""

    def __init__(self, rules: Iterable[KnownRule], roots: Sequence[str]) -> None:
        # A repository may ask for more caution, never for less: else cloning one would be giving permission.
        kept = [known for known in rules if not (known.origin is Origin.PROJECT and known.rule.decision == "allow")]
        self.rules = [_ready(known, roots) for known in kept]

    def denying(self, tool: str) -> list[ReadyRule]:
        return self._select(tool, lambda known: known.rule.decision == "deny")

    def asking(self, tool: str) -> list[ReadyRule]:
        return self._select(tool, lambda known: known.rule.decision == "ask")

    def allowing(self, tool: str) -> list[ReadyRule]:
        return self._select(tool, lambda known: known.rule.decision == "allow")

    def _select(self, tool: str, wanted: Callable[[KnownRule], bool]) -> list[ReadyRule]:
        return [ready for ready in self.rules if wanted(ready.known) and ready.is_for(tool)]


def _ready(known: KnownRule, roots: Sequence[str]) -> ReadyRule:
    rule = known.rule
    granted = known.origin in GRANTED
    if granted:
        roots = roots[:1]  # what the person answered is about the project, not about folders that came later
    return ReadyRule(
        known,
        CommandPattern.parse(rule.command, first_root_only=granted) if rule.command is not None else None,
        PathGlob(rule.path, roots, generous=rule.decision != "allow") if rule.path is not None else None,
    )
