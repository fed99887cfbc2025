"""Opens sessions for a client (new ones, stored ones, copies): looks at their folders, claims them in the store, and
puts their parts together.

Which sessions live in the process, and who joins them, is the host's: see `host.py`.
"""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple, Protocol, TypeVar
from weakref import WeakValueDictionary

import msgspec

from crow.commands.processes import ForkServer
from crow.commands.terminal import LocalCommands, seen_by_commands
from crow.config.settings import FacesSettings, McpServerSettings
from crow.disk import Disk
from crow.errors import FileSystemSilent, StorageFailed, StoreSilent
from crow.events import CallOpened, Notice, milliseconds_now
from crow.files.base import Workspace
from crow.files.local import LocalWorkspace
from crow.files.output_folder import outputs_folder, remove_outputs
from crow.live.face import Face
from crow.live.faces import Faces
from crow.live.feed import SessionStream
from crow.live.session import LiveSession
from crow.rpc.jsonrpc import invalid_params
from crow.session.models import SessionSetup
from crow.session.open import Environment, FolderSetup, open_session
from crow.session.persistence import Archive, DeferredLog, Persistence
from crow.session.recovery import recover
from crow.store.base import EventLog, SessionEntry, SessionStore

DISK_TIMEOUT = 10.0
"""Seconds that the file system of a session's folder gets when the session is opened."""

T = TypeVar("T")


class Client(Protocol):
    """The client that a session is opened for."""

    def files(self, session_id: str, roots: Sequence[str]) -> Workspace | None:
        """The session's files as this client has them; None if it offers none. Called beside the event loop, as paths
        are looked at."""
        ...

    def face(self, live: LiveSession, files: Workspace | None) -> Face:
        """The view that this client has of a session, and what it offers to it."""
        ...


class OpenRequest(msgspec.Struct, frozen=True):
    """What a client opens or joins a session with."""

    client: Client
    cwd: str
    further: Sequence[str]
    """More folders of the session's."""
    servers: Mapping[str, McpServerSettings]
    """The MCP servers that the client hands over."""
    problems: Sequence[str]
    """What is wrong with those that cannot be used."""
    set_up: Callable[[], Awaitable[SessionSetup]]
    environ: Mapping[str, str]
    """What commands and servers of the session see."""
    session_id: str = ""
    """The stored session; empty for a new one."""
    replay: bool = False
    """The client is to be shown all of a stored session."""
    is_trusted: bool = True
    """Else it watches a session that lives."""


class Opened(NamedTuple):
    """A session that a client takes part in from now on."""

    live: LiveSession
    face: Face
    entry: SessionEntry | None
    """That of a session that was stored before."""
    show: Callable[[], Awaitable[None]]
    """Shows what was, at the client's pace, so that nobody else may have to wait for it; see `Faces.show`."""


