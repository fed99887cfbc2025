"""Keeps all that a command has written, byte by byte, while its session is open: a little in memory, more in a file."""

import threading
from typing import NamedTuple

from crow.errors import WorkspaceError
from crow.files.output_folder import DROPPED, OutputFile, OutputFolder

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
