"""The methods that are about sessions, the sessions of one connection behind them, and their store."""

import asyncio
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple, TypeVar
from weakref import WeakValueDictionary

from crow.acp import translate, translate_session, wire
from crow.acp.capabilities import Capabilities, given_servers
from crow.acp.connection import Connection, PendingRequest
from crow.acp.jsonrpc import being_loaded, errors_as_answers, invalid_params, unknown_session
from crow.acp.sink import UpdateSink
from crow.config.home import remove_temporaries
from crow.disk import Disk
from crow.errors import BacklogLost, FileSystemSilent, SessionTaken, StorageFailed, StoreSilent
from crow.events import Notice, milliseconds_now
from crow.messages import StopReason
from crow.session.models import SessionSetup
from crow.session.open import FolderSetup, open_session
from crow.session.persistence import Persistence, StoredArchive, deferred_persistence
from crow.session.recovery import recover
from crow.session.replay import replayed
from crow.session.session import RunningTurn, Session
from crow.store.base import EventLog, SessionEntry
from crow.store.store import open_store
from crow.workspace.atomic import remove_temporary
from crow.workspace.processes import Keeper
from crow.workspace.terminals import outputs_folder, remove_left_behind, remove_outputs

logger = logging.getLogger(__name__)

PAGE_SIZE = 50
DISK_TIMEOUT = 10.0
"""Seconds that the file system of a session's folder gets when the session is opened."""

T = TypeVar("T")


class Opened(NamedTuple):
    """A session that was just put together, and what its client is still to be told."""

    session: Session
    sink: UpdateSink


