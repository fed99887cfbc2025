"""Decides which editor's buffers count where several are connected, and refuses a write over unsaved text in any of
them.

Files are read and written through the editor that leads: the one with the newest prompt among those that offer files.
No other editor's unsaved text is ever overwritten: before a change each of them is asked for its text, and a change of
the person's there is an obstacle. Without an editor this machine's files are used.
"""

import asyncio
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from crow.errors import ClientRefused, WorkspaceError
from crow.files.base import Document, FileInfo, Workspace
from crow.files.resolved_path import ResolvedPath
from crow.files.text import Excerpt, LineRange
from crow.live.face import Face
from crow.paths import shown
from crow.timeouts import timeout

ANSWER_TIMEOUT = 2.0
"""Seconds that an editor that does not lead gets to say whether it has unsaved text."""


class FacesWorkspace:
    """`editors` gives the faces that offer files, the one that leads first; `local` is this machine."""

    def __init__(self, local: Workspace, editors: Callable[[], Sequence[Face]]) -> None:
        self._local = local
        self._editors = editors

    @property
    def _lead(self) -> Workspace:
        for face in self._editors():
            if face.files is not None:
                return face.files
        return self._local

    @property
    def roots(self) -> Sequence[str]:
        return self._local.roots

    async def resolve(self, path: str) -> ResolvedPath:
        return await self._local.resolve(path)

    def contains(self, path: str) -> bool:
        return self._local.contains(path)

    async def pin(self, folder: ResolvedPath) -> ResolvedPath:
        return await self._local.pin(folder)

    async def stat(self, path: ResolvedPath) -> FileInfo:
        return await self._local.stat(path)

    async def read_bytes(self, path: ResolvedPath, limit: int) -> bytes:
        return await self._local.read_bytes(path, limit)

    async def list_folder(self, path: ResolvedPath) -> list[str]:
        return await self._local.list_folder(path)

    async def read_text(self, path: ResolvedPath) -> str:
        return await self._lead.read_text(path)

    async def read_lines(self, path: ResolvedPath, wanted: LineRange) -> Excerpt:
        return await self._lead.read_lines(path, wanted)

    def note_buffer(self, path: ResolvedPath) -> None:
        self._lead.note_buffer(path)

    def known_buffers(self) -> Sequence[str]:
        return self._lead.known_buffers()

    async def unsaved_text(self, path: ResolvedPath) -> str | None:
        return await self._lead.unsaved_text(path)

    async def read_document(self, path: ResolvedPath) -> Document | None:
        document = await self._lead.read_document(path)
        if document is None or document.obstacle:
            return document
        return replace(document, obstacle=await self._obstacle(path))

    async def write_document(
        self, path: ResolvedPath, text: str, before: Document | None, *, like: Document | None = None
    ) -> Document:
        await self._check(path)
        return await self._lead.write_document(path, text, before, like=like)

    async def remove(self, path: ResolvedPath, before: Document, folders: int = 0) -> None:
        await self._check(path)
        await self._lead.remove(path, before, folders)

    async def _check(self, path: ResolvedPath) -> None:
        if obstacle := await self._obstacle(path):
            raise WorkspaceError(obstacle)

    async def _obstacle(self, path: ResolvedPath) -> str:
        """Why an editor that does not lead stands in the way of a change, in a sentence; empty if none does."""
        others = self._editors()[1:]
        if not others:
            return ""
        found = await asyncio.gather(*(_unsaved_in(face, path) for face in others))
        return next(filter(None, found), "")


async def _unsaved_in(face: Face, path: ResolvedPath) -> str:
    if face.files is None:
        return ""
    try:
        async with timeout(ANSWER_TIMEOUT):
            document = await face.files.read_document(path)
    except TimeoutError:
        return (
            f"{face.name} did not say within {ANSWER_TIMEOUT:g} seconds whether {shown(path.real)} has unsaved changes "
            "there. It has to answer, or to be closed."
        )
    except ClientRefused:
        return ""  # it will not show the file, so nobody can have changed it there
    except WorkspaceError as error:
        return error.message
    if document is None or not document.unsaved:
        return ""
    return f"{shown(path.real)} has unsaved changes in {face.name}. They have to be saved or undone there first."
