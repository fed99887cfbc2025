"""The store's interface for the rest of Crow: `SessionStore`, `EventLog`, the entries and pages of a list, and where a
session lives.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from crow.events import (
    Before,
    Event,
)
from crow.visible import one_line

FILE_NAME = "sessions.db"
"""The store's file, below Crow's home."""

INDEX_NAME = "search.db"
"""The file of the full-text index, beside it: see `crow.store.search_index`."""

RECORD_VERSION = 1
"""Of each record, and of the JSON that a session is exported to: see `crow.store.records` for what changes it."""


class LayoutOutdated(Exception):
    """An older Crow wrote the file: it must be brought up to date before it can be read."""


class SessionEntry(msgspec.Struct, frozen=True):
    """A session as a list shows it."""

    id: str
    cwd: str
    roots: tuple[str, ...]
    """Further folders of the workspace."""
    title: str
    created_at: int
    """Milliseconds since 1970."""
    updated_at: int

    @property
    def shown_title(self) -> str:
        """The title as a person reads it, on one line."""
        return one_line(self.title) or "Untitled"


class Page(msgspec.Struct, frozen=True):
    entries: tuple[SessionEntry, ...]
    next_cursor: str
    """Opaque; empty on the last page."""


class ListSeen(msgspec.Struct, frozen=True):
    """The list of sessions at a moment, as far as it takes to tell later what has changed."""

    stamp: tuple[int, ...] = ()
    """Of the store's files: while it is the same, nothing was written."""
    newest: int = 0
    """When the session that was changed last was changed."""
    at_newest: frozenset[str] = frozenset()
    """The sessions that were changed at that moment."""
    ids: frozenset[str] = frozenset()


class ListNews(msgspec.Struct, frozen=True):
    """What has changed in the list of sessions between two moments."""

    seen: ListSeen
    """The list at the second moment."""
    changed: tuple[SessionEntry, ...] = ()
    """Sessions in which something happened, new ones among them."""
    deleted: tuple[str, ...] = ()


class Mark:
    """A place in a session's log: after all that was added before the mark was made, before all that is added later."""

    __slots__ = ("previews", "seq")

    def __init__(self) -> None:
        self.seq: int | None = None
        """The number of the last record before it, once the store has come to it."""
        self.previews: tuple[Event, ...] = ()
        """What was known there of calls whose arguments were still arriving: it is stored when they are complete."""


class Living(msgspec.Struct, frozen=True):
    """In which process a session lives."""

    owner: str
    """What names it among the owners of sessions."""
    process: str
    """Its number, for a person to read."""
    socket: str
    """Where it can be attached to; empty if it cannot."""
    running_since: int
    """Milliseconds since 1970; 0 if no turn of the session runs."""


class MatchPart(msgspec.Struct, frozen=True):
    text: str
    hit: bool
    """It is what was looked for."""


class Match(msgspec.Struct, frozen=True):
    """A session in which the words of a query were found."""

    entry: SessionEntry
    where: Literal["title", "text"]
    parts: tuple[MatchPart, ...]
    """The words that were found, and some around them."""


class SearchResult(msgspec.Struct, frozen=True):
    matches: Sequence[Match]
    next_cursor: str = ""
    """Empty if these are the last ones."""
    unread: int = 0
    """Sessions that are still to be indexed: more may be found in a moment."""
    sessions: int = 0
    """All there are."""


class FormerFile(msgspec.Struct, frozen=True):
    """A file that a session has changed, as it was before the first change."""

    path: str
    before: Before | None
    """None: there was no such file."""
    last_call: str
    """The id of the last call that changed it, or tried to."""


class EventLog(Protocol):
    """Where a journal's events are stored: of a session in the store, owned by this process until another one takes it
    over; or in memory, of a session that no store takes."""

    def add(self, event: Event) -> None:
        """Takes the event, to be stored within a second. Costs next to nothing and never fails."""
        ...

    def mark(self) -> Mark:
        """A place after everything that was added so far."""
        ...

    def store_all(self, *, full: bool = False, within: float | None = None) -> "asyncio.Future[None]":
        """Done when everything that was added so far is on disk; fails with StorageFailed if it cannot be, with
        SessionTaken if another process owns the session by now, with StoreSilent if the disk does not answer, or not
        within so many seconds.

        What could not be stored (a full disk) is kept in memory and tried again with the next call. `full`: it must
        also survive a power cut.
        """
        ...

    async def release(self) -> None:
        """Stores what is left, and lets go: nobody owns the session now."""
        ...


