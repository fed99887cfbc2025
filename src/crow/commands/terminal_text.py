"""Makes readable text of a command's output: without escape sequences, with the last state of what was rewritten, cut
to its beginning and end. Pure functions, linear in the length of the text.
"""

import codecs
import re
from collections import deque
from collections.abc import Iterator

# --- what a terminal shows in the end of output that rewrites itself

SLICE = 32 * 1024
"""Characters that are looked at in one call, which nothing else can interrupt: a few milliseconds at the worst."""
REACH = 40
"""Lines: the height of a screen."""
WIDEST = 240
"""Columns to which a cursor can be sent beyond the end of what was written."""
LINE = 16
"""What an empty line costs, in cells."""
LARGEST_STEP = 1000

MOVES = r"(?:\[[0-9;]{0,16}+[A-HJKdfsu]|[78M])"
"""What follows the escape in the sequences that move the cursor or erase something, as a regular expression."""
_PIECE = re.compile(rf"[^\n\r\x08\x1b]+|\r+|\x08+|\n|\x1b{MOVES}|\x1b")
_BEGINS_ANEW = ("\r\x1b[K", "\r\x1b[0K", "\x1b[2K\r", "\x1b[1G\x1b[0K", "\x1b[2K\x1b[1G", "\x1b[2K\x1b[G")
"""How programs begin a line anew, as often as something changes: what was there does not have to be written first."""
_UP_OR_DOWN = re.compile(r"\x1b(?:\[[0-9;]*[ABEFHJdfsu]|[78M])")


def slices(text: str) -> Iterator[str]:
    """Parts of a text, cut after a line, else before an escape sequence, which thus stays whole."""
    start = 0
    while len(text) - start > SLICE:
        middle, end = start + SLICE // 2, start + SLICE
        cut = text.rfind("\n", middle, end) + 1 or text.rfind("\x1b", middle, end)
        cut = cut if cut > 0 else end
        yield text[start:cut]
        start = cut
    yield text[start:]


def final_state(text: str) -> str:
    """The text as it is seen in the end; of escape sequences it may have only `MOVES`."""
    if "\x1b" not in text and "\b" not in text:
        return "\n".join(map(_last_state, text.split("\n"))) if "\r" in text else text
    text = "\n".join(map(_newest_part, text.split("\n")))
    screen = _Screen(work=REACH * LINE + 2 * len(text))
    for part in slices(text):
        screen.show(_PIECE.findall(part))
    return str(screen)


def _last_state(line: str) -> str:
    """What is left to be seen of a line that returns to its beginning."""
    if "\r" not in line:
        return line
    seen = ""
    for written in reversed(line.split("\r")):
        if len(written) > len(seen):
            seen += written[len(seen) :]
    return seen.rstrip(" ")


def _newest_part(line: str) -> str:
    start = max(line.rfind(sign) for sign in _BEGINS_ANEW)
    return line if start <= 0 or _UP_OR_DOWN.search(line, 0, start) else line[start:]


class _Line:
    __slots__ = ("cells", "is_rewritten")

    def __init__(self) -> None:
        self.cells: list[str] = []
        self.is_rewritten = False

    def __str__(self) -> str:
        """Blanks at the end of a line that was rewritten have erased something: they are not to be seen."""
        text = "".join(self.cells)
        return text.rstrip(" ") if self.is_rewritten else text


