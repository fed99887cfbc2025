"""How a session's events are stored, and read again by /undo and /export; where the store takes nothing, the last
changes stay in memory.

A session that the store does not take, as its disk is full or its folder cannot be written, works from memory alone,
and can be undone, until the store takes it.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from crow.errors import CrowError, StorageFailed
from crow.events import (
    CallOpened,
    CallStarted,
    CommandGiven,
    Event,
    FileBackedUp,
    FileWritten,
    SubagentDid,
    TurnStarted,
    TurnUndone,
    UserSaid,
    local_day,
    milliseconds_now,
)
from crow.store.base import EventLog, FormerFile, Mark, SessionEntry, SessionStore

LARGEST_IN_MEMORY = 64 * 1024 * 1024
"""Characters that are kept, most of them files' former texts."""
WEIGHT_OF_AN_EVENT = 200
"""What an event counts for there, apart from such a text."""
NEEDED_FOR_UNDO = (TurnStarted, UserSaid, CommandGiven, CallOpened, CallStarted, FileBackedUp, FileWritten, TurnUndone)
"""What an undo looks at."""


class Archive(Protocol):
    async def events(self, *, former_texts: bool = False) -> Sequence[Event]:
        """All events until now; with `former_texts`, those of changed files have the text that they replaced."""
        ...

    async def former_files(self) -> Sequence[FormerFile]:
        """What the files held that the session has changed, before it first did. StorageFailed."""
        ...

    async def section(self, since: Mark | None, until: Mark) -> Sequence[Event]:
        """The events between two marks of the log, also those that the disk has not taken yet; from the beginning
        without the first. StorageFailed if they cannot be read."""
        ...

    async def entry(self) -> SessionEntry:
        """The entry of the session in the list of sessions; a CrowError if it is not stored."""
        ...

    async def spent_today(self) -> Mapping[str, float]:
        """What all stored sessions have spent today, by currency, and in tokens. StorageFailed if it cannot be read."""
        ...


class Persistence(NamedTuple):
    log: EventLog
    archive: Archive
    past: Sequence[Event] = ()
    """What happened in the session before it was opened."""


class StoredArchive:
    def __init__(self, store: SessionStore, session_id: str, log: EventLog) -> None:
        self._store = store
        self._session_id = session_id
        self._log = log

    async def events(self, *, former_texts: bool = False) -> Sequence[Event]:
        await asyncio.shield(self._log.store_all())
        return await self._store.events(self._session_id, former_texts=former_texts)

    async def former_files(self) -> Sequence[FormerFile]:
        await asyncio.shield(self._log.store_all())
        return await self._store.former_files(self._session_id)

    async def section(self, since: Mark | None, until: Mark) -> Sequence[Event]:
        return await self._store.events(self._session_id, since=since, until=until)

    async def entry(self) -> SessionEntry:
        await asyncio.shield(self._log.store_all())
        return await self._store.find(self._session_id)

    async def spent_today(self) -> Mapping[str, float]:
        return await self._store.spent_on(local_day(milliseconds_now()))


class RecentChanges:
    """An event log in memory, which has what an undo needs of the last turns, and nothing else."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._size = 0

    def add(self, event: Event) -> None:
        if isinstance(event, SubagentDid):
            event = event.what
            if not isinstance(event, CallOpened | CallStarted):
                return  # its turn is no turn of the session
        if not isinstance(event, NEEDED_FOR_UNDO):
            return
        if isinstance(event, UserSaid):
            event = UserSaid(event.message_id, (), ())  # that there was a prompt will do: it may hold pictures
        self._events.append(event)
        self._size += _weight(event)
        # A turn whose beginning was dropped is not found any more: it is taken back whole or not at all.
        while self._size > LARGEST_IN_MEMORY:
            self._size -= _weight(self._events.popleft())

    def mark(self) -> Mark:
        return Mark()

    def store_all(self, *, full: bool = False, within: float | None = None) -> "asyncio.Future[None]":
        future = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return future

    async def release(self) -> None:
        pass

    def past(self) -> list[Event]:
        return list(self._events)


class MemoryArchive:
    """The archive of a session that no store takes: its last changes to files, and nothing else."""

    def __init__(self, recent: RecentChanges) -> None:
        self._recent = recent

    async def events(self, *, former_texts: bool = False) -> Sequence[Event]:
        return self._recent.past()

    async def former_files(self) -> Sequence[FormerFile]:
        changed: dict[str, FormerFile] = {}
        for event in self._recent.past():
            if isinstance(event, FileBackedUp):
                known = changed.get(event.path)
                before = event.before if known is None else known.before
                changed[event.path] = FormerFile(event.path, before, event.call_id)
        return list(changed.values())

    async def section(self, since: Mark | None, until: Mark) -> Sequence[Event]:
        raise StorageFailed("This session is not stored, so that what happened in it before cannot be shown.")

    async def entry(self) -> SessionEntry:
        raise CrowError("This session is not stored, so there is nothing to export.")

    async def spent_today(self) -> Mapping[str, float]:
        raise StorageFailed("This session is not stored, so that nobody adds up what it spends.")


class DeferredLog:
    """The log of a session that the store does not take yet: each attempt is waited for, so that what is acknowledged
    once there is room is stored, but its failure is none. The last changes to files are in memory for an undo."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self.recent: RecentChanges | None = RecentChanges()
        """None once the session is in the store."""

    def add(self, event: Event) -> None:
        self._log.add(event)
        if self.recent is not None:
            self.recent.add(event)

    def mark(self) -> Mark:
        return self._log.mark()

    def store_all(self, *, full: bool = False, within: float | None = None) -> "asyncio.Future[None]":
        stored = self._log.store_all(full=full, within=within)
        if self.recent is None:
            return stored
        tried = asyncio.get_running_loop().create_future()

        def settle(stored: "asyncio.Future[None]") -> None:
            if not stored.cancelled() and stored.exception() is None:
                self.recent = None
            if not tried.done():
                tried.set_result(None)

        stored.add_done_callback(settle)
        return tried

    async def release(self) -> None:
        try:
            await self._log.release()
        except StorageFailed:
            if self.recent is None:
                raise  # else it was said when the session began


class DeferredArchive:
    """The archive of a session that is stored late: its last changes to files, and from then on what is stored."""

    def __init__(self, log: DeferredLog, stored: Archive) -> None:
        self._log = log
        self._stored = stored

    @property
    def _now(self) -> Archive:
        return self._stored if self._log.recent is None else MemoryArchive(self._log.recent)

    async def events(self, *, former_texts: bool = False) -> Sequence[Event]:
        return await self._now.events(former_texts=former_texts)

    async def former_files(self) -> Sequence[FormerFile]:
        return await self._now.former_files()

    async def section(self, since: Mark | None, until: Mark) -> Sequence[Event]:
        return await self._now.section(since, until)

    async def entry(self) -> SessionEntry:
        return await self._now.entry()

    async def spent_today(self) -> Mapping[str, float]:
        return await self._now.spent_today()


def deferred_persistence(store: SessionStore, session_id: str, log: EventLog) -> Persistence:
    late = DeferredLog(log)
    return Persistence(late, DeferredArchive(late, StoredArchive(store, session_id, log)))


def _weight(event: Event) -> int:
    former = event.before if isinstance(event, FileBackedUp) else None
    return WEIGHT_OF_AN_EVENT + (len(former.text) if former is not None else 0)
