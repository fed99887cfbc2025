"""Methods that a model writes from the first column, in the midst of the class that they belong to.

Python reads them as functions behind the class, and what follows of the class as a part of them: the file stays sound,
so that no compiler tells.
"""

import re
from collections.abc import Sequence

from crow.errors import WorkspaceError
from crow.tools.editing.forms import STRIPPED
from crow.tools.editing.indents import indent_of
from crow.tools.editing.places import Match
from crow.tools.editing.soundness import compiles, is_python

_STARTS = ("def ", "async def ", "@")
_BEGINS = re.compile(r"(?m)^(?=(?:async )?def |@)")
_FUNCTION = re.compile(r"(?m)^(?:async )?def (\w+)")
_METHOD = re.compile(r"(?m)^(?:async )?def \w+\(\s*(?:self|cls)\b")
_OTHER = re.compile(r"(?m)^(?!(?:async )?def |[@)#])\S")
"""A line that begins in the first column and that no method has there."""


def has_functions(path: str, old: str, new: str) -> bool:
    """Whether an edit of Python writes functions from the first column, and replaces none there."""
    written = new.startswith(_STARTS) or any(f"\n{start}" in new for start in _STARTS)
    return written and is_python(path) and _BEGINS.search(old, old.find("\n") + 1) is None


def match_of_methods(text: str, place: int, old: str, new: str) -> Match | None:
    """What an edit is to be that adds methods after a line of one: they are indented as that. None for any other."""
    found = _BEGINS.search(new, new.find("\n") + 1)
    begins, end = text.rfind("\n", 0, place) + 1, place + len(old)
    indent = _indent_of_method(text, place)
    following = indent_of(_next_line(text, end))
    if found is None or not indent or text[begins:place].strip(STRIPPED) or len(following) > len(indent):
        return None
    if begins == place and following != indent:  # the line has its indent, and nothing is taken over
        return None
    head, added = new[: found.start()], new[found.start() :]
    if len(_FUNCTION.findall(added)) != len(_METHOD.findall(added)) or _OTHER.search(added):
        return None
    lines = [indent + line if line.strip(STRIPPED) else line for line in added.split("\n")]
    match = Match(place, end, head + "\n".join(lines))
    return match if compiles(text[:place] + match.new + text[end:]) else None


def check_classes(text: str, match: Match, name: str) -> None:
    """WorkspaceError if methods of the file become a part of a function that a match writes, or it one of a method."""
    indent = _indent_of_method(text, match.start)
    if not indent:
        return
    begins = text.rfind("\n", 0, match.start) + 1
    lines = [*(text[begins : match.start] + match.new).split("\n"), _next_line(text, match.end)]
    known = {lines[-1], *text[begins : match.end].split("\n")}
    for number, line in enumerate(lines):
        if not _is_method(line):
            continue
        around = _function_around(lines, number)
        is_nested = around is None and 0 < number < len(lines) - 1 and len(indent_of(line)) > len(indent)
        if is_nested or (around is not None and line in known):
            raise WorkspaceError(
                f"{name} is unclear: as its new text is indented, `{line.strip(STRIPPED)[:100]}` would become a part "
                f"of {around or 'the method before it'}. Nothing was changed.",
                remedy="Copy the old text exactly, and write each line of the new one with the indent it is to have.",
            )


def _is_method(line: str) -> bool:
    return _METHOD.match(line.strip(STRIPPED)) is not None


def _function_around(lines: Sequence[str], at: int) -> str | None:
    """The function among the lines that the one at a number is a part of, in words; None if there is none."""
    level = len(indent_of(lines[at]))
    for line in reversed(lines[:at]):
        body = line.strip(STRIPPED)
        if not body or len(indent_of(line)) >= level:
            continue
        level = len(indent_of(line))
        if (found := _FUNCTION.match(body)) is not None:
            return f"`{found[1]}`"
        if body.startswith("class "):
            return None
    return None


def _indent_of_method(text: str, place: int) -> str:
    """The indent of the method that a place is in; empty if it is in none."""
    begins, end = text.rfind("\n", 0, place) + 1, text.find("\n", place)
    if text[begins : begins + 1] not in STRIPPED:
        return ""
    lines = text[: end if end >= 0 else len(text)].split("\n")
    level = len(indent_of(lines[-1])) + 1
    for line in reversed(lines):
        indent, body = indent_of(line), line.strip(STRIPPED)
        if body and len(indent) < level:
            level = len(indent)
            if _is_method(body):
                return indent
    return ""


def _next_line(text: str, end: int) -> str:
    """The next line after that of a place which is not blank; empty if there is none."""
    after = end - 1 if text[end - 1 : end] == "\n" else text.find("\n", end)
    rest = text[after + 1 :] if after >= 0 else ""
    return next((line for line in rest.split("\n") if line.strip(STRIPPED)), "")
