"""A file's place in its folder, reached without following a symbolic link.

A path is resolved once, when it is judged; the person agrees to that path. A link that appears on it afterwards could
lead a read or a write anywhere, so each folder is opened from the one above it, and everything then happens relative
to the last one, whatever becomes of the path meanwhile.
"""

import contextlib
import os
import stat
from types import TracebackType
from typing import Self

from crow.errors import FileChanged, WorkspaceError
from crow.paths import shown
from crow.workspace.words import kind, led_elsewhere, unwritable

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Place:
    def __init__(self, path: str, *, make_folders: bool = False) -> None:
        self.path = path
        self.name = os.path.basename(path) or "."
        self.folder = _open_folder(os.path.dirname(path), make=make_folders)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.folder)

    def status(self) -> os.stat_result | None:
        """Of what lies here, not of what it may point to; None if nothing does."""
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open(self) -> int:
        return os.open(self.name, _FILE, dir_fd=self.folder)

    def holds(self, content: bytes) -> bool:
        """Whether a file with exactly these bytes lies here now."""
        try:
            fd = self.open()
        except FileNotFoundError:
            return False
        with open(fd, "rb") as file:
            return os.fstat(fd).st_size == len(content) and file.read(len(content) + 1) == content

    def obstacle(self, status: os.stat_result | None) -> str:
        """Why the file may not be replaced; empty if it may."""
        path = shown(self.path)
        if status is not None:
            if not stat.S_ISREG(status.st_mode):
                return f"{path} is {kind(status.st_mode)}, not a file that can be written."
            if not status.st_mode & stat.S_IWUSR:
                return f"{path} is read-only: its owner has no permission to write it either."
            if not self._may_write(self.name):
                return f"{path} may not be written: permission denied."
        if not self._may_write("."):
            return f"{path} may not be written: permission denied in {shown(os.path.dirname(self.path))}."
        return ""

    def check(self, *, expects_file: bool) -> os.stat_result | None:
        """What lies here, if it may be replaced and is there as expected; else an error that says why not."""
        status = self.status()
        if obstacle := self.obstacle(status):
            raise WorkspaceError(obstacle)
        if status is None and expects_file:
            raise FileChanged(f"{shown(self.path)} does not exist any more.")
        if status is not None and not expects_file:
            raise FileChanged(f"{shown(self.path)} exists by now.")
        return status

    def sync(self) -> None:
        """Makes the folder's new state survive a power cut, where the file system knows how."""
        with contextlib.suppress(OSError):
            fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.folder)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def _may_write(self, name: str) -> bool:
        return os.access(name, os.W_OK, dir_fd=self.folder, effective_ids=True)


def open_resolved(path: str, flags: int) -> int:
    """Opens what lies at a resolved path. FileChanged if a symbolic link has appeared on it; else OSError."""
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        if not hasattr(os, "O_PATH"):  # one may pass through folders that one may not open (macOS)
            refuse_link(path)
            return os.open(path, flags | getattr(os, "O_NOFOLLOW_ANY", 0))
        with Place(path) as place:
            return os.open(place.name, flags, dir_fd=place.folder)
    except OSError:
        refuse_link(path)
        raise


def status_of(path: str) -> os.stat_result:
    """Of what lies at a resolved path. FileChanged if a symbolic link has appeared on it; else OSError."""
    if not hasattr(os, "O_PATH"):
        refuse_link(path)
        return os.stat(path)
    try:
        with Place(path) as place:
            status = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
    except OSError:
        refuse_link(path)
        raise
    if stat.S_ISLNK(status.st_mode):
        refuse_link(path)
        return os.stat(path)  # a link to itself: it never led anywhere, and the system says so
    return status


def refuse_link(path: str) -> None:
    """FileChanged if a resolved path leads over a symbolic link by now, be there something at its end or not."""
    if os.path.realpath(path) != path:
        raise led_elsewhere(path)


def make_folders_for(path: str) -> None:
    """So that somebody else can make a file there."""
    try:
        os.close(_open_folder(os.path.dirname(path), make=True))
    except OSError as error:
        raise unwritable(path, error) from None


def _open_folder(path: str, *, make: bool) -> int:
    fd = os.open("/", _FOLDER)
    for name in filter(None, path.split("/")):
        above = fd
        try:
            fd = _enter(above, name, make=make)
        finally:
            os.close(above)
    return fd


def _enter(above: int, name: str, *, make: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=above)
    except FileNotFoundError:
        if not make:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=above)
    return os.open(name, _FOLDER, dir_fd=above)
