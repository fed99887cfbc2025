"""The methods that are Crow's own (`_crow/…`), for one connection: reads their parameters, finds the session, and asks
the room that knows.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote
from weakref import WeakKeyDictionary

import msgspec

from crow.acp import translate, translate_session
from crow.acp.inbox import Inbox
from crow.acp.wire import Empty, SessionRequest
from crow.acp.wire_extensions import (
    ChangedFiles,
    ChangedItems,
    ChangesRequest,
    DiffItem,
    FileChange,
    FilesRequest,
    FilesResponse,
    FoundFile,
    InboxRequest,
    InboxRow,
    InboxRows,
    InputRequest,
    InputSizeRequest,
    OpenInputRequest,
    OutputRequest,
    OutputResponse,
    RunningCommandRequest,
    SearchMatch,
    SearchPart,
    SearchRequest,
    SearchResponse,
    UndoFile,
    UndoResponse,
)
from crow.commands.base import Terminal
from crow.live.session import Place
from crow.paths import shown
from crow.results import DiffBlock, DisplayBlock
from crow.rpc.connection import Connection
from crow.rpc.jsonrpc import RpcError, errors_as_answers, invalid_params
from crow.search.listing import ProjectFiles
from crow.session.changes import changed_files, changes_of
from crow.session.session import Session
from crow.session.undo import preview_undo
from crow.store.base import SessionStore


class Extensions:
    """`inbox` gives that of the process. `find` gives the connection's place in a session; RpcError if it has none.
    `find_trusted` also where the client may watch only."""

    def __init__(
        self,
        store: SessionStore,
        inbox: Callable[[], Inbox],
        connection: Connection,
        find: Callable[[str], Place],
        find_trusted: Callable[[str], Place],
    ) -> None:
        self._store = store
        self._get_inbox = inbox
        self._inbox: Inbox | None = None
        """Once the client listens to it."""
        self._connection = connection
        self._find = find
        self._find_trusted = find_trusted
        self._unsent_rows: dict[str, InboxRow] = {}
        """The rows of the inbox that the client has still to be sent, by session."""
        self._sending: asyncio.Task[None] | None = None
        self._projects: WeakKeyDictionary[Session, ProjectFiles] = WeakKeyDictionary()
        self._methods: Mapping[str, tuple[type[msgspec.Struct], Callable[..., object]]] = {
            "_crow/inbox": (InboxRequest, self._listen),
            "_crow/search": (SearchRequest, self._search),
            "_crow/files": (FilesRequest, self._files),
            "_crow/output": (OutputRequest, self._output),
            "_crow/stop": (RunningCommandRequest, self._stop),
            "_crow/input": (InputRequest, self._input),
            "_crow/input/open": (OpenInputRequest, self._open_input),
            "_crow/input/size": (InputSizeRequest, self._input_size),
            "_crow/changes": (ChangesRequest, self._changes),
            "_crow/undo": (SessionRequest, self._undo),
        }

    def answer(self, method: str, params: msgspec.Raw) -> object:
        kind, handle = self._methods[method]
        return handle(self._connection.decode(kind, params))

    def close(self) -> None:
        """The connection is gone."""
        if self._inbox is not None:
            self._inbox.forget(self._take_rows)
        if self._sending is not None:
            self._sending.cancel()

    # --- the inbox

    async def _listen(self, request: InboxRequest) -> InboxRows:
        self._inbox = self._get_inbox()
        with errors_as_answers():
            return InboxRows(sessions=await self._inbox.listen(self._take_rows, here=request.here))

    def _take_rows(self, rows: Sequence[InboxRow]) -> None:
        """A client that does not read is told of the last of what it missed, and not of each step."""
        self._unsent_rows |= {row.session_id: row for row in rows}
        if self._connection.has_room:
            self._send_rows()
        elif self._sending is None:
            self._sending = asyncio.ensure_future(self._send_later())

    async def _send_later(self) -> None:
        await self._connection.room()
        self._sending = None
        self._send_rows()

    def _send_rows(self) -> None:
        rows, self._unsent_rows = list(self._unsent_rows.values()), {}
        self._connection.notify("_crow/inbox", InboxRows(sessions=rows))

    async def _search(self, request: SearchRequest) -> SearchResponse:
        with errors_as_answers():
            found = await self._store.search(request.query, request.cursor or "", request.limit)
        matches = [
            SearchMatch(
                session_id=match.entry.id,
                cwd=match.entry.cwd,
                title=match.entry.title or None,
                updated_at=translate_session.iso_time(match.entry.updated_at),
                where=match.where,
                parts=[SearchPart(text=part.text, hit=part.hit) for part in match.parts],
            )
            for match in found.matches
        ]
        response = SearchResponse(matches=matches, next_cursor=found.next_cursor or None)
        if not found.unread:
            return response
        return msgspec.structs.replace(response, indexing=True, unread=found.unread, sessions=found.sessions)

    # --- files

    async def _files(self, request: FilesRequest) -> FilesResponse:
        live = self._find(request.session_id).live
        root = live.roots[0]
        project = self._projects.setdefault(live.session, ProjectFiles(root))
        with errors_as_answers():
            found = await project.matching(request.query, request.limit)
        return FilesResponse(files=[_found_file(root, path) for path in found])

    # --- what was changed

    async def _changes(self, request: ChangesRequest) -> ChangedFiles | ChangedItems:
        live = self._find(request.session_id).live
        session, workspace = live.session, live.faces.workspace
        with errors_as_answers(session.id):
            if request.path is not None:
                return ChangedItems(items=_diff_items(await changes_of(request.path, session.archive, workspace)))
            changed = await changed_files(session.archive, workspace)
        return ChangedFiles(
            files=[
                FileChange(
                    path=file.path,
                    kind=file.kind,
                    added=file.added,
                    removed=file.removed,
                    turn=file.turn,
                    problem=file.problem or msgspec.UNSET,
                )
                for file in changed
            ]
        )

    async def _undo(self, request: SessionRequest) -> UndoResponse:
        live, face = self._find(request.session_id)
        with errors_as_answers(live.id):
            live.session.check_accepts_turn(face.name)
            past = await live.session.archive.events(former_texts=True)
            preview = await preview_undo(past, live.faces.workspace)
        if preview is None:
            return UndoResponse(files=[])
        turn, undone = preview
        files = [
            UndoFile(path=file.path, kind=file.kind, items=_diff_items(file.display), blocked=file.blocked or None)
            for file in undone
        ]
        return UndoResponse(turn=turn.id, prompt=turn.name, files=files, remarks=turn.remarks or None)

    # --- commands

    async def _output(self, request: OutputRequest) -> OutputResponse:
        kept = self._find(request.session_id).live.session.terminals.kept_output(request.tool_call_id)
        if kept is None:
            raise no_command(request.tool_call_id)
        with errors_as_answers():
            part = await asyncio.to_thread(kept.read, request.offset, request.limit)
        return OutputResponse(
            data=part.text, offset=part.offset, next=part.next, total=part.total, running=kept.is_running
        )

    async def _stop(self, request: RunningCommandRequest) -> Empty:
        if not await self._find(request.session_id).live.session.terminals.stop_call(request.tool_call_id):
            raise not_running(request.tool_call_id)
        return Empty()

    async def _input(self, request: InputRequest) -> Empty:
        terminal = self._typed_into(request)
        with errors_as_answers():
            await terminal.write_input(request.data.encode("utf-8", "replace"))
        return Empty()

    def _input_size(self, request: InputSizeRequest) -> Empty:
        self._typed_into(request).resize(request.columns, request.rows)
        return Empty()

    def _open_input(self, request: OpenInputRequest) -> Empty:
        live, face = self._find_trusted(request.session_id)
        if request.open and not face.known.can_type:
            raise invalid_params("`open`: this client has not said `_meta.crow.typing` in `initialize`")
        live.faces.commands.is_input_open = request.open
        return Empty()

    def _typed_into(self, request: RunningCommandRequest) -> Terminal:
        terminal = self._find_trusted(request.session_id).live.session.terminals.typed_into(request.tool_call_id)
        if terminal is None:
            raise invalid_params(f"`toolCallId`: the call {request.tool_call_id[:100]!r} has no command to type into")
        return terminal


def _diff_items(display: Sequence[DisplayBlock]) -> list[DiffItem]:
    return [
        DiffItem(
            path=block.path,
            old_text=None if block.operation == "add" else block.old_text,
            new_text=None if block.operation == "delete" else block.new_text,
            diff=translate.diff_lines(block),
        )
        for block in display
        if isinstance(block, DiffBlock)
    ]


def not_running(call_id: str) -> RpcError:
    return invalid_params(f"`toolCallId`: no command of the call {call_id[:100]!r} is running")


def no_command(call_id: str) -> RpcError:
    what = "has run no command of Crow's own since the session was opened"
    return invalid_params(f"`toolCallId`: the call {call_id[:100]!r} {what}")


def _found_file(root: str, path: str) -> FoundFile:
    is_folder = path.endswith("/")
    uri = "file://" + quote(os.fsencode(os.path.join(root, path.rstrip("/"))))
    return FoundFile(path=shown(path), uri=uri, is_folder=is_folder)
