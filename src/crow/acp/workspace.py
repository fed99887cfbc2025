"""Files through the editor, whose unsaved buffers count before the disk: decides whether a write goes through it,
straight to disk, or is refused.

The disk, which we share with the editor, stays the measure of bytes. Text is written through the editor where that
keeps every byte; else straight to disk, as long as the buffer holds no change of the person's; else not at all.
"""

import asyncio
import contextlib
import enum
import time
from collections.abc import Awaitable, Sequence
from typing import NamedTuple

import msgspec

from crow.acp import wire
from crow.errors import ClientRefused, StaleFile, WorkspaceError
from crow.files.base import Document
from crow.files.local import LocalWorkspace, bytes_of, encode_like, off_loop_if_large
from crow.files.resolved_path import ResolvedPath, Trail, make_folders_for, remove_empty, trail_of, verify
from crow.files.text import CRLF, Excerpt, LineRange, could_be_shown_as, count_line_ends, excerpt_of
from crow.paths import shown
from crow.rpc.connection import BadAnswer, Connection, ConnectionLost
from crow.rpc.jsonrpc import ErrorCode, RpcError, reason_of, says_no
from crow.timeouts import timeout
from crow.visible import BYTE_ORDER_MARK

READ_TIMEOUT = 10
"""Seconds that an editor gets to hand over a file before the disk is read instead."""
WRITE_TIMEOUT = 30
"""Seconds that it gets to format and save one."""
LARGEST_SENT = 2 * 1024 * 1024
"""Characters that go into one message: there is an editor (Toad) that takes no line over 10 MiB."""

MOST_REMEMBERED = 1000
"""Files of which it is known that the editor may have them open."""

SETTLED = 0.02
"""Seconds after which another change of a folder has a later time, however coarse the steps of the disk's clock are."""
TRIES = 8
"""How often a path is looked at again that changes while the editor follows it."""

SAVE_FIRST = "It has to be saved there first."

_CANNOT = frozenset({ErrorCode.RESOURCE_NOT_FOUND, ErrorCode.METHOD_NOT_FOUND, ErrorCode.INVALID_PARAMS})
"""What an editor answers that has no such file or method. Every other error is a refusal, whatever it is called, and
these are too where their words say no.
"""
WRITTEN_TO_DISK = "The editor does not know this file, so it was written to disk."


class BufferState(enum.Enum):
    SAVED = enum.auto()
    """It shows what is on disk."""
    BEHIND = enum.auto()
    """It shows what was on disk: the editor has not reloaded the file yet. The disk is right."""
    UNSAVED = enum.auto()
    """The person has changed it, and not saved it yet. The buffer is right."""
    BOTH_CHANGED = enum.auto()
    """The person has changed it, and so has somebody on disk. Writing either would lose the other."""


