"""Resolves a path once, and opens what lies there without following a symbolic link that appeared since: what was
judged is what is used.

A path is resolved once, when it is judged; the person agrees to that path. A link that appears on it afterwards, or
another folder that takes the place of one, could lead a read or a write anywhere. So each folder is opened from the
one above it, the last one must be the one that it was, and everything then happens relative to it, whatever becomes
of the path meanwhile.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Sequence
from itertools import groupby
from types import TracebackType
from typing import NamedTuple, Self

import msgspec

from crow.errors import StaleFile, WorkspaceError
from crow.paths import is_inside, shown, spelled

# --- what the system says of a path, in words


def unwritable(path: str, error: OSError) -> WorkspaceError:
    """Said only where nothing was changed: a write is whole or did not happen."""
    folder, path = shown(os.path.dirname(path)), shown(path)
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return WorkspaceError(f"{path} was not written: the disk is full. It is unchanged.")
        case errno.EACCES | errno.EPERM:
            return WorkspaceError(f"{path} cannot be written: permission denied in {folder}.")
        case errno.ENOTDIR | errno.ELOOP:
            return WorkspaceError(
                f"{path} cannot be written: a part of its path is a file, or has become a symbolic link."
            )
        case _:
            return WorkspaceError(f"{path} was not written: {reason(error)}. It is unchanged.")


def led_elsewhere(path: str) -> StaleFile:
    """The error for a resolved path, which had no symbolic link on it when somebody agreed to it, and has one now."""
    return StaleFile(f"{shown(path)} has changed since it was approved: there is a symbolic link on its path now.")


def another_folder(path: str) -> StaleFile:
    """The error for a path whose folder was replaced by another one since somebody agreed to it."""
    return StaleFile(f"{shown(path)} has changed since it was approved: its folder was replaced by another one.")


def folder_gone(path: str) -> StaleFile:
    return StaleFile(f"{shown(path)} has changed since it was approved: its folder is gone.")


def kind(mode: int) -> str:
    """What lies at a path instead of a file."""
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    return "a device"


def reason(error: OSError) -> str:
    """What the system said, in its own words, without number and path."""
    return (error.strerror or type(error).__name__).lower()


_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_PIECE = 1024 * 1024
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class FolderIdentity(NamedTuple):
    """Which folder it is, by its inode: another one may have its name by now."""

    depth: int
    """How many names led to it when it was looked at."""
    device: int
    inode: int


class ResolvedPath(msgspec.Struct, frozen=True):
    """Where a path led at one moment. What is judged, what the person is shown and what is opened are this one object:
    whoever resolves a path twice may be led to two places.
    """

    real: str
    """Absolute, symbolic links resolved."""
    written: str = ""
    """Absolute too, but as it was written, links and all; empty if it was given as it is."""
    folder: FolderIdentity | None = None
    """The innermost folder above it that was there, or the folder that it was `pinned` to; None if not looked at."""
    existed: bool = False
    """Whether something lay there."""

    def __fspath__(self) -> str:
        return self.real

    @property
    def judged(self) -> tuple[str, ...]:
        """Where it led, and what it was called: a protected name stays protected if it is a link."""
        return (self.real,) if self.written in ("", self.real) else (self.real, self.written)

    @property
    def missing_folders(self) -> int:
        """How many of the folders above it were not there."""
        return len(_names(os.path.dirname(self.real))) - self.folder.depth if self.folder is not None else 0


def resolve_path(path: str, home: str) -> ResolvedPath:
    """Resolves a path that may be relative to a folder or begin with `~`. OSError if it cannot be resolved."""
    if path == "~" or path.startswith("~/"):
        path = os.path.expanduser(path)
    real = os.path.realpath(os.path.join(home, path))
    return ResolvedPath(real, spelled(path, home), _folder_above(real), os.path.lexists(real))


def pinned(path: ResolvedPath) -> ResolvedPath:
    """The path, held to the folder that lies at its end: another one that takes its name is another path.

    WorkspaceError if no folder lies there; StaleFile if it leads elsewhere by now; else OSError.
    """
    status = status_of(path)
    if not stat.S_ISDIR(status.st_mode):
        raise WorkspaceError(f"{shown(path.real)} is not a folder: commands cannot run in it.")
    identity = FolderIdentity(len(_names(path.real)), status.st_dev, status.st_ino)
    return msgspec.structs.replace(path, folder=identity, existed=True)


def _folder_above(real: str) -> FolderIdentity | None:
    """The innermost folder, looked up by name: if the name leads elsewhere by now, opening the folder fails."""
    names = _names(os.path.dirname(real))
    for depth in range(len(names), -1, -1):
        with contextlib.suppress(OSError):
            status = os.stat("/" + "/".join(names[:depth]))
            if stat.S_ISDIR(status.st_mode):
                return FolderIdentity(depth, status.st_dev, status.st_ino)
    return None


class PinnedFile:
    """A name in a folder that is held open: whatever becomes of the path meanwhile, it stays this folder's file."""

    def __init__(
        self, path: ResolvedPath, *, make_folders: bool = False, passed: list[os.stat_result] | None = None
    ) -> None:
        """`passed` gets the status of each folder on the way, from `/` on."""
        self.path = path.real
        self.name = os.path.basename(path.real) or "."
        self.folder = _open_folder(path, make=make_folders, passed=passed)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.folder)

    def status(self) -> os.stat_result | None:
        """The status of what lies here, not of what it may point to; None if nothing does."""
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
            if os.fstat(fd).st_size != len(content):
                return False
            # In pieces: neither is all of it held twice, nor does a comparison take long.
            wanted = memoryview(content)
            pieces = iter(lambda: file.read(_PIECE), b"")
            place = 0
            for piece in pieces:
                if wanted[place : place + len(piece)].tobytes() != piece:
                    return False
                place += len(piece)
            return place == len(content)

    def obstacle(self, status: os.stat_result | None) -> str:
        """Why the file may not be replaced; empty if it may."""
        path = shown(self.path)
        if status is not None:
            if not stat.S_ISREG(status.st_mode):
                return f"{path} is {kind(status.st_mode)}, not a file that can be written."
            if not status.st_mode & stat.S_IWUSR:
                return f"{path} is read-only, even for its owner."
            if not self._may_write(self.name):
                return f"{path} cannot be written: permission denied."
        if not self._may_write("."):
            return f"{path} cannot be written: permission denied in {shown(os.path.dirname(self.path))}."
        return ""

    def check(self, *, expects_file: bool) -> os.stat_result | None:
        """What lies here, if it may be replaced and is there as expected; else an error that says why not."""
        status = self.status()
        if obstacle := self.obstacle(status):
            raise WorkspaceError(obstacle)
        if status is None and expects_file:
            raise StaleFile(f"{shown(self.path)} no longer exists.")
        if status is not None and not expects_file:
            raise StaleFile(f"{shown(self.path)} now exists.")
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


