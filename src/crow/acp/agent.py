"""The agent as a client sees it: the protocol's methods. The sessions behind them are in `crow.acp.sessions`."""

from collections.abc import Awaitable, Mapping
from typing import TypeVar

from crow import __version__
from crow.acp import translate, translate_session, wire
from crow.acp.connection import Call, Connection, Route
from crow.acp.failures import answered, as_rpc_error
from crow.acp.jsonrpc import ErrorCode, RpcError
from crow.acp.offers import Offers
from crow.acp.sessions import Sessions
from crow.config.discovery import HOW_TO_SET_UP
from crow.errors import CrowError, SessionTaken, SetupNeeded, TurnRunning
from crow.session.models import Models, SessionSetup
from crow.session.running import RunningTurn
from crow.session.session import Session

T = TypeVar("T")

TRY_WITHOUT_KEY = "crow-demo"
CONFIGURED = "crow-configured"
LOGIN = "crow-login"


class Agent:
    """One connection's worth of Crow. Handlers do what must keep its order at once and return the rest to wait for."""

    def __init__(self, home: str, environ: Mapping[str, str]) -> None:
        self._models = Models(home, environ)
        self._logged_out = False
        self._sessions = Sessions(home, environ, self._setup)
        self._connection: Connection | None = None
        self._offers: Offers | None = None
        """What the client can do; None before `initialize`."""

    def connect(self, reader: int, writer: int) -> Connection:
        requests = {
            "initialize": Route(wire.InitializeRequest, self._initialize),
            "authenticate": Route(wire.AuthenticateRequest, self._authenticate),
            "logout": Route(wire.LogoutRequest, self._logout),
            "session/new": Route(wire.NewSessionRequest, self._new_session),
            "session/load": Route(wire.LoadSessionRequest, self._load_session),
            "session/resume": Route(wire.LoadSessionRequest, self._resume_session),
            "session/fork": Route(wire.LoadSessionRequest, self._fork_session),
            "session/list": Route(wire.ListSessionsRequest, self._list_sessions),
            "session/close": Route(wire.SessionRequest, self._close_session),
            "session/delete": Route(wire.SessionRequest, self._delete_session),
            "session/prompt": Route(wire.PromptRequest, self._prompt),
            "session/set_mode": Route(wire.SetModeRequest, self._set_mode),
            "session/set_config_option": Route(wire.SetConfigOptionRequest, self._set_option),
        }
        notifications = {"session/cancel": Route(wire.CancelNotification, self._cancel)}
        self._connection = Connection(reader, writer, requests, notifications)
        return self._connection

    async def close(self) -> None:
        """Ends every turn and lets go of what the sessions hold."""
        await self._sessions.end()

    # --- the connection

    def _initialize(self, request: wire.InitializeRequest, call: Call) -> wire.InitializeResponse:
        # We speak one version: whatever was asked for, this is the newest that we can offer.
        if self._connection is None:
            raise RuntimeError("the agent serves no connection yet")
        client = request.client_capabilities or wire.ClientCapabilities()
        self._offers = Offers(self._connection, client)
        here = wire.Empty()
        return wire.InitializeResponse(
            protocol_version=wire.PROTOCOL_VERSION,
            agent_capabilities=wire.AgentCapabilities(
                load_session=True,
                prompt_capabilities=wire.PromptCapabilities(
                    image=self._models.may_see(), audio=self._models.may_hear(), embedded_context=True
                ),
                session_capabilities=wire.SessionCapabilities(
                    list=here, resume=here, fork=here, close=here, delete=here, additional_directories=here
                ),
                mcp_capabilities=wire.McpCapabilities(http=True, sse=True),
                auth=wire.AgentAuthCapabilities(logout=here),
            ),
            auth_methods=_auth_methods(client),
            agent_info=wire.Implementation(name="crow", title="Crow", version=__version__),
        )

    def _authenticate(self, request: wire.AuthenticateRequest, call: Call) -> object:
        self._offered()
        if request.method_id == TRY_WITHOUT_KEY:
            self._models.use_demo()
            self._logged_out = False
            return wire.Empty()
        if request.method_id == CONFIGURED:
            self._models.use_configured()
            self._logged_out = False
            return self._read_configuration()
        if request.method_id == LOGIN:
            text = f"Invalid params: the method `{LOGIN}` runs in a terminal, not through `authenticate`"
            raise RpcError(ErrorCode.INVALID_PARAMS, text)
        raise RpcError(ErrorCode.INVALID_PARAMS, f"Invalid params: unknown auth method {request.method_id[:100]!r}")

    async def _read_configuration(self) -> wire.Empty:
        with answered():
            await self._models.setup()
        return wire.Empty()

    def _logout(self, request: wire.LogoutRequest, call: Call) -> wire.Empty:
        """From now on no session is opened until `authenticate`; those that are open go on. No stored key is touched:
        it is the person's, and may serve other editors.
        """
        self._offered()
        self._models.use_configured()
        self._logged_out = True
        return wire.Empty()

    async def _setup(self) -> SessionSetup:
        if self._logged_out:
            raise SetupNeeded("You have logged out.", remedy=HOW_TO_SET_UP)
        return await self._models.setup()

    # --- sessions

    def _new_session(self, request: wire.NewSessionRequest, call: Call) -> object:
        return self._sessions.new(request, self._offered(), call)

    def _load_session(self, request: wire.LoadSessionRequest, call: Call) -> object:
        return self._sessions.load(request, self._offered(), call, replay=True)

    def _resume_session(self, request: wire.LoadSessionRequest, call: Call) -> object:
        return self._sessions.load(request, self._offered(), call, replay=False)

    def _fork_session(self, request: wire.LoadSessionRequest, call: Call) -> object:
        return self._sessions.fork(request, self._offered(), call)

    def _list_sessions(self, request: wire.ListSessionsRequest, call: Call) -> object:
        self._offered()
        return self._sessions.page(request)

    def _close_session(self, request: wire.SessionRequest, call: Call) -> object:
        self._offered()
        return self._sessions.close(request.session_id)

    def _delete_session(self, request: wire.SessionRequest, call: Call) -> object:
        self._offered()
        return self._sessions.delete(request.session_id)

    def _prompt(self, request: wire.PromptRequest, call: Call) -> object:
        session = self._session(request.session_id)
        sent = translate.sent_by(request.prompt)
        if not sent:
            raise RpcError(ErrorCode.INVALID_PARAMS, "Invalid params: the prompt is empty")
        try:
            turn = session.start_turn(sent)
        except TurnRunning as running:
            raise as_rpc_error(running) from None
        call.on_cancel = turn.cancel
        return self._outcome(session, turn)

    async def _outcome(self, session: Session, turn: RunningTurn) -> wire.PromptResponse:
        stop_reason = await self._while_ours(session, turn.outcome())
        return wire.PromptResponse(stop_reason=stop_reason.value)

    def _cancel(self, notification: wire.CancelNotification) -> None:
        self._sessions.cancel(notification.session_id)

    async def _set_mode(self, request: wire.SetModeRequest, call: Call) -> wire.Empty:
        session = self._session(request.session_id)
        await self._while_ours(session, session.options.choose("mode", request.mode_id))
        return wire.Empty()

    async def _set_option(self, request: wire.SetConfigOptionRequest, call: Call) -> wire.SetConfigOptionResponse:
        session = self._session(request.session_id)
        await self._while_ours(session, session.options.choose(request.config_id, request.value))
        return wire.SetConfigOptionResponse(config_options=translate_session.config_options(session.options.all()))

    # --- what the handlers stand on

    def _offered(self) -> Offers:
        if self._offers is None:
            raise RpcError(ErrorCode.INVALID_REQUEST, "Invalid request: `initialize` must come first")
        return self._offers

    def _session(self, session_id: str) -> Session:
        self._offered()
        return self._sessions.find(session_id)

    async def _while_ours(self, session: Session, work: Awaitable[T]) -> T:
        """A session that another process has gone on with is closed here, so that it can be loaded again."""
        try:
            return await work
        except SessionTaken as taken:
            await self._sessions.drop(session)
            raise as_rpc_error(taken) from taken
        except CrowError as error:
            raise as_rpc_error(error) from error


def _auth_methods(client: wire.ClientCapabilities) -> list[wire.AuthMethod]:
    methods = [
        wire.AuthMethod(
            id=TRY_WITHOUT_KEY,
            name="Try without a key",
            description="Talk to a scripted model that shows how Crow works. Nothing leaves this machine.",
        ),
        wire.AuthMethod(
            id=CONFIGURED,
            name="I have configured it",
            description="Reads the configuration and the environment's keys again.",
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
