"""The folder for what a session's commands print beyond what is shown of it: made, locked while the session lives, and
removed.

A folder is locked as long as its session lives; the lock goes with the agent, however that ends. So whoever finds
one without a lock, which an agent that was killed has left, may take it away.
"""

import contextlib
import errno
import fcntl
import os
import re
import threading
import time

FRESH = 60
"""Seconds for which a folder is left alone: it may have been made a moment ago, and not be locked yet."""

_NAME = re.compile(r"crow-[0-9a-f]{12}-[0-9a-f]{16}")
_FILE = re.compile(r"[0-9a-f]{16}\.(?:txt|raw)")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def outputs_folder(session_id: str) -> str:
    """Where what a session's commands print is kept for as long as it is open: nobody else's to read."""
    return os.path.join(temporary_folder(), f"crow-{session_id}")


def was_output(path: str) -> bool:
    """Whether the path is that of a command's output, which may be gone by now."""
    folder, name = os.path.split(path)
    return bool(_NAME.fullmatch(os.path.basename(folder)) and _FILE.fullmatch(name))


class OutputFolder:
    """Made when there is something to put into it; `make_for` is called on the threads that read the output."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._descriptor = -1
        self._names: list[str] = []
        self._is_over = False

    def make_for(self, name: str) -> str:
        """The path for a file of that name. Raises OSError."""
        with self._lock:
            if self._is_over:
                raise OSError(errno.ESHUTDOWN, "the session has ended")
            if self._descriptor < 0:
                os.makedirs(self.path, 0o700, exist_ok=True)
                self._descriptor = os.open(self.path, _FOLDER)
                with contextlib.suppress(OSError):  # a file system without locks; or somebody just looks at it
                    fcntl.flock(self._descriptor, fcntl.LOCK_SH)
            self._names.append(name)
        return os.path.join(self.path, name)

    def remove(self) -> None:
        """Removes the folder with our files, and only those: the session may be open a second time."""
        with self._lock:
            self._is_over = True
            if self._descriptor >= 0:
                for name in self._names:
                    with contextlib.suppress(OSError):
                        os.unlink(name, dir_fd=self._descriptor)
                os.close(self._descriptor)
                self._descriptor = -1
                with contextlib.suppress(OSError):
                    os.rmdir(self.path)


def remove_left_behind(folder: str = "") -> None:
    """Takes away what agents that were killed have left in a folder for temporary files. Never fails."""
    folder = folder or temporary_folder()
    with contextlib.suppress(OSError):
        for name in filter(_NAME.fullmatch, os.listdir(folder)):
            with contextlib.suppress(OSError):
                _remove_if_left_behind(os.path.join(folder, name), FRESH)


def remove_outputs(session_id: str) -> None:
    """Takes away what is left of a session that nobody has open, however fresh it is. Never fails."""
    if _NAME.fullmatch(f"crow-{session_id}"):
        with contextlib.suppress(OSError):
            _remove_if_left_behind(outputs_folder(session_id), 0)


def temporary_folder() -> str:
    return os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 -- `tempfile` would cost a tenth of our start-up to import


def _remove_if_left_behind(path: str, age: float) -> None:
    descriptor = os.open(path, _FOLDER)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or time.time() - status.st_mtime < age:
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # OSError: its session lives, or nobody can tell
        for name in filter(_FILE.fullmatch, os.listdir(descriptor)):
            os.unlink(name, dir_fd=descriptor)
        os.rmdir(path)  # should anything lie in it that is not ours, it stays
    finally:
        os.close(descriptor)
