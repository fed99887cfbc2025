"""What is kept of a command's output: beginning and end in memory, the whole in a file, and the raw bytes for clients
that show them.

In memory the beginning and the end, as bytes; on disk, once there is more than the model gets to see, the whole of
it up to a bound, without its escape sequences; as it was written, for whoever wants to see all of it, in
`KeptOutput`. Otherwise bytes are only looked at when somebody wants to read them.
"""

import codecs
import threading
from typing import NamedTuple

from crow.commands import terminal_text as texts
from crow.errors import WorkspaceError
from crow.files.output_folder import DROPPED, OutputFile, OutputFolder
from crow.files.resolved_path import reason

BEGINNING = 64 * 1024
END = 256 * 1024
"""More than the model gets: colours and progress bars shrink to a fraction of what was written."""
PIECE = 64 * 1024
"""Bytes of raw output that are shown at once."""
MOST_SHOWN = 4 * 2**20
"""Bytes of raw output that are shown while the command runs; after them, only how it ends."""


class View(NamedTuple):
    beginning: bytes
    end_part: bytes
    missing: int
    """Bytes between the two that are not in memory."""
    end: int
    lines: int


class OutputBuffer:
    """Filled by the thread, read by the event loop."""

    def __init__(self, file: "WholeOutput") -> None:
        self.file = file
        self._lock = threading.Lock()
        self._beginning = bytearray()
        self._end = bytearray()
        self.total = 0
        self._lines = 0

    def add(self, data: bytes) -> None:
        with self._lock:
            self.total += len(data)
            self._lines += data.count(b"\n")
            room = BEGINNING - len(self._beginning)
            self._beginning += data[:room]
            self._end += data[room:]
            if len(self._end) > 2 * END:
                del self._end[:-END]
        self.file.add(data, self.total, self._beginning)

    def view(self, since: int) -> View:
        with self._lock:
            beginning = bytes(self._beginning[since:])
            in_end = self.total - len(self._end)
            end_part = bytes(self._end[max(0, since - in_end) :])
            missing = max(0, self.total - since - len(beginning) - len(end_part))
            return View(beginning, end_part, missing, self.total, self._lines)

    def read(self, start: int, size: int) -> tuple[int, bytes]:
        """At most so many bytes from a position on, and the position: a later one if those are no longer in memory."""
        with self._lock:
            in_end = self.total - len(self._end)
            first = bytes(self._beginning[start : start + size])
            if first and in_end > BEGINNING:
                return start, first
            start = max(start, in_end - len(first))
            at = start + len(first) - in_end
            return start, first + bytes(self._end[at : at + size - len(first)])

    def newest(self, size: int) -> View:
        """The last of it, in one piece."""
        with self._lock:
            part = bytes(self._end[-size:])
            if len(part) < size:
                part = bytes(self._beginning[len(part) - size :]) + part
            return View(part, b"", self.total - len(part), self.total, self._lines)


class RawOutput:
    """The output as the command wrote it, escape sequences and all, for those who show a terminal.

    Each piece is given once and in order, cut between characters; where something is left out, a line says so.
    """

    def __init__(self, buffer: OutputBuffer) -> None:
        self._buffer = buffer
        self._position = 0
        self._shown = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def growth(self, *, last: bool = False) -> str:
        """What has come since the last call; with `last` the end of it, too. Empty if that is nothing."""
        if self._shown >= MOST_SHOWN and not last:
            return ""
        start, data = self._buffer.read(self._position, END if last else PIECE)
        is_whole = start == self._position
        if not is_whole or (last and start + len(data) < self._buffer.total):
            start, data = self._newest()
        note = self._left_out(start - self._position)
        self._position = start + len(data)
        self._shown += len(data)
        text = note + self._decoder.decode(data, final=last)
        return text + _UNTIL_IT_ENDS if self._shown >= MOST_SHOWN and not last else text

    def _newest(self) -> tuple[int, bytes]:
        newest = self._buffer.newest(PIECE)
        data = _whole_lines(newest.beginning)
        return newest.missing + len(newest.beginning) - len(data), data

    def _left_out(self, size: int) -> str:
        if size <= 0:
            return ""
        self._decoder.reset()
        return self._note(size)

    def _note(self, size: int) -> str:
        where = self._buffer.file.where()
        return f"\x1b[0m\n[… {texts.size_text(size)} left out here{f'; {where}' if where else ''} …]\n" if size else ""


_UNTIL_IT_ENDS = "\x1b[0m\n[… further output is hidden until it ends …]\n"


