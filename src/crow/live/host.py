"""The sessions that live in this process, for all its connections: opens, joins, ends and deletes them, and removes
what killed processes have left.

A session belongs to the process; a connection has faces of it. A session that lives is joined, never opened a second
time. In most processes it ends with its last face; in `crow web` it goes on, and ends when it has been idle for long.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Literal
from weakref import WeakValueDictionary

from crow.commands.processes import ForkServer, is_command
from crow.config.home import remove_temporaries, write_file
from crow.config.settings import FacesSettings
from crow.disk import Disk
from crow.errors import (
    BacklogLost,
    ConfigError,
    CrowError,
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
from crow.live.face import Face
from crow.live.opening import Opened, OpenRequest, SessionOpener
from crow.live.ownership import Ownership, ServeAttached, all_ended
from crow.live.session import LiveSession
from crow.session.models import SessionSetup
from crow.store.base import SessionEntry
from crow.store.store import open_store
from crow.store.web_owner import find_web
from crow.threads import start_thread

logger = logging.getLogger(__name__)

COMMANDS_HAVE_RUN = "commands-have-run"
"""A file of Crow's home that is there once a command has run: what that left behind may connect to any Crow."""
DISK_TIMEOUT = 2.0
"""Seconds that the disk gets to say whether it is there."""
IDLE_LIFETIME = 15 * 60.0
"""Seconds for which a session is kept that nobody watches and in which nothing happens."""

