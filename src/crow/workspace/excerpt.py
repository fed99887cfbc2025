"""Some lines of a text, without splitting the rest of it: a file of any size costs what is taken from it.

No single call looks at more than a slice: one that looks at tens of megabytes keeps the interpreter to itself, and the
event loop waits for it, whichever thread makes it.
"""

import codecs
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from crow.workspace.text import binary, mark_of

SLICE = 512 * 1024
"""Bytes or characters that are looked at in one call."""


class Line(NamedTuple):
    text: str
    """Without its end, cut where it is too long."""
    length: int
    """Characters of the whole line."""


class Excerpt(NamedTuple):
    lines: list[Line]
    total: int
    """How many lines the whole text has: a last one without a line feed counts."""
    text: str | None = None
    """The whole text, where it is not too long to be kept."""


class Wanted(NamedTuple):
    """Which lines are wanted: at most so many, from the first one on, counted from 1."""

    first: int
    most: int
    longest: int
    """Characters of a line that are kept."""


def excerpt_of(text: str, wanted: Wanted) -> Excerpt:
    taker = _Taker(wanted)
    for start in range(0, len(text), SLICE):
        taker.add(text[start : start + SLICE])
    return taker.excerpt(text)


def excerpt_of_file(file: BinaryIO, path: str, wanted: Wanted) -> Excerpt:
    """The same of a file, which is read through once; twice if it is in no encoding of Unicode."""
    head = file.read(4)
    mark, encoding = mark_of(head)
    if not mark and b"\0" in head:
        raise binary(path, file.seek(0, 2))
    try:
        return _read(file, path, encoding, len(mark), wanted)
    except UnicodeDecodeError:
        return _read(file, path, "latin-1", 0, wanted)


def _read(file: BinaryIO, path: str, encoding: str, start: int, wanted: Wanted) -> Excerpt:
    taker = _Taker(wanted)
    file.seek(start)
    for piece in _decoded(file, encoding):
        if "\0" in piece:
            raise binary(path, file.seek(0, 2))
        taker.add(piece)
    return taker.excerpt()


def _decoded(file: BinaryIO, encoding: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding)()
    while data := file.read(SLICE):
        yield decoder.decode(data)
    yield decoder.decode(b"", final=True)


class _Taker:
    """Passes over the lines before the first one that is wanted, takes those that are, and counts the rest."""

    def __init__(self, wanted: Wanted) -> None:
        self._skipped = wanted.first - 1
        """Lines that are still to be passed over."""
        self._most = wanted.most
        self._longest = wanted.longest
        self._lines: list[Line] = []
        self._pieces: list[str] = []
        """The beginning of the line that is being taken, as it has come so far."""
        self._length = 0
        self._feeds = 0
        self._last = "\n"

    def add(self, piece: str) -> None:
        if not piece:
            return
        feeds = piece.count("\n")
        self._feeds += feeds
        if self._skipped >= feeds > 0 or (self._skipped and not feeds):
            place = len(piece) if self._skipped > feeds else piece.rfind("\n") + 1
            self._skipped -= feeds
        else:
            place = 0
            for _ in range(self._skipped):
                place = piece.index("\n", place) + 1
            self._skipped = 0
        while place < len(piece) and len(self._lines) < self._most:
            place = self._take(piece, place)
        self._last = piece[-1]

    def excerpt(self, text: str | None = None) -> Excerpt:
        if self._length and len(self._lines) < self._most:
            self._end_line()
        return Excerpt(self._lines, self._feeds + (self._last != "\n"), text)

    def _take(self, piece: str, start: int) -> int:
        """Takes the line that begins at `start`, or goes on there, and returns where the next one begins."""
        end = piece.find("\n", start)
        stop = end if end >= 0 else len(piece)
        # One character more than is kept: it may be the carriage return of the line's end.
        self._pieces.append(piece[start : min(stop, start + max(0, self._longest + 1 - self._length))])
        self._length += stop - start
        if end < 0:
            self._last = piece[-1]
            return stop
        self._last = piece[end - 1] if end > start else self._last
        self._end_line()
        return end + 1

    def _end_line(self) -> None:
        length = self._length - (self._length > 0 and self._last == "\r")
        self._lines.append(Line("".join(self._pieces)[: min(length, self._longest)], length))
        self._pieces, self._length = [], 0
