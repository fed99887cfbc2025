"""Normalised forms of a text, for searching without regard to blanks, quotes, look-alikes or escapes, with the way back
to its positions.

Two texts that have the same form differ only in what that form overlooks. A form is made in one pass over the text.
"""

import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import cache
from typing import NamedTuple

from crow.visible import UNSEEN_WHEN_COPIED

BLANKS = " \t\x0b\x0c\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
"""Everything that looks like a blank, as a class of a regular expression."""
_ONE_BLANK = re.compile(f"[{BLANKS}]")
_BLANK_SET = frozenset(chr(code) for code in range(0x3001) if _ONE_BLANK.match(chr(code)))
STRIPPED = "".join(sorted(_BLANK_SET))
"""The same, for `str.strip`."""


class Level(IntEnum):
    """What a form overlooks; from `CHARACTERS` to `LINES` each includes those before it."""

    CHARACTERS = 1
    ENDS = 2
    INDENTS = 3
    INNER = 4
    LINES = 5
    ENTITIES = 6
    ESCAPES = 7


LADDER = (Level.CHARACTERS, Level.ENDS, Level.INDENTS, Level.INNER, Level.LINES)

_LOOK_ALIKE = {
    # \x91 to \x97 are what Windows has there, in a file that was taken for Latin-1.
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\u00b4\x91\x92", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\x93\x94", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\x96\x97", "-"),
    **dict.fromkeys(f"{UNSEEN_WHEN_COPIED}\ufe0e\ufe0f", ""),  # seen by nobody, so never copied
    "\u2026": "...",
    "\x85": "...",
    "\u2192": "->",
    "\u21d2": "=>",
    "\u2190": "<-",
    **dict(zip("аеорсухіјѕһԁАВЕКМНОРСТХІЈЅ", "aeopcyxijshdABEKMHOPCTXIJS", strict=True)),  # noqa: RUF001 -- Cyrillic
    **dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧο", "ABEZHIKMNOPTYXo", strict=True)),  # noqa: RUF001 -- Greek
}


@cache
def plain_form(character: str) -> str:
    """What stands for a character in every form: beyond ASCII the one that a keyboard has for it, or its parts."""
    if character in _BLANK_SET:
        return " " if not character.isascii() else character
    if (found := _LOOK_ALIKE.get(character)) is not None:
        return found
    if "\uff01" <= character <= "\uff5e":  # full width
        return chr(ord(character) - 0xFEE0)
    return unicodedata.normalize("NFD", character)


def look_alike_kind(character: str) -> str:
    """Which kind of look-alikes a character belongs to; empty for one that stands for itself."""
    if character.isascii():
        return ""
    if character in _BLANK_SET:
        return "blank"
    if "\uff01" <= character <= "\uff5e":
        return "full width"
    return _KINDS.get(_LOOK_ALIKE.get(character, character), "")


_KINDS = {"'": "quote", '"': "quote", "-": "dash", "": "unseen", "...": "dots", "->": "arrow", "=>": "arrow"}


ENTITY = r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,10});"
ESCAPE = r"""\\(?:[ntr"'`\\/]|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})"""
"""Regular expressions for what `unescaped` reads: an entity of HTML, and an escape of most languages."""

_PATTERNS = {
    Level.CHARACTERS: re.compile(r"[^\x00-\x7f]"),
    Level.LINES: re.compile(rf"[{BLANKS}\n]+|[^\x00-\x7f]"),
    Level.ENTITIES: re.compile(rf"{ENTITY}|[^\x00-\x7f]"),
    Level.ESCAPES: re.compile(ESCAPE),
}
_WITH_BLANKS = re.compile(rf"[{BLANKS}]+|[^\x00-\x7f]")
_NAMED_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def unescaped(token: str) -> str:
    """What an escape of most languages stands for, or an entity of HTML."""
    if token.startswith("&"):
        import html

        return html.unescape(token)
    if token[1] in "ux" and len(token) > 2:
        return chr(int(token[2:], 16))
    return _NAMED_ESCAPES.get(token[1], token[1])


