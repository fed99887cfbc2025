"""Reads line numbers that a model copied into an edit, and finds out what stands between them and the text.

Where the numbers are those of the file, its own lines decide how many blanks belong to them. Else the marks must leave
no choice, or only one choice be in the file: nothing is guessed that would shift a line.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from crow.tools.editing import EditInterpretation
from crow.tools.editing.forms import STRIPPED

WHAT = "line numbers"
_BLANKS_UNCLEAR = "how many blanks belong to its line numbers cannot be told"
_NEW_UNCLEAR = "whether its new text has line numbers too, and which lines of it, cannot be told"

_NUMBER = re.compile(r"([ \t]*L?)(\d{1,7})(.*)", re.DOTALL)
_MARK = re.compile(r"\t|[ ]?[|│→:]|-")
_SEPARATOR = re.compile(r"\t|[ ]{0,2}[|│→:-][ ]{0,2}|[ ]{1,4}")
_LONGEST_SEPARATOR = 5


class _NumberedLine(NamedTuple):
    """A line with a number before it."""

    lead: str
    number: int
    rest: str
    """All that follows the number: a separator and what the line of the file holds."""
    width: int
    """Characters of the number, with what is before it."""

    @classmethod
    def of(cls, line: str) -> "_NumberedLine | None":
        found = _NUMBER.fullmatch(line)
        return None if found is None else cls(found[1], int(found[2]), found[3], found.end(2))

    def begins_with(self, separator: str) -> bool:
        return _alike(self.rest[: len(separator)]) == separator or _alike(self.rest.rstrip()) == separator.rstrip()

    def without(self, separator: str) -> str:
        return self.rest[len(separator) :]


def _alike(separator: str) -> str:
    """`grep` and `search` have `:` behind the number of a line that matches, and `-` behind those around it."""
    return separator.replace("-", ":")


# --- marks that no file can have by chance in all of its lines


class _Marked(NamedTuple):
    number: int
    mark: str
    rest: str


def numbers_of(text: str) -> list[int]:
    """The numbers that all lines of a text begin with, as `read` writes them; empty if they do not."""
    return [line.number for line in _marked_lines(text)]


def numbered_rests(text: str) -> list[str]:
    """What stands behind these numbers."""
    return [line.rest for line in _marked_lines(text)]


def _marked_lines(text: str) -> list[_Marked]:
    """The lines that are not blank, if all of them are numbered in one way and upwards; else none."""
    marked: list[_Marked] = []
    for line in text.split("\n"):
        if line.strip():
            if (found := _NumberedLine.of(line)) is None or (mark := _MARK.match(found.rest)) is None:
                return []
            marked.append(_Marked(found.number, mark[0], found.rest[mark.end() :]))
    upwards = all(one.number < other.number for one, other in pairwise(marked))
    marks = {line.mark for line in marked}
    one_way = marks == {":", "-"} or len(marks) == 1  # `search` has the one and the other
    if marks == {"-"} and not all(line.rest.startswith(" ") or not line.rest for line in marked):
        one_way = len(marked) > 1  # `1-2` is a range
    return marked if upwards and one_way else []


# --- what an edit is without them


def without_numbers(old: str, new: str, file: Sequence[str]) -> EditInterpretation | None:
    """What an edit is without the line numbers of its old text, for a file of these lines."""
    lines = old.split("\n")
    numbered = [_NumberedLine.of(line) for line in lines]
    if (there := _separator_there(numbered, lines, file)) is not None:
        first, separator = there
        return _without(numbered, separator, new, line=first, only_there=True)
    if not (marked := _marked_lines(old)):
        return None
    mark = _alike(marked[0].mark)
    readings = [mark]
    if mark != "\t" and all(not line.rest or line.rest.startswith(" ") for line in marked):
        readings.append(f"{mark} ")
    found = [_without(numbered, separator, new, line=marked[0].number) for separator in readings]
    if len(found) > 1:
        text = "\n".join(["", *file])
        exact = [one for one in found if f"\n{one.old}" in text]
        found = exact if len(exact) == 1 else [found[-1]._replace(problem=_BLANKS_UNCLEAR)]
    return found[0]


def _separator_there(
    numbered: Sequence[_NumberedLine | None], lines: Sequence[str], file: Sequence[str]
) -> tuple[int, str] | None:
    """The number of the first line, and what stands behind the numbers, if they and the text are those of the file."""
    if numbered[0] is None:
        return None
    first = numbered[0].number
    separators: list[str] | None = None
    for number, (line, written) in enumerate(zip(numbered, lines, strict=True), first):
        if not 0 < number <= len(file):  # behind the file's last line only its own line end may stand
            return (first, separators[0]) if separators and not "".join(lines[number - first :]).strip() else None
        actual = file[number - 1]
        if line is None:
            if written.strip() or (actual.strip() and number - first < len(lines) - 1):
                return None
            continue
        if line.number != number:
            return None
        if not actual.strip():
            if line.rest.strip() and not _SEPARATOR.fullmatch(line.rest.rstrip()):
                return None
            continue
        found = [one for one in _separators(line.rest) if separators is None or _alike(one) in separators]
        separators = [_alike(one) for one in found if _is_line(line.rest[len(one) :], actual)]
        if not separators:
            return None
    return (first, separators[0]) if separators else None


def _separators(rest: str) -> Iterator[str]:
    for length in range(1, _LONGEST_SEPARATOR + 1):
        if _SEPARATOR.fullmatch(rest[:length]) and len(rest) >= length:
            yield rest[:length]


def _is_line(text: str, actual: str) -> bool:
    """Whether a text is a line of the file, but for blanks at its end."""
    return text.rstrip(STRIPPED) == actual.rstrip(STRIPPED)


def _without(
    numbered: Sequence[_NumberedLine | None], separator: str, new: str, *, line: int, only_there: bool = False
) -> EditInterpretation:
    known = [one for one in numbered if one is not None]
    old = "\n".join("" if one is None else one.without(separator) for one in numbered)
    meant, problem = _new_without(new, known, separator)
    return EditInterpretation(WHAT, old, meant, line, only_there, problem)


def _new_without(new: str, known: Sequence[_NumberedLine], separator: str) -> tuple[str, str]:
    """The new text without numbers like those of the old one, and why it cannot be told what it is without them."""
    lines = new.split("\n")
    found = [_like(line, known[0], separator) for line in lines]
    numbers = [one.number for one in found if one is not None]
    if not numbers:
        return new, ""
    meant = "\n".join(
        line if one is None else one.without(separator)
        for line, one in ((line if line.strip() else "", one) for line, one in zip(lines, found, strict=True))
    )
    all_numbered = all(one is not None for line, one in zip(lines, found, strict=True) if line.strip())
    copied = any(one in known for one in found if one is not None)
    is_clear = all(one < other for one, other in pairwise(numbers)) and (
        copied if not all_numbered else copied or numbers[0] == known[0].number
    )
    if not all_numbered and not separator.strip(" "):
        is_clear = False  # nothing but blanks: a number may as well be the line's own
    if not all(one is None or one.begins_with(separator) for one in found):
        is_clear = False
    if any(_like(one.without(separator), known[0], separator) for one in known):  # the file has such numbers itself
        is_clear = all_numbered and all(_like(line, known[0], separator) for line in meant.split("\n") if line.strip())
    return meant, "" if is_clear else _NEW_UNCLEAR


def _like(line: str, known: _NumberedLine, separator: str) -> _NumberedLine | None:
    """A line that begins with a number in the way of a known one."""
    found = _NumberedLine.of(line)
    if found is None or (found.lead and found.width != known.width):
        return None
    mark = separator.strip(" ")
    if not mark:
        return found if not found.rest or found.rest[0] == " " else None
    return found if _alike(found.rest.lstrip(" ")).startswith(mark) else None


AS_READ = re.compile(r"(?m)^(?=.{6}\t) *(\d{1,6})\t")
"""A number as `read` writes it."""
