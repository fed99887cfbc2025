"""Finding the text that an edit means, and what the file becomes.

All edits of a call are matched against the text as it is, so none depends on another and their order means nothing.
An exact match comes first; line ends never matter, since the model does not see them. Only if there is none, more is
overlooked, step by step, and then the place must be the only one. What was found is fitted into its surroundings
(`crow.tools.fitting`) before anybody is shown it.
"""

import bisect
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, islice, pairwise
from typing import Annotated, NamedTuple

import msgspec

from crow.errors import WorkspaceError
from crow.tools.fitting import map_indents, with_characters_of, with_ends_of, with_lines_of
from crow.tools.nearest import describe_nearest
from crow.workspace.endings import first_line_end, usual_line_end, with_line_feeds

MOST_PLACES_NAMED = 20
MOST_PLACES = 1000
"""Places after which no more are looked for: it is ambiguous enough."""

_UNADORNED = str.maketrans(
    {
        # \x91 to \x97 are what Windows has there, in a file that was taken for Latin-1.
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\x91\x92", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\x93\x94", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\x96\x97", "-"),
        **dict.fromkeys("\u00a0\u2007\u2009\u202f", " "),
    }
)
"""Typographic characters and the one that a keyboard has for each: one for one, so that offsets stay."""

_CRLF = re.compile("\r\n")
_NUMBERED = re.compile(r"\s*\d+\t")


class TextEdit(msgspec.Struct, frozen=True):
    old: Annotated[str, msgspec.Meta(description="text to be replaced, with enough around it to be unique")]
    new: Annotated[str, msgspec.Meta(description="what takes its place")]
    all: Annotated[bool, msgspec.Meta(description="replace every occurrence")] = False


class Replacement(NamedTuple):
    """`text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str
    edit: int
    """Whose it is, counted from 1."""


class EditPlan(NamedTuple):
    replacements: list[Replacement]
    overlooked: tuple[str, ...] = ()
    """What had to be overlooked for a match, in words for the model."""


def plan_edits(text: str, edits: Sequence[TextEdit], *, exactly: bool = False, reveal: bool = True) -> EditPlan:
    """Where each edit applies. WorkspaceError, in words for the model, if one does not, or not clearly.

    `reveal`: whether the words may quote the file, which the model has perhaps never been shown.
    """
    source = Source(text)
    found: list[Replacement] = []
    overlooked: list[str] = []
    for number, edit in enumerate(edits, 1):
        name = f"Edit {number}" if len(edits) > 1 else "The edit"
        matches, what = _match(source, edit, name, exactly=exactly)
        if not matches:
            raise WorkspaceError(_not_found(source, edit, name, reveal=reveal))
        if what:
            overlooked.append(f"{name} matched at line {source.line_of(matches[0].start)} by overlooking {what}.")
        found += [source.replacement(match, number) for match in matches]
    return EditPlan(found, tuple(overlooked))


def occurs_several_times(text: str, edit: TextEdit) -> bool:
    """Whether an edit that means one place could have meant another in this text."""
    places = _occurrences(with_line_feeds(text), with_line_feeds(edit.old))
    return not edit.all and next(places, None) is not None and next(places, None) is not None


def apply(text: str, replacements: Sequence[Replacement]) -> str:
    """The text with everything replaced. Edits may share surroundings, but not what they change."""
    cores = sorted((_core(text, replacement) for replacement in replacements), key=lambda core: (core.start, core.end))
    for one, other in pairwise(cores):
        if other.start < one.end:
            line = text.count("\n", 0, other.start) + 1
            raise WorkspaceError(f"Edits {one.edit} and {other.edit} overlap at line {line}. Make one edit of them.")
    pieces: list[str] = []
    position = 0
    for core in cores:
        pieces += [text[position : core.start], core.new]
        position = core.end
    return "".join([*pieces, text[position:]])


class Match(NamedTuple):
    """A place in the text with line feeds, and what is to stand there."""

    start: int
    end: int
    new: str


class Source:
    """A file's text and what is needed to look for something in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.plain = with_line_feeds(text)

    @cached_property
    def lines(self) -> list[str]:
        return self.plain.split("\n")

    @cached_property
    def line_starts(self) -> list[int]:
        return [0, *accumulate(len(line) + 1 for line in self.lines)]

    @cached_property
    def unadorned(self) -> str:
        return self.plain.translate(_UNADORNED)

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

    def offset(self, plain: int) -> int:
        return plain + bisect.bisect_left(self._pairs, plain)

    def line_of(self, plain: int) -> int:
        """Counted as `read` does: a lone carriage return ends no line."""
        return self.text.count("\n", 0, self.offset(plain)) + 1

    def replacement(self, match: Match, edit: int) -> Replacement:
        start, end = self.offset(match.start), self.offset(match.end)
        return Replacement(start, end, with_ends_of(self.text[start:end], match.new, self._line_end_at(end)), edit)

    def _line_end_at(self, place: int) -> str:
        """The next one; it is worth looking for only where there is more than one kind."""
        return (first_line_end(self.text, place) if self._has_returns else None) or self._usual_end


# --- from exact to tolerant