Why = Literal["closed", "left", "idle", "loaded again", "handed over", "taken", "deleted", "process ends"]
"""Why a live session ends: its client closed it or left it, nobody watched it for long, it is opened anew here, another
process may go on with it or has done so, it was deleted, or this process ends."""


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
        self.on_change: Callable[[str], None] = lambda _: None
        """Called with the id of a session that begins or ends to live here, or does something else."""
        self.on_delete: Callable[[str], None] = lambda _: None
        self.on_close: Callable[[], None] = lambda: None
        self.uses_web = False
        """Whether new sessions may live in a `crow web` that runs."""
        self.show_at_home: Callable[[str], str] = lambda _: ""
        """As in `Faces`."""
        self.session_keys: dict[str, str] = {}
        """Those of sessions with which this process or its clients are trusted, wherever they live: see `Faces`."""
        self._outlives_clients = outlives_clients
        self._commands_have_run = False
        self._fork_server = ForkServer()
        self._live: dict[str, LiveSession] = {}
        self._being_joined: set[LiveSession] = set()
        """Sessions that a face is about to join: they do not end, although the last of the others may leave."""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        """When a session that nobody watches is looked at next. One for each, however often its last client leaves."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_sweeping = False
        self._opener = SessionOpener(home, self.store, self._fork_server, self._question_timeout, self._add)
        self._open_close_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def find(self, session_id: str) -> LiveSession | None:
        """A session that lives in this process."""
        return self._live.get(session_id)

    @property
    def live(self) -> Sequence[LiveSession]:
        return list(self._live.values())

    def cancel(self, session_id: str) -> None:
        if (live := self.find(session_id)) is not None:
            live.session.cancel()

    def open_close_lock(self, session_id: str) -> asyncio.Lock:
        """One at a time may open or end a session."""
        return self._open_close_locks.setdefault(session_id, asyncio.Lock())

    def _add(self, live: LiveSession) -> None:
        """From now on the session lives here."""
        self._live[live.id] = live
        faces = live.faces
        faces.on_change = lambda: self.on_change(live.id)
        faces.key = self.session_keys.setdefault(live.id, faces.key)
        faces.show_at_home = self.show_at_home
        faces.commands.on_begin = self._note_command

    def _question_timeout(self, settings: FacesSettings) -> float:
        """Seconds for which a question of a session waits for somebody to come."""
        return settings.questions * 60.0 if self._outlives_clients else 0.0

    async def close(self) -> None:
        """Ends every turn, stores what is left, and lets go of what the sessions hold."""
        self.on_close()
        await all_ended(*[self.end(live, "process ends") for live in self.live])
        await self.ownership.close()
        await all_ended(self.store.close(), self._fork_server.close())

    # --- who is trusted

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

    # --- opening and joining

    async def create(self, request: OpenRequest) -> Opened:
        """A new session."""
        return await self._opener.create(request)

    async def fork(self, request: OpenRequest) -> Opened:
        """A copy that goes its own way. Of a running turn it has what has happened by now, and that turn's end."""
        if (source := self.find(request.session_id)) is not None:
            await source.session.store_all()
        return await self._opener.fork(request)

    async def load(self, request: OpenRequest, face: Face | None) -> Opened:
        """Goes on with a session, and joins it if it lives here. `face` is the one that the connection has in it.
        SessionElsewhere if it lives in another process. A client that is not trusted watches one that lives.

        Called with the session's lock.
        """
        session_id = request.session_id
        live = self.find(session_id)
        if live is not None and (not request.is_trusted or self._is_to_be_joined(live, face)):
            return await self._join(live, request, face)
        try:
            roots, setup = await self._opener.roots(request), await request.set_up()
        except SetupNeeded:
            if live is None:
                await self._check_elsewhere(session_id)  # where there is a model
            raise
        entry = await self._opener.stored(session_id, roots)
        if live is not None:
            await self.store.events(session_id)  # one that cannot be read stays open as it is
            # It never has two histories. It went on elsewhere, and is now fetched back from there; or what is lost is
            # lost, and what is stored goes on.
            with suppress(SessionTaken, BacklogLost):
                await live.session.stop_and_store()
            await self.end(live, "loaded again")
        try:
            return await self._opener.load(request, entry, roots[1:], setup)
        except StoreSilent:
            raise
        except StorageFailed:
            await self._check_elsewhere(session_id)  # nothing needs to be written here to join it there
            raise

    def _is_to_be_joined(self, live: LiveSession, face: Face | None) -> bool:
        """Whether a session that lives here goes on as it is: somebody else watches it, or it works without anybody."""
        others = any(other is not face for other in live.faces.present)
        return others or (self._outlives_clients and live.is_at_work)

    async def _check_elsewhere(self, session_id: str) -> None:
        there = (await self.store.living()).get(session_id)
        if there is not None and there.socket and there.process != str(os.getpid()):
            raise SessionElsewhere(there.owner, there.process, there.socket)

    async def _join(self, live: LiveSession, request: OpenRequest, before: Face | None) -> Opened:
        """Called with the session's lock, so that one at a time joins. The face that the connection had is given up."""
        self._being_joined.add(live)
        try:
            roots = await self._opener.roots(request)
            entry = await self._entry_of(live)
            await self._opener.check_same(entry.cwd, roots[0])
            face = await self._opener.face(request.client, live)
            if not request.is_trusted:
                face.distrust()
            if before is not None:
                live.faces.leave(before)
            live.faces.enter(face)
        finally:
            self._being_joined.discard(live)
            if not live.faces.present and not self._keeps(live, is_closed=False):
                await self.end(live, "left")  # all others have left meanwhile
        if request.servers or request.problems:
            left_out = "This client's MCP servers are not used: the session has those of the client that opened it."
            face.sink.take(Notice("info", left_out))
        return Opened(live, face, entry, partial(live.faces.show, face, replay=request.replay))

    async def _entry_of(self, live: LiveSession) -> SessionEntry:
        """The stored entry of a live session; one made up for a session that no disk takes."""
        try:
            return await self.store.find(live.id)
        except StorageFailed:
            return SessionEntry(live.id, live.roots[0], tuple(live.roots[1:]), "", 0, milliseconds_now())

    async def web_home(self, set_up: Callable[[], Awaitable[SessionSetup]]) -> SessionElsewhere | None:
        """The `crow web` of this home in which a new session is to live, as it outlives the client there. None if there
        is none, or the configuration keeps sessions here. Where none runs, this is one look for a file."""
        try:
            web = await Disk(self.home).run(lambda: find_web(self.home), DISK_TIMEOUT)
            if web is None or not web.socket or (await set_up()).settings.faces.home != "web":
                return None
            # Sessions in one that a command of Crow's has started would be in that command's hands.
            if await Disk("/proc").run(lambda: is_command(int(web.process)), DISK_TIMEOUT):
                logger.warning("the crow web of process %s was started by a command: it is not used", web.process)
                return None
        except CrowError:
            return None  # such as a disk that does not answer, which is said where the session is opened here
        return SessionElsewhere(web.owner, web.process, web.socket)

    # --- leaving and ending

    def end(self, live: LiveSession, why: Why) -> Awaitable[None]:
        """Ends a session in this process: this is the one way. From now on it does not live here; what this returns
        lets go of what it holds. StorageFailed if a client asked for the end and something could not be stored."""
        if self.find(live.id) is live:
            del self._live[live.id]
            self.on_change(live.id)
        return self._end(live, why)

    async def _end(self, live: LiveSession, why: Why) -> None:
        try:
            await live.session.close()
        except StorageFailed as failed:
            if why in ("closed", "deleted"):
                raise
            if not isinstance(failed, SessionTaken):  # it goes on elsewhere, and what is written here does not count
                logger.warning("%s (%s) was not stored to its end: %s", live.id, why, failed)

    def leave(self, live: LiveSession, face: Face, *, is_closed: bool = False) -> Awaitable[None] | None:
        """The face leaves at once. If it was the last one, this gives what ends the session, to be awaited with its
        lock; None if the session lives on. `is_closed`: the client has closed the session, and is not merely gone."""
        live.faces.leave(face)
        if live.faces.present or live in self._being_joined or self.find(live.id) is not live:
            return None
        if self._keeps(live, is_closed=is_closed):
            return None
        return self.end(live, "closed" if is_closed else "left")

    def take_away(self, session_id: str, face: Face | None) -> Awaitable[None] | None:
        """A session that is to be deleted does not live here from now on; gives what ends it. SessionBusy if others
        than this face watch a turn that runs."""
        live = self.find(session_id)
        if live is None:
            return None
        others = [other for other in live.faces.present if other is not face]
        if others and live.faces.state != "idle":
            names = " and ".join(other.name for other in others)
            raise SessionBusy(
                f"A turn of this session is running, which is watched in {names}.",
                remedy="Wait for its end, or cancel it first.",
            )
        ending = self.end(live, "deleted")
        for other in others:
            other.sink.take(Notice("warning", "This session was deleted in another client."))
        return ending

    async def delete(self, session_id: str, ending: Awaitable[None] | None) -> None:
        """For good. One that is not there is as good as deleted. Called with the session's lock."""
        if ending is not None:
            await ending
        await self.store.delete(session_id)
        self.on_delete(session_id)
        await self._opener.remove_outputs(session_id)

    # --- sessions that nobody watches

    def _keeps(self, live: LiveSession, *, is_closed: bool) -> bool:
        """Whether a session lives on that its last client has left. `is_closed`: the client closed it, which does not
        end what is at work in it."""
        if not self._outlives_clients or (is_closed and not live.is_at_work):
            return False
        self._look_later(live)
        return True

    def _look_later(self, live: LiveSession) -> None:
        if (timer := self._timers.pop(live.id, None)) is not None:
            timer.cancel()
        self._timers[live.id] = asyncio.get_running_loop().call_later(IDLE_LIFETIME, self._look_at, live)

    def _look_at(self, live: LiveSession) -> None:
        del self._timers[live.id]
        if live.faces.present:
            return  # whoever leaves it as the last one has it looked at again
        if live.is_at_work:
            self._look_later(live)
        else:
            self._run(self._end_idle(live))

    async def _end_idle(self, live: LiveSession) -> None:
        async with self.open_close_lock(live.id):
            if self.find(live.id) is live and not live.faces.present:
                await self.end(live, "idle")

    def _run(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- after kills

    def sweep(self) -> None:
        """Once, beside everything else: what processes that were killed have left is removed."""
        if not self._is_sweeping:
            self._is_sweeping = True
            self._run(self._remove_left_behind())

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


def _note_commands(home: str) -> None:
    with suppress(ConfigError):
        write_file(os.path.join(home, COMMANDS_HAVE_RUN), b"")
