"""Replaces a file atomically, by a temporary file and a rename: afterwards it holds the old bytes or the new ones,
whatever happens in between.

The new bytes go to a temporary file beside it, reach the disk, and take the old file's name. A write that was killed
leaves that temporary file behind. It has one name for each file, so that the next write of that file finds it, and so
does whoever knows which files were being written (`remove_temporary`); a lock tells it from the one of a write that is
still going on.
"""

import contextlib
import errno
import fcntl
import os
import stat
import time
import zlib
from itertools import islice
from pathlib import PurePosixPath
from threading import Event
from types import TracebackType
from typing import Self

from crow.errors import StaleFile, WorkspaceError
from crow.files.resolved_path import PinnedFile, ResolvedPath, remove_empty, unwritable
from crow.paths import shown

LOCK_TIMEOUT = 5
"""Seconds to wait for another write of the same file."""

_NO_HARD_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def replace_file(path: ResolvedPath, content: bytes, expected: bytes | None, given_up: Event) -> tuple[str, ...]:
    """Puts `content` where `expected` is (None: where nothing is), and says what of the old file was not kept.

    StaleFile if something else is there, also if it came a moment ago. Once `given_up` is set, nothing is replaced.
    """
    try:
        with PinnedFile(path, make_folders=expected is None) as target:
            status = target.check(expects_file=expected is not None)
            with _Temporary(target, given_up, is_new=status is None) as temporary:
                remarks = temporary.take_after(status) if status is not None else ()
                temporary.fill(content)
                _check_wanted(target, given_up)
                if expected is None:
                    temporary.appear()
                else:
                    _expect(target, expected)
                    temporary.replace()
            target.sync()
            return remarks
    except FileNotFoundError:
        raise _gone(path.real) from None
    except OSError as error:
        raise unwritable(path.real, error) from None


def remove_file(path: ResolvedPath, expected: bytes, folders: int = 0) -> None:
    """Also so many of the folders above it, if nothing else lies in them."""
    try:
        with PinnedFile(path) as target:
            target.check(expects_file=True)
            _expect(target, expected)
            os.unlink(target.name, dir_fd=target.folder)
            target.sync()
    except FileNotFoundError:
        raise _gone(path.real) from None
    except OSError as error:
        raise unwritable(path.real, error) from None
    remove_empty([str(folder) for folder in islice(PurePosixPath(path.real).parents, folders)])


def remove_temporary(path: str) -> None:
    """Removes what a killed write of the file has left beside it. Never fails."""
    with contextlib.suppress(OSError, WorkspaceError), PinnedFile(ResolvedPath(path)) as target:
        _sweep(target, temporary_name(target.name))


def obstacle_to_writing(path: ResolvedPath) -> str:
    """Why the file could not be replaced now; empty if nothing speaks against it."""
    try:
        with PinnedFile(path) as target:
            return target.obstacle(target.status())
    except OSError as error:
        return str(unwritable(path.real, error))


def _gone(path: str) -> StaleFile:
    return StaleFile(f"{shown(path)} no longer exists, or its folder does not.")


def _expect(target: PinnedFile, content: bytes) -> None:
    if not target.holds(content):
        raise StaleFile(f"{shown(target.path)} has changed in the meantime.")


def _check_wanted(target: PinnedFile, given_up: Event) -> None:
    if given_up.is_set():
        raise WorkspaceError(f"{shown(target.path)} was not written: it was interrupted.")