class FileState(NamedTuple):
    """A file at one moment: what the disk has, what the editor has, and which of the two counts."""

    saved: Document | None
    """On disk."""
    buffer: str | None
    """In the editor, if it said so."""
    document: Document | None
    """What follows from the two: the text that the person has in front of them."""
    silent: bool = False
    """The editor did not answer in time: what it holds is unknown."""

    @property
    def is_unsaved(self) -> bool:
        """Whether the person has changes in the editor that are not on disk."""
        return self.document is not None and self.document.unsaved


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
        self._known: dict[str, None] = {}
        """The files that were read or written through the editor, or that the person has named, the last one at the
        end. It is asked for no other that the disk does not have: people see each error that it answers with."""
        self._has_refused = False
        """The editor said no to a file that is there: what it does not show from now on, it will not show."""
        self._has_refused_to_write = False
        """The same for writing: from now on nothing is written that it is not asked about."""

    async def read_text(self, path: ResolvedPath) -> str:
        document = await self.read_document(path)
        return document.text if document is not None else await super().read_text(path)

    async def read_lines(self, path: ResolvedPath, wanted: LineRange) -> Excerpt:
        if not self._reads or not self.contains(path.real):
            return await super().read_lines(path, wanted)
        if (await self.stat(path)).size > LARGEST_SENT:
            saved = await super().read_lines(path, wanted)
            if await self._shows_the_same(path, wanted, saved):
                return saved
        text = await self.read_text(path)
        return await off_loop_if_large(len(text), lambda: excerpt_of(text, wanted))

    async def _shows_the_same(self, path: ResolvedPath, wanted: LineRange, saved: Excerpt) -> bool:
        """Whether the editor has these lines of a large file as they are on disk: it is asked for no others."""
        if not saved.lines:
            return False
        window = (wanted.first, len(saved.lines))
        buffer = await self._ask_for_buffer(path, Document(path.real, ""), window)
        if buffer is None:
            return True
        return excerpt_of(buffer, LineRange(1, wanted.most + 1, wanted.longest)).lines == saved.lines

    async def read_document(self, path: ResolvedPath) -> Document | None:
        document = (await self._settled_state(path)).document
        if document is not None:
            self.note_buffer(path)
        return document

    def known_buffers(self) -> Sequence[str]:
        return tuple(reversed(self._known)) if self._reads else ()

    async def unsaved_text(self, path: ResolvedPath) -> str | None:
        if not self._reads or not self.contains(path.real):
            return None
        if (await self.stat(path)).size > LARGEST_SENT:
            await self._ask_whether_shown(path)
            return None
        document = (await self._settled_state(path)).document
        if document is None or not document.unsaved:
            return None
        self.note_buffer(path)
        return document.text

    async def _ask_whether_shown(self, path: ResolvedPath) -> None:
        """ClientRefused if the editor will not show a file that is too large to be sent: it is asked for one line."""
        with contextlib.suppress(TimeoutError):
            await self._ask_for_buffer(path, Document(path.real, ""), (1, 1))

    def note_buffer(self, path: ResolvedPath) -> None:
        self._known.pop(path.real, None)
        self._known[path.real] = None
        if len(self._known) > MOST_REMEMBERED:
            del self._known[next(iter(self._known))]

    async def write_document(
        self, path: ResolvedPath, text: str, before: Document | None, *, like: Document | None = None
    ) -> Document:
        # What the file could not hold is refused, whoever would write it.
        await off_loop_if_large(len(text), lambda: encode_like(like or before, path.real, text))
        state = await self._unchanged_state(path, before)
        self.note_buffer(path)
        if like is not None and (state.saved is None or not _encoded_alike(state.saved, like)):
            return await self._encode_anew(path, text, state, like)
        if await off_loop_if_large(len(text), lambda: self._can_go_through_client(state, path, text)):
            return await self._write_through(path, text, state)
        if state.is_unsaved:
            raise WorkspaceError(f"{shown(path.real)} is too large to be changed in the editor. {SAVE_FIRST}")
        return await self._write_unasked(path, text, state)

    async def remove(self, path: ResolvedPath, before: Document, folders: int = 0) -> None:
        state = await self._unchanged_state(path, before)
        if state.saved is None or state.is_unsaved:
            raise WorkspaceError(f"{shown(path.real)} has unsaved changes in the editor. {SAVE_FIRST}")
        await super().remove(path, state.saved, folders)

    # --- looking

    async def _settled_state(self, path: ResolvedPath) -> FileState:
        """What disk and editor have. The editor goes by the path's name, and follows a symbolic link that has appeared
        on it; whatever that led to is nobody's to see. So the editor's text counts only if nothing on the path changed
        while it was read, unless it is the text that we have read ourselves.
        """
        for _ in range(TRIES):
            trail = await self._trail(path)
            is_settled = _is_settled(trail)
            state = await self._read_state(path)
            is_ours = not state.is_unsaved
            if (await self._trail(path) == trail and is_settled) or is_ours:
                return state
            await asyncio.sleep(SETTLED)
        raise StaleFile(f"{shown(path.real)} changes all the time: there is no telling what the editor has read.")

    async def _read_state(self, path: ResolvedPath) -> FileState:
        # The disk first: a binary file would come garbled, and a missing one as an empty text (Toad).
        saved = await super().read_document(path)
        try:
            buffer = await self._ask_for_buffer(path, saved)
        except TimeoutError:
            told = (
                f"The editor did not say within {READ_TIMEOUT} seconds whether {shown(path.real)} has unsaved changes."
            )
            return FileState(saved, None, saved and _with_obstacle(saved, told), silent=True)
        # An empty text may also mean that the editor does not find the file. The disk knows.
        if not buffer:
            return FileState(saved, buffer if saved is not None and not saved.text else None, saved)
        document = await off_loop_if_large(len(buffer), lambda: self._in_front_of_the_person(path.real, saved, buffer))
        return FileState(saved, buffer, document)

    async def _unchanged_state(self, path: ResolvedPath, before: Document | None) -> FileState:
        """What is there now, if it is still what a change was made from and can be written."""
        state = await self._settled_state(path)
        now = state.document
        if now is not None and before is None:
            raise StaleFile(f"{shown(path.real)} now exists.")
        if before is not None and (now is None or not now.same_as(before)):
            raise StaleFile(f"{shown(path.real)} has changed in the meantime.")
        if now is not None and now.obstacle:
            raise WorkspaceError(now.obstacle)
        return state

    async def _ask_for_buffer(
        self, path: ResolvedPath, saved: Document | None, window: tuple[int | None, int | None] = (None, None)
    ) -> str | None:
        """The editor's text, or so many lines of it from the first one on; None if it has none to give.

        It answers only for its project. WorkspaceError if it will not give the text: then the disk is not read either.
        """
        if not self._reads or not self.contains(path.real) or (saved is None and path.real not in self._known):
            return None
        line, limit = window
        request = wire.ReadTextFileRequest(session_id=self._session_id, path=path.real, line=line, limit=limit)
        try:
            async with timeout(READ_TIMEOUT):
                answer = await self._connection.request("fs/read_text_file", request, wire.ReadTextFileResponse)
        except (ConnectionLost, BadAnswer):
            return None
        except RpcError as error:
            is_beyond_the_end = line is not None and error.code == ErrorCode.INVALID_PARAMS
            if saved is None or is_beyond_the_end or not self._is_refusal(error, saved):
                return None
            self._has_refused = True
            told = f"{shown(path.real)} was not read: the editor refused it ({reason_of(error)})."
            raise ClientRefused(told, advice="Only the user can allow it.") from None
        return answer.content

    def _is_refusal(self, error: RpcError, saved: Document) -> bool:
        """Whether an editor will not show a file that is there; else it cannot, and the disk may be read."""
        if error.code != ErrorCode.INTERNAL_ERROR:
            return error.code == ErrorCode.INVALID_PARAMS or not _cannot(error)
        can_be_shown = saved.encoding == "utf-8" and len(saved.text) <= LARGEST_SENT
        return can_be_shown or self._has_refused or says_no(error)

    async def _trail(self, path: ResolvedPath) -> Trail:
        return await self.disk.run(lambda: trail_of(path, self._roots))

    def _in_front_of_the_person(self, path: str, saved: Document | None, buffer: str) -> Document:
        if saved is None:
            saved, state = Document(path, ""), BufferState.UNSAVED
        else:
            state = self._watch.judge(saved, buffer)
        if state in (BufferState.SAVED, BufferState.BEHIND):
            return saved
        unsaved = msgspec.structs.replace(saved, text=buffer.removeprefix(BYTE_ORDER_MARK), unsaved=True)
        return _with_obstacle(unsaved, self._why_unsaved_text_must_stay(state, saved, buffer))

    def _why_unsaved_text_must_stay(self, state: BufferState, saved: Document, buffer: str) -> str:
        has_changes = f"{shown(saved.path)} has unsaved changes in the editor"
        if state is BufferState.BOTH_CHANGED:
            return f"{has_changes}, and was changed on disk as well. It has to be saved or reloaded there first."
        if not self._writes:
            return f"{has_changes}, which offers no way to write them. {SAVE_FIRST}"
        if lost := what_saving_would_change(saved, buffer):
            return f"{has_changes}, and its {lost} might not survive a change made there. {SAVE_FIRST}"
        return ""

    # --- writing

    def _can_go_through_client(self, state: FileState, path: ResolvedPath, text: str) -> bool:
        if not self._writes or state.silent or not self.contains(path.real) or len(text) > LARGEST_SENT:
            return False
        if state.is_unsaved:
            return True  # what speaks against it would be an obstacle
        if state.saved is None or not self._reads:
            return may_keep_bytes(state.saved, text)
        # An editor that would not show the file will not write it either.
        return state.buffer is not None and keeps_bytes(state.saved, state.buffer, text)

    async def _encode_anew(self, path: ResolvedPath, text: str, state: FileState, like: Document) -> Document:
        """In another encoding than the file has: no editor can be told which."""
        if state.is_unsaved:
            raise WorkspaceError(f"{shown(path.real)} has unsaved changes in the editor. {SAVE_FIRST}")
        return await self._write_unasked(path, text, state, like)

    async def _write_unasked(
        self, path: ResolvedPath, text: str, state: FileState, like: Document | None = None
    ) -> Document:
        """To disk, past an editor that could not keep the text as it is: not past one that refuses to write."""
        if self._has_refused_to_write and self.contains(path.real):
            told = (
                f"{shown(path.real)} was not written: the editor refused to write another file, and cannot be asked "
                "about this one, since its size, encoding or line ends might not survive."
            )
            raise WorkspaceError(told, advice="Only the user can allow it.")
        return await self._write_to_disk(path, text, state, like)

    async def _write_to_disk(
        self, path: ResolvedPath, text: str, state: FileState, like: Document | None = None
    ) -> Document:
        return await super().write_document(path, text, state.saved, like=like)

    async def _write_through(self, path: ResolvedPath, text: str, state: FileState) -> Document:
        made = await self.disk.run(lambda: make_folders_for(path))
        try:
            return await self._write_there(path, text, state)
        except WorkspaceError:
            await self.disk.run(lambda: remove_empty(made))
            raise

    async def _write_there(self, path: ResolvedPath, text: str, state: FileState) -> Document:
        if not await self._is_quiet(path):
            if state.is_unsaved:
                raise StaleFile(f"{shown(path.real)} keeps changing. Nothing was written.")
            return await self._write_unasked(path, text, state)
        # The editor may have taken its time to answer, and will not look at the disk before it saves.
        await self._expect_on_disk(path, state.saved)
        mark = BYTE_ORDER_MARK if state.buffer is not None and state.buffer.startswith(BYTE_ORDER_MARK) else ""
        request = wire.WriteTextFileRequest(session_id=self._session_id, path=path.real, content=mark + text)
        # The editor would follow a link that has appeared since the person agreed.
        await self.disk.run(lambda: verify(path))
        try:
            async with timeout(WRITE_TIMEOUT):
                await self._connection.request("fs/write_text_file", request, msgspec.Raw)
        except RpcError as error:
            if _cannot(error) and not state.is_unsaved:
                after = await self._write_to_disk(path, text, state)
                return msgspec.structs.replace(after, remarks=(*after.remarks, WRITTEN_TO_DISK))
            self._has_refused_to_write = True
            raise _refused_to_write(path, error) from None
        except ConnectionLost:
            raise WorkspaceError(f"{shown(path.real)} was not written: the editor is gone.") from None
        except TimeoutError:
            return await self._after_writing(path, self._if_written(path, text))
        return await self._after_writing(path, self._what_became_of(path, text, state))

    async def _after_writing(self, path: ResolvedPath, outcome: Awaitable[Document]) -> Document:
        """What is there now. A path that changed meanwhile is no sign that nothing was written."""
        try:
            return await outcome
        except StaleFile as changed:
            told = f"{changed.message} The editor was writing it meanwhile: the text may have gone to another file."
            raise WorkspaceError(told, advice=f"See where {shown(path.real)} leads, and what became of it.") from None

    async def _is_quiet(self, path: ResolvedPath) -> bool:
        """Whether nothing on the path has changed for a moment, so that the editor will find what was judged."""
        for _ in range(TRIES):
            if _is_settled(await self._trail(path)):
                return True
            await asyncio.sleep(SETTLED)
        return False

    async def _expect_on_disk(self, path: ResolvedPath, saved: Document | None) -> None:
        now = await super().read_document(path)
        if now is not saved and (now is None or saved is None or not now.same_as(saved)):
            raise StaleFile(f"{shown(path.real)} has changed in the meantime.")

    async def _if_written(self, path: ResolvedPath, text: str) -> Document:
        """For an editor that did not answer: it may have done it all the same, or may do it yet."""
        after = (await self._settled_state(path)).document
        if after is None or after.text != text:
            told = f"The editor did not say within {WRITE_TIMEOUT} seconds that it wrote {shown(path.real)}."
            raise WorkspaceError(told, advice="Read the file again to see what became of it.")
        return after

    async def _what_became_of(self, path: ResolvedPath, text: str, before: FileState) -> Document:
        """What is there after the editor has written: it may have formatted the text, or done nothing with it."""
        after = (await self._settled_state(path)).document
        if after is None:
            raise WorkspaceError(f"The editor said that it wrote {shown(path.real)}, but there is no such file.")
        is_untouched = before.document is not None and after.text == before.document.text
        if is_untouched and after.text != text:
            raise WorkspaceError(f"The editor said that it wrote {shown(path.real)}, but the file is as it was.")
        if after.unsaved:
            return msgspec.structs.replace(after, remarks=("The editor has not saved it yet.",))
        return after