class _Screen:
    """`work` is how many cells may be changed by what does not write: far more than any program that means it needs."""

    def __init__(self, work: int) -> None:
        self._work = work
        self._scrolled_off: list[str] = []
        self._lines: deque[_Line] = deque([_Line()])
        self._row = self._column = 0
        self._saved = (0, 0)
        """The row, counted from the first line of all, and the column."""

    def __str__(self) -> str:
        return "\n".join([*self._scrolled_off, *map(str, self._lines)])

    def show(self, pieces: list[str]) -> None:
        for piece in pieces:
            match piece[0]:
                case "\n":
                    self._feed()
                case "\r":
                    self._column = 0
                case "\b":
                    self._take_back(len(piece))
                case "\x1b":
                    if len(piece) > 1:  # else it is the first half of a sequence that was cut in two
                        self._move(piece)
                case _:
                    self._write(piece)

    def _write(self, text: str) -> None:
        line, column = self._lines[self._row], self._column
        end = len(line.cells)
        if column < end:
            line.is_rewritten = True
            line.cells[column : column + len(text)] = text
        else:
            if column > end:
                line.is_rewritten = True
                column = end + self._granted(min(column, max(end, WIDEST)) - end)
                line.cells.extend(" " * (column - end))
            line.cells.extend(text)
        self._column = column + len(text)

    def _feed(self) -> None:
        self._column = 0
        self._row += 1
        if self._row == len(self._lines):
            self._add_line()

    def _take_back(self, count: int) -> None:
        """Spinners go back over what they have written, to write something else or nothing in its place."""
        cells = self._lines[self._row].cells
        if self._column == len(cells):
            del cells[max(0, self._column - count) :]
        self._column = max(0, self._column - count)

    def _move(self, sequence: str) -> None:
        first, _, rest = sequence[2:-1].partition(";")
        count, second = _number(first), _number(rest.partition(";")[0])
        match sequence[-1]:
            case "A" | "F" | "M":
                self._row = max(0, self._row - max(1, count))
            case "B" | "E":
                self._row = min(len(self._lines) - 1, self._row + max(1, count))
            case "C":
                self._to_column(self._column + max(1, count) + 1)
            case "D":
                self._to_column(self._column - max(1, count) + 1)
            case "G":
                self._to_column(count)
            case "d":
                self._to_row(count)
            case "H" | "f":
                self._to_row(count)
                self._to_column(second)
            case "J":
                self._erase(count)
            case "K":
                self._erase_in_line(count)
            case "s" | "7":
                self._saved = len(self._scrolled_off) + self._row, self._column
            case _:
                self._restore()
        if sequence[-1] in "EF":
            self._column = 0

    def _to_column(self, number: int) -> None:
        farthest = max(WIDEST, len(self._lines[self._row].cells))
        self._column = min(max(1, number) - 1, farthest)

    def _to_row(self, number: int) -> None:
        row = min(max(1, number), REACH) - 1
        while len(self._lines) <= row and self._granted(LINE) == LINE:
            self._add_line()
        self._row = min(row, len(self._lines) - 1)

    def _erase_in_line(self, what: int) -> None:
        line = self._lines[self._row]
        line.is_rewritten = True
        if what == 0:
            del line.cells[self._column :]
        elif what == 1:
            count = self._granted(min(self._column + 1, len(line.cells), WIDEST))
            line.cells[:count] = " " * count
        else:
            line.cells.clear()

    def _erase(self, what: int) -> None:
        """A screen that is erased as a whole has scrolled off; what is above the cursor stays."""
        if what == 0:
            self._erase_in_line(0)
            while len(self._lines) > self._row + 1:
                self._lines.pop()
        elif what >= 2:
            while self._lines and not str(self._lines[-1]):
                self._lines.pop()
            self._scrolled_off += map(str, self._lines)
            self._lines = deque([_Line()])
            self._row = self._column = 0

    def _restore(self) -> None:
        row, self._column = self._saved
        self._row = min(max(0, row - len(self._scrolled_off)), len(self._lines) - 1)

    def _add_line(self) -> None:
        self._lines.append(_Line())
        if len(self._lines) > REACH:
            self._scrolled_off.append(str(self._lines.popleft()))
            self._row -= 1

    def _granted(self, work: int) -> int:
        granted = min(work, self._work)
        self._work -= granted
        return granted


def _number(digits: str) -> int:
    return min(int(digits), LARGEST_STEP) if digits else 0