def _match(source: Source, edit: TextEdit, name: str, *, exactly: bool) -> tuple[list[Match], str]:
    """The places that an edit means, and what had to be overlooked to find them."""
    old = with_line_feeds(edit.old)
    if edit.all and (places := list(_occurrences(source.plain, old, step=len(old)))):
        return [Match(start, start + len(old), edit.new) for start in places], ""
    places = list(islice(_occurrences(source.plain, old), MOST_PLACES))
    if len(places) == 1:
        return [Match(places[0], places[0] + len(old), edit.new)], ""
    if places:
        lines = _said_lines(source, places)
        raise WorkspaceError(
            f"{name} is ambiguous: its old text occurs {_number(places)} times, at lines {lines}. "
            "Add lines around it until it is unique, or set `all` to replace every one."
        )
    if exactly or not old.strip():
        return [], ""
    for what, matches in _tolerant(source, old, edit.new):
        if len(matches) == 1:
            return matches, what
        if matches:
            lines = _said_lines(source, [match.start for match in matches])
            raise WorkspaceError(
                f"{name} is ambiguous: its old text is not there exactly, and by overlooking {what} it could be "
                f"meant at lines {lines}. Copy it exactly, with enough around it to be unique."
            )
    return [], ""


def _tolerant(source: Source, old: str, new: str) -> Iterator[tuple[str, list[Match]]]:
    yield "typographic characters", list(_by_characters(source, old, new))
    yield "blanks at the ends of lines", list(_by_lines(source, old, new, keep_indent=True))
    yield "indentation", list(_by_lines(source, old, new, keep_indent=False))


def _by_characters(source: Source, old: str, new: str) -> Iterator[Match]:
    for start in islice(_occurrences(source.unadorned, old.translate(_UNADORNED)), MOST_PLACES_NAMED + 1):
        end = start + len(old)
        yield Match(start, end, with_characters_of(source.plain[start:end], old, with_line_feeds(new)))


def _by_lines(source: Source, old: str, new: str, *, keep_indent: bool) -> Iterator[Match]:
    """Whole lines that are the same but for blanks at their ends, or at both ends if the indents fit each other."""
    strip = str.rstrip if keep_indent else str.strip
    old_lines = old.removesuffix("\n").split("\n")
    wanted = [strip(line.translate(_UNADORNED)) for line in old_lines]
    keys = [strip(line) for line in source.unadorned.split("\n")]
    for first in islice(_runs(keys, wanted), MOST_PLACES):
        actual = source.lines[first : first + len(old_lines)]
        indents = {} if keep_indent else map_indents(old_lines, actual)
        if indents is not None:
            yield _line_match(source, first, old, with_line_feeds(new), indents)


def _line_match(source: Source, first: int, old: str, new: str, indents: dict[str, str]) -> Match:
    old_lines = old.removesuffix("\n").split("\n")
    last = first + len(old_lines) - 1
    actual = source.lines[first : last + 1]
    start, end = source.line_starts[first], source.line_starts[last] + len(actual[-1])
    if old.endswith("\n"):
        if last + 1 < len(source.lines):
            end += 1
        else:
            new = new.removesuffix("\n")  # the last line of a file that does not end with a line end
    if not new:
        return Match(start, end, new)
    ending = "\n" if new.endswith("\n") else ""
    fitted = with_lines_of(actual, old_lines, new.removesuffix("\n").split("\n"), indents)
    return Match(start, end, "\n".join(fitted) + ending)


def _runs(keys: list[str], wanted: list[str]) -> Iterator[int]:
    first = -1
    while True:
        try:
            first = keys.index(wanted[0], first + 1)
        except ValueError:
            return
        if keys[first : first + len(wanted)] == wanted:
            yield first


def _occurrences(text: str, wanted: str, step: int = 1) -> Iterator[int]:
    """Overlapping ones too, if the step is one: what can be read in two ways is not unique."""
    place = text.find(wanted)
    while place >= 0:
        yield place
        place = text.find(wanted, place + step)


# --- what the file becomes


def _core(text: str, replacement: Replacement) -> Replacement:
    """Without the beginning and the end that the old and the new text have in common."""
    old, new = text[replacement.start : replacement.end], replacement.new
    head = common_beginning(old, new)
    tail = common_beginning(old[head:][::-1], new[head:][::-1])
    return replacement._replace(
        start=replacement.start + head, end=replacement.end - tail, new=new[head : len(new) - tail]
    )


def common_beginning(one: str, other: str) -> int:
    """How many characters two texts begin with in common; compares halves, so it costs little for long ones."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


# --- in words


def _number(places: Sequence[int]) -> str:
    return str(len(places)) if len(places) < MOST_PLACES else f"{MOST_PLACES} or more"


def _said_lines(source: Source, places: Sequence[int]) -> str:
    lines = [str(source.line_of(place)) for place in places[:MOST_PLACES_NAMED]]
    more = f" and {len(places) - MOST_PLACES_NAMED} more" if len(places) > MOST_PLACES_NAMED else ""
    return ", ".join(lines) + more


def _not_found(source: Source, edit: TextEdit, name: str, *, reveal: bool) -> str:
    told = f"{name} does not apply: its old text is not in the file."
    if not reveal:
        return f"{told} Read the file first."
    if edit.old.strip() and all(_NUMBERED.match(line) for line in edit.old.split("\n") if line.strip()):
        return f"{told} It seems to contain line numbers: leave them out."
    lines = [line.removesuffix("\r") for line in source.text.split("\n")]
    return f"{told} {describe_nearest(lines, edit.old)}"
