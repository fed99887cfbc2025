"""What a server writes to its standard error: a file of its own, for its owner's eyes, that does not grow for ever."""

import contextlib
import os
import re

from crow.config.home import create_folder
from crow.errors import ConfigError
from crow.visible import one_line

KEPT = 1024 * 1024
"""Bytes that are in the file in any case: it is cut down to them when it has twice as many."""
TAIL = 2000
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


def stderr_path(home: str, server: str) -> str:
    return os.path.join(home, "mcp", "log", f"{_NOT_IN_NAMES.sub('_', server)[:80].strip('.') or 'server'}.log")


class StderrLog:
    """Kept in the file as far as that can be written; the end of it is kept at hand."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: int | None = None
        self._tail = b""

    @property
    def has_some(self) -> bool:
        return bool(self._tail)

    def begin(self) -> None:
        """Of a server that is started: the file is made when there is something to put into it."""
        self.close()
        self._tail = b""

    def _open(self) -> None:
        with contextlib.suppress(OSError, ConfigError):  # a server is no worse for a log that cannot be kept
            create_folder(os.path.dirname(self._path))
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.open(self._path, flags, 0o600)

    def take(self, data: bytes) -> None:
        if not self._tail:
            self._open()
        self._tail = (self._tail + data)[-TAIL:]
        if self._file is None:
            return
        with contextlib.suppress(OSError):
            size = os.fstat(self._file).st_size  # another session may write to it, too
            if size + len(data) > 2 * KEPT:
                before = max(KEPT - len(data), 0)
                data = os.pread(self._file, before, max(size - before, 0)) + data[-KEPT:]
                os.ftruncate(self._file, 0)
            os.write(self._file, data)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def last_words(self) -> str:
        """The last line that says something, for a sentence; empty if nothing was said."""
        lines = [line.strip() for line in self._tail.decode("utf-8", "replace").splitlines()]
        said = [line for line in lines if line]
        return one_line(said[-1], 300) if said else ""
