"""Applies replacements to a file's text: keeps line ends, merges or refuses those that overlap, and follows them into a
changed text.

New text gets the line ends of the text whose place it takes. Replacements in a text that somebody has changed meanwhile
are carried along, or given up.
"""

import bisect
import io
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

from crow.diff import Change, common_beginning, compare_lines, split_lines
from crow.errors import WorkspaceError
from crow.files.text import CRLF, first_line_end, usual_line_end, with_line_ends, with_line_feeds
from crow.tools.editing.forms import Form, Level

_CRLF = re.compile("\r\n")


class FileReplacement(NamedTuple):
    """What an edit does to the file's own text: `text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str
    edit: int
    """Whose it is, counted from 1."""


class PlainMatch(NamedTuple):
    """A place in the text with line feeds (`Source.plain`), and what is to stand there."""

    start: int
    end: int
    new: str


class Source:
    """A file's text and what is needed to look for something in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.plain = with_line_feeds(text)
        self._forms: dict[Level, Form] = {}

    def form(self, level: Level) -> Form:
        """The text in a form that overlooks something, made once."""
        if level not in self._forms:
            self._forms[level] = Form(self.plain, level)
        return self._forms[level]

    @cached_property
    def _pairs(self) -> list[int]:
        """Where a line feed of the plain text is a carriage return and a line feed in the real one."""
        return [found.start() - number for number, found in enumerate(_CRLF.finditer(self.text))]

    @cached_property
    def _has_returns(self) -> bool:
        return "\r" in self.text

    @cached_property
    def _usual_end(self) -> str:
        return usual_line_end(self.text)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(place + 1 for place in occurrences(self.plain, "\n"))]

    def range_of_line(self, number: int) -> range:
        """Where the characters of a line are, with its end; lines are counted from 1."""
        starts = [*self._starts[number - 1 : number + 1], len(self.plain), len(self.plain)] if number > 0 else [0, 0]
        return range(starts[0], starts[1])

    def line_start(self, plain: int) -> int:
        """Where the line begins that a place is in."""
        return self.plain.rfind("\n", 0, plain) + 1

    def offset(self, plain: int) -> int:
        return plain + bisect.bisect_left(self._pairs, plain)

    def line_of(self, plain: int) -> int:
        """Counted as `read` does: a lone carriage return ends no line."""
        return self.text.count("\n", 0, self.offset(plain)) + 1

    def replacement(self, match: PlainMatch, edit: int) -> FileReplacement:
        start, end = self.offset(match.start), self.offset(match.end)
        return FileReplacement(start, end, with_ends_of(self.text[start:end], match.new, self._line_end_at(end)), edit)

    def _line_end_at(self, place: int) -> str:
        """The next one; it is worth looking for only where there is more than one kind."""
        return (first_line_end(self.text, place) if self._has_returns else None) or self._usual_end


def occurrences(text: str, wanted: str, step: int = 1, *, first: int = 0, end: int | None = None) -> Iterator[int]:
    """Overlapping ones too, if the step is one: what can be read in two ways is not unique. `first` and `end` are the
    places between which they begin."""
    last = None if end is None else end - 1 + len(wanted)
    place = text.find(wanted, first, last)
    while place >= 0:
        yield place
        place = text.find(wanted, place + step, last)


def only_place(text: str, wanted: str) -> int | None:
    """Where the one occurrence is; None if there is none, or more than one."""
    place = text.find(wanted)
    return place if place >= 0 and text.find(wanted, place + 1) < 0 else None


# --- line ends


def with_ends_of(actual: str, new: str, default: str) -> str:
    """A new text for the place of the actual one: unchanged lines keep their ends, a changed one that of the old."""
    if ("\r" not in actual and default == "\n") or ("\n" not in new and "\r" not in new):
        return new
    new = with_line_feeds(new)
    old_lines, new_lines = split_lines(with_line_feeds(actual)), split_lines(new)
    actual_lines = split_lines_of_any_end(actual)
    usual = usual_line_end(actual) if first_line_end(actual) else default
    fitted: list[str] = []
    position = 0
    for change in compare_lines(old_lines, new_lines):
        fitted += actual_lines[position : change.old_start]
        ends = [first_line_end(line) or usual for line in actual_lines[change.old_start : change.old_end]] or [usual]
        for number, line in enumerate(new_lines[change.new_start : change.new_end]):
            fitted.append(with_line_ends(line, ends[min(number, len(ends) - 1)]))
        position = change.old_end
    return "".join(fitted + actual_lines[position:])


