"""The handshake of a connection: the answers to `initialize`, `authenticate` and `logout`, and which log-ins a client
is offered. `crow.acp.sessions` has all other methods.

Those, and nearly all of Crow behind them, are loaded while the client reads the answer to `initialize`.
"""

import asyncio
import gc
import importlib
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from crow import __version__
from crow.acp import crow_meta, wire
from crow.config.discovery import HOW_TO_SET_UP
from crow.errors import SetupNeeded
from crow.rpc.connection import Connection, PendingRequest, Route
from crow.rpc.jsonrpc import ErrorCode, RpcError, errors_as_answers, invalid_params
from crow.session.models import SessionSetup, SetupReader

if TYPE_CHECKING:
    from crow.acp.inbox import Inbox
    from crow.acp.sessions import Sessions
    from crow.live.host import Host

logger = logging.getLogger(__name__)

LEAVE_TIMEOUT = 1.5
"""Seconds that a client's own sessions get to end, before those that others watch are finished."""
TRY_WITHOUT_KEY = "crow-demo"
CONFIGURED = "crow-configured"
LOGIN = "crow-login"

SESSION_METHODS = {
    "session/new": wire.NewSessionRequest,
    "session/load": wire.LoadSessionRequest,
    "session/resume": wire.LoadSessionRequest,
    "session/fork": wire.LoadSessionRequest,
    "session/list": wire.ListSessionsRequest,
    "session/close": wire.SessionRequest,
    "session/delete": wire.SessionRequest,
    "session/status": wire.SessionRequest,
    "session/prompt": wire.PromptRequest,
    "_session/steering": wire.PromptRequest,
    "session/set_mode": wire.SetModeRequest,
    "session/set_config_option": wire.SetConfigOptionRequest,
}
"""The requests that `Sessions` answers, with the types of their parameters."""
EXTENSIONS = (
    *("_crow/inbox", "_crow/search", "_crow/files", "_crow/changes", "_crow/undo"),
    *("_crow/output", "_crow/stop", "_crow/input", "_crow/input/open", "_crow/input/size"),
)
"""The requests that are Crow's own. Their parameters' types are loaded with the first that comes."""


class AttachedRoute(NamedTuple):
    """A method that other processes may use on this one's socket. What handles it is told whether they are trusted."""

    params: type[Any]
    handle: Callable[[Any, bool], object]


OnInitialize = Callable[[wire.InitializeRequest], wire.RelayFacts | msgspec.UnsetType]
"""Called with `initialize`: gives what its answer says in `_meta.crow`, or raises RpcError."""


class LazyHost:
    """The host of a process, made when the first of its connections needs it: nearly all of Crow is behind it."""

    def __init__(self, home: str, environ: Mapping[str, str]) -> None:
        self.home = home
        self.environ = environ
        self.uses_web = False
        """Whether new sessions may live in a `crow web` that runs."""
        self.outlives_clients = False
        """Whether sessions go on without a client."""
        self.attached_routes: Mapping[str, AttachedRoute] = {}
        """What else other processes may ask for, on this one's socket."""
        self._host: Host | None = None
        self._inbox: Inbox | None = None
        self._has_pool = False

    def get(self) -> "Host":
        if self._host is None:
            from crow.live.host import Host

            self.use_pool()
            self._host = Host(self.home, self.environ, self._serve_attached, outlives_clients=self.outlives_clients)
            self._host.uses_web = self.uses_web
        return self._host

    def inbox(self) -> "Inbox":
        """What all living sessions do, once somebody wants to know of all of them."""
        if self._inbox is None:
            from crow.acp.inbox import Inbox

            self._inbox = Inbox(self.get())
        return self._inbox

    def _serve_attached(self, on_initialize: Callable[[], None], is_trusted: bool) -> "Agent":
        from crow.acp.owner_link import facts_for

        def facts(request: wire.InitializeRequest) -> wire.RelayFacts:
            found = facts_for(request.meta)
            on_initialize()
            return found

        return Agent(self, facts, self.attached_routes, is_trusted=is_trusted)

    def use_pool(self) -> None:
        """Gives the event loop threads that it can do without."""
        from crow.threads import Pool

        if not self._has_pool:
            self._has_pool = True
            asyncio.get_running_loop().set_default_executor(Pool(thread_name_prefix="crow"))

    @property
    def is_made(self) -> bool:
        return self._host is not None

    async def finish(self, agent: "Agent") -> None:
        """The process is to end: turns that others watch are finished first. `agent` is that of its own client, which
        has gone."""
        if self._host is not None and self._host.ownership.has_others(agent.sessions):
            await asyncio.wait([asyncio.ensure_future(agent.close())], timeout=LEAVE_TIMEOUT)
            await self._host.ownership.hand_over()

    async def end(self) -> None:
        """Ends every turn and lets go of what the sessions hold."""
        if self._host is not None:
            await self._host.close()


