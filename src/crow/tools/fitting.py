"""Fitting a new text into the place of an old one: what did not change keeps its characters, to the line's end.

A model writes line feeds and often straight quotes, forgets blanks at the end of a line, or shifts a whole block.
Where such a text was found all the same, only what it changes must change.
"""

import io
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from crow.diff import Change, compare_lines, split_lines
from crow.tools.forms import STRIPPED, Form, Level, is_word, plain_form
from crow.workspace.endings import CRLF, first_line_end, usual_line_end, with_line_ends, with_line_feeds

MOST_CELLS = 25_000_000
"""Pairs of characters that may be compared: about 10 ms and 3 MB."""
MOST_PAIRS = 10_000
"""Pairs of lines that may be compared to find out which was changed into which."""
LEAST_ALIKE = 0.5
"""How much of a line must be left in the one that it was changed into."""


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


def with_style_of(actual: str, old: str, new: str) -> str:
    """For an old line that differs from the actual one in blanks and look-alike characters alone: the new line, with
    the actual characters and blanks for all that it has of the old one."""
    units = _align(actual, old)
    if old == actual or units is None or len(old) * len(new) > MOST_CELLS:
        return new
    from rapidfuzz.distance import Indel

    characters, gaps = _without_gaps(new)
    sources: dict[int, int] = {}
    for step in Indel.opcodes("".join(unit.old for unit in units), characters):
        if step.tag == "equal":
            sources |= zip(range(step.dest_start, step.dest_end), range(step.src_start, step.src_end), strict=True)
    return _Restyled(units, characters, gaps, sources).text()


class _Unit(NamedTuple):
    """Characters of an old line and those of the actual one that they stand for, with the blanks before each."""

    old: str
    actual: str
    old_gap: str
    actual_gap: str


def _usual_gaps(units: Iterable[_Unit]) -> dict[str, str]:
    """Which blanks in the file those of the old line always stand for."""
    found: dict[str, set[str]] = {}
    for unit in units:
        found.setdefault(unit.old_gap, set()).add(unit.actual_gap)
    return {gap: next(iter(theirs)) for gap, theirs in found.items() if gap and len(theirs) == 1}


def _align(actual: str, old: str) -> list[_Unit] | None:
    """The two lines, unit by unit; None if they say different things."""
    mine, theirs = _atoms(old), _atoms(actual)
    units: list[_Unit] = []
    at = 0
    while at < len(mine):
        if not theirs:
            return None
        gap, text, form = mine[at]
        at += 1
        their_gap, their_text, their_form = theirs.pop(0)
        while form != their_form:
            if their_form.startswith(form) and at < len(mine) and not mine[at][0]:
                text, form = text + mine[at][1], form + mine[at][2]
                at += 1
            elif form.startswith(their_form) and theirs and not theirs[0][0]:
                _, more, more_form = theirs.pop(0)
                their_text, their_form = their_text + more, their_form + more_form
            else:
                return None
        units.append(_Unit(text, their_text, gap, their_gap))
    return None if theirs else units


def _atoms(line: str) -> list[tuple[str, str, str]]:
    """The characters of a line: the blanks before, the character with what nobody sees after it, and its form."""
    atoms: list[tuple[str, str, str]] = []
    gap = ""
    for character in line:
        if character in STRIPPED:
            gap += character
        elif (form := plain_form(character)) or not atoms:
            atoms.append((gap, character, form))
            gap = ""
        else:
            before, text, known = atoms[-1]
            atoms[-1] = (before, text + character, known)
    return atoms


def _without_gaps(line: str) -> tuple[str, list[str]]:
    """The characters of a line that are no blanks, and the blanks before each of them."""
    gaps = [""]
    for character in line:
        if character in STRIPPED:
            gaps[-1] += character
        else:
            gaps.append("")
    return "".join(character for character in line if character not in STRIPPED), gaps[:-1]


