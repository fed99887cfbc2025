"""The sessions that live in this process, for all its connections: has them opened, joins, closes and deletes them, and
removes what killed ones left.

A session belongs to the process; a connection has faces of it. A session that lives is joined, never opened a second
time, and ends with its last face.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakValueDictionary

from crow.acp import wire
from crow.acp.capabilities import Capabilities, SessionGround
from crow.acp.ownership import Ownership, ServeAttached, all_ended
from crow.acp.session_folders import SessionFolders
from crow.acp.session_opening import Loaded, OpeningClient, Seat, SessionOpener
from crow.acp.unwatched import Unwatched
from crow.commands.processes import ForkServer
from crow.config.home import remove_temporaries, write_file
from crow.disk import Disk
from crow.errors import (
    BacklogLost,
    ConfigError,
    FileSystemSilent,
    SessionBusy,
    SessionElsewhere,
    SessionTaken,
    SetupNeeded,
    StorageFailed,
    StoreSilent,
)
from crow.events import Notice, milliseconds_now
from crow.files.atomic import remove_temporary
from crow.files.output_folder import remove_left_behind
from crow.session.faces.after_takeover import Seen
from crow.session.session import Session
from crow.store.base import SessionEntry
from crow.store.store import open_store
from crow.threads import start_thread

if TYPE_CHECKING:
    from crow.acp.inbox import Inbox

logger = logging.getLogger(__name__)


COMMANDS_HAVE_RUN = "commands-have-run"
"""A file of Crow's home that is there once a command has run: what that left behind may connect to any Crow."""
DISK_TIMEOUT = 2.0
"""Seconds that the disk gets to say whether it is there."""


def _note_commands(home: str) -> None:
    with suppress(ConfigError):
        write_file(os.path.join(home, COMMANDS_HAVE_RUN), b"")


class _LiveSession(NamedTuple):
    session: Session
    ground: SessionGround


