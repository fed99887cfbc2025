"""Selects the rules that apply to a tool, a path or a host: prepares them for being looked up, and matches their path
globs.

In the path globs of rules `*` stands for any characters of one name, `?` for one of them, `**` as a whole component for
any number of folders (none, too). Nothing else is special: no brackets, no braces, no escapes. A leading `~` is the
home folder. A glob that is not absolute is relative to each root of the workspace.

An allow rule is read to the letter: case matters, and `src` is `src` alone, not what lies in it. A rule that tightens
is read generously: case does not matter, a folder includes what lies in it, and symbolic links in a glob's fixed
part are followed.
"""

import os
import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from crow.config.settings import PermissionRule
from crow.policy.base import GLOB_CHARACTERS, GRANTED, KnownRule, Origin
from crow.policy.commands import CommandPattern


class ReadyRule(msgspec.Struct, frozen=True):
    known: KnownRule
    pattern: CommandPattern | None
    glob: "PathGlob | None"

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


_END = r"(?=/|\Z)"
"""Where a name ends."""


class PathGlob:
    def __init__(self, glob: str, roots: Sequence[str], *, generous: bool) -> None:
        expanded = os.path.expanduser(glob)
        if os.path.isabs(expanded):
            places = [os.path.normpath(expanded)]
            if generous:
                places.append(_followed(places[0]))
            patterns = [_pattern(place) for place in places]
        else:
            inner = os.path.normpath(expanded)
            patterns = [_below(root, inner) for root in roots]
        ending = "(?:/.*)?" if generous else ""
        flags = re.DOTALL | (re.IGNORECASE if generous else 0)
        self._regex = re.compile(f"(?:{'|'.join(patterns)}){ending}", flags)

    def matches(self, path: str) -> bool:
        return self._regex.fullmatch(os.path.normpath(path)) is not None


def _below(root: str, glob: str) -> str:
    """The pattern of a relative glob. Its leading `..` are taken off the root, whose name may have a `*` in it."""
    parts = glob.split("/")
    while parts and parts[0] in ("..", "."):
        root = os.path.dirname(root) if parts.pop(0) == ".." else root
    return re.escape(root.rstrip("/")) + (_pattern("/" + "/".join(parts)) if parts else "")


def _pattern(absolute: str) -> str:
    first, *groups = _between_stars(absolute.split("/")[1:])
    if not groups:
        return first
    *middle, last = groups
    found = "".join(_found_first("(?:/[^/]+)", group + _END) for group in middle)
    return first + found + (f"(?:/[^/]+)*{last}" if last else "(?:/.*)?")


def _between_stars(parts: Sequence[str]) -> list[str]:
    """The patterns of what stands between the `**`s, which are many as one where nothing does."""
    groups = [""]
    for number, part in enumerate(parts):
        if part != "**":
            groups[-1] += "/" + _name(part)
        elif number == 0 or parts[number - 1] != "**":
            groups.append("")
    return groups


def _name(part: str) -> str:
    first, *pieces = ("".join(map(_character, piece)) for piece in re.split(r"\*+", part))
    if not pieces:
        return first
    *middle, last = pieces
    return first + "".join(_found_first("[^/]", piece) for piece in middle) + f"[^/]*{last}{_END}"


def _found_first(anything: str, wanted: str) -> str:
    """Looks for what follows a star once: where it is found first is as good as any later place.

    Trying all the others would make a glob with many stars take for ever to say no.
    """
    return f"(?>{anything}*?{wanted})"


def _character(character: str) -> str:
    return "[^/]" if character == "?" else re.escape(character)


def _followed(glob: str) -> str:
    """The glob with the links of its fixed part resolved."""
    parts = glob.split("/")
    fixed = next((number for number, part in enumerate(parts) if GLOB_CHARACTERS & set(part)), len(parts))
    return os.path.join(os.path.realpath("/".join(parts[:fixed]) or "/"), *parts[fixed:])
