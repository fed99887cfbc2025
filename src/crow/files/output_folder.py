"""The folder for what a session's commands print beyond what is shown of it: made, locked while the session lives, kept
within bounds, and removed.

A folder is locked as long as its session lives; the lock goes with the agent, however that ends. So whoever finds
one without a lock, which an agent that was killed has left, may take it away.
"""

import contextlib
import errno
import fcntl
import os
import re
import stat
import threading
import time
from collections.abc import Mapping

LARGEST_FILE = 100_000_000
"""Bytes that are kept of one output. A command may have two files: what it wrote, and that without escape sequences."""
MOST_OF_A_SESSION = 300_000_000
MOST_IN_ALL = 1_000_000_000
"""Bytes that a session keeps, and all of this process. Outputs that have ended go when there is no room, the oldest
first."""
DROPPED = "The output of this command is no longer kept: the oldest output is deleted when space runs out."
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
    """Made when there is something to put into it; `create` is called on the threads that read the output."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.descriptor = -1
        self._files: dict[OutputFile, None] = {}
        self._is_over = False

    def create(self, name: str) -> "OutputFile":
        """A new file of that name. Raises OSError."""
        with _lock:
            if self._is_over:
                raise OSError(errno.ESHUTDOWN, "the session has ended")
            if self.descriptor < 0:
                self.descriptor = _open_own(self.path)
                with contextlib.suppress(OSError):  # a file system without locks; or somebody just looks at it
                    fcntl.flock(self.descriptor, fcntl.LOCK_SH)
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            file = OutputFile(self, name, os.open(name, flags, 0o600, dir_fd=self.descriptor))
            self._files[file] = _all_files[file] = None
        return file

    def make_room(self, wanted: int) -> int:
        """How many of so many bytes may be written. Called with the lock."""
        return min(_make_room(wanted, MOST_OF_A_SESSION, self._files), _make_room(wanted, MOST_IN_ALL, _all_files))

    def drop(self, file: "OutputFile") -> None:
        """Called with the lock."""
        del self._files[file], _all_files[file]
        file.size, file.is_gone = 0, True
        with contextlib.suppress(OSError):
            os.unlink(file.name, dir_fd=self.descriptor)

    def remove(self) -> None:
        """Removes the folder with our files, and only those: the session may be open a second time."""
        with _lock:
            self._is_over = True
            if self.descriptor >= 0:
                for file in list(self._files):
                    self.drop(file)
                os.close(self.descriptor)
                self.descriptor = -1
                with contextlib.suppress(OSError):
                    os.rmdir(self.path)


class OutputFile:
    """A file of an output folder, written by one thread. Once it is closed it may be dropped, to make room."""

    def __init__(self, folder: OutputFolder, name: str, descriptor: int) -> None:
        self.name = name
        self.path = os.path.join(folder.path, name)
        self.size = 0
        self.is_full = False
        """Something was left out for want of room."""
        self.is_gone = False
        self.is_closed = False
        self.folder = folder
        self._descriptor = descriptor

    def write(self, data: bytes) -> None:
        """As much of it as there is room for. Raises OSError."""
        with _lock:
            room = 0 if self.is_gone else self.folder.make_room(min(len(data), LARGEST_FILE - self.size))
            self.size += room
        rest = memoryview(data)[:room]
        self.is_full = self.is_full or room < len(data)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            with _lock:
                self.size -= len(rest)
            raise

    def read(self, offset: int, size: int) -> bytes:
        """Empty if the file is gone."""
        try:
            with _lock:
                if self.is_gone:
                    return b""
                descriptor = os.open(
                    self.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.folder.descriptor
                )
            with open(descriptor, "rb") as file:
                return os.pread(file.fileno(), size, offset)
        except OSError:
            return b""

    def close(self) -> None:
        """Nothing more is written."""
        if not self.is_closed:
            self.is_closed = True
            os.close(self._descriptor)


_lock = threading.Lock()
_all_files: dict[OutputFile, None] = {}
"""What the sessions of this process keep, the oldest first."""


def _make_room(wanted: int, most: int, files: Mapping[OutputFile, None]) -> int:
    """Drops the oldest that are closed until so many bytes fit; how many do, where that is not enough."""
    used = sum(file.size for file in files)
    for file in [file for file in files if file.is_closed] if used + wanted > most else ():
        if used + wanted > most:
            used -= file.size
            file.folder.drop(file)
    return max(0, min(wanted, most - used))


def _open_own(path: str) -> int:
    """A descriptor of the folder, which is made if need be. OSError unless it is ours alone, and nobody else can put
    another one in its place: its name can be known to others of this machine before it is there."""
    above = os.path.dirname(path)
    os.makedirs(above, 0o700, exist_ok=True)
    if os.stat(above).st_mode & (stat.S_IWOTH | stat.S_ISVTX) == stat.S_IWOTH:
        raise OSError(errno.EPERM, "other users can replace files in the temporary folder")
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    descriptor = os.open(path, _FOLDER)
    status = os.fstat(descriptor)
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        os.close(descriptor)
        raise OSError(errno.EPERM, "its folder belongs to another user or is open to others")
    return descriptor


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
