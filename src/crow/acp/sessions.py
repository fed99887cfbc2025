"""The sessions of one connection: opened, loaded, copied, listed, closed, deleted; and the store behind them."""

import asyncio
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple
from weakref import WeakValueDictionary

from crow.acp import translate_session, wire
from crow.acp.connection import Call
from crow.acp.failures import answered, being_loaded, unknown_session
from crow.acp.jsonrpc import ErrorCode, RpcError
from crow.acp.offers import Offers
from crow.acp.sink import UpdateSink
from crow.clock import milliseconds_now
from crow.config.home import remove_temporaries
from crow.disk import Disk
from crow.errors import BacklogLost, FileSystemSilent, SessionTaken, StorageFailed, StoreSilent
from crow.events import Event, Notice
from crow.session.models import SessionSetup
from crow.session.open import Beginnings, open_session
from crow.session.persistence import Persistence, StoredArchive, stored_later
from crow.session.recovery import recover
from crow.session.replay import replayed
from crow.session.session import Session
from crow.store.base import EventLog
from crow.store.store import open_store
from crow.workspace.atomic import remove_temporary
from crow.workspace.outputs import outputs_folder, remove_left_behind, remove_outputs
from crow.workspace.processes import Keeper

logger = logging.getLogger(__name__)

PAGE_SIZE = 50
PATIENCE = 10.0
"""Seconds that the file system of a session's folder gets when the session is opened."""


class Opened(NamedTuple):
    """A session that was just put together, and what its client is still to be told."""

    session: Session
    sink: UpdateSink

    def state(self) -> tuple[wire.SessionModes | None, list[wire.ConfigOption]]:
        """What can be chosen in it, as an answer says it."""
        options = self.session.options.all()
        modes = translate_session.modes(options)
        if modes is not None:
            self.sink.told_mode(modes.current_mode_id)
        return modes, translate_session.config_options(options)