def _whole_lines(data: bytes) -> bytes:
    """The data from the first line on that begins in it, if that is not too little."""
    cut = data.find(b"\n", 0, len(data) // 2) + 1
    return data[cut:] if cut else texts.decode_end(data).encode()


class WholeOutput:
    """The whole of the output, once there is more than anyone gets to see without it."""

    def __init__(self, folder: OutputFolder, name: str, limit: int) -> None:
        self._folder = folder
        self._name = name
        self._limit = min(limit, BEGINNING)
        """So that all that came before is still in memory when the file is begun."""
        self._file: OutputFile | None = None
        self._trouble = ""
        self._without_escapes = texts.EscapeFilter()

    def where(self) -> str:
        """Where the whole output can be read, for a person."""
        file = self._file
        if self._trouble:
            return f"it could not be kept: {self._trouble}"
        if file is None:
            return ""
        if file.is_gone:
            return "it is no longer kept"
        whole = f"its first {texts.size_text(file.size)} are" if file.is_full else "all of it is"
        return f"{whole} in {file.path}"

    def add(self, data: bytes, total: int, beginning: bytearray) -> None:
        if self._trouble or total <= self._limit or (self._file is not None and self._file.is_full):
            return
        try:
            if self._file is None:
                self._file = self._folder.create(self._name)
                self._file.write(self._without_escapes.feed(bytes(beginning[: total - len(data)])))
            self._file.write(self._without_escapes.feed(data))
        except OSError as error:
            self._trouble = reason(error)
            self.close()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


# --- all that was written, byte by byte

IN_MEMORY = 4096
"""Bytes of an output that needs no file: most commands write less."""
LONGEST_CHARACTER = 4
"""Bytes, in UTF-8."""


class OutputPart(NamedTuple):
    text: str
    offset: int
    """Where it begins: further on than was asked for, if that is not kept or lies within a character."""
    next: int
    """Where what comes after it begins."""
    total: int
    """Bytes that the command has written so far."""


class KeptOutput:
    """Filled by the thread that reads the output, read by others."""

    def __init__(self, folder: OutputFolder, name: str) -> None:
        self.is_running = True
        self._folder = folder
        self._name = name
        self._lock = threading.Lock()
        self._beginning = bytearray()
        self._total = 0
        self._file: OutputFile | None = None
        self._is_closed = False

    def add(self, data: bytes) -> None:
        with self._lock:
            self._total += len(data)
            if self._total <= IN_MEMORY:
                self._beginning += data
            elif not self._is_closed:
                try:
                    self._store(data)
                except OSError:  # a full disk: what is there stays
                    self._close()

    def close(self) -> None:
        """Nothing more is added."""
        with self._lock:
            self._close()

    def read(self, offset: int, limit: int) -> OutputPart:
        """About so many bytes from there on, as text. Takes the time of a disk. WorkspaceError if it was dropped."""
        limit = max(limit, LONGEST_CHARACTER)
        with self._lock:
            file, total = self._file, self._total
            kept = len(self._beginning) if file is None else file.size
            may_go_on, data = self.is_running, bytes(self._beginning[offset : offset + limit])
        if file is not None:
            data = file.read(offset, limit)
            if file.is_gone:
                raise WorkspaceError(DROPPED, advice="Run the command again.")
        if not data:  # the end, or what is no longer kept
            return OutputPart("", total, total, total)
        first, end = _rest_of_a_character(data), len(data)
        if may_go_on or offset + end < kept:
            end -= _begun_character(data)
        after = total if offset + end == kept and not may_go_on else offset + end
        return OutputPart(data[first:end].decode("utf-8", "replace"), offset + first, after, total)

    def _store(self, data: bytes) -> None:
        if self._file is None:
            self._file = self._folder.create(self._name)
            data, self._beginning = bytes(self._beginning) + data, bytearray()
        self._file.write(data)

    def _close(self) -> None:
        self._is_closed = True
        if self._file is not None:
            self._file.close()


def _rest_of_a_character(data: bytes) -> int:
    """How many bytes at the beginning belong to a character that began before."""
    count = 0
    while count < min(len(data), LONGEST_CHARACTER - 1) and data[count] & 0xC0 == 0x80:
        count += 1
    return count


def _begun_character(data: bytes) -> int:
    """How many bytes at the end belong to a character that goes on after them."""
    for back in range(1, min(len(data), LONGEST_CHARACTER - 1) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        length = 2 if byte >> 5 == 0b110 else 3 if byte >> 4 == 0b1110 else 4 if byte >> 3 == 0b11110 else 1
        return back if length > back else 0
    return 0
