"""The store as the rest of Crow uses it: collects events on the event loop, has the worker write them soon, and tries
again after a failure.
"""

import asyncio
import contextlib
import logging
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from crow.errors import SessionBusy, SessionTaken, StorageFailed, StoreSilent
from crow.events import Event, milliseconds_now
from crow.store.base import (
    FILE_NAME,
    INDEX_NAME,
    EventLog,
    FormerFile,
    LayoutOutdated,
    ListNews,
    ListSeen,
    Living,
    Mark,
    Page,
    SearchResult,
    SessionEntry,
    SessionStore,
)
from crow.store.owners import OWNERS_NAME, STOP, lives, owners_in, process_of, socket_of
from crow.store.worker import Worker

if TYPE_CHECKING:
    from crow.store.queries import Queries
    from crow.store.records import Pending
    from crow.store.search_index import Indexing
    from crow.store.sessions import SessionRows

logger = logging.getLogger(__name__)

T = TypeVar("T")
Job = Callable[["SessionRows"], T]
"""Something to be done on the worker thread."""

CREATE_AGAIN = 5.0
"""Seconds after which the creation of a session that failed is tried again, if nothing happens in it until then."""

READ_AFTER = 0.5
"""Seconds for which who reads waits for what is being stored. A write that takes longer is held up by somebody."""

STOPPED_AFTER = 10.0
"""Seconds that another process gets to end a turn."""
POLL_INTERVAL = 0.05
"""Seconds between two looks whether it did."""
DELAY = 0.5
"""Seconds after which streamed text is stored, and what could not be stored is tried again."""


def open_store(home: str, *, max_pages: int | None = None) -> SessionStore:
    """The store below `home`. Nothing is opened before it is used. `max_pages` limits the file's size."""
    return _Store(home, max_pages)


class _Handle:
    """A session that this process owns. Used on the event loop, all but `pending`."""

    def __init__(self, store: "_Store", session_id: str, pending: "Pending") -> None:
        self.id = session_id
        self.pending = pending
        """Belongs to the worker thread."""
        self.to_create: tuple[str, Sequence[str]] | None = None
        """The folders of a session that is still to be created. Belongs to the worker thread."""
        self._store = store
        self._added: deque[Event | Mark] = deque()
        """Filled on the event loop, emptied on the worker thread."""

    def add(self, event: Event) -> None:
        if not event.stored:
            return
        self._added.append(event)
        self._store.flush_later(self)

    def mark(self) -> Mark:
        mark = Mark()
        self._added.append(mark)
        return mark

    def store_all(self, *, full: bool = False, within: float | None = None) -> "asyncio.Future[None]":
        storing = self.storing(full=full)

        def keep(sessions: "SessionRows") -> None:
            storing(sessions)
            self.pending.check_whole(self.id)

        return self._store.run_storing(self, keep, within)

    async def release(self) -> None:
        storing = self.storing()

        def let_go(sessions: "SessionRows") -> None:
            storing(sessions)
            sessions.release(self.pending)

        try:
            await self._store.run_storing(self, let_go)
        except SessionTaken:
            self._store.forget(self)
            raise
        self._store.forget(self)

    def storing(self, *, full: bool = False) -> "Job[None]":
        """A job that stores what was added until now, and what still waits from before.

        It takes what was added until it runs, so that of many jobs that wait for a slow disk the first does it all.
        """

        def store(sessions: "SessionRows") -> None:
            self.take_added()
            if self.to_create is not None:
                sessions.create_for(self.pending, self.id, *self.to_create)
                self.to_create = None
            sessions.store(self.id, self.pending, full=full)

        return store

    def take_added(self) -> None:
        """On the worker thread."""
        self.pending.take(self._drained(), milliseconds_now())

    def _drained(self) -> Iterator[Event | Mark]:
        while self._added:
            yield self._added.popleft()


