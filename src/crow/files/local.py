"""The workspace on this machine's disk: reads, writes and lists files on threads. No file call is made on the event
loop: a file system may hang.
"""

import asyncio
import contextlib
import os
import stat
import threading
from collections.abc import Callable, Generator, Sequence
from typing import BinaryIO, TypeVar

import msgspec

from crow.disk import Disk
from crow.errors import FileSystemSilent, WorkspaceError
from crow.files.atomic import obstacle_to_writing, remove_file, replace_file
from crow.files.base import Document, FileInfo
from crow.files.output_folder import was_output
from crow.files.resolved_path import ResolvedPath, kind, open_resolved, pinned, reason, resolve_path, status_of
from crow.files.text import Excerpt, LineRange, decode, decode_text, encode, excerpt_of, excerpt_of_file
from crow.paths import LONGEST, is_inside, shown

LARGEST_TEXT = 64 * 1024 * 1024
LARGEST_KEPT = 16 * 1024 * 1024
"""Bytes of a text that is held as a whole for the sake of a few lines: nobody remembers a longer one."""
LARGEST_AT_ONCE = 1024 * 1024
"""Bytes or characters up to which a text is decoded or compared without leaving the event loop."""
LAST_MOMENT = 0.5
"""Seconds that a cancelled write gets to leave everything tidy before the cancelling goes on without it."""

Done = TypeVar("Done")


class LocalWorkspace:
    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = tuple(os.path.realpath(root) for root in roots)
        self.disk = Disk(self._roots[0] if self._roots else "/")  # none: for tools that need no folder

    @property
    def roots(self) -> Sequence[str]:
        return self._roots

    async def resolve(self, path: str) -> ResolvedPath:
        if "\0" in path:
            raise WorkspaceError("A path cannot contain a null character.")
        if len(path) > LONGEST:
            raise WorkspaceError(f"{shown(path[:100])}… is too long for a path: {len(path)} characters.")
        try:
            return await self.disk.run(lambda: resolve_path(path, self._roots[0]))
        except OSError as error:
            raise WorkspaceError(f"{shown(path)} cannot be resolved: {reason(error)}.") from None

    def contains(self, path: str) -> bool:
        return any(is_inside(path, root) for root in self._roots)

    async def pin(self, folder: ResolvedPath) -> ResolvedPath:
        try:
            return await self.disk.run(lambda: pinned(folder))
        except OSError as error:
            raise _unreadable(folder.real, error) from None

    async def stat(self, path: ResolvedPath) -> FileInfo:
        status = await self.disk.run(lambda: _status(path))
        if stat.S_ISREG(status.st_mode):
            return FileInfo(path.real, "file", status.st_size)
        return FileInfo(path.real, "folder" if stat.S_ISDIR(status.st_mode) else "other", 0)

    async def read_bytes(self, path: ResolvedPath, limit: int) -> bytes:
        return await self.disk.run(lambda: _read(path, limit))

    async def read_text(self, path: ResolvedPath) -> str:
        content = await self.disk.run(lambda: _read_all(path))
        return await off_loop_if_large(len(content), lambda: decode_text(path.real, content))

    async def read_lines(self, path: ResolvedPath, wanted: LineRange) -> Excerpt:
        return await self.disk.run(lambda: _read_lines(path, wanted))

    async def list_folder(self, path: ResolvedPath) -> list[str]:
        return await self.disk.run(lambda: _list(path))

    def note_buffer(self, path: ResolvedPath) -> None:
        pass

    def known_buffers(self) -> Sequence[str]:
        return ()

    async def unsaved_text(self, path: ResolvedPath) -> str | None:
        return None

    # --- documents

    async def read_document(self, path: ResolvedPath) -> Document | None:
        found = await self.disk.run(lambda: _read_to_change(path))
        if found is None:
            return None
        content, obstacle = found
        return await off_loop_if_large(len(content), lambda: document(path.real, content, obstacle=obstacle))

    async def write_document(
        self, path: ResolvedPath, text: str, before: Document | None, *, like: Document | None = None
    ) -> Document:
        size = len(text) + (len(before.text) if before else 0)
        content = await off_loop_if_large(size, lambda: encode_like(like or before, path.real, text))
        remarks = await self._replace(path, content, before)
        return await off_loop_if_large(size, lambda: _written(path.real, content, text, remarks))

    async def _replace(self, path: ResolvedPath, content: bytes, before: Document | None) -> tuple[str, ...]:
        expected = await off_loop_if_large(len(before.text), lambda: bytes_of(before)) if before is not None else None
        return await self._to_its_end(lambda given_up: replace_file(path, content, expected, given_up))

    async def remove(self, path: ResolvedPath, before: Document, folders: int = 0) -> None:
        expected = await off_loop_if_large(len(before.text), lambda: bytes_of(before))
        await self._to_its_end(lambda given_up: remove_file(path, expected, folders))

    async def _to_its_end(self, work: Callable[[threading.Event], Done]) -> Done:
        """The result of a change. If we are cancelled it is told to give up, and never abandoned half-way."""
        given_up = threading.Event()
        task = asyncio.ensure_future(self.disk.run(lambda: work(given_up)))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            given_up.set()
            task.add_done_callback(_overlook)
            await asyncio.wait([task], timeout=LAST_MOMENT)
            raise
        except FileSystemSilent:
            given_up.set()
            raise