def without_foreign_ends(file: str, new: str) -> str:
    """A new text with no CR LF in it, for a file all of whose lines end in a line feed: its ends stay of one kind."""
    if CRLF not in new or "\n" not in file or "\r" in file:
        return new
    return new.replace(CRLF, "\n")


def split_lines_of_any_end(text: str) -> list[str]:
    """Joined, the lines are the text; a lone carriage return ends a line too."""
    return io.StringIO(text, newline="").readlines()


def replacement_after(before: str, line: int, text: str) -> FileReplacement:
    """The replacement of nothing by whole lines. After a last line without an end, that line gets one instead."""
    end = usual_line_end(before)
    fitted = with_ends_of("", without_foreign_ends(before, text), end)
    start = 0
    for _ in range(line):
        start = before.find("\n", start) + 1
        if start == 0:
            return FileReplacement(len(before), len(before), end + fitted, 1)
    return FileReplacement(start, start, fitted if fitted.endswith(("\n", "\r")) else fitted + end, 1)


# --- replacements in a text that somebody has changed meanwhile


def follow(replacements: Sequence[FileReplacement], before: str, now: str) -> list[FileReplacement] | None:
    """The same replacements in the text as it is now; None if one of the replaced texts was touched.

    A text that was the only one of its kind must still be. One of several is found by its lines: they must be
    unchanged, wherever they are by now.
    """
    tracks = _Tracks(before, now)
    moved: list[FileReplacement] = []
    only_places: dict[str, tuple[int | None, int | None]] = {}  # `all` means the same text many times over
    for replacement in replacements:
        old = before[replacement.start : replacement.end]
        if old not in only_places:
            only_places[old] = (only_place(before, old), only_place(now, old))
        was_at, is_at = only_places[old]
        start = is_at if was_at is not None else tracks.follow(replacement.start, replacement.end)
        if start is None:
            return None
        moved.append(replacement._replace(start=start, end=start + len(old)))
    return moved if _in_same_order(replacements, moved) else None


class _Tracks:
    """Where the lines of a text have gone to."""

    def __init__(self, before: str, now: str) -> None:
        before_lines, now_lines = split_lines(before), split_lines(now)
        self._changes = compare_lines(before_lines, now_lines)
        self._ends = [change.old_end for change in self._changes]
        self._before = [0, *accumulate(map(len, before_lines))]
        self._now = [0, *accumulate(map(len, now_lines))]

    def follow(self, start: int, end: int) -> int | None:
        """Where a text begins now, if its lines are unchanged."""
        first = bisect.bisect_right(self._before, start) - 1
        last = bisect.bisect_left(self._before, end) - 1
        passed = bisect.bisect_right(self._ends, first)
        if passed < len(self._changes) and self._changes[passed].old_start <= last:
            return None
        shift = self._changes[passed - 1].new_end - self._changes[passed - 1].old_end if passed else 0
        return self._now[first + shift] + start - self._before[first]


def _in_same_order(before: Sequence[FileReplacement], now: Sequence[FileReplacement]) -> bool:
    order = sorted(range(len(before)), key=lambda number: before[number][:2])
    return all(now[one].start <= now[other].start for one, other in pairwise(order))


# --- what the file becomes


def apply(text: str, replacements: Sequence[FileReplacement]) -> str:
    """The text with everything replaced. Edits may share surroundings, but not what they change."""
    pieces: list[str] = []
    position = 0
    for core in _cores(text, replacements):
        pieces += [text[position : core.start], core.new]
        position = core.end
    return "".join([*pieces, text[position:]])


def _cores(text: str, replacements: Sequence[FileReplacement]) -> list[FileReplacement]:
    """What the replacements really change, in order. WorkspaceError if two of them change the same."""
    cores: list[FileReplacement] = []
    for group in _overlapping(replacements):
        cores += [_core(text, group[0])] if len(group) == 1 else _merged(text, group)
    for one, other in pairwise(cores):
        if other.start == one.end == one.start and not _may_follow(text, one, other):
            raise _overlap(text, one, other)
    return cores


def _core(text: str, replacement: FileReplacement) -> FileReplacement:
    """Without the beginning and the end that the old and the new text have in common."""
    old, new = text[replacement.start : replacement.end], replacement.new
    head = common_beginning(old, new)
    tail = common_beginning(old[head:][::-1], new[head:][::-1])
    return replacement._replace(
        start=replacement.start + head, end=replacement.end - tail, new=new[head : len(new) - tail]
    )