class Host:
    """Nothing of the store is touched before the first session method."""

    def __init__(
        self,
        home: str,
        environ: Mapping[str, str],
        serve: ServeAttached | None = None,
        *,
        outlives_clients: bool = False,
    ) -> None:
        """`serve` makes the agents of connections from other processes; without it there are none. With
        `outlives_clients`, sessions go on without a client, as in `crow web`."""
        self.home = home
        self.environ = environ
        self.store = open_store(home)
        self.store.on_stop(self.cancel)
        self.ownership = Ownership(self, serve)
        self.inbox: Inbox | None = None
        """Told of what the sessions do, once somebody wants to know of all of them."""
        self.uses_web = False
        """Whether new sessions may live in a `crow web` that runs."""
        self.show_at_home: Callable[[str], str] = lambda _: ""
        """As in `Faces`."""
        self.session_keys: dict[str, str] = {}
        """Those of sessions with which this process or its clients are trusted, wherever they live: see `Faces`."""
        self._commands_have_run = False
        self._unwatched = Unwatched(self._close_unwatched, go_on=outlives_clients)
        self._fork_server = ForkServer()
        self._live: dict[str, _LiveSession] = {}
        self._being_joined: set[Session] = set()
        """Sessions that a face is about to join: they do not end, although the last of the others may leave."""
        self._sweeping: asyncio.Task[None] | None = None
        self._folders = SessionFolders()
        self._opener = SessionOpener(
            home, self.store, self._folders, self._fork_server, self._unwatched.question_timeout, self._add
        )
        self._open_close_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def find(self, session_id: str) -> Session | None:
        """A session that lives in this process."""
        live = self._live.get(session_id)
        return live.session if live is not None else None

    @property
    def live(self) -> Sequence[Session]:
        return [live.session for live in self._live.values()]

    def _add(self, session: Session, ground: SessionGround) -> None:
        """From now on the session lives here."""
        self._live[session.id] = _LiveSession(session, ground)
        session.faces.on_change = lambda: self._tell_inbox(session.id)
        session.faces.key = self.session_keys.setdefault(session.id, session.faces.key)
        session.faces.show_at_home = self.show_at_home
        session.faces.commands.on_begin = self._note_command

    def _note_command(self) -> None:
        if not self._commands_have_run:
            self._commands_have_run = True
            start_thread(partial(_note_commands, self.home), "crow-commands")

    async def trusts_newcomers(self) -> bool:
        """Whether who connects now can be no command: none has run, neither here nor in another process of this home,
        as far as that is known."""
        noted = os.path.join(self.home, COMMANDS_HAVE_RUN)
        try:
            return not (
                self._commands_have_run
                or self._fork_server.has_run
                or await Disk(self.home).run(lambda: os.path.exists(noted), DISK_TIMEOUT)
            )
        except FileSystemSilent:
            return False

    def _tell_inbox(self, session_id: str) -> None:
        """A session begins or ends to live here, or does something else."""
        if self.inbox is not None:
            self.inbox.changed(session_id)

    def cancel(self, session_id: str) -> None:
        if (session := self.find(session_id)) is not None:
            session.cancel()

    async def end(self) -> None:
        """Ends every turn, stores what is left, and lets go of what the sessions hold."""
        if self.inbox is not None:
            self.inbox.close()
        sessions = self.live
        for session in sessions:
            self._take_out(session)
        await all_ended(*(self.drop(session) for session in sessions))
        await self.ownership.close()
        await all_ended(self.store.close(), self._fork_server.close())

    def open_close_lock(self, session_id: str) -> asyncio.Lock:
        """One at a time may open or end a session."""
        return self._open_close_locks.setdefault(session_id, asyncio.Lock())

    # --- opening and joining

    async def create(self, request: wire.NewSessionRequest, client: OpeningClient) -> Seat:
        """A new session."""
        return await self._opener.create(await self._opener.prepare(request, client))

    async def load(
        self,
        request: wire.LoadSessionRequest,
        client: OpeningClient,
        seat: Seat | None,
        *,
        replay: bool,
        seen: Seen | None = None,
        is_trusted: bool = True,
    ) -> Loaded:
        """Goes on with a session, and joins it if it lives here. `seat` is the place that the connection has in it.
        SessionElsewhere if it lives in another process. A client that is not trusted watches one that lives.

        `replay`: the client is to be shown all of it first; else, if it has `seen` the session elsewhere, what it has
        missed. Called with the session's lock.
        """
        session_id = request.session_id
        live = self._live.get(session_id)
        if live is not None and (not is_trusted or self._is_to_be_joined(live.session, seat)):
            return await self._join(
                live, request, client.capabilities, seat, replay=replay, seen=seen, is_trusted=is_trusted
            )
        try:
            prepared = await self._opener.prepare(request, client)
        except SetupNeeded:
            if live is None:
                await self._check_elsewhere(session_id)  # where there is a model
            raise
        entry = await self._opener.stored(session_id, prepared)
        if live is not None:
            await self.store.events(session_id)  # one that cannot be read stays open as it is
        await self._put_away(session_id)
        try:
            return await self._opener.load(entry, prepared, replay=replay, seen=seen)
        except StoreSilent:
            raise
        except StorageFailed:
            await self._check_elsewhere(session_id)  # nothing needs to be written here to join it there
            raise

    def _is_to_be_joined(self, session: Session, seat: Seat | None) -> bool:
        """Whether a session that lives here goes on as it is: somebody else watches it, or it works without anybody."""
        others = any(face is not (seat and seat.face) for face in session.faces.present)
        return others or (self._unwatched.go_on and session.is_at_work)

    async def _check_elsewhere(self, session_id: str) -> None:
        there = (await self.store.living()).get(session_id)
        if there is not None and there.socket and there.process != str(os.getpid()):
            raise SessionElsewhere(there.owner, there.process, there.socket)

    async def fork(self, request: wire.LoadSessionRequest, client: OpeningClient) -> Seat:
        """A copy that goes its own way. Of a running turn it has what has happened by now, and that turn's end."""
        prepared = await self._opener.prepare(request, client)
        source = self.find(request.session_id)
        if source is not None:
            await source.store_all()
        return await self._opener.fork(request.session_id, prepared)

    async def _join(
        self,
        live: _LiveSession,
        request: wire.LoadSessionRequest,
        capabilities: Capabilities,
        seat: Seat | None,
        *,
        replay: bool,
        seen: Seen | None,
        is_trusted: bool,
    ) -> Loaded:
        """Called with the session's lock, so that one at a time joins. `seat` is given up for the new one."""
        session, ground = live
        self._being_joined.add(session)
        try:
            roots = await self._folders.roots(request)
            entry = await self._entry_of(session.id, ground)
            await self._folders.check_same(entry.cwd, roots[0])
            sink, face = await self._opener.face(ground, capabilities)
            if not is_trusted:
                face.distrust()
            if seat is not None:
                session.faces.leave(seat.face)
            session.faces.enter(face)
        finally:
            self._being_joined.discard(session)
            if not session.faces.present and not self._unwatched.keeps(session, is_closed=False):
                await self.drop(session)  # all others have left meanwhile
        if request.mcp_servers:
            left_out = "This client's MCP servers are not used: the session has those of the client that opened it."
            sink.take(Notice("info", left_out))
        return Loaded(Seat(session, face, sink), entry, lambda: session.faces.show(face, replay=replay, seen=seen))

    async def _entry_of(self, session_id: str, ground: SessionGround) -> SessionEntry:
        """The stored entry of a live session; one made up for a session that no disk takes."""
        try:
            return await self.store.find(session_id)
        except StorageFailed:
            return SessionEntry(session_id, ground.roots[0], tuple(ground.roots[1:]), "", 0, milliseconds_now())

    # --- leaving and ending

    async def left(self, seat: Seat) -> None:
        """The face has left. A session that nobody watches any longer is closed."""
        if self.leave(seat):
            await self.drop(seat.session)

    def leave(self, seat: Seat, *, is_closed: bool = False) -> bool:
        """The face leaves at once; whether the session is to be closed with it, being the last one. `is_closed`: the
        client has closed the session, and is not merely gone."""
        session = seat.session
        session.faces.leave(seat.face)
        if session.faces.present or session in self._being_joined or self.find(session.id) is not session:
            return False
        if self._unwatched.keeps(session, is_closed=is_closed):
            return False
        self._take_out(session)
        return True

    def _take_out(self, session: Session) -> None:
        """From now on the session does not live here, also for whatever comes before it is closed."""
        if self.find(session.id) is session:
            del self._live[session.id]
            self._tell_inbox(session.id)

    async def close(self, session: Session) -> None:
        """Ends a session in this process, for whatever reason: this is the one way. StorageFailed if something of it
        could not be stored."""
        self._take_out(session)
        await session.close()

    async def drop(self, session: Session) -> None:
        """Ends a session whose end nobody waits for, such as one that goes on elsewhere."""
        try:
            await self.close(session)
        except SessionTaken:
            pass  # known: it goes on elsewhere, and what is written here no longer counts
        except StorageFailed as failed:
            logger.warning("%s was not stored to its end: %s", session.id, failed)

    async def release(self, session: Session) -> None:
        """Ends a session that others may go on with, unless it has ended. Called with the session's lock."""
        if self.find(session.id) is session:
            await self.drop(session)

    async def _close_unwatched(self, session: Session) -> None:
        async with self.open_close_lock(session.id):
            if self.find(session.id) is session and not session.faces.present:
                await self.drop(session)

    def take_away(self, session_id: str, seat: Seat | None) -> Session | None:
        """The session, if it lives here: from now on it does not. SessionBusy if others watch a turn that runs."""
        live = self._live.get(session_id)
        if live is None:
            return None
        session = live.session
        others = [face for face in session.faces.present if face is not (seat and seat.face)]
        if others and session.faces.state != "idle":
            names = " and ".join(face.name for face in others)
            raise SessionBusy(
                f"A turn of this session is running, which is watched in {names}.",
                remedy="Wait for its end, or cancel it first.",
            )
        self._take_out(session)
        for face in others:
            face.sink.take(Notice("warning", "This session was deleted in another client."))
        return session

    async def delete(self, session_id: str, taken_away: Session | None) -> None:
        """For good. One that is not there is as good as deleted. Called with the session's lock."""
        if taken_away is not None:
            await self.close(taken_away)
        await self.store.delete(session_id)
        if self.inbox is not None:
            self.inbox.deleted(session_id)
        await self._folders.remove_outputs(session_id)

    async def _put_away(self, session_id: str) -> None:
        """One that is open here is closed before it is opened anew: it never has two histories."""
        session = self.find(session_id)
        if session is None:
            return
        # It went on elsewhere, and is now fetched back from there; or what is lost is lost, and what is stored goes on.
        with suppress(SessionTaken, BacklogLost):
            await session.stop_and_store()
        await self.drop(session)

    # --- after kills

    def sweep(self) -> None:
        """Once, beside everything else: what processes that were killed have left is removed."""
        self._sweeping = self._sweeping or asyncio.ensure_future(self._remove_left_behind())

    async def _remove_left_behind(self) -> None:
        written: Sequence[str] = ()
        with suppress(StorageFailed):
            written = await self.store.files_cut_off()

        def remove() -> None:
            remove_left_behind()
            remove_temporaries(self.home)
            for path in written:
                remove_temporary(path)

        # A thread of its own that nobody waits for: a file system may hang.
        start_thread(remove, "crow-sweep")