def open_resolved(path: ResolvedPath, flags: int) -> int:
    """Opens what lies at a resolved path. StaleFile if it leads elsewhere by now; else OSError."""
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        if not hasattr(os, "O_PATH"):  # one may pass through folders that one may not open (macOS)
            refuse_link(path.real)
            return os.open(path.real, flags | getattr(os, "O_NOFOLLOW_ANY", 0))
        with PinnedFile(path) as file:
            return os.open(file.name, flags, dir_fd=file.folder)
    except OSError:
        refuse_link(path.real)
        raise


def status_of(path: ResolvedPath) -> os.stat_result:
    """The status of what lies at a resolved path. StaleFile if it leads elsewhere by now; else OSError."""
    if not hasattr(os, "O_PATH"):
        refuse_link(path.real)
        return _expected(path, os.stat(path.real))
    try:
        with PinnedFile(path) as file:
            status = os.stat(file.name, dir_fd=file.folder, follow_symlinks=False)
    except OSError:
        refuse_link(path.real)
        raise
    if stat.S_ISLNK(status.st_mode):
        refuse_link(path.real)
        # A link to itself: it never led anywhere. Not by its name, which may be another thing's by now.
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return _expected(path, status)


def _expected(path: ResolvedPath, status: os.stat_result) -> os.stat_result:
    """The status of what lies at the end of a path, which may be `pinned` to it."""
    is_pinned = path.folder is not None and path.folder.depth == len(_names(path.real))
    if path.folder is not None and is_pinned and (status.st_dev, status.st_ino) != path.folder[1:]:
        raise another_folder(path.real)
    return status