class Sessions:
    """`set_up` gives what a session is opened with. Nothing of the store is touched before the first session method.

    The methods do what must keep its order at once and return the rest to wait for.
    """

    def __init__(
        self,
        home: str,
        environ: Mapping[str, str],
        set_up: Callable[[], Awaitable[SessionSetup]],
        connection: Connection,
        client: wire.InitializeRequest,
    ) -> None:
        self._home = home
        self._environ = environ
        self._set_up = set_up
        self._connection = connection
        self._store = open_store(home)
        self._store.on_stop(self.cancel)
        self._keeper = Keeper()
        self.initialize(client)
        self._open: dict[str, Session] = {}
        self._loading: dict[asyncio.Task[wire.LoadSessionResponse], str] = {}
        """The ids of sessions that are being loaded."""
        self._sweeping: asyncio.Task[None] | None = None
        self._disks: WeakValueDictionary[str, Disk] = WeakValueDictionary()
        """Those of sessions that are being opened, by folder: one that hangs is not given ever more threads."""
        self._turnstiles: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._methods: dict[str, Callable[..., object]] = {
            "session/new": self._new,
            "session/load": partial(self._load, replay=True),
            "session/resume": partial(self._load, replay=False),
            "session/fork": self._fork,
            "session/list": self._list,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/prompt": self._prompt,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
        }

    def initialize(self, client: wire.InitializeRequest) -> None:
        """What the client says that it can do counts for the sessions that are opened from now on."""
        self._capabilities = Capabilities(self._connection, client, self._home, self._keeper, self._environ)

    def answer(self, method: str, request: object, pending: PendingRequest) -> object:
        return self._methods[method](request, pending)

    def _find(self, session_id: str) -> Session:
        """A session that is open on this connection."""
        if session_id in self._loading.values():
            raise being_loaded()
        session = self._open.get(session_id)
        if session is None:
            raise unknown_session(session_id)
        return session

    def cancel(self, session_id: str) -> None:
        if session_id in self._open:
            self._open[session_id].cancel()

    async def end(self) -> None:
        """Ends every turn, stores what is left, and lets go of what the sessions hold."""
        sessions = list(self._open.values())
        self._open.clear()
        await asyncio.gather(*(session.close() for session in sessions), return_exceptions=True)
        await asyncio.gather(self._store.close(), self._keeper.close(), return_exceptions=True)

    # --- opening

    async def _new(self, request: wire.NewSessionRequest, pending: PendingRequest) -> wire.NewSessionResponse:
        session_id = _new_id()
        with errors_as_answers():
            roots = await self._roots(request)
            setup = await self._set_up()
            persistence, warning = await self._create(session_id, roots)
            opened = await self._put_together(session_id, roots, setup, persistence, request)
        if warning is not None:
            opened.session.tell(warning)
        opened.session.store_choices()
        return self._opened_as(session_id, opened, pending)

    def _load(
        self, request: wire.LoadSessionRequest, pending: PendingRequest, *, replay: bool
    ) -> Awaitable[wire.LoadSessionResponse]:
        """Goes on with a stored session, wherever it was last open. `replay`: the client is shown all of it first.

        Until that is answered, whatever comes for the session is refused: it would reach the one that is put away.
        """
        loading = asyncio.get_running_loop().create_task(self._load_stored(request, pending, replay=replay))
        self._loading[loading] = request.session_id
        loading.add_done_callback(self._loading.pop)
        return loading

    async def _load_stored(
        self, request: wire.LoadSessionRequest, pending: PendingRequest, *, replay: bool
    ) -> wire.LoadSessionResponse:
        session_id = request.session_id
        async with self._open_close_lock(session_id):
            with errors_as_answers(session_id):
                roots = await self._roots(request)
                setup = await self._set_up()
                entry = await self._stored(session_id, roots[0])
                if session_id in self._open:
                    await self._store.events(session_id)  # one that cannot be read stays open as it is
                await self._put_away(session_id)
                log = await self._store.claim(session_id)
                await self._store.set_roots(session_id, roots[1:])
                persistence = await self._recovered(session_id, log)
                await self._remove_outputs(session_id)
                opened = await self._put_together(session_id, [entry.cwd, *roots[1:]], setup, persistence, request)
            if replay:
                await opened.sink.replay(replayed(persistence.past))
        pending.afterwards(lambda: opened.sink.send_title(entry))
        self._announce(opened, pending)
        modes, options = opened.sink.state(opened.session.options.all())
        return wire.LoadSessionResponse(modes=modes, config_options=options)

    async def _fork(self, request: wire.LoadSessionRequest, pending: PendingRequest) -> wire.NewSessionResponse:
        """A copy that goes its own way. Of a running turn it has what has happened by now, and that turn's end."""
        new_id = _new_id()
        with errors_as_answers(request.session_id):
            roots = await self._roots(request)
            setup = await self._set_up()
            source = self._open.get(request.session_id)
            if source is not None:
                await source.store_all()
            stored_at = (await self._stored(request.session_id, roots[0])).cwd
            log = await self._store.fork(request.session_id, new_id, stored_at, roots[1:])
            persistence = await self._recovered(new_id, log)
            opened = await self._put_together(new_id, [stored_at, *roots[1:]], setup, persistence, request)
        return self._opened_as(new_id, opened, pending)

    def _opened_as(self, session_id: str, opened: Opened, pending: PendingRequest) -> wire.NewSessionResponse:
        self._announce(opened, pending)
        modes, options = opened.sink.state(opened.session.options.all())
        return wire.NewSessionResponse(session_id=session_id, modes=modes, config_options=options)

    async def _stored(self, session_id: str, cwd: str) -> SessionEntry:
        """The stored session, if it belongs to this folder."""
        entry = await self._store.find(session_id)
        await self._on_disk(cwd, lambda: _same_folder(entry.cwd, cwd))
        return entry

    async def _recovered(self, session_id: str, log: EventLog) -> Persistence:
        """How a stored session is kept from now on; what was cut off in it gets its end."""
        past = await recover(log, await self._store.events(session_id))
        return Persistence(log, StoredArchive(self._store, session_id, log), past)

    async def _create(self, session_id: str, roots: Sequence[str]) -> tuple[Persistence, Notice | None]:
        """How a new session is kept; in memory until the store takes it, which is no reason not to work."""
        folders = os.path.normpath(roots[0]), roots[1:]
        try:
            log = await self._store.create(session_id, *folders)
        except StoreSilent:
            raise  # the configuration, grants and trust lie there too
        except StorageFailed as failed:
            log = self._store.create_later(session_id, *folders)
            text = f"Nothing of this session is kept so far. {failed}"
            return deferred_persistence(self._store, session_id, log), Notice("warning", text)
        remark = await self._store.remark()
        persistence = Persistence(log, StoredArchive(self._store, session_id, log))
        return persistence, Notice("warning", remark) if remark else None

    async def _put_together(
        self,
        session_id: str,
        roots: Sequence[str],
        setup: SessionSetup,
        persistence: Persistence,
        request: wire.NewSessionRequest,
    ) -> Opened:
        capabilities = self._capabilities
        sink = capabilities.sink(session_id)
        sink.remember(persistence.past)
        servers, problems = given_servers(request.mcp_servers or ())
        environment = await self._on_disk(
            roots[0], lambda: capabilities.environment(session_id, roots, setup, sink, servers)
        )
        folders = environment.workspace.roots
        read = await self._on_disk(roots[0], lambda: FolderSetup(session_id, setup, folders, self._home))
        session = open_session(session_id, setup, environment, persistence, self._home, read)
        for problem in problems:
            session.tell(Notice("warning", problem))
        self._open[session_id] = session
        return Opened(session, sink)

    def _announce(self, opened: Opened, pending: PendingRequest) -> None:
        """What the client can only understand once it has the answer."""
        pending.afterwards(opened.session.welcome)
        pending.afterwards(opened.sink.send_usage)
        pending.afterwards(self._sweep)

    def _sweep(self) -> None:
        """Once, beside everything else: what processes that were killed have left is removed."""
        self._sweeping = self._sweeping or asyncio.ensure_future(self._remove_left_behind())

    async def _remove_left_behind(self) -> None:
        written: Sequence[str] = ()
        with suppress(StorageFailed):
            written = await self._store.files_cut_off()

        def remove() -> None:
            remove_left_behind()
            remove_temporaries(self._home)
            for path in written:
                remove_temporary(path)

        # A thread of its own that nobody waits for: a file system may hang.
        threading.Thread(target=remove, daemon=True).start()

    # --- working in a session

    def _prompt(self, request: wire.PromptRequest, pending: PendingRequest) -> Awaitable[wire.PromptResponse]:
        session = self._find(request.session_id)
        sent = translate.sent_by(request.prompt)
        if not sent:
            raise invalid_params("the prompt is empty")
        with errors_as_answers():
            turn = session.start_turn(sent)
        pending.on_cancel = turn.cancel
        return self._outcome(session, turn)

    async def _outcome(self, session: Session, turn: RunningTurn) -> wire.PromptResponse:
        stop_reason = await self._while_ours(session, turn.outcome())
        left_open = "" if stop_reason is StopReason.CANCELLED else session.left_open
        meta = wire.PromptMeta(crow=wire.PromptFacts(left_open=left_open)) if left_open else None
        return wire.PromptResponse(stop_reason=stop_reason.value, meta=meta)

    async def _set_mode(self, request: wire.SetModeRequest, pending: PendingRequest) -> wire.Empty:
        session = self._find(request.session_id)
        await self._while_ours(session, session.options.choose("mode", request.mode_id))
        return wire.Empty()

    async def _set_option(
        self, request: wire.SetConfigOptionRequest, pending: PendingRequest
    ) -> wire.SetConfigOptionResponse:
        session = self._find(request.session_id)
        await self._while_ours(session, session.options.choose(request.config_id, request.value))
        return wire.SetConfigOptionResponse(config_options=translate_session.config_options(session.options.all()))

    async def _while_ours(self, session: Session, work: Awaitable[T]) -> T:
        """A session that another process has gone on with is closed here, so that it can be loaded again."""
        with errors_as_answers(session.id):
            try:
                return await work
            except SessionTaken:
                await self._drop(session)
                raise

    # --- listing and ending

    async def _list(self, request: wire.ListSessionsRequest, pending: PendingRequest) -> wire.ListSessionsResponse:
        cwd = None if request.cwd is None else os.path.normpath(_absolute("cwd", request.cwd))
        with errors_as_answers():
            page = await self._store.page(cwd, request.cursor or "", PAGE_SIZE)
        return wire.ListSessionsResponse(
            sessions=[translate_session.session_info(entry) for entry in page.entries],
            next_cursor=page.next_cursor or None,
        )

    def _close(self, request: wire.SessionRequest, pending: PendingRequest) -> Awaitable[wire.Empty]:
        """It is closed for whatever comes after this call; what it holds is let go of before the answer."""
        session = self._find(request.session_id)
        del self._open[session.id]
        return self._closed(session)

    async def _closed(self, session: Session) -> wire.Empty:
        async with self._open_close_lock(session.id):
            with errors_as_answers(session.id):
                await session.close()
        return wire.Empty()

    async def _delete(self, request: wire.SessionRequest, pending: PendingRequest) -> wire.Empty:
        """For good. One that is not there is as good as deleted."""
        session = self._open.pop(session_id := request.session_id, None)
        async with self._open_close_lock(session_id):
            with errors_as_answers(session_id):
                if session is not None:
                    await session.close()
                await self._store.delete(session_id)
                await self._remove_outputs(session_id)
        return wire.Empty()

    async def _remove_outputs(self, session_id: str) -> None:
        with suppress(FileSystemSilent):
            await self._on_disk(outputs_folder(session_id), lambda: remove_outputs(session_id))

    async def _drop(self, session: Session) -> None:
        """Lets go of a session that goes on elsewhere: what is written here no longer counts."""
        if self._open.get(session.id) is session:
            del self._open[session.id]
        try:
            await session.close()
        except SessionTaken:
            pass  # known: it is why we are here
        except StorageFailed as failed:
            logger.warning("%s was not stored to its end: %s", session.id, failed)

    async def _put_away(self, session_id: str) -> None:
        """One that is open here is closed before it is opened anew: it never has two histories."""
        session = self._open.get(session_id)
        if session is None:
            return
        # It went on elsewhere, and is now fetched back from there; or what is lost is lost, and what is stored goes on.
        with suppress(SessionTaken, BacklogLost):
            await session.stop_and_store()
        await self._drop(session)

    async def _roots(self, request: wire.NewSessionRequest) -> list[str]:
        """The folders of a session: its own, then the further ones. Each must be there."""
        folders = [("cwd", request.cwd)]
        folders += [("additionalDirectories", path) for path in request.additional_directories or []]
        for name, path in folders:
            whole = _absolute(name, path)
            if not await self._on_disk(whole, lambda folder=whole: os.path.isdir(folder)):
                raise invalid_params(f"`{name}`: there is no folder {path[:200]!r}")
        return [path for _, path in folders]

    async def _on_disk(self, folder: str, work: Callable[[], T]) -> T:
        """FileSystemSilent if the folder's file system does not answer in time."""
        return await self._disks.setdefault(folder, Disk(folder)).run(work, DISK_TIMEOUT)

    def _open_close_lock(self, session_id: str) -> asyncio.Lock:
        """One at a time may open or end a session."""
        return self._turnstiles.setdefault(session_id, asyncio.Lock())


def _absolute(name: str, path: str) -> str:
    if not os.path.isabs(path) or "\0" in path:
        raise invalid_params(f"`{name}` must be an absolute path, got {path[:200]!r}")
    return path


def _same_folder(stored: str, given: str) -> None:
    if os.path.realpath(stored) != os.path.realpath(given):
        raise invalid_params(f"`cwd`: the session belongs to {stored[:200]!r}, not to {given[:200]!r}")


def _new_id() -> str:
    """Sortable by time, unguessable, safe as a file's name."""
    return f"{milliseconds_now():012x}-{os.urandom(8).hex()}"