def _overlapping(replacements: Sequence[FileReplacement]) -> list[list[FileReplacement]]:
    """The replacements in order, those together that have a part of the text in common."""
    groups: list[list[FileReplacement]] = []
    end = -1
    for replacement in sorted(replacements, key=lambda one: (one.start, one.end)):
        if replacement.start < end:
            groups[-1].append(replacement)
        else:
            groups.append([replacement])
        end = max(end, replacement.end)
    return groups


def _merged(text: str, group: Sequence[FileReplacement]) -> list[FileReplacement]:
    """For replacements that overlap: the lines that each of them changes. Two may change a line only in the same way.

    Merged by lines and never by characters: what two edits make of one line is what neither of them says.
    """
    start, end = group[0].start, max(one.end for one in group)
    lines = split_lines(text[start:end])
    offsets = [start, *(start + length for length in accumulate(map(len, lines)))]
    found: list[FileReplacement] = []
    for one in group:
        new = split_lines(text[start : one.start] + one.new + text[one.end : end])
        for change in _line_by_line(compare_lines(lines, new)):
            made = "".join(new[change.new_start : change.new_end])
            found.append(FileReplacement(offsets[change.old_start], offsets[change.old_end], made, one.edit))
    merged: list[FileReplacement] = []
    for one in sorted(found, key=lambda one: (one.start, one.end)):
        last = merged[-1] if merged else None
        if last is not None and one[:3] == last[:3]:
            continue
        inserted = last is not None and one.start == one.end == last.start
        if last is not None and (one.start < last.end or (inserted and not _may_follow(text, last, one))):
            raise _overlap(text, last, one)
        merged.append(one)
    return merged


def _line_by_line(changes: Sequence[Change]) -> Iterator[Change]:
    """Changes of as many lines into as many, each line by itself."""
    for change in changes:
        count = change.old_end - change.old_start
        if count != change.new_end - change.new_start:
            yield change
            continue
        for number in range(count):
            old, new = change.old_start + number, change.new_start + number
            yield Change(old, old + 1, new, new + 1)


def _may_follow(text: str, one: FileReplacement, other: FileReplacement) -> bool:
    """Whether two texts that are inserted at one place can stand there one after the other: if both are whole lines."""
    begins = one.start == 0 or text[one.start - 1] == "\n"
    ends = one.start == len(text) or text[one.start] in "\r\n"
    return all(
        (begins and core.new.endswith("\n")) or (ends and core.new.startswith(("\n", "\r"))) for core in (one, other)
    )


def _overlap(text: str, one: FileReplacement, other: FileReplacement) -> WorkspaceError:
    line = text.count("\n", 0, max(one.start, other.start)) + 1
    first, second = sorted((one.edit, other.edit))
    return WorkspaceError(
        f"Edits {first} and {second} overlap at line {line}, and each makes something else of it. Nothing was changed.",
        advice="Make one edit of them.",
    )


def joined_with(text: str, first: Sequence[FileReplacement], then: Sequence[FileReplacement]) -> list[FileReplacement]:
    """One list of replacements for two that follow each other: the second is about what the first made."""
    joined = _cores(text, first)
    for late in sorted(then, key=lambda replacement: replacement.start, reverse=True):
        joined = _with_late(text, joined, late)
    return joined


def _with_late(text: str, cores: Sequence[FileReplacement], late: FileReplacement) -> list[FileReplacement]:
    """`late` is about the text with the cores replaced: those that it touches become one with it."""
    before: list[FileReplacement] = []
    touched: list[FileReplacement] = []
    after: list[FileReplacement] = []
    grown = start_shift = end_shift = 0
    head = tail = ""
    for core in cores:
        start = core.start + grown
        end = start + len(core.new)
        grown += len(core.new) - (core.end - core.start)
        if end < late.start or (end == late.start and start < late.start):
            before.append(core)
            start_shift = end_shift = grown
        elif start > late.end or (start == late.end and late.start < late.end):
            after.append(core)
        else:
            touched.append(core)
            head = core.new[: max(0, late.start - start)] if len(touched) == 1 else head
            tail = core.new[max(0, late.end - start) :] if late.end < end else ""
            end_shift = grown
    start = min([late.start - start_shift, *(core.start for core in touched)])
    end = max([late.end - end_shift, *(core.end for core in touched)])
    return [*before, FileReplacement(start, end, head + late.new + tail, late.edit), *after]
