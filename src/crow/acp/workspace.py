"""The workspace as the editor has it: its unsaved buffers before the disk.

The disk, which we share with the editor, stays the measure of bytes. Text is written through the editor where that
keeps every byte; else straight to disk, as long as the buffer holds no change of the person's; else not at all.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from crow.acp import wire
from crow.acp.buffers import BufferState, BufferWatch, keeps_bytes, may_keep_bytes, what_saving_would_change
from crow.acp.connection import Connection, ConnectionLost
from crow.acp.jsonrpc import RpcError
from crow.errors import FileChanged, WorkspaceError
from crow.paths import shown
from crow.timeouts import timeout
from crow.workspace.base import Document
from crow.workspace.excerpt import Excerpt, Wanted, excerpt_of
from crow.workspace.local import LocalWorkspace, encode_like, worked_out
from crow.workspace.place import make_folders_for, refuse_link
from crow.workspace.text import MARK

PATIENCE = 10
"""Seconds that an editor gets to hand over a file before the disk is read instead."""
PATIENCE_FOR_WRITING = 30
"""Seconds that it gets to format and save one."""
LARGEST_SENT = 2 * 1024 * 1024
"""Characters that go into one message: there is an editor (Toad) that takes no line over 10 MiB."""

ASK_TO_SAVE = "Ask the user to save it first."


class Look(NamedTuple):
    """A file as it is at one moment."""

    saved: Document | None
    """On disk."""
    buffer: str | None
    """In the editor, if it said so."""
    document: Document | None
    """What follows from the two: the text that the person has in front of them."""
    silent: bool = False
    """The editor did not answer in time: what it holds is unknown."""


class ClientWorkspace(LocalWorkspace):
    """Text goes through the client, everything else is done on this machine, which the two share.

    `reads` and `writes` are the two capabilities of a client's file system. Each may be there without the other.
    """

    def __init__(
        self, roots: Sequence[str], connection: Connection, session_id: str, *, reads: bool = True, writes: bool = False
    ) -> None:
        super().__init__(roots)
        self._connection = connection
        self._session_id = session_id
        self._reads = reads
        self._writes = writes
        self._watch = BufferWatch()

    async def read_text(self, path: str) -> str:
        document = await self.read_document(path)
        return document.text if document is not None else await super().read_text(path)

    async def read_lines(self, path: str, wanted: Wanted) -> Excerpt:
        if not self._reads or not self.contains(path):
            return await super().read_lines(path, wanted)
        text = await self.read_text(path)
        return await worked_out(len(text), lambda: excerpt_of(text, wanted))

    async def read_document(self, path: str) -> Document | None:
        return (await self._look(path)).document

    async def write_document(
        self, path: str, text: str, before: Document | None, *, like: Document | None = None
    ) -> Document:
        # What the file could not hold is refused, whoever would write it.
        await worked_out(len(text), lambda: encode_like(like or before, path, text))
        look = await self._look_again(path, before)
        if like is not None and (look.saved is None or not _encoded_alike(look.saved, like)):
            return await self._encode_anew(path, text, look, like)
        if await worked_out(len(text), lambda: self._can_go_through_client(look, path, text)):
            return await self._write_through(path, text, look)
        if look.document is not None and look.document.unsaved:
            raise WorkspaceError(f"{shown(path)} is too large to be changed in the editor. {ASK_TO_SAVE}")
        return await self._write_to_disk(path, text, look)

    async def remove(self, path: str, before: Document) -> None:
        look = await self._look_again(path, before)
        if look.saved is None or (look.document is not None and look.document.unsaved):
            raise WorkspaceError(f"{shown(path)} has unsaved changes in the editor. {ASK_TO_SAVE}")
        await super().remove(path, look.saved)

    # --- looking

    async def _look(self, path: str) -> Look:
        # The disk first: a binary file would come garbled, and a missing one as an empty text (Toad).
        saved = await super().read_document(path)
        try:
            buffer = await self._ask_for_buffer(path)
        except TimeoutError:
            told = f"The editor did not say within {PATIENCE} seconds whether {shown(path)} has unsaved changes."
            return Look(saved, None, saved and _with_obstacle(saved, told), silent=True)
        # The editor follows a symbolic link that has appeared meanwhile; whatever that led to is nobody's to see.
        refuse_link(path)
        # An empty text may also mean that the editor does not find the file. The disk knows.
        if not buffer:
            return Look(saved, buffer if saved is not None and not saved.text else None, saved)
        document = await worked_out(len(buffer), lambda: self._in_front_of_the_person(path, saved, buffer))
        return Look(saved, buffer, document)

    async def _look_again(self, path: str, before: Document | None) -> Look:
        """What is there now, if it is still what a change was made from and can be written."""
        look = await self._look(path)
        now = look.document
        if now is not None and before is None:
            raise FileChanged(f"{shown(path)} exists by now.")
        if before is not None and (now is None or not now.same_as(before)):
            raise FileChanged(f"{shown(path)} has changed meanwhile.")
        if now is not None and now.obstacle:
            raise WorkspaceError(now.obstacle)
        return look

    async def _ask_for_buffer(self, path: str) -> str | None:
        """The editor's text; None if it has none to give: it answers only for the folders of its project."""
        if not self._reads or not self.contains(path):
            return None
        request = wire.ReadTextFileRequest(session_id=self._session_id, path=path)
        try:
            async with timeout(PATIENCE):
                answer = await self._connection.request("fs/read_text_file", request, wire.ReadTextFileResponse)
        except (RpcError, ConnectionLost):
            return None
        return answer.content

    def _in_front_of_the_person(self, path: str, saved: Document | None, buffer: str) -> Document:
        if saved is None:
            saved, state = Document(path, ""), BufferState.UNSAVED
        else:
            state = self._watch.judge(saved, buffer)
        if state in (BufferState.SAVED, BufferState.BEHIND):
            return saved
        unsaved = msgspec.structs.replace(saved, text=buffer.removeprefix(MARK), unsaved=True)
        return _with_obstacle(unsaved, self._why_unsaved_text_must_stay(state, saved, buffer))

    def _why_unsaved_text_must_stay(self, state: BufferState, saved: Document, buffer: str) -> str:
        has_changes = f"{shown(saved.path)} has unsaved changes in the editor"
        if state is BufferState.BOTH_CHANGED:
            return f"{has_changes}, and was changed on disk as well. Ask the user to save or to reload it first."
        if not self._writes:
            return f"{has_changes}, which offers no way to write them. {ASK_TO_SAVE}"
        if lost := what_saving_would_change(saved, buffer):
            return f"{has_changes}, and its {lost} might not survive a change made there. {ASK_TO_SAVE}"
        return ""

    # --- writing

    def _can_go_through_client(self, look: Look, path: str, text: str) -> bool:
        if not self._writes or look.silent or not self.contains(path) or len(text) > LARGEST_SENT:
            return False
        if look.document is not None and look.document.unsaved:
            return True  # what speaks against it would be an obstacle
        if look.saved is None or not self._reads:
            return may_keep_bytes(look.saved, text)
        # An editor that would not show the file will not write it either.
        return look.buffer is not None and keeps_bytes(look.saved, look.buffer, text)

    async def _encode_anew(self, path: str, text: str, look: Look, like: Document) -> Document:
        """In another encoding than the file has: no editor can be told which."""
        if look.document is not None and look.document.unsaved:
            raise WorkspaceError(f"{shown(path)} has unsaved changes in the editor. {ASK_TO_SAVE}")
        return await self._write_to_disk(path, text, look, like)

    async def _write_to_disk(self, path: str, text: str, look: Look, like: Document | None = None) -> Document:
        after = await super().write_document(path, text, look.saved, like=like)
        await worked_out(len(text), lambda: self._watch.note_saved(after))
        return after

    async def _write_through(self, path: str, text: str, look: Look) -> Document:
        # The editor may have taken its time to answer, and will not look at the disk before it saves.
        await self._expect_on_disk(path, look.saved)
        await asyncio.to_thread(make_folders_for, path)
        mark = MARK if look.buffer is not None and look.buffer.startswith(MARK) else ""
        request = wire.WriteTextFileRequest(session_id=self._session_id, path=path, content=mark + text)
        refuse_link(path)  # the editor would follow one that has appeared since the person agreed
        try:
            async with timeout(PATIENCE_FOR_WRITING):
                await self._connection.request("fs/write_text_file", request, msgspec.Raw)
        except RpcError as error:
            if look.document is not None and look.document.unsaved:
                reason = error.message[:200]
                raise WorkspaceError(f"{shown(path)} was not written: the editor refused it ({reason}).") from None
            return await self._write_to_disk(path, text, look)
        except ConnectionLost:
            raise WorkspaceError(f"{shown(path)} was not written: the editor is gone.") from None
        except TimeoutError:
            return await self._if_written(path, text)
        return await self._what_became_of(path, text, look)

    async def _expect_on_disk(self, path: str, saved: Document | None) -> None:
        now = await super().read_document(path)
        if now is not saved and (now is None or saved is None or not now.same_as(saved)):
            raise FileChanged(f"{shown(path)} has changed meanwhile.")

    async def _if_written(self, path: str, text: str) -> Document:
        """For an editor that did not answer: it may have done it all the same, or may do it yet."""
        after = (await self._look(path)).document
        if after is None or after.text != text:
            told = (
                f"The editor did not answer within {PATIENCE_FOR_WRITING} seconds when it was to write {shown(path)}."
            )
            raise WorkspaceError(told, remedy="Read the file again to see what became of it.")
        return after

    async def _what_became_of(self, path: str, text: str, before: Look) -> Document:
        """What is there after the editor has written: it may have formatted the text, or done nothing with it."""
        after = (await self._look(path)).document
        if after is None:
            raise WorkspaceError(f"The editor said that it wrote {shown(path)}, but there is no such file.")
        is_untouched = before.document is not None and after.text == before.document.text
        if is_untouched and after.text != text:
            raise WorkspaceError(f"The editor said that it wrote {shown(path)}, but the file is as it was.")
        if after.unsaved:
            return msgspec.structs.replace(after, remarks=("The editor has not saved it yet.",))
        return after


def _encoded_alike(one: Document, other: Document) -> bool:
    return (one.encoding, one.mark) == (other.encoding, other.mark)


def _with_obstacle(document: Document, obstacle: str) -> Document:
    return msgspec.structs.replace(document, obstacle=document.obstacle or obstacle)