def verify(path: ResolvedPath) -> None:
    """StaleFile if a resolved path leads elsewhere by now, be there something at its end or not."""
    with contextlib.suppress(OSError):
        status_of(path)


def pinned_only(paths: Sequence[str]) -> list[str]:
    """The resolved, sorted paths that lead to something over no symbolic link; each folder is opened once."""
    kept: list[str] = []
    for folder, group in groupby(paths, lambda path: os.path.dirname(path.rstrip("/"))):
        with (
            contextlib.suppress(OSError, StaleFile),
            PinnedFile(ResolvedPath(os.path.join(folder, "."))) as file,
        ):
            kept += [path for path in group if _lies_in(file, os.path.basename(path.rstrip("/")))]
    return kept


def _lies_in(file: PinnedFile, name: str) -> bool:
    try:
        status = os.stat(name, dir_fd=file.folder, follow_symlinks=False)
    except OSError:
        return False
    return not stat.S_ISLNK(status.st_mode)


class Trail(NamedTuple):
    """What the names of a path stood for at one moment: what is moved away and back again has another time."""

    folders: tuple[tuple[int, int, int], ...]
    """Device, inode and time of the last change in nanoseconds, for each folder from the workspace's root on."""
    end: tuple[int, int, int] | None
    """Device, inode and time of what lies at the end, if anything does."""

    @property
    def newest(self) -> int:
        """The time of the last change in one of the folders: every other name that something gets is one."""
        return max((changed for _, _, changed in self.folders), default=0)


def trail_of(path: ResolvedPath, roots: Sequence[str]) -> Trail:
    """What lies above the workspace is left out: it changes for reasons of its own.

    StaleFile if the path leads elsewhere by now.
    """
    verify(path)
    passed: list[os.stat_result] = []
    end: os.stat_result | None = None
    with contextlib.suppress(OSError), PinnedFile(path, passed=passed) as file:
        end = file.status()
    above = min((len(_names(root)) for root in roots if is_inside(path.real, root)), default=0)
    return Trail(tuple(map(_stamp, passed[above:])), _stamp(end) if end is not None else None)


def _stamp(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_dev, status.st_ino, status.st_ctime_ns


def refuse_link(path: str) -> None:
    """StaleFile if a resolved path leads over a symbolic link by now, be there something at its end or not."""
    if os.path.realpath(path) != path:
        raise led_elsewhere(path)


def make_folders_for(path: ResolvedPath) -> list[str]:
    """So that somebody else can make a file there. Returns the folders that were missing."""
    folder = os.path.dirname(path.real)
    missing: list[str] = []
    while folder != "/" and not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    try:
        os.close(_open_folder(path, make=True))
    except OSError as error:
        raise unwritable(path.real, error) from None
    return missing


def remove_empty(folders: Sequence[str]) -> None:
    """Takes folders away that were made for a file, the innermost first, unless something lies in them by now."""
    with contextlib.suppress(OSError):
        for folder in folders:
            os.rmdir(folder)


def _open_folder(path: ResolvedPath, *, make: bool, passed: list[os.stat_result] | None = None) -> int:
    """The folder that a path lies in, by way of the one that was there when it was resolved.

    Only folders below that one are made: where it is gone, its name belongs to nobody who was agreed to.
    """
    fd = os.open("/", _FOLDER)
    there = path.folder.depth if path.folder is not None else 0
    try:
        _pass(path, fd, 0, passed)
        for depth, name in enumerate(_names(os.path.dirname(path.real)), 1):
            try:
                below = _enter(fd, name, make=make and depth > there)
            except FileNotFoundError:
                if make and depth <= there:
                    raise folder_gone(path.real) from None
                raise
            os.close(fd)
            fd = below
            _pass(path, fd, depth, passed)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _pass(path: ResolvedPath, fd: int, depth: int, passed: list[os.stat_result] | None) -> None:
    is_expected = path.folder is not None and path.folder.depth == depth
    if passed is None and not is_expected:
        return
    status = os.fstat(fd)
    if passed is not None:
        passed.append(status)
    if path.folder is not None and is_expected and (status.st_dev, status.st_ino) != path.folder[1:]:
        raise another_folder(path.real)


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _enter(above: int, name: str, *, make: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=above)
    except FileNotFoundError:
        if not make:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=above)
    return os.open(name, _FOLDER, dir_fd=above)
