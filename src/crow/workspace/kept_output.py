"""Keeps all that a command has written, byte by byte, while its session is open: a little in memory, more in a file."""

import os
import threading
from typing import NamedTuple

from crow.workspace.output_folder import OutputFolder

IN_MEMORY = 4096
"""Bytes of an output that needs no file: most commands write less."""
LARGEST_FILE = 100_000_000
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
        self._path = ""
        self._descriptor = -1
        self._stored = 0
        """Bytes in the file."""
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
        """About so many bytes from there on, as text. Takes the time of a disk."""
        limit = max(limit, LONGEST_CHARACTER)
        with self._lock:
            total, kept = self._total, self._stored or len(self._beginning)
            may_go_on, data = self.is_running, bytes(self._beginning[offset : offset + limit])
        if self._path:
            data = _read_file(self._path, offset, limit)
        if not data:  # the end, or what is no longer kept
            return OutputPart("", total, total, total)
        first, end = _rest_of_a_character(data), len(data)
        if may_go_on or offset + end < kept:
            end -= _begun_character(data)
        after = total if offset + end == kept and not may_go_on else offset + end
        return OutputPart(data[first:end].decode("utf-8", "replace"), offset + first, after, total)

    def _store(self, data: bytes) -> None:
        if self._descriptor < 0:
            path = self._folder.make_for(self._name)
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            self._path = path
            data, self._beginning = bytes(self._beginning) + data, bytearray()
        rest = memoryview(data)[: LARGEST_FILE - self._stored]
        while rest:
            written = os.write(self._descriptor, rest)
            self._stored += written
            rest = rest[written:]

    def _close(self) -> None:
        self._is_closed = True
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _read_file(path: str, offset: int, size: int) -> bytes:
    """Empty if the file is gone: the session has ended."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return b""
    try:
        return os.pread(descriptor, size, offset)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


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
