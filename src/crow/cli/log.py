"""The log: a file below CROW_HOME, made when there is something to say, and kept small."""

import logging
import os
import threading
import time
from queue import SimpleQueue

from crow.config.home import LOG_FLAGS, create_folder, log_path
from crow.errors import CrowError

LARGEST = 5 * 1024 * 1024
FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"


MOST_WAITING = 1000
"""Lines that may wait for a disk that does not answer."""
FAREWELL = 1.0
"""Seconds that the last lines get when the program ends."""


def log_to_file(home: str) -> None:
    """Our own messages from INFO on, those of libraries from WARNING on."""
    handler = _LateFileHandler(log_path(home))
    handler.setFormatter(logging.Formatter(FORMAT))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("crow").setLevel(logging.INFO)
    logging.raiseExceptions = False  # a full disk must not print tracebacks into the editor


class _LateFileHandler(logging.Handler):
    """Opens its file with the first record; several processes may append to it, and rotate it, at once.

    A thread writes: whoever has something to say does not wait for the disk. Not `logging.handlers`: importing that
    costs as much as a tenth of our start.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        self._writer: threading.Thread | None = None
        self._taken = 0
        self._written = 0
        """Lines. Counted by the thread."""

    def emit(self, record: logging.LogRecord) -> None:
        if self._taken - self._written >= MOST_WAITING:
            return
        line = self.format(record).encode("utf-8", "backslashreplace") + b"\n"
        if self._writer is None:
            self._writer = threading.Thread(target=self._write_lines, name="crow-log", daemon=True)
            self._writer.start()
        self._taken += 1
        self._lines.put(line)

    def flush(self) -> None:
        end = time.monotonic() + FAREWELL
        while self._written < self._taken and time.monotonic() < end:
            time.sleep(0.002)

    def _write_lines(self) -> None:
        while True:
            self._write(self._lines.get())
            self._written += 1

    def _write(self, line: bytes) -> None:
        try:
            create_folder(os.path.dirname(self._path))
            self._rotate()
            fd = os.open(self._path, LOG_FLAGS, 0o600)
            try:
                os.write(fd, line)
            finally:
                os.close(fd)
        except (OSError, CrowError):
            pass  # there is nowhere left to say it

    def _rotate(self) -> None:
        try:
            if os.stat(self._path).st_size > LARGEST:
                os.replace(self._path, self._path + ".1")
        except FileNotFoundError:
            pass