class Agent:
    """One connection's worth of Crow. Handlers do what must keep its order at once and return the rest to wait for."""

    def __init__(
        self,
        host: LazyHost,
        on_initialize: OnInitialize = lambda _: msgspec.UNSET,
        routes: Mapping[str, AttachedRoute] | None = None,
        *,
        is_trusted: bool = True,
    ) -> None:
        """`on_initialize` gives the `_meta.crow` of the answer to `initialize`, or raises the error to answer with.
        `routes` are further requests that are served, if this is the agent of another process. A client that is not
        trusted watches sessions only."""
        self._is_trusted = is_trusted
        self._is_attached = routes is not None
        self._routes = routes or {}
        self._environ = host.environ
        self._on_initialize = on_initialize
        self._host = host
        self._models = SetupReader(host.home, host.environ)
        self._logged_out = False
        self._connection: Connection | None = None
        self._client: wire.InitializeRequest | None = None
        """What the client said of itself; None before `initialize`."""
        self._initialize_params = b""
        """The same, as it came."""
        self._sessions: Sessions | None = None

    @property
    def sessions(self) -> "Sessions | None":
        return self._sessions

    def connect(self, reader: int, writer: int) -> Connection:
        requests = {
            "initialize": Route(wire.InitializeRequest, self._initialize),
            "authenticate": Route(wire.AuthenticateRequest, self._authenticate),
            "logout": Route(wire.Empty, self._logout),
        }
        for method, params in SESSION_METHODS.items():
            requests[method] = Route(params, partial(self._serve_session, method))
        for method in EXTENSIONS:
            requests[method] = Route(msgspec.Raw, partial(self._serve_extension, method))
        for method, route in self._routes.items():
            requests[method] = Route(route.params, partial(self._serve_attached_route, route))
        notifications = {"session/cancel": Route(wire.SessionRequest, self._cancel)}
        self._connection = Connection(reader, writer, requests, notifications)
        return self._connection

    async def close(self) -> None:
        """The connection is gone: it leaves its sessions, and those that nobody else watches are ended."""
        if self._sessions is not None:
            await self._sessions.end()

    # --- the connection

    def _initialize(self, request: wire.InitializeRequest, pending: PendingRequest) -> wire.InitializeResponse:
        # We speak one version: whatever was asked for, this is the newest that we can offer.
        if self._connection is None:
            raise RuntimeError("the agent serves no connection yet")
        relay = self._on_initialize(request)
        self._initialize_params = bytes(pending.params)
        client = request.client_capabilities or wire.ClientCapabilities()
        self._client = request
        if self._is_attached:
            self._use_environ_of(request)
        if self._sessions is None:
            pending.afterwards(self._load_sessions)
        else:
            self._sessions.initialize(request, self._initialize_params)
        here, extensions = wire.Empty(), wire.CapabilityMeta()
        return wire.InitializeResponse(
            protocol_version=wire.PROTOCOL_VERSION,
            agent_capabilities=wire.AgentCapabilities(
                load_session=True,
                prompt_capabilities=wire.PromptCapabilities(
                    image=self._models.may_see(), audio=self._models.may_hear(), embedded_context=True
                ),
                session_capabilities=wire.SessionCapabilities(
                    list=here,
                    resume=here,
                    fork=here,
                    close=here,
                    delete=here,
                    status=here,
                    additional_directories=here,
                ),
                mcp_capabilities=wire.McpCapabilities(http=True, sse=True),
                auth=wire.AgentAuthCapabilities(logout=here),
                meta=extensions,
            ),
            auth_methods=_auth_methods(client),
            agent_info=wire.Implementation(name="crow", title="Crow", version=__version__),
            # Most clients look for steering here, some among the capabilities.
            meta=wire.InitializeMeta(crow=relay),
        )

    def _use_environ_of(self, request: wire.InitializeRequest) -> None:
        """Sessions of an editor in another process are opened with the environment of that process, keys included."""
        from crow.acp.owner_link import environ_of

        environ = environ_of(crow_meta.read(wire.ClientFacts, request.meta))
        if environ:
            self._environ = environ
            self._models = SetupReader(self._host.home, environ)

    def _authenticate(self, request: wire.AuthenticateRequest, pending: PendingRequest) -> object:
        self._initialized()
        if request.method_id == TRY_WITHOUT_KEY:
            self._models.use_demo()
            self._logged_out = False
            return wire.Empty()
        if request.method_id == CONFIGURED:
            self._models.use_configured()
            self._logged_out = False
            return self._read_configuration()
        if request.method_id == LOGIN:
            raise invalid_params(f"the method `{LOGIN}` runs in a terminal, not through `authenticate`")
        raise invalid_params(f"unknown auth method {request.method_id[:100]!r}")

    async def _read_configuration(self) -> wire.Empty:
        with errors_as_answers():
            await self._models.setup()
        return wire.Empty()

    def _logout(self, request: wire.Empty, pending: PendingRequest) -> wire.Empty:
        """From now on no session is opened until `authenticate`; those that are open go on. No stored key is touched:
        it is the person's, and may serve other editors.
        """
        self._initialized()
        self._models.use_configured()
        self._logged_out = True
        return wire.Empty()

    async def _setup(self) -> SessionSetup:
        if self._logged_out:
            raise SetupNeeded("You have logged out.", remedy=HOW_TO_SET_UP)
        return await self._models.setup()

    # --- sessions

    def _load_sessions(self) -> None:
        """In a thread; what the client sends meanwhile waits its turn, and the event loop is free."""
        if self._connection is not None and not self._host.is_made:
            self._host.use_pool()
            loading = asyncio.get_running_loop().run_in_executor(None, _import_sessions)
            self._connection.hold_until(loading)

    def _serve_session(self, method: str, request: object, pending: PendingRequest) -> object:
        return self._get_sessions().answer(method, request, pending)

    def _serve_extension(self, method: str, params: msgspec.Raw, pending: PendingRequest) -> object:
        return self._get_sessions().extensions.answer(method, params)

    def _serve_attached_route(self, route: AttachedRoute, request: object, pending: PendingRequest) -> object:
        self._initialized()
        return route.handle(request, self._is_trusted)

    def _cancel(self, notification: wire.SessionRequest) -> None:
        if self._sessions is not None:
            self._sessions.cancel(notification.session_id)

    def _get_sessions(self) -> "Sessions":
        client = self._initialized()
        if self._sessions is None:
            from crow.acp.sessions import Sessions

            if self._connection is None:
                raise RuntimeError("the agent serves no connection yet")
            self._sessions = Sessions(
                self._host.get(),
                self._host.inbox,
                self._setup,
                self._connection,
                client,
                self._initialize_params,
                self._environ,
                is_trusted=self._is_trusted,
            )
        return self._sessions

    def _initialized(self) -> wire.InitializeRequest:
        if self._client is None:
            raise RpcError(ErrorCode.INVALID_REQUEST, "Invalid request: `initialize` must come first")
        return self._client


def _import_sessions() -> None:
    try:
        importlib.import_module("crow.acp.sessions")
    except Exception:
        logger.exception("sessions could not be loaded")  # and fail again where they are called
    finally:
        gc.freeze()  # what was loaded stays, and need not be looked through again and again
        gc.enable()


def _auth_methods(client: wire.ClientCapabilities) -> list[wire.AuthMethod]:
    """The configured model comes first: some clients take the first method without asking."""
    methods = [
        wire.AuthMethod(
            id=CONFIGURED,
            name="I have configured it",
            description="Reads the configuration and the environment's keys again.",
        ),
        wire.AuthMethod(
            id=TRY_WITHOUT_KEY,
            name="Try without a key",
            description="Talk to a scripted model that shows how Crow works. Nothing leaves this machine.",
        ),
    ]
    if client.auth is not None and client.auth.terminal:
        methods.append(
            wire.AuthMethod(
                type="terminal",
                id=LOGIN,
                name="Log in",
                description="Choose a provider and a model in a terminal; the key is tried and stored.",
                args=["login"],
            )
        )
    return methods
