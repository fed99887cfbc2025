"""What all living sessions do (running, asking, idle), in this process and in others, and who is told when it changes.

Made for the first client that asks. Sessions of this process are known at once; to every other process that owns some
there is a link, through which that process tells of its own. New processes are looked for now and then, and so are
sessions that no process has any more: what began and ended, or was deleted, between two looks.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from crow.acp import translate_session
from crow.acp.owner_link import ASKING, LinkUser, NobodyListens, OwnerLink, connect
from crow.acp.wire_extensions import InboxRequest, InboxRow, InboxRows
from crow.errors import CrowError, SessionElsewhere, StorageFailed
from crow.events import milliseconds_now
from crow.live.host import Host
from crow.rpc.connection import ConnectionLost
from crow.rpc.jsonrpc import Notification, Request, RpcError
from crow.store.base import ListSeen, Living, SessionEntry
from crow.timeouts import timeout_at

POLL_INTERVAL = 2.0
"""Seconds from one search for processes that have begun since to the next."""
ANSWER_TIMEOUT = 1.0
"""Seconds that another process gets to tell of its sessions."""
HERE = ""
"""Stands for this process among the tokens of owners."""

Listener = Callable[[Sequence[InboxRow]], None]


class Inbox:
    def __init__(self, host: Host) -> None:
        self._host = host
        host.on_change, host.on_delete, host.on_close = self.changed, self.deleted, self.close
        self._rows: dict[str, InboxRow] = {}
        """The sessions that live, by id."""
        self._owners: dict[str, str] = {}
        """The token of the process in which each of them lives."""
        self._entries: dict[str, SessionEntry] = {}
        """What the store says of those that live here."""
        self._listeners: dict[Listener, bool] = {}
        """Whether each of them wants to know of this process alone."""
        self._changed: dict[str, None] = {}
        self._publishing: asyncio.Task[None] | None = None
        self._links: dict[str, OwnerLink] = {}
        self._polling: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._list: ListSeen | None = None
        """The list of all sessions as the store had it at the last look."""

    async def listen(self, listener: Listener, *, here: bool) -> list[InboxRow]:
        """The sessions that live now; from now on the listener is told of each that changes. StorageFailed."""
        for live in self._host.live:
            self._changed[live.id] = None
        await self._publish()
        if not here:
            await self._find_owners()
            await self._follow_list()
            if self._polling is None:
                self._polling = asyncio.ensure_future(self._poll())
        self._listeners[listener] = here
        self._publish_if_changed()  # while others were looked for
        return [row for id, row in self._rows.items() if not here or self._owners[id] == HERE]

    def forget(self, listener: Listener) -> None:
        self._listeners.pop(listener, None)
        if all(self._listeners.values()):
            self._stop_polling()

    def close(self) -> None:
        self._listeners.clear()
        self._stop_polling()
        if self._publishing is not None:
            self._publishing.cancel()

    # --- the sessions of this process

    def changed(self, session_id: str) -> None:
        """Something about a session of this process has changed: also whether it lives here."""
        self._changed[session_id] = None
        self._publish_if_changed()

    def _publish_if_changed(self) -> None:
        if self._changed and self._publishing is None and self._listeners:
            self._publishing = asyncio.ensure_future(self._publish_soon())

    def deleted(self, session_id: str) -> None:
        if self._list is not None:
            self._list = replace(self._list, ids=self._list.ids - {session_id})
        row = self._rows.get(session_id) or InboxRow(session_id=session_id, cwd="", state="deleted", since=_now())
        self._owners.pop(session_id, None)  # whoever had it has it no longer
        self._update(HERE, [replace(row, state="deleted", since=_now(), asks=0, by=None, process=None)])

    async def _publish_soon(self) -> None:
        """What happens in one step is told together."""
        try:
            await self._publish()
        finally:
            self._publishing = None
        self._publish_if_changed()

    async def _publish(self) -> None:
        changed, self._changed = self._changed, {}
        rows = [await self._own_row(session_id) for session_id in changed]
        self._update(HERE, [row for row in rows if row is not None])

    async def _own_row(self, session_id: str) -> InboxRow | None:
        if session_id not in self._entries:
            try:
                self._entries[session_id] = await self._host.store.find(session_id)
            except CrowError:  # it is not stored yet, or deleted
                live = self._host.find(session_id)
                cwd = live.roots[0] if live is not None else ""
                self._entries[session_id] = SessionEntry(session_id, cwd, (), "", 0, milliseconds_now())
        live, known = self._host.find(session_id), self._rows.get(session_id)
        if live is None:
            self._entries.pop(session_id, None)
            return _saved(known) if known is not None and self._owners.get(session_id) == HERE else None
        entry, faces = self._entries[session_id], live.faces
        began = translate_session.iso_time(faces.since)
        updated = known.updated_at if known is not None else translate_session.iso_time(entry.updated_at)
        return InboxRow(
            session_id=session_id,
            cwd=entry.cwd,
            title=live.session.title or entry.title or None,
            updated_at=began if known is not None and known.state != faces.state else updated,
            state=faces.state,
            asks=faces.person.open_count,
            since=began,
            by=faces.begun_at or None,
            process=os.getpid(),
        )

    # --- all sessions

    def _update(self, owner: str, rows: Iterable[InboxRow]) -> None:
        """Rows of one process. What that says of a session which another one has by now is old."""
        news: list[InboxRow] = []
        for row in rows:
            id = row.session_id
            if row.state in ("saved", "deleted"):
                if self._owners.get(id, owner) != owner:
                    continue
                self._rows.pop(id, None)
                self._owners.pop(id, None)
            else:
                if self._rows.get(id) == row:
                    continue
                self._rows[id], self._owners[id] = row, owner
            news.append(row)
        self._tell(news, here=owner == HERE)

    def _tell(self, rows: Sequence[InboxRow], *, here: bool) -> None:
        """`here`: the rows are of this process, so that those are told too who want to know of no other."""
        for listener, is_for_here in list(self._listeners.items()):
            if rows and (here or not is_for_here):
                listener(rows)

    # --- those of other processes

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL_INTERVAL)
            with contextlib.suppress(StorageFailed):
                await self._find_owners()
                await self._follow_list()

    async def _follow_list(self) -> None:
        """Tells of sessions that others have changed or deleted, and that no process has now."""
        news = await self._host.store.list_news(self._list)
        self._list = news.seen
        self._tell([_ended_row(entry) for entry in news.changed if entry.id not in self._rows], here=False)
        for session_id in news.deleted:
            self.deleted(session_id)

    async def _find_owners(self) -> None:
        found = {there.owner: there for there in await self._host.store.other_owners()}
        await asyncio.gather(*(self._connect(there) for token, there in found.items() if token not in self._links))
        mute = found.keys() - self._links.keys()
        for token in {*self._owners.values()} - {HERE} - self._links.keys() - mute:
            self._lost(token)
        if mute:
            await self._read_store(mute)

    async def _connect(self, there: Living) -> None:
        if not there.socket:
            return
        deadline = asyncio.get_running_loop().time() + ANSWER_TIMEOUT
        owner = SessionElsewhere(there.owner, there.process, there.socket)
        with contextlib.suppress(NobodyListens, ConnectionLost, RpcError, TimeoutError):
            link = await connect(owner, ASKING, _RowReader(self._update, self._lost), deadline)
            try:
                async with timeout_at(deadline):
                    answer = await link.request("_crow/inbox", InboxRequest(here=True), InboxRows)
            except BaseException:
                await link.close()
                raise
            self._links[there.owner] = link
            self._update(there.owner, answer.sessions)

    def _lost(self, owner: str) -> None:
        """The process has ended, or lets nobody attach any longer."""
        self._links.pop(owner, None)
        gone = [self._rows[id] for id, token in self._owners.items() if token == owner]
        self._update(owner, [_saved(row) for row in gone])

    async def _read_store(self, owners: Iterable[str]) -> None:
        """Of a process that cannot be asked, the store knows which sessions it has and whether a turn runs."""
        wanted = set(owners)
        living = {id: there for id, there in (await self._host.store.living()).items() if there.owner in wanted}
        for id, token in list(self._owners.items()):
            if token in wanted and id not in living:
                self._update(token, [_saved(self._rows[id])])
        for id, there in living.items():
            with contextlib.suppress(CrowError):
                self._update(there.owner, [_stored_row(await self._host.store.find(id), there)])

    def _stop_polling(self) -> None:
        if self._polling is not None:
            self._polling.cancel()
            self._polling = self._list = None
        links, self._links = self._links, {}
        for link in links.values():
            closing = asyncio.ensure_future(link.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
        for id in [id for id, token in self._owners.items() if token != HERE]:
            del self._rows[id], self._owners[id]


class _RowReader(LinkUser):
    """Takes what another process tells of its sessions."""

    def __init__(self, update: Callable[[str, Iterable[InboxRow]], None], lost: Callable[[str], None]) -> None:
        self._update = update
        self._lost = lost

    def take(self, link: OwnerLink, message: Request | Notification) -> None:
        if message.method == "_crow/inbox":
            self._update(link.there.owner, msgspec.json.decode(message.params, type=InboxRows).sessions)

    def lost(self, link: OwnerLink) -> None:
        self._lost(link.there.owner)


def _saved(row: InboxRow) -> InboxRow:
    return replace(row, state="saved", since=_now(), asks=0, by=None, process=None)


def _stored_row(entry: SessionEntry, there: Living) -> InboxRow:
    runs = there.running_since
    return InboxRow(
        session_id=entry.id,
        cwd=entry.cwd,
        title=entry.title or None,
        updated_at=translate_session.iso_time(entry.updated_at),
        state="running" if runs else "idle",
        since=translate_session.iso_time(runs or entry.updated_at),
        process=int(there.process),
    )


def _ended_row(entry: SessionEntry) -> InboxRow:
    updated = translate_session.iso_time(entry.updated_at)
    return InboxRow(
        session_id=entry.id,
        cwd=entry.cwd,
        title=entry.title or None,
        updated_at=updated,
        state="saved",
        since=updated,
    )


def _now() -> str:
    return translate_session.iso_time(milliseconds_now())
