"""What is kept of a session, for the commands that look back: /undo and /export."""

from collections.abc import Sequence
from typing import Protocol

from crow.errors import CrowError
from crow.events import Event
from crow.session.undo import RecentChanges
from crow.store.base import SessionEntry, SessionStore


class Archive(Protocol):
    async def events(self, *, images: bool = False) -> Sequence[Event]:
        """All that happened; `images`: with the former texts of changed files."""
        ...

    async def entry(self) -> SessionEntry:
        """How the session is listed; a CrowError if it is not stored."""
        ...


class StoredArchive:
    def __init__(self, store: SessionStore, session_id: str) -> None:
        self._store = store
        self._session_id = session_id

    async def events(self, *, images: bool = False) -> Sequence[Event]:
        return await self._store.events(self._session_id, images=images)

    async def entry(self) -> SessionEntry:
        return await self._store.find(self._session_id)


class MemoryArchive:
    """Of a session that no store takes: its last changes to files, and nothing else."""

    def __init__(self, recent: RecentChanges) -> None:
        self._recent = recent

    async def events(self, *, images: bool = False) -> Sequence[Event]:
        return self._recent.past()

    async def entry(self) -> SessionEntry:
        raise CrowError("This session is not stored, so there is nothing to export.")
