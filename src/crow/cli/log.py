"""The log: a file below CROW_HOME, made when there is something to say, and kept small."""

import logging
import os

from crow.config.home import LOG_FLAGS, create_folder, log_path
from crow.errors import CrowError

LARGEST = 5 * 1024 * 1024
FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"


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

    Not `logging.handlers`: importing that costs as much as a tenth of our start.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def emit(self, record: logging.LogRecord) -> None:
        try:
            create_folder(os.path.dirname(self._path))
            self._rotate()
            fd = os.open(self._path, LOG_FLAGS, 0o600)
            try:
                os.write(fd, self.format(record).encode("utf-8", "backslashreplace") + b"\n")
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