def _is_settled(trail: Trail) -> bool:
    """Whether the last change is so long ago that another one would leave a later time."""
    return abs(time.time_ns() - trail.newest) > SETTLED * 1e9


def _cannot(error: RpcError) -> bool:
    return error.code in _CANNOT and not says_no(error)


def _refused_to_write(path: ResolvedPath, error: RpcError) -> WorkspaceError:
    told = f"{shown(path.real)} was not written: the editor refused it ({reason_of(error)})."
    return WorkspaceError(told, advice="Only the user can allow it.")


def _encoded_alike(one: Document, other: Document) -> bool:
    return (one.encoding, one.mark) == (other.encoding, other.mark)


def _with_obstacle(document: Document, obstacle: str) -> Document:
    return msgspec.structs.replace(document, obstacle=document.obstacle or obstacle)


# --- whether an editor's text is unsaved work or a stale buffer: it gives no more than the text, so all of that is
# inferred, and in doubt nothing may be overwritten


class BufferWatch:
    """Remembers of each file how buffer and disk were when they last agreed, as hashes of the two.

    What Crow itself has written to disk since then counts as any other change of the disk: a person may have typed into
    a buffer that had not taken it in yet, and writing that buffer would take it back.
    """

    def __init__(self) -> None:
        self._agreed: dict[str, tuple[int | None, int]] = {}

    def judge(self, saved: Document, buffer: str) -> BufferState:
        content = bytes_of(saved)
        if could_be_shown_as(content, buffer):
            self._agreed[saved.path] = (hash(buffer), hash(content))
            return BufferState.SAVED
        # A buffer that was already modified when we first looked is taken for a change of the file beneath it.
        old_buffer, old_content = self._agreed.setdefault(saved.path, (None, hash(content)))
        if hash(buffer) == old_buffer:
            return BufferState.BEHIND
        return BufferState.UNSAVED if hash(content) == old_content else BufferState.BOTH_CHANGED


