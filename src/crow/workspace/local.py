"""The workspace on this machine's disk. File calls that may take long run in threads, never on the event loop."""

import asyncio
import os
import stat
from collections.abc import Sequence

from crow.errors import WorkspaceError
from crow.paths import is_inside, shown
from crow.workspace.base import FileInfo

LARGEST_TEXT = 64 * 1024 * 1024


class LocalWorkspace:
    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = tuple(os.path.realpath(root) for root in roots)

    @property
    def roots(self) -> Sequence[str]:
        return self._roots

    def resolve(self, path: str) -> str:
        if path == "~" or path.startswith("~/"):
            path = os.path.expanduser(path)
        if "\0" in path:
            raise WorkspaceError("A path cannot contain a null character.")
        try:
            return os.path.realpath(os.path.join(self._roots[0], path))
        except OSError as error:
            raise WorkspaceError(f"{shown(path)} cannot be resolved: {_reason(error)}.") from None

    def contains(self, path: str) -> bool:
        return any(is_inside(path, root) for root in self._roots)

    async def stat(self, path: str) -> FileInfo:
        try:
            status = os.stat(path)
        except OSError as error:
            raise _unusable(path, error) from None
        if stat.S_ISREG(status.st_mode):
            return FileInfo(path, "file", status.st_size)
        return FileInfo(path, "folder" if stat.S_ISDIR(status.st_mode) else "other", 0)

    async def read_bytes(self, path: str, limit: int) -> bytes:
        return await asyncio.to_thread(_read, path, limit)

    async def read_text(self, path: str) -> str:
        content = await self.read_bytes(path, LARGEST_TEXT + 1)
        if len(content) > LARGEST_TEXT:
            raise WorkspaceError(f"{shown(path)} is larger than {LARGEST_TEXT // 2**20} MiB.")
        return decode_text(path, content)

    async def list_folder(self, path: str) -> list[str]:
        return await asyncio.to_thread(_list, path)


def decode_text(path: str, content: bytes) -> str:
    """UTF-8, UTF-16 with its mark, else Latin-1, which every byte has a meaning in. Null bytes mean no text."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return content.decode("utf-16")
        except UnicodeDecodeError:
            pass
    if b"\0" in content:
        raise WorkspaceError(f"{shown(path)} is a binary file ({len(content):,} bytes).")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _read(path: str, limit: int) -> bytes:
    try:
        # O_NONBLOCK: opening a FIFO that nobody writes to would wait for ever.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        raise _unusable(path, error) from None
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        raise WorkspaceError(f"{shown(path)} is {_kind(mode)}, not a file that can be read.")
    with open(fd, "rb") as file:
        try:
            return file.read(limit)
        except OSError as error:
            raise _unusable(path, error) from None


def _list(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return sorted(shown(entry.name) + ("/" if entry.is_dir() else "") for entry in entries)
    except OSError as error:
        raise _unusable(path, error) from None


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a device"


def _unusable(path: str, error: OSError) -> WorkspaceError:
    path = shown(path)
    match error:
        case FileNotFoundError():
            return WorkspaceError(f"{path} does not exist.")
        case PermissionError():
            return WorkspaceError(f"{path} may not be read: permission denied.")
        case NotADirectoryError():
            return WorkspaceError(f"{path} does not exist: a part of it is a file, not a folder.")
        case _:
            return WorkspaceError(f"{path} cannot be read: {_reason(error)}.")


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
