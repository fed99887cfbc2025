"""Finds an edit's old text where it is not in the file as it was written: overlooks blanks, look-alikes and indents,
step by step.

An interpretation (`interpretations`) says what the edit may have been meant to be, a form (`forms`) what does not count
when it is looked for. All of it costs something only after an exact search has failed.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from crow.errors import WorkspaceError
from crow.tools.editing import EditInterpretation
from crow.tools.editing.forms import LADDER, STRIPPED, Form, Level, is_word, plain_form, with_escapes_of
from crow.tools.editing.indents import LineFit, indent_of
from crow.tools.editing.interpretations import other_interpretations, with_line_ends_meant
from crow.tools.editing.replacements import PlainMatch, Source, occurrences
from crow.tools.editing.soundness import compiles, is_code

MOST_PLACES = 1000
"""Places after which no more are looked for: it is ambiguous enough."""
MOST_NAMED = 21
"""Places that are looked for where only one can be meant."""
MOST_COMPARED = 100_000
"""Lines that may be compared with those of an old text at places where it does not fit."""


class TolerantMatches(NamedTuple):
    """Places that an old text may mean, all of them found by overlooking the same."""

    what: str
    """What was overlooked, in words."""
    matches: list[PlainMatch]
    exact: EditInterpretation | None = None
    """What the edit was read as, if that is in the file as it is."""
    line: int | None = None
    """The line that the model said it is at."""
    problem: str = ""
    """Why the new text cannot be read in the same way."""


def tolerant_matches(source: Source, old: str, new: str, *, every: bool, path: str = "") -> Iterator[TolerantMatches]:
    """The places by what had to be overlooked, from little to much. Nothing is yielded for what gives no place.

    `every`: whether all places are meant. Else the new text is fitted only where the place is the only one.
    """
    interpretations = [
        _with_line_ends(path, interpretation)
        for interpretation in (EditInterpretation("", old, new), *other_interpretations(old, new, source.plain))
    ]
    most = MOST_PLACES if every else MOST_NAMED
    for interpretation in interpretations[1:]:
        places = list(islice(_exact_places(source, interpretation), most)) if interpretation.old.strip() else []
        if places:
            length = len(interpretation.old)
            matches = [PlainMatch(place, place + length, interpretation.new) for place in places]
            yield TolerantMatches(
                interpretation.what, matches, interpretation, interpretation.line, interpretation.problem
            )
    for interpretation in interpretations:
        yield from _by_form(source, interpretation, path, most=most)
    for level, what, mark in (
        (Level.ENTITIES, "HTML entities", "&"),
        (Level.ESCAPES, "escapes that are missing", "\\"),
    ):
        if mark in source.plain:
            matches = list(islice(_unescaped_places(source, level, old, new), most))
            if matches:
                yield TolerantMatches(what, matches)


def _exact_places(source: Source, interpretation: EditInterpretation) -> Iterator[int]:
    if not interpretation.only_there:
        places = occurrences(source.plain, interpretation.old)
        return (place for place in places if _is_there(source, interpretation, place))
    line = source.range_of_line(interpretation.line or 0)
    return occurrences(source.plain, interpretation.old, first=line.start, end=line.stop)


def _is_there(source: Source, interpretation: EditInterpretation, place: int) -> bool:
    """Whether a place is where an interpretation must be to be one: with numbers, it is the beginning of a line."""
    if interpretation.only_there:
        return place in source.range_of_line(interpretation.line or 0)
    return interpretation.line is None or source.line_start(place) == place


def _with_line_ends(path: str, interpretation: EditInterpretation) -> EditInterpretation:
    """A new text whose line ends are written out, though there are none in the old one, with line ends."""
    meant = with_line_ends_meant(path, interpretation.new) if "\\n" not in interpretation.old else None
    return interpretation if meant is None else interpretation._replace(new=meant)


def corrected_matches(source: Source, place: int, old: str, new: str) -> Iterator[tuple[str, PlainMatch]]:
    """For an old text that is there exactly: what else its new text may be meant as, and what is overlooked then."""
    literal = PlainMatch(place, place + len(old), new)
    begins = source.line_start(place)
    before = source.plain[begins:place]
    if not before.strip(STRIPPED) and not old.startswith("\n"):
        for match in (_indented(source, begins, place, old, new), _first_indented(before, literal, old)):
            if match is not None and match != literal:
                yield "indentation", match
    if not new.isascii():
        plain = "".join(map(plain_form, new))
        if plain != new:
            yield "look-alike characters", literal._replace(new=plain)


def _indented(source: Source, begins: int, place: int, old: str, new: str) -> PlainMatch | None:
    """For one line that was copied without its indent, or with a part of it, where new lines are added to it: they get
    the rest of that indent."""
    if begins == place or "\n" in old.strip("\n") or "\n" not in new:
        return None
    end = place + len(old.rstrip("\n"))
    fit = LineFit([source.plain[begins:end]], [old.rstrip("\n")])
    block = _Block.of(new)
    lines = new.split("\n")
    fitted = "\n".join(fit.fit(lines[: len(lines) - block.newlines_after])) + "\n" * block.newlines_after
    return PlainMatch(begins, place + len(old), fitted)


def _first_indented(before: str, literal: PlainMatch, old: str) -> PlainMatch | None:
    """For lines of which the first has its indent in one of the texts alone: it is to have it once."""
    first = indent_of(literal.new.split("\n", 1)[0])
    if before and first.startswith(before) and not indent_of(old):
        return literal._replace(new=literal.new.removeprefix(before))
    if not before and not first and indent_of(old.split("\n", 1)[0]):
        return literal._replace(new=indent_of(old.split("\n", 1)[0]) + literal.new)
    return None


def match_in_block(source: Source, place: int, old: str, new: str) -> PlainMatch | None:
    """For a line of Python that was copied without its indent, and others right below it that are written like it:
    they are in its block. Taken as they are written, the first of them would end it."""
    lines = new.rstrip("\n").split("\n")
    begins = source.line_start(place)
    if len(lines) < 2 or begins == place or source.plain[begins:place].strip(STRIPPED):
        return None
    is_block = all(line.strip(STRIPPED) for line in lines) and indent_of(lines[0]) == indent_of(lines[1]) == indent_of(
        old
    )
    match = _indented(source, begins, place, old, new) if is_block and compiles(lines[0].strip(STRIPPED)) else None
    if match is None or not compiles(source.plain[: match.start] + match.new + source.plain[match.end :]):
        return None
    return match


def match_without_first(source: Source, place: int, old: str, new: str) -> PlainMatch | None:
    """For lines of which the first was copied without its indent and then taken away: the next keeps its own."""
    begins = source.line_start(place)
    if begins == place or source.plain[begins:place].strip(STRIPPED) or "\n" not in old.strip("\n"):
        return None
    mine, lines = old.split("\n"), new.split("\n")
    first = lines[0].strip(STRIPPED)
    kept = next((line for line in mine[1:] if line.strip(STRIPPED) == first), None) if first else None
    if kept is None or first == mine[0].strip(STRIPPED) or lines[0] == kept:
        return None
    if len(_content(lines)) == 1 and len(indent_of(kept)) > place - begins:
        return None  # the line before it was the head of its block
    indents = {line.strip(STRIPPED): indent_of(line) for line in mine[1:]}
    if any(indents.get(line.strip(STRIPPED), indent_of(line)) != indent_of(line) for line in lines[1:]):
        return None  # all of the lines were moved, and the first with them
    return PlainMatch(begins, place + len(old), "\n".join([indent_of(kept) + lines[0].lstrip(STRIPPED), *lines[1:]]))


# --- by forms


def _by_form(source: Source, interpretation: EditInterpretation, path: str, *, most: int) -> Iterator[TolerantMatches]:
    """The places where the text has the same form: the strongest form tells whether there are any."""
    if not interpretation.old.strip(STRIPPED + "\n"):
        return
    search = _FormSearch(source, interpretation, path)
    places = list(islice(search.places(Level.LINES), 2))
    if len(places) > 1:
        levels = (list(islice(search.places(level), most)) for level in LADDER)
        places = next((found for found in levels if found), places)
    if places:
        matches = [place.match(interpretation.new) for place in places]
        yield TolerantMatches(
            search.overlooked(places[0]), matches, line=interpretation.line, problem=interpretation.problem
        )


class _Place(NamedTuple):
    """A place where old lines fit."""

    source: Source
    start: int
    end: int
    old: "_Block"
    fit: LineFit
    is_in_midst: bool
    """The place begins after other text in the same line."""

    def match(self, text: str) -> PlainMatch:
        """What is to stand there."""
        new, old = _Block.of(text), self.old
        if not any(line.strip(STRIPPED) for line in new.lines):
            return _removal(self.source.plain, self.start, self.end, old, new)
        lines = new.lines
        if self.is_in_midst:
            lines = [lines[0].removeprefix(indent_of(old.lines[0])), *lines[1:]]
        before = "\n" * max(0, new.newlines_before - old.newlines_before)
        after = "\n" * max(0, new.newlines_after - old.newlines_after)
        return PlainMatch(self.start, self.end, before + "\n".join(self.fit.fit(lines)) + after)


class _FormSearch:
    def __init__(self, source: Source, interpretation: EditInterpretation, path: str) -> None:
        self._source = source
        self._code = source.plain if is_code(path) else ""
        self._interpretation = interpretation
        self._old = _Block.of(interpretation.old)
        self._compared = 0

    def places(self, level: Level) -> Iterator[_Place]:
        form, wanted = self._source.form(level), Form(self._interpretation.old, level).normal
        for place in occurrences(form.normal, wanted) if wanted else ():
            start, end = form.start_of(place), form.end_of(place + len(wanted))
            if start is None or end is None or _cuts_a_word(form.normal, place, wanted):
                continue
            if (found := self._place(start, end, level)) is None:
                continue
            if _is_there(self._source, self._interpretation, found.start):
                yield found

    def _place(self, start: int, end: int, level: Level) -> _Place | None:
        """The place, if the old lines fit there."""
        if self._compared > MOST_COMPARED:
            raise WorkspaceError(
                "The lines of the old text and of the file are too similar to tell which place is meant.",
                advice="Copy it exactly, with other lines around it.",
            )
        start, end = self._with_blanks_around(start, end, level)
        plain = self._source.plain
        actual = _Block.of(plain[start:end])
        start += actual.lead
        end -= actual.trail
        is_in_midst = start > 0 and plain[start - 1] != "\n"
        old = self._old.lines
        if is_in_midst:
            old = [old[0][len(indent_of(old[0])) :], *old[1:]]
        if len(_content(actual.lines)) == len(_content(old)):
            fit = LineFit(actual.lines, old, self._code)
            if fit.fits:
                return _Place(self._source, start, end, self._old, fit, is_in_midst)
        self._compared += len(old)
        return None

    def _with_blanks_around(self, start: int, end: int, level: Level) -> tuple[int, int]:
        """The place with the indent of its first line and the blanks after its last one."""
        plain = self._source.plain
        if level >= Level.INDENTS:
            begins = self._source.line_start(start)
            if not plain[begins:start].strip(STRIPPED):
                start = begins
        after = end
        while level >= Level.ENDS and after < len(plain) and plain[after] in STRIPPED:
            after += 1
        return start, after if after == len(plain) or plain[after] == "\n" else end

    def overlooked(self, place: _Place) -> str:
        """What differs at a place, in words."""
        actual = _Block.of(self._source.plain[place.start : place.end])
        kinds = _differences(_content(actual.lines), _content(self._old.lines))
        if not kinds or _gaps(actual.lines) != _gaps(self._old.lines):
            kinds.append("blank lines")
        return _listed([self._interpretation.what, *kinds] if self._interpretation.what else kinds)


class _Block(NamedTuple):
    """A text without the blank lines around it."""

    lines: list[str]
    lead: int
    """Characters before them."""
    trail: int
    """Characters after them."""
    newlines_before: int
    newlines_after: int

    @classmethod
    def of(cls, text: str) -> "_Block":
        lines = text.split("\n")
        first, last = 0, len(lines)
        while first < last - 1 and not lines[first].strip(STRIPPED):
            first += 1
        while last > first + 1 and not lines[last - 1].strip(STRIPPED):
            last -= 1
        lead = sum(len(line) + 1 for line in lines[:first])
        trail = sum(len(line) + 1 for line in lines[last:])
        return cls(lines[first:last], lead, trail, first, len(lines) - last)


def _removal(plain: str, start: int, end: int, old: _Block, new: _Block) -> PlainMatch:
    """Whole lines go with the line end that the old text had after or before them."""
    if old.newlines_after > new.newlines_after and plain[end : end + 1] == "\n":
        return PlainMatch(start, end + 1, "")
    if old.newlines_before > new.newlines_before and plain[start - 1 : start] == "\n":
        return PlainMatch(start - 1, end, "")
    return PlainMatch(start, end, "")


def _cuts_a_word(text: str, place: int, wanted: str) -> bool:
    end = place + len(wanted)
    return (place > 0 and is_word(text[place - 1]) and is_word(wanted[0])) or (
        end < len(text) and is_word(text[end]) and is_word(wanted[-1])
    )


def _content(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line.strip(STRIPPED)]


def _gaps(lines: Sequence[str]) -> list[bool]:
    return [not line.strip(STRIPPED) for line in lines]


def _differences(actual: Sequence[str], old: Sequence[str]) -> list[str]:
    """In what lines differ that stand for each other."""
    kinds: tuple[tuple[str, Callable[[str, str], bool]], ...] = (
        ("look-alike characters", lambda one, other: _without_blanks(one) != _without_blanks(other)),
        ("blanks at the ends of lines", lambda one, other: _end_of(one) != _end_of(other)),
        ("indentation", lambda one, other: indent_of(one) != indent_of(other)),
        ("blanks inside lines", _differ_inside),
    )
    pairs = list(zip(actual, old, strict=True))
    return [what for what, differ in kinds if any(differ(one, other) for one, other in pairs)]


def _differ_inside(one: str, other: str) -> bool:
    one, other = one.strip(STRIPPED), other.strip(STRIPPED)
    if _without_blanks(one) == _without_blanks(other):
        return one != other
    return Form(one, Level.CHARACTERS).normal != Form(other, Level.CHARACTERS).normal


def _without_blanks(line: str) -> str:
    return line.translate(_NO_BLANKS)


def _end_of(line: str) -> str:
    return line[len(line.rstrip(STRIPPED)) :]


_NO_BLANKS = dict.fromkeys(map(ord, STRIPPED))


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


# --- what is escaped in the file alone


def _unescaped_places(source: Source, level: Level, old: str, new: str) -> Iterator[PlainMatch]:
    """Places where the file has escapes for what the model wrote as it is meant: `&lt;` for `<`, two characters for a
    line end."""
    form, wanted = source.form(level), Form(old, level).normal
    if not wanted.strip():
        return
    for place in islice(occurrences(form.normal, wanted), MOST_PLACES):
        start, end = form.start_of(place), form.end_of(place + len(wanted))
        if start is None or end is None or _cuts_a_word(form.normal, place, wanted):
            continue
        if (fitted := with_escapes_of(source.plain[start:end], old, new, level)) is not None:
            yield PlainMatch(start, end, fitted)