class Sessions:
    """`set_up` gives what a session is opened with. Nothing of the store is touched before the first session method."""

    def __init__(self, home: str, environ: Mapping[str, str], set_up: Callable[[], Awaitable[SessionSetup]]) -> None:
        self._home = home
        self._environ = environ
        self._set_up = set_up
        self._store = open_store(home)
        self._store.on_stop(self.cancel)
        self._keeper = Keeper()
        self._open: dict[str, Session] = {}
        self._loading: dict[asyncio.Task[wire.LoadSessionResponse], str] = {}
        """The ids of sessions that are being loaded."""
        self._sweeping: asyncio.Task[None] | None = None
        self._disks: WeakValueDictionary[str, Disk] = WeakValueDictionary()
        """Those of sessions that are being opened, by folder: one that hangs is not given ever more threads."""
        self._turnstiles: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def find(self, session_id: str) -> Session:
        """One that is open here."""
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

    async def new(self, request: wire.NewSessionRequest, offers: Offers, call: Call) -> wire.NewSessionResponse:
        session_id = _new_id()
        with answered():
            roots = await self._roots(request)
            setup = await self._set_up()
            persistence, warning = await self._create(session_id, roots)
            opened = await self._put_together(session_id, roots, setup, offers, persistence, request)
        if warning is not None:
            opened.session.tell(warning)
        opened.session.store_choices()
        self._announce(opened, call)
        modes, options = opened.state()
        return wire.NewSessionResponse(session_id=session_id, modes=modes, config_options=options)

    def load(
        self, request: wire.LoadSessionRequest, offers: Offers, call: Call, *, replay: bool
    ) -> Awaitable[wire.LoadSessionResponse]:
        """Goes on with a stored session, wherever it was last open. `replay`: the client is shown all of it first.

        Until that is answered, whatever comes for the session is refused: it would reach the one that is put away.
        """
        loading = asyncio.get_running_loop().create_task(self._load(request, offers, call, replay=replay))
        self._loading[loading] = request.session_id
        loading.add_done_callback(self._loading.pop)
        return loading

    async def _load(
        self, request: wire.LoadSessionRequest, offers: Offers, call: Call, *, replay: bool
    ) -> wire.LoadSessionResponse:
        session_id = request.session_id
        async with self._turnstile(session_id):
            with answered(session_id):
                roots = await self._roots(request)
                setup = await self._set_up()
                entry = await self._store.find(session_id)
                stored_at = entry.cwd
                await self._disk(roots[0]).run(lambda: _same_folder(stored_at, roots[0]), PATIENCE)
                if session_id in self._open:
                    await self._store.events(session_id)  # one that cannot be read stays open as it is
                await self._put_away(session_id)
                log = await self._store.claim(session_id)
                await self._store.set_roots(session_id, roots[1:])
                past = await recover(log, await self._store.events(session_id))
                await self._remove_outputs(session_id)
                persistence = self._kept(session_id, log, past)
                opened = await self._put_together(
                    session_id, [stored_at, *roots[1:]], setup, offers, persistence, request
                )
            if replay:
                await opened.sink.replay(replayed(past))
        call.afterwards(lambda: opened.sink.tell_stored(entry))
        self._announce(opened, call)
        modes, options = opened.state()
        return wire.LoadSessionResponse(modes=modes, config_options=options)

    async def fork(self, request: wire.LoadSessionRequest, offers: Offers, call: Call) -> wire.NewSessionResponse:
        """A copy that goes its own way. Of a running turn it has what has happened by now, and that turn's end."""
        new_id = _new_id()
        with answered(request.session_id):
            roots = await self._roots(request)
            setup = await self._set_up()
            source = self._open.get(request.session_id)
            if source is not None:
                await source.store_all()
            stored_at = (await self._store.find(request.session_id)).cwd
            await self._disk(roots[0]).run(lambda: _same_folder(stored_at, roots[0]), PATIENCE)
            log = await self._store.fork(request.session_id, new_id, stored_at, roots[1:])
            past = await recover(log, await self._store.events(new_id))
            persistence = self._kept(new_id, log, past)
            opened = await self._put_together(new_id, [stored_at, *roots[1:]], setup, offers, persistence, request)
        self._announce(opened, call)
        modes, options = opened.state()
        return wire.NewSessionResponse(session_id=new_id, modes=modes, config_options=options)

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
            return stored_later(self._store, session_id, log), Notice("warning", text)
        remark = await self._store.remark()
        return self._kept(session_id, log), Notice("warning", remark) if remark else None

    def _kept(self, session_id: str, log: EventLog, past: Sequence[Event] = ()) -> Persistence:
        return Persistence(log, StoredArchive(self._store, session_id, log), past)

    async def _put_together(
        self,
        session_id: str,
        roots: Sequence[str],
        setup: SessionSetup,
        offers: Offers,
        persistence: Persistence,
        request: wire.NewSessionRequest,
    ) -> Opened:
        sink = offers.sink(session_id)
        sink.remember(persistence.past)
        servers, problems = translate_session.servers(request.mcp_servers or ())
        disk = self._disk(roots[0])
        around = await disk.run(
            lambda: offers.surround(session_id, roots, setup, self._keeper, self._environ, sink, servers), PATIENCE
        )
        read = await disk.run(lambda: Beginnings(session_id, setup, around.workspace.roots, self._home), PATIENCE)
        session = open_session(session_id, setup, around, persistence, self._home, read)
        for problem in problems:
            session.tell(Notice("warning", problem))
        self._open[session_id] = session
        return Opened(session, sink)

    def _announce(self, opened: Opened, call: Call) -> None:
        """What the client can only understand once it has the answer."""
        call.afterwards(opened.session.welcome)
        call.afterwards(opened.sink.tell_usage)
        if self._sweeping is None:
            call.afterwards(self._sweep)

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

    # --- listing and ending

    async def page(self, request: wire.ListSessionsRequest) -> wire.ListSessionsResponse:
        cwd = None if request.cwd is None else os.path.normpath(_absolute("cwd", request.cwd))
        with answered():
            page = await self._store.page(cwd, request.cursor or "", PAGE_SIZE)
        return wire.ListSessionsResponse(
            sessions=[translate_session.session_info(entry) for entry in page.entries],
            next_cursor=page.next_cursor or None,
        )

    def close(self, session_id: str) -> Awaitable[wire.Empty]:
        """It is closed for whatever comes after this call; what it holds is let go of before the answer."""
        session = self.find(session_id)
        del self._open[session_id]
        return self._closed(session)

    async def _closed(self, session: Session) -> wire.Empty:
        async with self._turnstile(session.id):
            with answered(session.id):
                await session.close()
        return wire.Empty()

    async def delete(self, session_id: str) -> wire.Empty:
        """For good. One that is not there is as good as deleted."""
        session = self._open.pop(session_id, None)
        async with self._turnstile(session_id):
            with answered(session_id):
                if session is not None:
                    await session.close()
                await self._store.delete(session_id)
                await self._remove_outputs(session_id)
        return wire.Empty()

    async def _remove_outputs(self, session_id: str) -> None:
        with suppress(FileSystemSilent):
            await self._disk(outputs_folder(session_id)).run(lambda: remove_outputs(session_id), PATIENCE)

    async def drop(self, session: Session) -> None:
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
            await session.rest()
        await self.drop(session)

    async def _roots(self, request: wire.NewSessionRequest) -> list[str]:
        """The folders of a session: its own, then the further ones. Each must be there."""
        folders = [("cwd", request.cwd)]
        folders += [("additionalDirectories", path) for path in request.additional_directories or []]
        for name, path in folders:
            whole = _absolute(name, path)
            if not await self._disk(whole).run(lambda folder=whole: os.path.isdir(folder), PATIENCE):
                raise _invalid(f"`{name}`: there is no folder {path[:200]!r}")
        return [path for _, path in folders]

    def _disk(self, folder: str) -> Disk:
        return self._disks.setdefault(folder, Disk(folder))

    def _turnstile(self, session_id: str) -> asyncio.Lock:
        """One at a time may open or end a session."""
        return self._turnstiles.setdefault(session_id, asyncio.Lock())


# --- what a request must say


def _absolute(name: str, path: str) -> str:
    if not os.path.isabs(path) or "\0" in path:
        raise _invalid(f"`{name}` must be an absolute path, got {path[:200]!r}")
    return path


def _same_folder(stored: str, given: str) -> None:
    if os.path.realpath(stored) != os.path.realpath(given):
        raise _invalid(f"`cwd`: the session belongs to {stored[:200]!r}, not to {given[:200]!r}")


def _invalid(what: str) -> RpcError:
    return RpcError(ErrorCode.INVALID_PARAMS, f"Invalid params: {what}")


def _new_id() -> str:
    """Sortable by time, unguessable, safe as a file's name."""
    return f"{milliseconds_now():012x}-{os.urandom(8).hex()}"