class _Restyled:
    """A new line, of which some characters come from an old one."""

    def __init__(
        self, units: Sequence[_Unit], characters: str, gaps: Sequence[str], sources: Mapping[int, int]
    ) -> None:
        self._units, self._characters, self._gaps, self._sources = units, characters, gaps, sources
        self._owners = [number for number, unit in enumerate(units) for _ in unit.old]
        """Of each character of the old line, the unit that it belongs to."""
        self._usual_gaps = _usual_gaps(units)

    def text(self) -> str:
        pieces: list[str] = []
        position = 0
        while position < len(self._characters):
            pieces.append(self._gap(position))
            unit = self._whole_unit(position)
            pieces.append(unit.actual if unit is not None else self._characters[position])
            position += len(unit.old) if unit is not None else 1
        return "".join(pieces)

    def _whole_unit(self, position: int) -> _Unit | None:
        """The unit that begins here, if all of it is in the new line."""
        source = self._sources.get(position)
        if source is None or (source and self._owners[source - 1] == self._owners[source]):
            return None
        unit = self._units[self._owners[source]]
        is_whole = all(self._sources.get(position + step) == source + step for step in range(len(unit.old)))
        return unit if is_whole else None

    def _gap(self, position: int) -> str:
        """The blanks before a character: those of the file, where the new line has what the old one had."""
        written = self._gaps[position]
        left = self._sources.get(position - 1)
        right = self._sources.get(position)
        for source, is_right in ((right, True), (None if left is None else left + 1, False)):
            if source is None or source >= len(self._owners) or (source and self._is_inside(source)):
                continue
            unit = self._units[self._owners[source]]
            if written != unit.old_gap:
                continue
            replaces = is_right or right is not None or written or self._is_replaced(position, source)
            joins = not written and position and is_word(self._characters[position - 1] + self._characters[position])
            if replaces and not joins:
                return unit.actual_gap
        return self._usual_gaps.get(written, written)

    def _is_inside(self, source: int) -> bool:
        return self._owners[source - 1] == self._owners[source]

    def _is_replaced(self, position: int, source: int) -> bool:
        """Whether the old character there gave way to the new one, instead of only coming later."""
        return source not in self._sources.values()


class _Alignment:
    """Which part of the actual text a part of the old one stands for."""

    def __init__(self, actual: str, old: str, level: Level) -> None:
        self._actual, self._old = actual, old
        form = Form(actual, level)
        places = Form(old, level).places()
        self._origins = [None if place is None else form.start_of(place) for place in places]
        self._origins[0], self._origins[-1] = 0, len(actual)

    def written(self) -> dict[str, set[str]]:
        """How each character of the old text is written in the actual one."""
        found: dict[str, set[str]] = {}
        for number, character in enumerate(self._old):
            start, end = self._origins[number], self._origins[number + 1]
            if start is not None and end is not None:
                found.setdefault(character, set()).add(self._actual[start:end])
        return found

    def actual(self, start: int, end: int) -> str:
        """What is cut in the midst of a character stays as it is written."""
        whole = [offset for offset in range(start, end + 1) if self._origins[offset] is not None]
        if not whole:
            return self._old[start:end]
        first, last = whole[0], whole[-1]
        middle = self._actual[self._origins[first] : self._origins[last]]
        return self._old[start:first] + middle + self._old[last:end]


def with_escapes_of(actual: str, old: str, new: str, level: Level) -> str | None:
    """For an old text that the actual one has with escapes: what `new` has of it becomes actual, and what it adds is
    escaped likewise. None if it cannot be told how."""
    from rapidfuzz.distance import Indel

    if len(old) * len(new) > MOST_CELLS:
        return None
    alignment = _Alignment(actual, old, level)
    written = alignment.written()
    pieces: list[str] = []
    for step in Indel.opcodes(old, new):
        if step.tag == "equal":
            pieces.append(alignment.actual(step.src_start, step.src_end))
        elif step.tag != "delete":
            added = [_escaped(character, written, level) for character in new[step.dest_start : step.dest_end]]
            if None in added:
                return None
            pieces += [one for one in added if one is not None]
    return "".join(pieces)