class _Temporary:
    """A file beside the one to be written; whatever happens, nothing is left of it."""

    def __init__(self, target: PinnedFile, given_up: Event, *, is_new: bool) -> None:
        self._target = target
        self._given_up = given_up
        self._name = temporary_name(target.name)
        # A new file gets what the person's umask leaves of 0666; one that replaces another gets that one's mode.
        self._fd = self._create(0o666 if is_new else 0o600)
        self._is_here = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_here:
            with contextlib.suppress(OSError):
                os.unlink(self._name, dir_fd=self._target.folder)
        os.close(self._fd)

    def take_after(self, status: os.stat_result) -> tuple[str, ...]:
        """Owner, group, mode and attributes of the old file. What cannot or must not be kept is said."""
        remarks: list[str] = []
        if not self._give_to(status.st_uid, status.st_gid):
            remarks.append("It now belongs to you: its owner or group could not be kept.")
        with contextlib.suppress(PermissionError):  # a file system that knows no modes
            os.fchmod(self._fd, stat.S_IMODE(status.st_mode) & ~(stat.S_ISUID | stat.S_ISGID))
        if status.st_mode & (stat.S_ISUID | stat.S_ISGID):
            remarks.append("Its setuid or setgid bit was dropped.")
        if status.st_nlink > 1:
            remarks.append("A hard link was broken: the file's other name keeps the old text.")
        self._copy_attributes()
        return tuple(remarks)

    def fill(self, content: bytes) -> None:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(self._fd, rest) :]
        os.fsync(self._fd)

    def replace(self) -> None:
        folder = self._target.folder
        os.replace(self._name, self._target.name, src_dir_fd=folder, dst_dir_fd=folder)
        self._is_here = False

    def appear(self) -> None:
        """Takes a name that nothing has. A second name does that in one step; it fails if something is there."""
        folder = self._target.folder
        try:
            os.link(self._name, self._target.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            raise StaleFile(f"{shown(self._target.path)} now exists.") from None
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            self._target.check(expects_file=False)
            self.replace()

    def _give_to(self, owner: int, group: int) -> bool:
        """Separately: one may give a file to a group of one's own, but only root to another person."""
        for user, its_group in ((-1, group), (owner, -1)):
            with contextlib.suppress(PermissionError):
                os.fchown(self._fd, user, its_group)
        ours = os.fstat(self._fd)
        return (ours.st_uid, ours.st_gid) == (owner, group)

    def _copy_attributes(self) -> None:
        """Access lists and labels too, where the system has them; but no right to run with more privileges."""
        if not hasattr(os, "listxattr"):
            return
        with contextlib.suppress(OSError), open(self._target.open(), "rb") as old:
            for name in os.listxattr(old.fileno()):
                if name != "security.capability":
                    with contextlib.suppress(OSError):
                        os.setxattr(self._fd, name, os.getxattr(old.fileno(), name))

    # --- one name, one writer

    def _create(self, mode: int) -> int:
        deadline = time.monotonic() + LOCK_TIMEOUT
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        while True:
            _check_wanted(self._target, self._given_up)
            try:
                fd = os.open(self._name, flags, mode, dir_fd=self._target.folder)
            except FileExistsError:
                if not _sweep(self._target, self._name):
                    if time.monotonic() > deadline:
                        raise WorkspaceError(f"{shown(self._target.path)} is being written by someone else.") from None
                    time.sleep(0.01)
                continue
            try:
                _lock(fd, fcntl.LOCK_EX)
                # Before we had the lock, somebody may have taken the file for a left-over and removed it.
                is_ours = _is_named(self._target, self._name, fd)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(self._name, dir_fd=self._target.folder)
                os.close(fd)
                raise
            if is_ours:
                return fd
            os.close(fd)


def _sweep(target: PinnedFile, name: str) -> bool:
    """Removes the temporary file that a killed write has left; false if its writer is alive."""
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=target.folder)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        os.unlink(name, dir_fd=target.folder)  # a symbolic link: no write of ours
        return True
    try:
        if not _lock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB):
            return False
        if _is_named(target, name, fd):
            os.unlink(name, dir_fd=target.folder)
        return True
    finally:
        os.close(fd)


def _is_named(target: PinnedFile, name: str, fd: int) -> bool:
    try:
        there = os.stat(name, dir_fd=target.folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(fd))


def temporary_name(name: str) -> str:
    """Hidden, always the same for a file, and never too long, however long the file's own name is."""
    return f".crow-{zlib.crc32(os.fsencode(name)):08x}.tmp"


def _lock(fd: int, how: int) -> bool:
    try:
        fcntl.flock(fd, how)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks: nobody else can be told from a left-over, which is the likelier
    return True