def document(path: str, content: bytes, *, obstacle: str = "", remarks: tuple[str, ...] = ()) -> Document:
    text, encoding, mark = decode(path, content)
    return Document(path, text, encoding, mark, obstacle=obstacle, remarks=remarks)


def _written(path: str, content: bytes, text: str, remarks: tuple[str, ...]) -> Document:
    """What was written. If it will be read as the same text, that is not kept twice."""
    after = document(path, content, remarks=remarks)
    return msgspec.structs.replace(after, text=text) if after.text == text else after


def encode_like(before: Document | None, path: str, text: str) -> bytes:
    """A text in the encoding of the document that it replaces; a new file's is UTF-8."""
    return encode(path, text) if before is None else encode(path, text, before.encoding, mark=before.mark)


def bytes_of(saved: Document) -> bytes:
    """The bytes that a document was read from."""
    return encode(saved.path, saved.text, saved.encoding, mark=saved.mark)


async def off_loop_if_large(size: int, work: Callable[[], Done], largest_at_once: int = LARGEST_AT_ONCE) -> Done:
    """The result of work on a text, done in a thread if the text is larger than what is worked on at once."""
    return work() if size <= largest_at_once else await asyncio.to_thread(work)


def _overlook(task: asyncio.Future[Done]) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        task.exception()


def _status(path: ResolvedPath) -> os.stat_result:
    try:
        return status_of(path)
    except OSError as error:
        raise _unreadable(path.real, error) from None


def _read_to_change(path: ResolvedPath) -> tuple[bytes, str] | None:
    """The bytes of a file, and why they could not be replaced; None if there is no such file."""
    try:
        status_of(path)  # not os.path.exists, to which a loop of links is a missing file
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path.real, error) from None
    return _read_all(path), obstacle_to_writing(path)


def _read_all(path: ResolvedPath) -> bytes:
    content = _read(path, LARGEST_TEXT + 1)
    if len(content) > LARGEST_TEXT:
        raise _too_large(path.real)
    return content


def _read_lines(path: ResolvedPath, wanted: LineRange) -> Excerpt:
    with _open(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > LARGEST_TEXT:
            raise _too_large(path.real)
        if size > LARGEST_KEPT:
            return excerpt_of_file(file, path.real, wanted)
        return excerpt_of(decode_text(path.real, file.read(LARGEST_KEPT + 1)), wanted)


def _read(path: ResolvedPath, limit: int) -> bytes:
    with _open(path) as file:
        return file.read(limit)


@contextlib.contextmanager
def _open(path: ResolvedPath) -> Generator[BinaryIO]:
    try:
        # O_NONBLOCK: opening a FIFO that nobody writes to would wait for ever.
        fd = open_resolved(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        raise _unreadable(path.real, error) from None
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        raise WorkspaceError(f"{shown(path.real)} is {kind(mode)}, not a file that can be read.")
    try:
        with open(fd, "rb") as file:
            yield file
    except OSError as error:
        raise _unreadable(path.real, error) from None


def _unreadable(path: str, error: OSError) -> WorkspaceError:
    path = shown(path)
    match error:
        case FileNotFoundError():
            gone = (
                " Command output is kept until the session closes or newer output needs the space. "
                "Run the command again."
            )
            return WorkspaceError(f"{path} does not exist.{gone if was_output(path) else ''}")
        case PermissionError():
            return WorkspaceError(f"{path} cannot be read: permission denied.")
        case NotADirectoryError():
            return WorkspaceError(f"{path} does not exist: a part of it is a file, not a folder.")
        case _:
            return WorkspaceError(f"{path} cannot be read: {reason(error)}.")


def _too_large(path: str) -> WorkspaceError:
    return WorkspaceError(f"{shown(path)} is larger than {LARGEST_TEXT // 2**20} MiB.")


def _list(path: ResolvedPath) -> list[str]:
    try:
        fd = open_resolved(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with os.scandir(fd) as entries:
                return sorted(shown(entry.name) + ("/" if _is_folder(entry) else "") for entry in entries)
        finally:
            os.close(fd)
    except OSError as error:
        raise _unreadable(path.real, error) from None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself, or where nobody may look: it is there all the same
        return False
