"""The path globs of rules, compared with absolute paths.

`*` stands for any characters of one name, `?` for one of them, `**` as a whole component for any number of folders
(none, too). Nothing else is special: no brackets, no braces, no escapes. A leading `~` is the home folder. A glob that
is not absolute is relative to each root of the workspace.

An allow rule is read to the letter: case matters, and `src` is `src` alone, not what lies in it. A rule that tightens
is read generously: case does not matter, a folder includes what lies in it, and symbolic links in a glob's fixed
part are followed.
"""

import os
import re
from collections.abc import Sequence

SPECIAL = frozenset("*?")
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
    fixed = next((number for number, part in enumerate(parts) if SPECIAL & set(part)), len(parts))
    return os.path.join(os.path.realpath("/".join(parts[:fixed]) or "/"), *parts[fixed:])
