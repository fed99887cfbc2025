"""Finding the text that an edit means, and what the file becomes.

All edits of a call are matched against the text as it is, so none depends on another and their order means nothing.
An exact match comes first; line ends never matter, since the model does not see them. Only if there is none, more is
overlooked, step by step, and then the place must be the only one. What was found is fitted into its surroundings
(`crow.tools.fitting`) before anybody is shown it.
"""

import bisect
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import accumulate, islice, pairwise
from typing import Annotated, NamedTuple

import msgspec

from crow.errors import WorkspaceError
from crow.tools.advice import OF_A_SESSION, Advice
from crow.tools.fitting import map_indents, with_characters_of, with_ends_of, with_lines_of, without_foreign_ends
from crow.tools.nearest import describe_nearest
from crow.workspace.endings import CRLF, first_line_end, usual_line_end, with_line_feeds

MOST_PLACES_NAMED = 20
MOST_PLACES = 1000
"""Places after which no more are looked for: it is ambiguous enough."""
MOST_REPLACED = 10_000
"""Places that the edits of one call may change."""
LARGEST_TEXT = 16 * 1024 * 1024
"""Characters of a file that is edited."""
LARGEST_TOLERANT = 4 * 1024 * 1024
"""Characters of a file in which anything is overlooked, or the nearest place looked for: that takes many times its size
in memory, and calls during which nothing else goes on."""
MOST_COMPARED = 100_000
"""Pairs of lines whose indents may be compared."""

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

_LETTERS = 1_000_000
"""Kinds of lines that can be told apart, fewer than there are characters."""
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


def plan_edits(
    text: str,
    edits: Sequence[TextEdit],
    *,
    exactly: bool = False,
    reveal: bool = True,
    advice: Advice = OF_A_SESSION,
) -> EditPlan:
    """Where each edit applies. WorkspaceError, in words for the model, if one does not, or not clearly.

    `reveal`: whether the words may quote the file, which the model has perhaps never been shown.
    """
    if len(text) > LARGEST_TEXT:
        raise WorkspaceError(
            f"The file is too large to be edited: it has {len(text):,} characters, and {LARGEST_TEXT:,} are the most.",
            remedy=advice.change_otherwise,
        )
    source = Source(text)
    found: list[Replacement] = []
    overlooked: list[str] = []
    for number, edit in enumerate(edits, 1):
        name = f"Edit {number}" if len(edits) > 1 else "The edit"
        matches, what = _match(source, _with_ends_of_the_file(text, edit), name, advice, exactly=exactly)
        if not matches:
            raise WorkspaceError(_not_found(source, edit, name, advice, reveal=reveal))
        if what:
            overlooked.append(f"{name} matched at line {source.line_of(matches[0].start)} by overlooking {what}.")
        if len(found) + len(matches) > MOST_REPLACED:
            raise WorkspaceError(
                f"{name} is too much for one call: more than {MOST_REPLACED:,} places would change.",
                remedy=advice.change_otherwise,
            )
        found += [source.replacement(match, number) for match in matches]
    return EditPlan(found, tuple(overlooked))


def _with_ends_of_the_file(text: str, edit: TextEdit) -> TextEdit:
    """Who writes LF in the old text and CR LF in the new one means it; else a file of LF alone gets no CR LF."""
    if "\n" in edit.old and CRLF not in edit.old:
        return edit
    return msgspec.structs.replace(edit, new=without_foreign_ends(text, edit.new))


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


def _match(source: Source, edit: TextEdit, name: str, advice: Advice, *, exactly: bool) -> tuple[list[Match], str]:
    """The places that an edit means, and what had to be overlooked to find them."""
    old = with_line_feeds(edit.old)
    if edit.all and (places := list(islice(_occurrences(source.plain, old, step=len(old)), MOST_REPLACED + 1))):
        return [Match(start, start + len(old), edit.new) for start in places], ""
    places = list(islice(_occurrences(source.plain, old), MOST_PLACES))
    if len(places) == 1:
        return [Match(places[0], places[0] + len(old), edit.new)], ""
    if places:
        lines = _said_lines(source, places)
        raise WorkspaceError(
            f"{name} is ambiguous: its old text occurs {_number(places)} times, at lines {lines}. "
            f"{advice.make_it_unique}"
        )
    if exactly or not old.strip() or len(source.text) > LARGEST_TOLERANT:
        return [], ""
    for what, places, fit in _tolerant(source, old, with_line_feeds(edit.new)):
        found = list(islice(places, MOST_PLACES_NAMED + 1))
        if len(found) == 1:
            return [fit(found[0])], what
        if found:
            lines = _said_lines(source, found)
            raise WorkspaceError(
                f"{name} is ambiguous: its old text is not there exactly, and by overlooking {what} it could be "
                f"meant at lines {lines}. Copy it exactly, with enough around it to be unique."
            )
    return [], ""


