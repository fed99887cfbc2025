"""Opens sessions for a client (new ones, stored ones, copies): claims them in the store, and puts their parts together.

Which sessions live in the process, and who joins them, is the host's: see `acp/host.py`.
"""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from crow.acp import wire
from crow.acp.capabilities import Capabilities, SessionGround, given_servers
from crow.acp.session_folders import SessionFolders
from crow.acp.sink import UpdateSink
from crow.commands.processes import ForkServer
from crow.config.settings import FacesSettings
from crow.errors import StorageFailed, StoreSilent
from crow.events import CallOpened, Notice, SteeringLeftOver, milliseconds_now
from crow.session.faces.after_takeover import Seen
from crow.session.faces.face import Face
from crow.session.faces.faces import Faces
from crow.session.models import SessionSetup
from crow.session.open import Environment, FolderSetup, open_session
from crow.session.persistence import Archive, DeferredLog, Persistence
from crow.session.recovery import recover
from crow.session.session import Session
from crow.store.base import EventLog, SessionEntry, SessionStore


class Seat(NamedTuple):
    """A connection's place in a session: the session, and the face through which the connection takes part."""

    session: Session
    face: Face
    sink: UpdateSink
    """That of the face."""


class Loaded(NamedTuple):
    """A session that a connection takes part in from now on, and what its client is still to be shown."""

    seat: Seat
    entry: SessionEntry
    show: Callable[[], Awaitable[Sequence[SteeringLeftOver]]]
    """Shows what was, at the client's pace, so that nobody else may have to wait for it; see `Faces.show`."""


class OpeningClient(NamedTuple):
    """Whoever opens a session: what the client can do, and what sessions are opened with for it."""

    capabilities: Capabilities
    set_up: Callable[[], Awaitable[SessionSetup]]
    environ: Mapping[str, str]
    """What commands and servers of its sessions see."""


class PreparedRequest(NamedTuple):
    """A request that opens a session, and what was read for it."""

    request: wire.NewSessionRequest
    client: OpeningClient
    roots: Sequence[str]
    """The folders that the request names, all of which are there."""
    setup: SessionSetup