_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\\": "\\\\", '"': '\\"'}


def _escaped(character: str, written: Mapping[str, set[str]], level: Level) -> str | None:
    """How the file writes a character, by what it does with those of its kind; None if it does one and the other."""
    usual = _ENTITIES if level == Level.ENTITIES else _ESCAPES
    if found := written.get(character):
        return next(iter(found)) if len(found) == 1 else None
    if character not in usual:
        return character
    kinds = {escape != plain for plain in usual for escape in written.get(plain, ())}
    return usual[character] if kinds == {True} else character if kinds == {False} else None


# --- line by line


class LineFit:
    """Fits new lines into the place of actual ones, for old lines that stand for these.

    The lines that are not blank stand for each other one by one; which lines between them are blank may differ. None of
    this holds, and `fits` is false, if an indent of the old lines would stand for two different ones.
    """

    def __init__(self, actual: Sequence[str], old: Sequence[str]) -> None:
        self._actual, self._old = actual, old
        self._counterparts = dict(zip(_with_content(old), _with_content(actual), strict=True))
        pairs = [(old[mine], actual[theirs]) for mine, theirs in self._counterparts.items()]
        self._ends = _map_ends(pairs)
        self._gaps_fitted: set[int] = set()
        self._gaps_meant: set[int] = set()
        self._shift_all = True
        indents = map_indents(pairs)
        self._first: tuple[str, str] | None = None
        if indents is None and len(pairs) > 1:  # models often begin to copy in the midst of the first line
            self._first = (indent_of(pairs[0][0]), indent_of(pairs[0][1]))
            indents = map_indents(pairs[1:])
            if indents is not None and any(mine != theirs for mine, theirs in indents.items()):
                indents = None
        self._indents = indents

    @property
    def fits(self) -> bool:
        return self._indents is not None

    def fit(self, new: Sequence[str]) -> list[str]:
        self._gaps_fitted.clear()
        self._shift_all = self._is_relative(new)
        changes = compare_lines([_bare(line) for line in self._old], [_bare(line) for line in new])
        self._gaps_meant = self._changed_gaps(changes, new)
        fitted: list[str] = []
        position = 0
        for change in changes:
            for number in range(position, change.old_start):
                fitted += self._kept(number)
            fitted += self._changed(change, new)
            position = change.old_end
        for number in range(position, len(self._old)):
            fitted += self._kept(number)
        return fitted

    def _changed_gaps(self, changes: Sequence[Change], new: Sequence[str]) -> set[int]:
        """The old lines before which the new text has other blank lines than the old one: it is to have those."""
        meant: set[int] = set()
        for change in changes:
            replaced = range(change.old_start, change.old_end)
            meant |= {self._next(number) for number in replaced if number not in self._counterparts}
            ends_blank = change.new_end > change.new_start and not new[change.new_end - 1].strip(STRIPPED)
            is_in_gap = not replaced and not {change.old_start - 1, change.old_start} & self._counterparts.keys()
            if ends_blank or is_in_gap:
                meant.add(self._next(change.old_end - 1))
        return meant

    def _next(self, number: int) -> int:
        """The next old line after a number that is not blank; -1 if there is none."""
        return next((other for other in range(number + 1, len(self._old)) if other in self._counterparts), -1)

    def _kept(self, number: int) -> list[str]:
        """The actual line that an old one stands for, with the blank lines before it."""
        if number in self._counterparts:
            return [*self._gap(number), self._actual[self._counterparts[number]]]
        following = self._next(number)
        return [""] if following in self._gaps_meant else self._gap(following)

    def _gap(self, number: int) -> list[str]:
        """The blank lines before the actual line that an old one stands for, once, unless the new text has its own."""
        if number < 0 or number in self._gaps_meant or number in self._gaps_fitted:
            return []
        self._gaps_fitted.add(number)
        first = end = self._counterparts[number]
        while first > 0 and not self._actual[first - 1].strip(STRIPPED):
            first -= 1
        return list(self._actual[first:end]) if first > 0 else []

    def _changed(self, change: Change, new: Sequence[str]) -> list[str]:
        mine = [number for number in range(change.old_start, change.old_end) if number in self._counterparts]
        added = range(change.new_start, change.new_end)
        pairs = self._paired(mine, added, new)
        fitted: list[str] = []
        for number in added:
            old = pairs.get(number, mine[0] if mine and number == change.new_start else None)
            if old is not None and new[number].strip(STRIPPED):
                fitted += self._gap(old)
            if number in pairs:
                fitted.append(self._line_like(pairs[number], new[number], is_first=number == 0))
            else:
                fitted.append(self._reindented(new[number], is_first=number == 0))
        return fitted

    def _paired(self, old: Sequence[int], new: Sequence[int], lines: Sequence[str]) -> dict[int, int]:
        """Which new line is a changed old one, in order."""
        from rapidfuzz.distance import Indel

        worded = [number for number in new if lines[number].strip(STRIPPED)]
        if len(worded) == len(old):
            return dict(zip(worded, old, strict=True))
        if len(old) * len(new) > MOST_PAIRS:
            return {}
        pairs: dict[int, int] = {}
        left = list(old)
        for number in new:
            text = lines[number].strip(STRIPPED)
            likeness = [Indel.normalized_similarity(self._old[one].strip(STRIPPED), text) for one in left]
            best = max(range(len(left)), key=likeness.__getitem__, default=-1)
            if text and best >= 0 and likeness[best] >= LEAST_ALIKE:
                pairs[number] = left[best]
                left = left[best + 1 :]
        return pairs

    def _line_like(self, number: int, new: str, *, is_first: bool) -> str:
        """A changed line: what did not change in it is as in the file."""
        old, actual = self._old[number], self._actual[self._counterparts[number]]
        (old_indent, old_body, old_end), (indent, body, end) = _parts(old), _parts(actual)
        new_indent, new_body, new_end = _parts(new)
        if new_indent != old_indent:
            indent = self._translated(new_indent, is_first=is_first)
        return indent + with_style_of(body, old_body, new_body) + (end if new_end == old_end else new_end)

    def _reindented(self, line: str, *, is_first: bool) -> str:
        indent, body, end = _parts(line)
        return self._translated(indent, is_first=is_first) + body + self._ends.get(end, end) if body else line

    def _is_relative(self, new: Sequence[str]) -> bool:
        """Whether the lines after the first are indented as that is written, and not as they stand in the file.

        One old line alone does not tell: models also copy a line from where its text begins.
        """
        if len(self._counterparts) != 1:
            return True
        [(mine, theirs)] = self._counterparts.items()
        actual = indent_of(self._actual[theirs])
        rest = [line for line in new[1:] if line.strip(STRIPPED)]
        if not rest or len(indent_of(self._old[mine])) >= len(actual):
            return True
        if not all(indent_of(line).startswith(actual) for line in rest):
            return True
        return _opens_block(new[0]) and indent_of(rest[0]) == actual

    def _translated(self, indent: str, *, is_first: bool) -> str:
        if not is_first and not self._shift_all:
            return indent
        if is_first and self._first is not None and indent == self._first[0]:
            return self._first[1]
        return translate_indent(indent, self._indents) if self._indents else indent