def _tolerant(source: Source, old: str, new: str) -> Iterator[tuple[str, Iterator[int], Callable[[int], Match]]]:
    """What is overlooked, where the old text is then, and what is to be done there."""
    yield "typographic characters", _by_characters(source, old), partial(_character_match, source, old, new)
    for what, keep_indent in (("blanks at the ends of lines", True), ("indentation", False)):
        lines = _Lines(source, old, keep_indent=keep_indent)
        yield what, lines.places(), partial(lines.match, new)


def _by_characters(source: Source, old: str) -> Iterator[int]:
    return _occurrences(source.unadorned, old.translate(_UNADORNED))


def _character_match(source: Source, old: str, new: str, start: int) -> Match:
    end = start + len(old)
    return Match(start, end, with_characters_of(source.plain[start:end], old, new))


class _Lines:
    """Whole lines that are the same but for blanks at their ends, or at both ends if the indents fit each other."""

    def __init__(self, source: Source, old: str, *, keep_indent: bool) -> None:
        self._source = source
        self._old = old
        self._old_lines = old.removesuffix("\n").split("\n")
        self._keep_indent = keep_indent

    def places(self) -> Iterator[int]:
        strip = str.rstrip if self._keep_indent else str.strip
        wanted = [strip(line.translate(_UNADORNED)) for line in self._old_lines]
        keys = [strip(line) for line in self._source.unadorned.split("\n")]
        compared = 0
        for first in _runs(keys, wanted):
            if compared > MOST_COMPARED:
                raise WorkspaceError(
                    "The lines of the old text are too much alike, and so are those of the file, to tell where it is "
                    "meant. Copy it exactly, with other lines around it."
                )
            compared += 0 if self._keep_indent else len(wanted)
            if self._indents(first) is not None:
                yield self._source.line_starts[first]

    def match(self, new: str, start: int) -> Match:
        first = bisect.bisect_left(self._source.line_starts, start)
        return _line_match(self._source, first, self._old, new, self._indents(first) or {})

    def _indents(self, first: int) -> dict[str, str] | None:
        if self._keep_indent:
            return {}
        return map_indents(self._old_lines, self._source.lines[first : first + len(self._old_lines)])


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


def _runs(keys: Sequence[str], wanted: Sequence[str]) -> Iterator[int]:
    """Where the lines follow each other. Each kind of line becomes a character: looking for those takes linear time."""
    letters = {key: chr(number) for number, key in enumerate(dict.fromkeys(wanted[:_LETTERS]), 1)}
    if len(wanted) <= min(len(keys), _LETTERS):
        text = "".join([letters.get(key, "\0") for key in keys])
        yield from _occurrences(text, "".join([letters[key] for key in wanted]))


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


def _not_found(source: Source, edit: TextEdit, name: str, advice: Advice, *, reveal: bool) -> str:
    told = f"{name} does not apply: its old text is not in the file."
    if not reveal:
        return f"{told} {advice.read_first}"
    if edit.old.strip() and all(_NUMBERED.match(line) for line in edit.old.split("\n") if line.strip()):
        return f"{told} It seems to contain line numbers: leave them out."
    if len(source.text) > LARGEST_TOLERANT:
        return f"{told} In a file of this size it must be copied exactly. {advice.read_again}"
    lines = [line.removesuffix("\r") for line in source.text.split("\n")]
    nearest = describe_nearest(lines, edit.old) or f"Nothing there is like it. {advice.read_again}"
    return f"{told} {nearest}"