class SessionOpener:
    """Opens the sessions of one process. `question_timeout` gives the seconds for which a question waits for
    somebody to come; `add` is called with each session that is opened."""

    def __init__(
        self,
        home: str,
        store: SessionStore,
        folders: SessionFolders,
        fork_server: ForkServer,
        question_timeout: Callable[[FacesSettings], float],
        add: Callable[[Session, SessionGround], None],
    ) -> None:
        self._home = home
        self._store = store
        self._folders = folders
        self._fork_server = fork_server
        self._question_timeout = question_timeout
        self._add = add

    async def prepare(self, request: wire.NewSessionRequest, client: OpeningClient) -> PreparedRequest:
        """RpcError if a folder is not there; SetupNeeded if there is no model."""
        return PreparedRequest(request, client, await self._folders.roots(request), await client.set_up())

    async def create(self, prepared: PreparedRequest) -> Seat:
        """A new session."""
        session_id = _new_id()
        persistence, warning = await self._new_persistence(session_id, prepared.roots)
        seat = await self._put_together(session_id, prepared, persistence)
        if warning is not None:
            seat.session.tell(warning)
        seat.session.store_choices()
        return seat

    async def stored(self, session_id: str, prepared: PreparedRequest) -> SessionEntry:
        """The stored session, if it belongs to the folder that the request names."""
        entry = await self._store.find(session_id)
        await self._folders.check_same(entry.cwd, prepared.roots[0])
        return entry

    async def load(self, entry: SessionEntry, prepared: PreparedRequest, *, replay: bool, seen: Seen | None) -> Loaded:
        """Goes on with a stored session that does not live here. SessionElsewhere if it lives in another process."""
        log = await self._store.claim(entry.id)
        await self._store.set_roots(entry.id, prepared.roots[1:])
        persistence = await self._recovered(entry.id, log)
        await self._folders.remove_outputs(entry.id)
        seat = await self._put_together(entry.id, _stored_at(entry, prepared), persistence, is_shown=True)
        faces, past = seat.session.faces, persistence.past
        return Loaded(seat, entry, lambda: faces.show(seat.face, replay=replay, seen=seen, past=past))

    async def fork(self, source_id: str, prepared: PreparedRequest) -> Seat:
        """A copy of what is stored of a session."""
        new_id = _new_id()
        source = await self.stored(source_id, prepared)
        log = await self._store.fork(source_id, new_id, source.cwd, prepared.roots[1:])
        persistence = await self._recovered(new_id, log)
        return await self._put_together(new_id, _stored_at(source, prepared), persistence)

    async def face(self, ground: SessionGround, capabilities: Capabilities) -> tuple[UpdateSink, Face]:
        """The face of a client in a session, and its sink."""
        files = await self._folders.run(ground.roots[0], lambda: capabilities.files(ground))
        sink = capabilities.sink(ground)
        return sink, capabilities.face(ground, sink, files)

    # --- how it is stored

    async def _recovered(self, session_id: str, log: EventLog) -> Persistence:
        """How a stored session is kept from now on; what was cut off in it gets its end."""
        past = await recover(log, await self._store.events(session_id))
        return Persistence(log, Archive(self._store, session_id, log), past)

    async def _new_persistence(self, session_id: str, roots: Sequence[str]) -> tuple[Persistence, Notice | None]:
        """How a new session is kept; in memory until the store takes it, which is no reason not to work."""
        folders = os.path.normpath(roots[0]), roots[1:]
        try:
            log = await self._store.create(session_id, *folders)
        except StoreSilent:
            raise  # the configuration, grants and trust lie there too
        except StorageFailed as failed:
            log = DeferredLog(self._store.create_later(session_id, *folders))
            text = f"This session is not stored yet. {failed}"
            return Persistence(log, Archive(self._store, session_id, log)), Notice("warning", text)
        remark = await self._store.remark()
        persistence = Persistence(log, Archive(self._store, session_id, log))
        return persistence, Notice("warning", remark) if remark else None

    # --- its parts

    async def _put_together(
        self, session_id: str, prepared: PreparedRequest, persistence: Persistence, *, is_shown: bool = False
    ) -> Seat:
        """`is_shown`: the client is to be shown what was, and told of nothing before that."""
        request, client, roots, setup = prepared
        servers, problems = given_servers(request.mcp_servers or ())
        ground = await self._folders.run(
            roots[0], lambda: SessionGround.of(session_id, roots, setup, self._fork_server, client.environ)
        )
        sink, face = await self.face(ground, client.capabilities)
        if not is_shown:
            sink.remember(persistence.past)
        read = await self._folders.run(roots[0], lambda: FolderSetup(session_id, setup, ground.roots, self._home))
        faces = Faces(ground.workspace, ground.commands, self._question_timeout(setup.settings.faces))
        environment = Environment(faces=faces, fork_server=self._fork_server, environ=client.environ, servers=servers)
        session = open_session(session_id, setup, environment, persistence, self._home, read)
        (faces.enter if is_shown else faces.add)(face)
        for problem in problems:
            session.tell(Notice("warning", problem))
        self._add(session, ground)
        if any(isinstance(event, CallOpened) and event.kind == "execute" for event in persistence.past):
            faces.commands.on_begin()  # what it left behind may still run
        return Seat(session, face, sink)


def _stored_at(entry: SessionEntry, prepared: PreparedRequest) -> PreparedRequest:
    """The request with the session's folder as it is stored: the client may have written it in another way."""
    return prepared._replace(roots=[entry.cwd, *prepared.roots[1:]])


def _new_id() -> str:
    """Sortable by time, unguessable, safe as a file's name."""
    return f"{milliseconds_now():012x}-{os.urandom(8).hex()}"
