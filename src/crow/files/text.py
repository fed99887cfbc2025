"""Decodes and encodes text files without loss: encodings, byte order marks, line ends; and picks some lines of a long
text.

What was decoded here is encoded to the very bytes it came from: no line end and no character is normalised. A file that
is neither UTF-8 nor marked as UTF-16 or UTF-32 is taken for Latin-1, in which every byte has a meaning: right or not,
all that is not edited stays as it was.
"""

import codecs
import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from crow.errors import WorkspaceError
from crow.paths import shown
from crow.visible import BYTE_ORDER_MARK

"""The byte order mark, as a character."""

_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\0\0", "utf-32-le"),  # before UTF-16, whose mark it begins with
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_NAMES = {
    "utf-8": "UTF-8",
    "latin-1": "Latin-1",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "utf-32-le": "UTF-32",
    "utf-32-be": "UTF-32",
}


class Decoded(NamedTuple):
    text: str
    """The text without the byte order mark."""
    encoding: str
    mark: bool
    """There is a byte order mark before the text."""


def decode(path: str, content: bytes) -> Decoded:
    decoded = _decode_marked(content) or _decode_plain(content)
    if decoded is None or "\0" in decoded.text:
        raise binary(path, len(content))
    return decoded


def binary(path: str, size: int) -> WorkspaceError:
    return WorkspaceError(f"{shown(path)} is a binary file ({size:,} bytes).")


def mark_of(head: bytes) -> tuple[bytes, str]:
    """The byte order mark that a file begins with, if it does, and the encoding that it names, else UTF-8."""
    return next(((mark, encoding) for mark, encoding in _MARKS if head.startswith(mark)), (b"", "utf-8"))


def decode_text(path: str, content: bytes) -> str:
    return decode(path, content).text


def encode(path: str, text: str, encoding: str = "utf-8", *, mark: bool = False) -> bytes:
    """The bytes of a text in a file's own encoding; what it has no bytes for is refused, never replaced."""
    if "\0" in text:
        raise WorkspaceError(f"{shown(path)}: a null character would make it a binary file. Nothing was written.")
    try:
        return (BYTE_ORDER_MARK if mark else "").encode(encoding) + text.encode(encoding)
    except UnicodeEncodeError as error:
        raise WorkspaceError(
            f"{shown(path)} is encoded as {encoding_name(encoding)}, which has no {_name(text[error.start])}. "
            "Nothing was written.",
            advice="Use only characters that the file's encoding supports.",
        ) from None


def encoding_name(encoding: str) -> str:
    return _NAMES.get(encoding, encoding)


def could_be_shown_as(content: bytes, text: str) -> bool:
    """Whether an editor that shows this text may be showing these very bytes, unchanged.

    Editors differ in what they make of carriage returns, the byte order mark, the last line end, and of bytes that
    are no UTF-8: some drop them, some show a replacement, some guess an encoding. None of that is the person's doing.
    """
    try:
        return _bare(content.decode()) == _bare(text)
    except UnicodeDecodeError:
        bare = _bare(text.replace("\ufffd", ""))
        return any(_bare(view) == bare for view in _guesses(content))


def _guesses(content: bytes) -> Iterator[str]:
    yield content.decode("utf-8", "ignore").replace("\ufffd", "")
    yield content.decode("latin-1")
    yield content.decode("cp1252", "ignore")
    if marked := _decode_marked(content):
        yield marked.text


def _bare(text: str) -> str:
    return with_line_feeds(text).lstrip(BYTE_ORDER_MARK).removesuffix("\n")


def _decode_marked(content: bytes) -> Decoded | None:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            try:
                return Decoded(content[len(mark) :].decode(encoding), encoding, mark=True)
            except UnicodeDecodeError:
                continue
    return None


def _decode_plain(content: bytes) -> Decoded | None:
    if b"\0" in content:
        return None
    try:
        return Decoded(content.decode(), "utf-8", mark=False)
    except UnicodeDecodeError:
        return Decoded(content.decode("latin-1"), "latin-1", mark=False)


def _name(character: str) -> str:
    code = f"U+{ord(character):04X}"
    return f"“{character}” ({code})" if character.isprintable() else f"character {code}"


# --- line ends: LF, CR LF, and the lone CR of old

CRLF = "\r\n"
_LINE_END = re.compile(r"\r\n|\r|\n")


def with_line_feeds(text: str) -> str:
    """The text with each line end as a single line feed, as many editors show it."""
    return text.replace(CRLF, "\n").replace("\r", "\n") if "\r" in text else text


def with_line_ends(text: str, end: str) -> str:
    """A text whose line ends are line feeds, with another one instead."""
    return text if end == "\n" else text.replace("\n", end)


def count_line_ends(text: str) -> dict[str, int]:
    """How often each occurs; those that do not are left out."""
    pairs = text.count(CRLF)
    counts = {"\n": text.count("\n") - pairs, CRLF: pairs, "\r": text.count("\r") - pairs}
    return {end: count for end, count in counts.items() if count}


def usual_line_end(text: str) -> str:
    """The one that most lines have; a line feed if there is none."""
    if "\r" not in text:
        return "\n"
    counts = count_line_ends(text)
    return max(counts, key=lambda end: counts[end], default="\n")


def first_line_end(text: str, start: int = 0) -> str | None:
    found = _LINE_END.search(text, start)
    return found[0] if found else None


# --- some lines of a text, without splitting the rest of it: a file of any size costs what is taken from it
#
# No single call looks at more than a slice: one that looks at tens of megabytes keeps the interpreter to itself, and
# the event loop waits for it, whichever thread makes it.

SLICE = 512 * 1024
"""Bytes or characters that are looked at in one call."""


class Line(NamedTuple):
    text: str
    """The line without its end, cut where it is too long."""
    length: int
    """Characters of the whole line."""


class Excerpt(NamedTuple):
    lines: list[Line]
    total: int
    """How many lines the whole text has: a last one without a line feed counts."""
    text: str | None = None
    """The whole text, where it is not too long to be kept."""


class LineRange(NamedTuple):
    """At most so many lines, from the first one on, counted from 1."""

    first: int
    most: int
    longest: int
    """Characters of a line that are kept."""


def excerpt_of(text: str, wanted: LineRange) -> Excerpt:
    taker = _Taker(wanted)
    for start in range(0, len(text), SLICE):
        taker.add(text[start : start + SLICE])
    return taker.excerpt(text)


def excerpt_of_file(file: BinaryIO, path: str, wanted: LineRange) -> Excerpt:
    """Some lines of a file, which is read through once; twice if it is in no encoding of Unicode."""
    head = file.read(4)
    mark, encoding = mark_of(head)
    if not mark and b"\0" in head:
        raise binary(path, file.seek(0, 2))
    try:
        return _read_range(file, path, encoding, len(mark), wanted)
    except UnicodeDecodeError:
        return _read_range(file, path, "latin-1", 0, wanted)


def _read_range(file: BinaryIO, path: str, encoding: str, start: int, wanted: LineRange) -> Excerpt:
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

    def __init__(self, wanted: LineRange) -> None:
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