class SessionStore(Protocol):
    """Everything in here may raise StorageFailed, whose text says what is wrong and what to do about it.

    One worker thread writes; another one reads, without waiting for it. Several processes may use the same store at
    once.
    """

    async def create(self, session_id: str, cwd: str, roots: Sequence[str]) -> EventLog:
        """A new session, empty and not listed, on disk when this returns, owned by this process."""
        ...

    def create_later(self, session_id: str, cwd: str, roots: Sequence[str]) -> EventLog:
        """A new session that `create` has failed for: what is added waits in memory, and is stored with the session as
        soon as the store can be written."""
        ...

    async def find(self, session_id: str) -> SessionEntry:
        """SessionUnknown if there is none."""
        ...

    async def beginning_with(self, beginning: str) -> Sequence[SessionEntry]:
        """The sessions in which something was said whose ids begin like this."""
        ...

    async def claim(self, session_id: str) -> EventLog:
        """Makes this process the owner. SessionUnknown; SessionElsewhere if it lives in a process that can be attached
        to; SessionBusy if a turn of it runs in one that cannot."""
        ...

    async def set_roots(self, session_id: str, roots: Sequence[str]) -> None:
        """The further folders of the workspace, as the last load or resume gave them."""
        ...

    async def events(
        self, session_id: str, *, former_texts: bool = False, since: Mark | None = None, until: Mark | None = None
    ) -> list[Event]:
        """All that is stored of the session, in order, with what this process has added and not stored yet; or what
        lies between two marks that were made in its log.

        The pieces of a message are joined. The former texts of changed files (`FileBackedUp`) are only there with
        `former_texts`. SessionUnknown; StorageFailed if a record is damaged or a newer version's.
        """
        ...

    async def former_files(self, session_id: str) -> list[FormerFile]:
        """What the files held that the session has changed since, in the order in which it first changed them.
        SessionUnknown; StorageFailed, as above."""
        ...

    async def page(self, cwd: str | None, cursor: str, size: int) -> Page:
        """Sessions in which something was said, newest first. BadCursor if the cursor is none of ours."""
        ...

    async def list_news(self, before: ListSeen | None) -> ListNews:
        """What has changed in the list since, whichever process changed it; nothing, if there is no `before`. Next to
        nothing is read while nobody writes."""
        ...

    async def search(self, query: str, cursor: str, size: int) -> SearchResult:
        """A page of the sessions in which all words of the query were said, in one message or in the title; those
        first, then the newest. What is not indexed yet is indexed first, for a moment, and then beside everything else.
        BadCursor if the cursor is none of ours."""
        ...

    async def spent_on(self, day: str) -> Mapping[str, float]:
        """What was spent on a day (`2026-01-31`, as the clock on the wall has it), by all sessions of all processes: by
        currency, and `tokens`."""
        ...

    async def fork(self, session_id: str, new_id: str, cwd: str, roots: Sequence[str]) -> EventLog:
        """A copy under another id, owned by this process; the source is left as it is, running or not."""
        ...

    async def delete(self, session_id: str) -> None:
        """If there was one, nothing is left of it. SessionBusy if a turn of it runs in another process that lives.
        Who has it open gets SessionTaken."""
        ...

    async def files_cut_off(self) -> Sequence[str]:
        """The files that other processes were changing when they were killed, as far as this one found such: what they
        have left beside them can be removed."""
        ...

    async def remark(self) -> str:
        """What the person should know of where sessions are kept, said once; empty if there is nothing to say."""
        ...

    async def stop(self, session_id: str) -> bool:
        """Ends the turn that runs in the session, in whichever process; false if none runs. SessionUnknown; SessionBusy
        if that process cannot be asked, or does not do it within ten seconds."""
        ...

    def on_stop(self, stop: Callable[[str], None]) -> None:
        """From now on other processes can end turns of this one: `stop` is called with the session's id. To be called
        before the store is used; without effect but in the program's main thread."""
        ...

    def allow_attaching(self) -> None:
        """Other processes are told to attach to this one instead of claiming its sessions. To be called before the
        store is used; this process has to listen at `socket` from its first session on."""
        ...

    async def socket(self) -> str:
        """The path at which this process has to listen; empty if there is no place for a socket."""
        ...

    def on_missing_socket(self, check: Callable[[], None]) -> None:
        """From now on `check` is called when another process did not find this one's socket. Without effect where
        `on_stop` has none: both come by the same signal."""
        ...

    async def renew_socket(self) -> str:
        """The path at which this process has to listen from now on, if its socket was removed; empty if it was not."""
        ...

    async def withdraw_socket(self) -> None:
        """This process cannot listen: others do as if it were not to be attached to."""
        ...

    async def living(self) -> Mapping[str, Living]:
        """The sessions that live in a process, this one or another, by id."""
        ...

    async def other_owners(self) -> Sequence[Living]:
        """The processes that own sessions or may, without this one. They are found without the store's file."""
        ...

    async def close(self) -> None:
        """Stores what is left, and ends; StorageFailed if it could not be stored."""
        ...