def _opens_block(line: str) -> bool:
    return line.rstrip(STRIPPED).endswith((":", "{", "(", "[", "->", "=>", "do", "then"))


def _map_ends(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Which blanks at the ends of the file's lines those of the old lines always stand for."""
    found: dict[str, set[str]] = {}
    for old, actual in pairs:
        found.setdefault(_parts(old)[2], set()).add(_parts(actual)[2])
    return {end: next(iter(theirs)) for end, theirs in found.items() if end and len(theirs) == 1}


def _bare(line: str) -> str:
    return line.rstrip(STRIPPED)


def _with_content(lines: Sequence[str]) -> list[int]:
    return [number for number, line in enumerate(lines) if line.strip(STRIPPED)]


def _parts(line: str) -> tuple[str, str, str]:
    """The blanks that a line begins with, what it says, and the blanks at its end."""
    body = line.strip(STRIPPED)
    indent = line[: len(line) - len(line.lstrip(STRIPPED))] if body else ""
    return indent, body, line[len(indent) + len(body) :]


# --- indentation


def indent_of(line: str) -> str:
    return _parts(line)[0]


def map_indents(pairs: Iterable[tuple[str, str]]) -> dict[str, str] | None:
    """Which indent in the file each indent of the old lines stands for; None if one would stand for two."""
    indents: dict[str, str] = {}
    for old, actual in pairs:
        theirs = indent_of(actual)
        if indents.setdefault(indent_of(old), theirs) != theirs:
            return None
    return indents


def translate_indent(indent: str, indents: Mapping[str, str]) -> str:
    """The indent that a new line would have in the file."""
    if indent in indents:
        return indents[indent]
    if not indent.isascii() and all(actual.isascii() for actual in indents.values()):
        plain = {_with_plain_blanks(old): actual for old, actual in indents.items()}
        return translate_indent(_with_plain_blanks(indent), plain)
    known = max((old for old in indents if indent.startswith(old)), key=len, default=None)
    if known is not None:
        return indents[known] + _in_units(indent[len(known) :], indents)
    old, actual = min(indents.items(), key=lambda pair: len(pair[0]))
    if actual.endswith(old):
        return actual[: len(actual) - len(old)] + indent
    if old.endswith(actual):
        return indent.removeprefix(old[: len(old) - len(actual)])
    return _in_units(indent, indents)


def _with_plain_blanks(indent: str) -> str:
    return "".join(blank if blank.isascii() else " " for blank in indent)


def _in_units(deeper: str, indents: Mapping[str, str]) -> str:
    """A further indent, where the file has other steps than the model: tabs for its blanks, or four for its two."""
    step = _step(indents)
    if deeper == "  " and step is None and any(_is_doubled(old, actual) for old, actual in indents.items()):
        return "    "
    if not deeper or step is None:
        return deeper
    mine, theirs = step
    count, rest = divmod(len(deeper), len(mine)) if set(deeper) == {mine[0]} else (0, 1)
    return theirs * count if count and not rest else deeper


def _is_doubled(old: str, actual: str) -> bool:
    """Whether the file indents by four blanks what the model indents by two."""
    return bool(old) and set(actual) == {" "} and len(actual) == 2 * len(old) and len(actual) % 4 == 0


def _step(indents: Mapping[str, str]) -> tuple[str, str] | None:
    """By how much the old text indents and by how much the file does, if that can be seen and is not the same."""
    known = sorted(indents.items(), key=lambda pair: len(pair[0]))
    for (old, actual), (deeper, actual_deeper) in pairwise(known):
        if deeper.startswith(old) and actual_deeper.startswith(actual):
            mine, theirs = deeper[len(old) :], actual_deeper[len(actual) :]
            if mine and theirs and mine != theirs:
                return mine, theirs
            if mine and theirs:
                return None
    for old, actual in known:
        if old and actual and set(old) != set(actual) and len(set(old)) == len(set(actual)) == 1:
            blanks, tabs = (old, actual) if "\t" in actual else (actual, old)
            width = " " * max(1, len(blanks) // len(tabs)) if set(blanks) == {" "} and set(tabs) == {"\t"} else ""
            if width:
                return (width, "\t") if tabs == actual else ("\t", width)
    return None