class Form:
    """A text's form, and where in the text each part of it comes from."""

    def __init__(self, text: str, level: Level) -> None:
        self.text = text
        self._starts, self._ends = array("q"), array("q")
        self._origins, self._origin_ends = array("q"), array("q")
        self.normal = self._build(level)

    def _build(self, level: Level) -> str:
        pieces: list[str] = []
        position = length = 0
        stand_in = _stand_in(self.text, level)
        for found in _PATTERNS.get(level, _WITH_BLANKS).finditer(self.text):
            start, end = found.span()
            token = found[0]
            if (replaced := stand_in(token, start, end)) == token:
                continue
            pieces += (self.text[position:start], replaced)
            length += start - position
            self._starts.append(length)
            length += len(replaced)
            self._ends.append(length)
            self._origins.append(start)
            self._origin_ends.append(end)
            position = end
        pieces.append(self.text[position:])
        return "".join(pieces)

    def start_of(self, place: int) -> int | None:
        """Where in the text the form's character at a place begins; None in the midst of one of the text."""
        token = bisect_right(self._starts, place) - 1
        if token < 0:
            return place
        if place >= self._ends[token]:
            return self._origin_ends[token] + place - self._ends[token]
        return self._origins[token] if place == self._starts[token] else None

    def end_of(self, place: int) -> int | None:
        """Where in the text the form's character before a place ends; None in the midst of one of the text."""
        token = bisect_left(self._starts, place) - 1
        if token < 0:
            return place
        if place >= self._ends[token]:
            return self._origin_ends[token] + place - self._ends[token]
        return None

    def places(self) -> list[int | None]:
        """For each offset of the text, with its end, the place in the form; None in the midst of a character."""
        found: list[int | None] = []
        position = place = 0
        for start, end, origin, origin_end in zip(
            self._starts, self._ends, self._origins, self._origin_ends, strict=True
        ):
            found += range(place, place + origin - position)
            found += [start, *[None] * (origin_end - origin - 1)]
            position, place = origin_end, end
        return found + list(range(place, place + len(self.text) - position + 1))


def _stand_in(text: str, level: Level) -> Callable[[str, int, int], str]:
    """What stands in a form of that level for a token of the text at a place."""

    def of_character(token: str, start: int, end: int) -> str:
        return unescaped(token) if token[0] in "\\&" else plain_form(token)

    def of_any(token: str, start: int, end: int) -> str:
        if token[0] not in _BLANK_SET and token[0] != "\n":
            return plain_form(token)
        if "\n" in token:
            return "\n" if start > 0 and end < len(text) else ""
        if end == len(text) or text[end] == "\n":
            return ""
        if start == 0 or text[start - 1] == "\n":
            return "" if level >= Level.INDENTS else plain_blanks(token)
        if level < Level.INNER:
            return plain_blanks(token)
        return " " if is_word(text[start - 1]) and is_word(text[end]) else ""

    return of_any if Level.ENDS <= level <= Level.LINES else of_character


def plain_blanks(blanks: str) -> str:
    """The same number of blanks, with a space for each that is not ASCII."""
    return blanks if blanks.isascii() else "".join(blank if blank.isascii() else " " for blank in blanks)


def is_word(text: str) -> bool:
    """Whether all characters can be part of a word."""
    return text.replace("_", "a").isalnum()


# --- new text with the blanks, quotes and escapes of the file

MOST_CELLS = 25_000_000
"""Pairs of characters that may be compared: about 10 ms and 3 MB."""


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


def always_meant(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Of pairs of blanks, a model's and those of the file that they stand for: the ones that always stand for the
    same."""
    found: dict[str, set[str]] = {}
    for old, actual in pairs:
        found.setdefault(old, set()).add(actual)
    return {old: next(iter(theirs)) for old, theirs in found.items() if old and len(theirs) == 1}


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
        if source is None or self._is_inside(source):
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
            if source is None or source >= len(self._owners) or self._is_inside(source):
                continue
            unit = self._units[self._owners[source]]
            if written != unit.old_gap:
                continue
            replaces = is_right or right is not None or written or self._is_replaced(source)
            joins = not written and position and is_word(self._characters[position - 1] + self._characters[position])
            if replaces and not joins:
                return unit.actual_gap
        return written

    def _is_inside(self, source: int) -> bool:
        """Whether the old character there is one of a unit that began before it."""
        return source > 0 and self._owners[source - 1] == self._owners[source]

    def _is_replaced(self, source: int) -> bool:
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
