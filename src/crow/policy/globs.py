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
    pattern = ""
    parts = absolute.split("/")[1:]
    for number, part in enumerate(parts):
        if part != "**":
            pattern += "/" + "".join(_character(character) for character in part)
        elif number == len(parts) - 1:
            pattern += "(?:/.*)?"
        else:
            pattern += "(?:/[^/]+)*"
    return pattern


def _character(character: str) -> str:
    return {"*": "[^/]*", "?": "[^/]"}.get(character) or re.escape(character)


def _followed(glob: str) -> str:
    """The glob with the links of its fixed part resolved."""
    parts = glob.split("/")
    fixed = next((number for number, part in enumerate(parts) if SPECIAL & set(part)), len(parts))
    return os.path.join(os.path.realpath("/".join(parts[:fixed]) or "/"), *parts[fixed:])
