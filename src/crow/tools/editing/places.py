"""A file's text as edits are looked for in it, and the places that they mean."""

import bisect
import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from crow.tools.editing.forms import Form, Level
from crow.tools.editing.line_ends import with_ends_of
from crow.workspace.text import first_line_end, usual_line_end, with_line_feeds

_CRLF = re.compile("\r\n")


class Replacement(NamedTuple):
    """`text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str
    edit: int
    """Whose it is, counted from 1."""


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

    def line_start(self, plain: int) -> int:
        """Where the line begins that a place is in."""
        return self.plain.rfind("\n", 0, plain) + 1

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


def occurrences(text: str, wanted: str, step: int = 1) -> Iterator[int]:
    """Overlapping ones too, if the step is one: what can be read in two ways is not unique."""
    place = text.find(wanted)
    while place >= 0:
        yield place
        place = text.find(wanted, place + step)


def only_place(text: str, wanted: str) -> int | None:
    """Where the one occurrence is; None if there is none, or more than one."""
    place = text.find(wanted)
    return place if place >= 0 and text.find(wanted, place + 1) < 0 else None