def keeps_bytes(saved: Document, buffer: str, text: str) -> bool:
    """Whether a text can be written through an editor that shows the saved file as this buffer, byte for byte."""
    return buffer.encode() == bytes_of(saved) and _is_known_to_keep(saved.text, text)


def may_keep_bytes(saved: Document | None, text: str) -> bool:
    """The same, where the editor does not show its buffer, or has none yet: plain text goes through every editor."""
    if saved is None:
        return _is_known_to_keep("", text)
    return saved.encoding == "utf-8" and not saved.mark and "\r" not in saved.text + text


def _is_known_to_keep(kept: str, text: str) -> bool:
    """Editors that restore line ends on saving make all of them alike: a carriage return must have been kept before."""
    return not text.startswith(BYTE_ORDER_MARK) and ("\r" not in text or "\r" in kept)


def what_saving_would_change(saved: Document, buffer: str) -> str:
    """What an editor might not restore when it saves a modified buffer; empty if it shows that it would."""
    if saved.encoding != "utf-8":
        return "encoding"
    if saved.mark != buffer.startswith(BYTE_ORDER_MARK):
        return "byte order mark"
    if "\r" in saved.text and not (_is_all_crlf(saved.text) and _is_all_crlf(buffer)):
        return "line endings"
    return ""


def _is_all_crlf(text: str) -> bool:
    return set(count_line_ends(text)) == {CRLF}