_UNSEEN = re.compile(
    rf"""\x1b (?!{MOVES}) (?:
        \[ [0-?]*+ [\x20-/]*+ [@-~]?                        # colours, modes
        | [\]PX^_] [^\x07\x1b\n]{{0,4096}}+ (?:\x07|\x1b\\)?  # titles, links and other strings, with their end
        | [\x20-/]*+ [0-~]?                                 # the short ones
    )
    | [\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]        # other controls: all but tab, line feed, return, backspace
    """,
    re.VERBOSE,
)
_SEQUENCE = re.compile(
    rb"\x1b(?:\[[0-?]*+[\x20-/]*+[@-~]?|[\]PX^_][^\x07\x1b\n]{0,4096}+(?:\x07|\x1b\\)?|[\x20-/]*+[0-~]?)"
)
_WHOLE_SEQUENCE = re.compile(
    rb"\x1b(?:\[[0-?]*+[\x20-/]*+[@-~]|[\]PX^_][^\x07\x1b\n]{0,4096}+(?:\x07|\x1b\\)|[\x20-/]*+(?![\[\]PX^_])[0-~])"
)
_LONGEST_SEQUENCE = 4100
_LINE_END = re.compile("(?<!\r)\r++\n")
"""A return at the end of a line is only the way that terminals end lines."""
QUICK = 8 * 1024
"""Characters that are made readable in a few milliseconds at the worst; more of them, in a thread."""
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))

Pieces = tuple[str, str]
"""A beginning and an end, between which something was left out."""


def without_escapes(text: str) -> str:
    """The text without escape sequences and other controls; of what was rewritten, the last state."""
    text = "".join([_UNSEEN.sub("", part) for part in slices(text)])
    return final_state(_LINE_END.sub("\n", text) if "\r" in text else text)


class EscapeFilter:
    """Takes the escape sequences out of output that comes in pieces, and leaves all else as it is."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        data = self._rest + data
        last = data.rfind(b"\x1b")
        if last < 0:
            self._rest = b""
            return data
        is_cut = len(data) - last < _LONGEST_SEQUENCE and not _WHOLE_SEQUENCE.match(data, last)
        data, self._rest = (data[:last], data[last:]) if is_cut else (data, b"")
        return _SEQUENCE.sub(b"", data)


def decode_beginning(data: bytes) -> str:
    """The text of a beginning, without the first half of a character that was cut in two."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data)


def decode_end(data: bytes) -> str:
    """The text of an end, without the second half of a character that was cut in two."""
    start = data[:3]
    return data[len(start) - len(start.lstrip(_CONTINUATION_BYTES)) :].decode("utf-8", "replace")


def first_part(text: str, size: int) -> str:
    """At most so many bytes from the front, cut after a line if there is one to cut after."""
    data = text.encode("utf-8", "replace")
    if len(data) <= size:
        return text
    part = decode_beginning(data[:size])
    cut = part.rfind("\n") + 1
    return part[:cut] if cut > len(part) // 2 else part


def last_part(text: str, size: int) -> str:
    """At most so many bytes from the back, cut before a line if there is one to cut before."""
    data = text.encode("utf-8", "replace")
    if len(data) <= size:
        return text
    part = decode_end(data[-size:])
    if data[-size - 1 : -size] == b"\n":
        return part
    cut = part.find("\n") + 1
    return part[cut:] if 0 < cut < len(part) // 2 else part


def split_to_fit(text: str, limit: int) -> Pieces | None:
    """The beginning and the end of a text that is longer than the limit; None if it fits."""
    if len(text) * 4 <= limit or len(text.encode("utf-8", "replace")) <= limit:
        return None
    return first_part(text, limit // 2), last_part(text, limit // 2)


def joined(pieces: Pieces, note: str) -> str:
    """The two pieces with the note on a line of its own between them."""
    beginning, end = pieces
    newline = "" if not beginning or beginning.endswith("\n") else "\n"
    return f"{beginning}{newline}[… {note} …]\n{end}"


def size_text(size: int) -> str:
    """A number of bytes, as precise as a person wants it."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size} bytes"
