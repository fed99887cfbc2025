"""How a session's events are stored, and read again by /undo and /export; where the store takes nothing, the last
changes stay in memory.

A session that the store does not take, as its disk is full or its folder cannot be written, works from memory alone,
and can be undone, until the store takes it.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

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


class RecentChanges:
    """What an undo needs of the last turns, in memory, and nothing else."""

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

    def past(self) -> list[Event]:
        return list(self._events)

    def former_files(self) -> list[FormerFile]:
        changed: dict[str, FormerFile] = {}
        for event in self._events:
            if isinstance(event, FileBackedUp):
                known = changed.get(event.path)
                before = event.before if known is None else known.before
                changed[event.path] = FormerFile(event.path, before, event.call_id)
        return list(changed.values())


def _weight(event: Event) -> int:
    former = event.before if isinstance(event, FileBackedUp) else None
    return WEIGHT_OF_AN_EVENT + (len(former.text) if former is not None else 0)


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


class Archive:
    """Reads again what a session has stored. While no store takes the session, it has the last changes to files, and
    nothing else."""

    def __init__(self, store: SessionStore, session_id: str, log: EventLog) -> None:
        self._store = store
        self._session_id = session_id
        self._log = log

    @property
    def _recent(self) -> RecentChanges | None:
        return self._log.recent if isinstance(self._log, DeferredLog) else None

    async def events(self, *, former_texts: bool = False) -> Sequence[Event]:
        """All events until now; with `former_texts`, those of changed files have the text that they replaced."""
        if (recent := self._recent) is not None:
            return recent.past()
        await asyncio.shield(self._log.store_all())
        return await self._store.events(self._session_id, former_texts=former_texts)

    async def former_files(self) -> Sequence[FormerFile]:
        """What the files held that the session has changed, before it first did. StorageFailed."""
        if (recent := self._recent) is not None:
            return recent.former_files()
        await asyncio.shield(self._log.store_all())
        return await self._store.former_files(self._session_id)

    async def section(self, since: Mark | None, until: Mark) -> Sequence[Event]:
        """The events between two marks of the log, also those that the disk has not taken yet; from the beginning
        without the first. StorageFailed if they cannot be read."""
        if self._recent is not None:
            raise StorageFailed("This session is not stored: what happened before cannot be shown.")
        return await self._store.events(self._session_id, since=since, until=until)

    async def entry(self) -> SessionEntry:
        """The entry of the session in the list of sessions; a CrowError if it is not stored."""
        if self._recent is not None:
            raise CrowError("This session is not stored: there is nothing to export.")
        await asyncio.shield(self._log.store_all())
        return await self._store.find(self._session_id)

    async def spent_today(self) -> Mapping[str, float]:
        """What all stored sessions have spent today, by currency, and in tokens. StorageFailed if it cannot be read."""
        if self._recent is not None:
            raise StorageFailed("This session is not stored: nobody adds up what it spends.")
        return await self._store.spent_on(local_day(milliseconds_now()))


class Persistence(NamedTuple):
    log: EventLog
    archive: Archive
    past: Sequence[Event] = ()
    """What happened in the session before it was opened."""
