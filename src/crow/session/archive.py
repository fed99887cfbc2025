"""What is kept of a session, for the commands that look back: /undo and /export."""

from collections.abc import Sequence
from typing import Protocol

from crow.events import Event
from crow.store.base import SessionEntry, SessionStore


class Archive(Protocol):
    async def events(self, *, former_texts: bool = False) -> Sequence[Event]:
        """All that happened; `former_texts`: with those of changed files."""
        ...

    async def entry(self) -> SessionEntry:
        """How the session is listed; a CrowError if it is not stored."""
        ...


class StoredArchive:
    def __init__(self, store: SessionStore, session_id: str) -> None:
        self._store = store
        self._session_id = session_id

    async def events(self, *, former_texts: bool = False) -> Sequence[Event]:
        return await self._store.events(self._session_id, former_texts=former_texts)

    async def entry(self) -> SessionEntry:
        return await self._store.find(self._session_id)
