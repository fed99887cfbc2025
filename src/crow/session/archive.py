"""How a session is kept, and how what is kept is read again by the commands that look back: /undo and /export."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from crow.clock import local_day, milliseconds_now
from crow.events import Event
from crow.store.base import EventLog, SessionEntry, SessionStore


class Archive(Protocol):
    async def events(self, *, former_texts: bool = False) -> Sequence[Event]:
        """All that happened until now; `former_texts`: with those of changed files."""
        ...

    async def entry(self) -> SessionEntry:
        """How the session is listed; a CrowError if it is not stored."""
        ...

    async def spent_today(self) -> Mapping[str, float]:
        """What was spent today, by all sessions that are stored: by currency, and tokens. StorageFailed."""
        ...


class Keeping(NamedTuple):
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

    async def entry(self) -> SessionEntry:
        await asyncio.shield(self._log.store_all())
        return await self._store.find(self._session_id)

    async def spent_today(self) -> Mapping[str, float]:
        return await self._store.spent_on(local_day(milliseconds_now()))
