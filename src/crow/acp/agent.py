"""The agent as a client sees it: the protocol's methods, and the sessions behind them."""

import asyncio
import logging
import os
import time
from collections.abc import Mapping

from crow import __version__
from crow.acp import translate, wire
from crow.acp.connection import Call, Connection, Route
from crow.acp.failures import as_rpc_error
from crow.acp.jsonrpc import ErrorCode, RpcError
from crow.acp.offers import Offers
from crow.errors import CrowError
from crow.events import Notice
from crow.session.models import ModelChoice, Models
from crow.session.open import open_session
from crow.session.session import Session, Turn
from crow.workspace.processes import Keeper

logger = logging.getLogger(__name__)

TRY_WITHOUT_KEY = "crow-demo"
CONFIGURED = "crow-configured"
LOGIN = "crow-login"


class Agent:
    """One connection's worth of Crow. Handlers do what must keep its order at once and return the rest to wait for."""

    def __init__(self, home: str, environ: Mapping[str, str]) -> None:
        self._models = Models(home, environ)
        self._home = home
        self._environ = environ
        self._keeper = Keeper()
        self._sessions: dict[str, Session] = {}
        self._client: wire.ClientCapabilities | None = None
        self._connection: Connection | None = None

    def connect(self, reader: int, writer: int) -> Connection:
        requests = {
            "initialize": Route(wire.InitializeRequest, self._initialize),
            "authenticate": Route(wire.AuthenticateRequest, self._authenticate),
            "session/new": Route(wire.NewSessionRequest, self._new_session),
            "session/prompt": Route(wire.PromptRequest, self._prompt),
            "session/close": Route(wire.CloseSessionRequest, self._close_session),
        }
        notifications = {"session/cancel": Route(wire.CancelNotification, self._cancel)}
        self._connection = Connection(reader, writer, requests, notifications)
        return self._connection

    async def close(self) -> None:
        """Ends every turn and lets go of what the sessions hold."""
        sessions = list(self._sessions.values())
        self._sessions.clear()
        await asyncio.gather(*(session.close() for session in sessions), return_exceptions=True)
        await self._keeper.close()

    # --- the connection

    def _initialize(self, request: wire.InitializeRequest, call: Call) -> wire.InitializeResponse:
        # We speak one version: whatever was asked for, this is the newest that we can offer.
        self._client = request.client_capabilities or wire.ClientCapabilities()
        return wire.InitializeResponse(
            protocol_version=wire.PROTOCOL_VERSION,
            agent_capabilities=wire.AgentCapabilities(
                prompt_capabilities=wire.PromptCapabilities(
                    image=self._models.may_see(), audio=self._models.may_hear(), embedded_context=True
                ),
                session_capabilities=wire.SessionCapabilities(additional_directories=wire.Empty(), close=wire.Empty()),
            ),
            auth_methods=_auth_methods(self._client),
            agent_info=wire.Implementation(name="crow", title="Crow", version=__version__),
        )

    def _authenticate(self, request: wire.AuthenticateRequest, call: Call) -> object:
        self._need_initialize()
        if request.method_id == TRY_WITHOUT_KEY:
            self._models.use_demo()
            return wire.Empty()
        if request.method_id == CONFIGURED:
            self._models.use_configured()
            return self._read_configuration()
        if request.method_id == LOGIN:
            text = f"Invalid params: the method `{LOGIN}` runs in a terminal, not through `authenticate`"
            raise RpcError(ErrorCode.INVALID_PARAMS, text)
        raise RpcError(ErrorCode.INVALID_PARAMS, f"Invalid params: unknown auth method {request.method_id[:100]!r}")

    async def _read_configuration(self) -> wire.Empty:
        try:
            await self._models.choose()
        except CrowError as error:
            raise as_rpc_error(error) from error
        return wire.Empty()

    # --- sessions

    def _new_session(self, request: wire.NewSessionRequest, call: Call) -> object:
        self._need_initialize()
        roots = [_folder("cwd", request.cwd)]
        roots += [_folder("additionalDirectories", path) for path in request.additional_directories or []]
        return self._open_session(roots, request.mcp_servers or [], call)

    async def _open_session(self, roots: list[str], servers: list[wire.McpServer], call: Call) -> object:
        try:
            choice = await self._models.choose()
            session = self._create_session(roots, choice)
        except CrowError as error:
            raise as_rpc_error(error) from error
        call.afterwards(lambda: self._after_opening(session, choice, servers))
        return wire.NewSessionResponse(session_id=session.id)

    def _create_session(self, roots: list[str], choice: ModelChoice) -> Session:
        offers = Offers(self._connected(), self._client or wire.ClientCapabilities())
        session_id = _session_id()
        around = offers.surround(session_id, roots, choice, self._keeper, self._environ)
        session = open_session(session_id, choice, around, home=self._home)
        self._sessions[session_id] = session
        return session

    def _after_opening(self, session: Session, choice: ModelChoice, servers: list[wire.McpServer]) -> None:
        if servers:
            names = ", ".join(server.name for server in servers)
            session.tell(Notice("warning", f"MCP servers are not supported yet and were not started: {names}."))
        choice.warm_up()

    def _close_session(self, request: wire.CloseSessionRequest, call: Call) -> object:
        session = self._session(request.session_id)
        del self._sessions[session.id]
        return _closed(session)

    def _prompt(self, request: wire.PromptRequest, call: Call) -> object:
        session = self._session(request.session_id)
        sent = translate.sent_by(request.prompt)
        if not sent:
            raise RpcError(ErrorCode.INVALID_PARAMS, "Invalid params: the prompt is empty")
        try:
            turn = session.start_turn(sent)
        except CrowError as busy:
            raise RpcError(ErrorCode.INVALID_REQUEST, str(busy), {"details": str(busy)}) from None
        call.on_cancel = turn.cancel
        return _outcome(turn)

    def _cancel(self, notification: wire.CancelNotification) -> None:
        session = self._sessions.get(notification.session_id)
        if session is not None:
            session.cancel()

    # --- what the handlers stand on

    def _need_initialize(self) -> None:
        if self._client is None:
            raise RpcError(ErrorCode.INVALID_REQUEST, "Invalid request: `initialize` must come first")

    def _session(self, session_id: str) -> Session:
        self._need_initialize()
        session = self._sessions.get(session_id)
        if session is None:
            shown = session_id[:100]
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, f"There is no open session {shown!r}", {"uri": shown})
        return session

    def _connected(self) -> Connection:
        if self._connection is None:
            raise RuntimeError("the agent serves no connection yet")
        return self._connection


async def _closed(session: Session) -> wire.Empty:
    await session.close()
    return wire.Empty()


async def _outcome(turn: Turn) -> wire.PromptResponse:
    try:
        stop_reason = await turn.outcome()
    except CrowError as error:
        raise as_rpc_error(error) from error
    return wire.PromptResponse(stop_reason=stop_reason.value)


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


def _folder(name: str, path: str) -> str:
    if not os.path.isabs(path) or "\0" in path:
        raise RpcError(
            ErrorCode.INVALID_PARAMS, f"Invalid params: `{name}` must be an absolute path, got {path[:200]!r}"
        )
    if not os.path.isdir(path):
        raise RpcError(ErrorCode.INVALID_PARAMS, f"Invalid params: `{name}`: there is no folder {path[:200]!r}")
    return path


def _session_id() -> str:
    """Sortable by time, unguessable, safe as a file's name."""
    return f"{time.time_ns() // 1_000_000:012x}-{os.urandom(8).hex()}"