class SessionOpener:
    """Opens the sessions of one process. `question_timeout` gives the seconds for which a question waits for
    somebody to come; `add` is called with each session that is opened."""

    def __init__(
        self,
        home: str,
        store: SessionStore,
        fork_server: ForkServer,
        question_timeout: Callable[[FacesSettings], float],
        add: Callable[[LiveSession], None],
    ) -> None:
        self._home = home
        self._store = store
        self._fork_server = fork_server
        self._question_timeout = question_timeout
        self._add = add
        self._disks: WeakValueDictionary[str, Disk] = WeakValueDictionary()
        """Those of sessions that are being opened, by folder: one that hangs is not given ever more threads."""

    async def create(self, request: OpenRequest) -> Opened:
        """A new session."""
        roots, setup = await self.roots(request), await request.set_up()
        session_id = _new_id()
        persistence, warning = await self._new_persistence(session_id, roots)
        live, face = await self._put_together(session_id, request, roots, setup, persistence)
        if warning is not None:
            live.session.tell(warning)
        live.session.store_choices()
        return Opened(live, face, None, _show_nothing)

    async def stored(self, session_id: str, roots: Sequence[str]) -> SessionEntry:
        """The stored session, if it belongs to the first of the folders."""
        entry = await self._store.find(session_id)
        await self.check_same(entry.cwd, roots[0])
        return entry

    async def load(
        self, request: OpenRequest, entry: SessionEntry, further: Sequence[str], setup: SessionSetup
    ) -> Opened:
        """Goes on with a stored session that does not live here. SessionElsewhere if it lives in another process."""
        log = await self._store.claim(entry.id)
        await self._store.set_roots(entry.id, further)
        persistence = await self._recovered(entry.id, log)
        await self.remove_outputs(entry.id)
        # With its folder as it is stored: the client may have written it in another way.
        roots = [entry.cwd, *further]
        live, face = await self._put_together(entry.id, request, roots, setup, persistence, is_shown=True)
        show = partial(live.faces.show, face, replay=request.replay, past=persistence.past)
        return Opened(live, face, entry, show)

    async def fork(self, request: OpenRequest) -> Opened:
        """A copy of what is stored of a session."""
        roots, setup = await self.roots(request), await request.set_up()
        new_id = _new_id()
        source = await self.stored(request.session_id, roots)
        log = await self._store.fork(source.id, new_id, source.cwd, roots[1:])
        persistence = await self._recovered(new_id, log)
        roots = [source.cwd, *roots[1:]]
        live, face = await self._put_together(new_id, request, roots, setup, persistence)
        return Opened(live, face, None, _show_nothing)

    async def face(self, client: Client, live: LiveSession) -> Face:
        """The face of a client that joins a session."""
        return client.face(live, await self._run(live.roots[0], lambda: client.files(live.id, live.roots)))

    # --- its folders

    async def roots(self, request: OpenRequest) -> list[str]:
        """The folders of a session: its own, then the further ones. RpcError unless each is there."""
        folders = [("cwd", request.cwd)]
        folders += [("additionalDirectories", path) for path in request.further]
        for name, path in folders:
            whole = absolute(name, path)
            if not await self._run(whole, partial(os.path.isdir, whole)):
                if await self._run(whole, partial(os.path.exists, whole)):
                    raise invalid_params(f"`{name}`: {path[:200]!r} is a file, not a folder")
                raise invalid_params(f"`{name}`: there is no folder {path[:200]!r}{_how_to_read(request)}")
        return [path for _, path in folders]

    async def check_same(self, stored: str, given: str) -> None:
        """RpcError unless the folder that a request gives is the one that the session is stored with."""
        if not await self._run(given, lambda: os.path.realpath(stored) == os.path.realpath(given)):
            raise invalid_params(f"`cwd`: the session belongs to {stored[:200]!r}, not to {given[:200]!r}")

    async def remove_outputs(self, session_id: str) -> None:
        """Removes what a session's commands have written, unless the file system does not answer."""
        with suppress(FileSystemSilent):
            await self._run(outputs_folder(session_id), lambda: remove_outputs(session_id))

    async def _run(self, folder: str, work: Callable[[], T]) -> T:
        """Does what looks at a folder beside the event loop. FileSystemSilent if its file system does not answer in
        time."""
        return await self._disks.setdefault(folder, Disk(folder)).run(work, DISK_TIMEOUT)

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
        self,
        session_id: str,
        request: OpenRequest,
        roots: Sequence[str],
        setup: SessionSetup,
        persistence: Persistence,
        *,
        is_shown: bool = False,
    ) -> tuple[LiveSession, Face]:
        """`is_shown`: the client is to be shown what was, and told of nothing before that."""
        workspace = await self._run(roots[0], lambda: LocalWorkspace(roots))
        files = await self._run(roots[0], lambda: request.client.files(session_id, workspace.roots))
        folder = await self._run(roots[0], lambda: FolderSetup(session_id, setup, workspace.roots, self._home))
        environ = request.environ
        seen = seen_by_commands(environ, setup.key_variables)
        commands = LocalCommands(self._fork_server, outputs_folder(session_id), seen)
        faces = Faces(workspace, commands, self._question_timeout(setup.settings.faces))
        environment = Environment(
            workspace=faces.workspace,
            commands=faces.commands,
            person=faces.person,
            audience=faces,
            fork_server=self._fork_server,
            environ=environ,
            servers=request.servers,
        )
        session = open_session(session_id, setup, environment, persistence, self._home, folder)
        faces.begin(SessionStream(session.journal, persistence.archive), session.turns)
        withheld = [name for name in environ if name not in seen]
        live = LiveSession(session, faces, workspace, commands, environ, withheld, setup.settings.terminal.use_client)
        face = request.client.face(live, files)
        if is_shown:
            faces.enter(face)
        else:
            face.sink.remember(persistence.past)
            faces.add(face)
        for problem in request.problems:
            session.tell(Notice("warning", problem))
        self._add(live)
        if any(isinstance(event, CallOpened) and event.kind == "execute" for event in persistence.past):
            faces.commands.on_begin()  # what it left behind may still run
        return live, face


def absolute(name: str, path: str) -> str:
    if not os.path.isabs(path) or "\0" in path:
        raise invalid_params(f"`{name}` must be an absolute path, got {path[:200]!r}")
    return path


def _how_to_read(request: OpenRequest) -> str:
    """What a person can still do whose stored session has lost its folder."""
    if not request.session_id:
        return ""
    return f". Create it again to go on there, or read what was said: crow sessions show {request.session_id[:100]}"


def _new_id() -> str:
    """Sortable by time, unguessable, safe as a file's name."""
    return f"{milliseconds_now():012x}-{os.urandom(8).hex()}"


async def _show_nothing() -> None: ...
