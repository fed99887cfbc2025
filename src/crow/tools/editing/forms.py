"""Normalised forms of a text, for searching without regard to blanks, quotes, look-alikes or escapes, with the way back
to its positions.

Two texts that have the same form differ only in what that form overlooks. A form is made in one pass over the text.
"""

import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from enum import IntEnum
from functools import cache

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