class _Store:
    def __init__(self, home: str, max_pages: int | None) -> None:
        self._home = home
        self._max_pages = max_pages
        self._worker = Worker("crow-store", self._silence)
        self._reader = Worker("crow-store-reader", lambda: self._silence(reading=True))
        """Reads beside the worker, so that nobody who looks waits for a write that is held up."""
        self._indexing: Indexing | None = None
        self._sessions: SessionRows | None = None
        """Belongs to the worker thread."""
        self._handles: dict[str, _Handle] = {}
        self._unstored: set[_Handle] = set()
        self._flush_timer: asyncio.TimerHandle | None = None
        self._stoppable = self._attachable = False
        self._check_socket: Callable[[], None] = lambda: None
        self._remarked = False
        self._stops: set[asyncio.Task[None]] = set()
        self._giving_back: asyncio.Task[None] | None = None

    # --- what SessionStore promises

    async def create(self, session_id: str, cwd: str, roots: Sequence[str]) -> EventLog:
        return self._handle(session_id, await self._run(lambda sessions: sessions.create(session_id, cwd, roots)))

    def create_later(self, session_id: str, cwd: str, roots: Sequence[str]) -> EventLog:
        from crow.store.records import Pending

        handle = self._handle(session_id, Pending(0, 0, 0))
        handle.to_create = (cwd, roots)
        return handle

    async def find(self, session_id: str) -> SessionEntry:
        return await self._read(lambda queries: queries.find(session_id))

    async def beginning_with(self, beginning: str) -> Sequence[SessionEntry]:
        return await self._read(lambda queries: queries.beginning_with(beginning))

    async def claim(self, session_id: str) -> EventLog:
        storing = self._storing_of(session_id)

        def claim(sessions: "SessionRows") -> "Pending":
            storing(sessions)
            return sessions.claim(session_id)

        return self._handle(session_id, await self._run(claim))

    async def set_roots(self, session_id: str, roots: Sequence[str]) -> None:
        await self._run(lambda sessions: sessions.set_roots(session_id, roots))

    async def events(
        self, session_id: str, *, former_texts: bool = False, since: Mark | None = None, until: Mark | None = None
    ) -> list[Event]:
        handle = self._handles.get(session_id)
        if handle is None:
            return await self._read(lambda queries: queries.events(session_id, former_texts=former_texts))
        self._flush()

        def read(sessions: "SessionRows") -> list[Event]:
            handle.take_added()  # the marks at least: what was added before them may be stored already
            rows = handle.pending.rows
            return sessions.queries.events(
                session_id, former_texts=former_texts, waiting=rows, since=since, until=until
            )

        return await self._run(read)

    async def former_files(self, session_id: str) -> list[FormerFile]:
        handle = self._handles.get(session_id)
        if handle is None:
            return await self._read(lambda queries: queries.former_files(session_id))
        self._flush()
        return await self._run(lambda sessions: sessions.queries.former_files(session_id, handle.pending.rows))

    async def page(self, cwd: str | None, cursor: str, size: int) -> Page:
        return await self._read(lambda queries: queries.page(cwd, cursor, size))

    async def list_news(self, before: ListSeen | None) -> ListNews:
        path = os.path.join(self._home, FILE_NAME)

        def read() -> ListNews:
            stamp = _stamp((path, f"{path}-wal"))  # before it is read: what is written meanwhile is found next time
            if before is not None and stamp == before.stamp:
                return ListNews(before)
            return self._queries().list_news(before, stamp)

        try:
            return await self._reader.run(read)
        except LayoutOutdated:
            return ListNews(before or ListSeen())

    async def search(self, query: str, cursor: str, size: int) -> SearchResult:
        await self._read(lambda _: None)  # which stores what waits, and brings an older file up to date
        return await self._index().search(query, cursor, size)

    def _index(self) -> "Indexing":
        if self._indexing is None:
            from crow.store.search_index import Indexing

            self._indexing = Indexing(self._home, self._silence)
        return self._indexing

    async def spent_on(self, day: str) -> Mapping[str, float]:
        return await self._read(lambda queries: queries.spent_on(day))

    async def fork(self, session_id: str, new_id: str, cwd: str, roots: Sequence[str]) -> EventLog:
        storing = self._storing_of(session_id)

        def fork(sessions: "SessionRows") -> "Pending":
            storing(sessions)
            return sessions.fork(session_id, new_id, cwd, roots)

        return self._handle(new_id, await self._run(fork))

    async def delete(self, session_id: str) -> None:
        key = await self._run(lambda sessions: sessions.begin_deletion(session_id))
        if (handle := self._handles.pop(session_id, None)) is not None:
            self._unstored.discard(handle)
        while key is not None and await self._run(lambda sessions: sessions.go_on_deleting(key)):
            pass  # in steps, between which the sessions that go on are stored
        if await asyncio.to_thread(self._delete_beside, session_id):
            await self._index().delete(session_id)
        if key is not None and (self._giving_back is None or self._giving_back.done()):
            self._giving_back = asyncio.ensure_future(self._give_back_room())

    def _delete_beside(self, session_id: str) -> bool:
        """Deletes the session from the copies of the file. Whether there is an index as well."""
        from crow.store.layout import delete_from_copies

        delete_from_copies(os.path.join(self._home, FILE_NAME), session_id)
        return os.path.exists(os.path.join(self._home, INDEX_NAME))

    async def _give_back_room(self) -> None:
        await asyncio.sleep(DELAY)  # more may be deleted, which comes first
        with contextlib.suppress(StorageFailed):
            while await self._run(lambda sessions: sessions.give_back_room()):  # noqa: ASYNC110 -- others get their turn
                await asyncio.sleep(POLL_INTERVAL)

    async def files_cut_off(self) -> Sequence[str]:
        return await self._run(lambda sessions: sessions.files_cut_off)

    async def remark(self) -> str:
        remark = "" if self._remarked else await self._run(lambda sessions: sessions.remark)
        self._remarked = True
        return remark

    async def stop(self, session_id: str) -> bool:
        process = await self._run(lambda sessions: sessions.ask_to_stop(session_id))
        if not process:
            return False
        deadline = asyncio.get_running_loop().time() + STOPPED_AFTER
        while await self._read(lambda queries: queries.is_running(session_id)):
            if asyncio.get_running_loop().time() > deadline:
                raise SessionBusy(
                    f"The Crow in which the turn runs (process {process}) did not end it.", remedy="End that process."
                )
            await asyncio.sleep(POLL_INTERVAL)
        return True

    def on_stop(self, stop: Callable[[str], None]) -> None:
        async def stop_requested() -> None:
            for session_id in await self._run(lambda sessions: sessions.requests()):
                stop(session_id)

        def on_signal() -> None:
            self._check_socket()
            task = asyncio.ensure_future(stop_requested())
            self._stops.add(task)
            task.add_done_callback(self._stops.discard)

        with contextlib.suppress(ValueError, RuntimeError):  # only a program's main thread gets signals
            asyncio.get_running_loop().add_signal_handler(STOP, on_signal)
            self._stoppable = True

    def allow_attaching(self) -> None:
        self._attachable = True

    async def socket(self) -> str:
        return await self._run(lambda sessions: sessions.socket())

    def on_missing_socket(self, check: Callable[[], None]) -> None:
        self._check_socket = check

    async def renew_socket(self) -> str:
        return await self._run(lambda sessions: sessions.renew_socket())

    async def withdraw_socket(self) -> None:
        await self._run(lambda sessions: sessions.withdraw_socket())

    async def living(self) -> Mapping[str, Living]:
        folder = os.path.join(self._home, OWNERS_NAME)

        def find(queries: "Queries") -> dict[str, Living]:
            claimed = queries.owners()
            owners = {token for token, _ in claimed.values()}
            sockets = {token: socket_of(folder, token) for token in owners if lives(folder, token)}
            return {
                id: Living(token, process_of(token), sockets[token], running)
                for id, (token, running) in claimed.items()
                if token in sockets
            }

        return await self._read(find)

    async def other_owners(self) -> Sequence[Living]:
        folder = os.path.join(self._home, OWNERS_NAME)
        return await self._reader.run(lambda: [Living(*found, running_since=0) for found in owners_in(folder)])

    async def close(self) -> None:
        if self._flush_timer is not None:
            self._flush_timer.cancel()
        if self._giving_back is not None:
            self._giving_back.cancel()
        if self._indexing is not None:
            self._indexing.close()
        storings = [handle.storing() for handle in {*self._handles.values(), *self._unstored}]
        try:
            if self._worker.works:
                await self._worker.run(lambda: self._close(storings))
        finally:
            self._worker.stop()
            self._reader.stop()

    # --- for the handles

    def run_storing(self, handle: _Handle, job: "Job[None]", within: float | None = None) -> "asyncio.Future[None]":
        """What this one cannot store is tried again later, even if nothing more is added."""
        loop = asyncio.get_running_loop()

        def store() -> None:
            handle.take_added()  # also if the file cannot be opened: what may wait has a limit
            try:
                job(self._opened())
            except StorageFailed:
                if handle.pending.rows:
                    with contextlib.suppress(RuntimeError):  # the loop is closed
                        loop.call_soon_threadsafe(self._try_again, handle)
                raise

        self._unstored.discard(handle)
        future = self._worker.run(store, within)
        future.add_done_callback(_retrieve_exception)
        return future

    def flush_later(self, handle: _Handle) -> None:
        if handle in self._unstored:
            return
        self._unstored.add(handle)
        if self._flush_timer is None:
            self._flush_timer = asyncio.get_running_loop().call_later(DELAY, self._flush)

    def _try_again(self, handle: _Handle) -> None:
        if handle.to_create is None:
            self.flush_later(handle)
        else:
            asyncio.get_running_loop().call_later(CREATE_AGAIN, self._create_again, handle)

    def _create_again(self, handle: _Handle) -> None:
        if self._handles.get(handle.id) is handle:  # and was not deleted meanwhile
            self.flush_later(handle)

    def forget(self, handle: _Handle) -> None:
        if self._handles.get(handle.id) is handle:
            del self._handles[handle.id]

    # --- inside

    def _handle(self, session_id: str, pending: "Pending") -> _Handle:
        handle = self._handles[session_id] = _Handle(self, session_id, pending)
        return handle

    def _flush(self) -> None:
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None
        for handle in list(self._unstored):
            self.run_storing(handle, handle.storing())

    def _storing_of(self, session_id: str) -> "Job[None]":
        """Stores what waits of the session, if it is open here. It may have another owner by now: no matter."""
        handle = self._handles.get(session_id)
        if handle is None:
            return lambda _: None
        storing = handle.storing()

        def store(sessions: "SessionRows") -> None:
            with contextlib.suppress(SessionTaken):
                storing(sessions)

        return store

    def _run(self, job: "Job[T]", within: float | None = None) -> "asyncio.Future[T]":
        return self._worker.run(lambda: job(self._opened()), within)

    def _silence(self, *, reading: bool = False) -> StoreSilent:
        from crow.store.failures import KEPT, READ, silent

        return silent(os.path.join(self._home, FILE_NAME), READ if reading else KEPT)

    async def _read(self, job: "Callable[[Queries], T]") -> T:
        """Reads what is stored, with what this process has still to store if that takes but a moment."""
        self._flush()
        if self._worker.works:
            await asyncio.wait([self._worker.run(lambda: None)], timeout=READ_AFTER)
        try:
            return await self._reader.run(lambda: job(self._queries()))
        except LayoutOutdated:
            return await self._run(lambda sessions: job(sessions.queries))

    def _queries(self) -> "Queries":
        """On the reader's thread."""
        from crow.store.database import ReadOnly
        from crow.store.queries import Queries

        return Queries(ReadOnly(os.path.join(self._home, FILE_NAME)).reading)

    def _opened(self) -> "SessionRows":
        """On the worker thread. A file that could not be opened is tried again each time."""
        if self._sessions is None:
            from crow.store.sessions import SessionRows

            self._sessions = SessionRows(
                self._home, max_pages=self._max_pages, stoppable=self._stoppable, attachable=self._attachable
            )
        return self._sessions

    def _close(self, storings: "list[Job[None]]") -> None:
        if self._sessions is None and not storings:
            return
        sessions = self._opened()
        failure: StorageFailed | None = None
        for storing in storings:
            try:
                storing(sessions)
            except SessionTaken:
                pass
            except StorageFailed as error:
                failure = error
        sessions.close()
        if failure is not None:
            raise failure


def _stamp(paths: Sequence[str]) -> tuple[int, ...]:
    """Changes whenever something is written to one of these files."""
    stamp: list[int] = []
    for path in paths:
        with contextlib.suppress(OSError):
            status = os.stat(path)
            stamp += (status.st_ino, status.st_mtime_ns, status.st_size)
    return tuple(stamp)


def _retrieve_exception(future: "asyncio.Future[None]") -> None:
    """Whoever waited may have gone: what failed is tried again, and is nothing to complain of."""
    if not future.cancelled():
        future.exception()
