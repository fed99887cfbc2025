"""The methods that are about sessions. The sessions themselves are in `crow.acp.sessions`."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from crow.acp import translate, translate_session, wire
from crow.acp.connection import Call, Connection
from crow.acp.failures import as_rpc_error
from crow.acp.jsonrpc import ErrorCode, RpcError
from crow.acp.offers import Offers
from crow.acp.sessions import Sessions
from crow.errors import CrowError, SessionTaken, TurnRunning
from crow.messages import StopReason
from crow.session.models import SessionSetup
from crow.session.running import RunningTurn
from crow.session.session import Session

T = TypeVar("T")


class SessionMethods:
    """Handlers do what must keep its order at once and return the rest to wait for."""

    def __init__(
        self,
        home: str,
        environ: Mapping[str, str],
        set_up: Callable[[], Awaitable[SessionSetup]],
        connection: Connection,
        client: wire.InitializeRequest,
    ) -> None:
        self._sessions = Sessions(home, environ, set_up)
        self._home = home
        self._connection = connection
        self._offers = Offers(connection, client, home)
        self._handlers: dict[str, Callable[..., object]] = {
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/fork": self._fork,
            "session/list": self._list,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/prompt": self._prompt,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
        }

    def meet(self, client: wire.InitializeRequest) -> None:
        """The client has introduced itself once more: what it offers now counts for sessions that are opened later."""
        self._offers = Offers(self._connection, client, self._home)

    def answer(self, method: str, request: object, call: Call) -> object:
        return self._handlers[method](request, call)

    def cancel(self, session_id: str) -> None:
        self._sessions.cancel(session_id)

    async def end(self) -> None:
        """Ends every turn and lets go of what the sessions hold."""
        await self._sessions.end()

    def _new(self, request: wire.NewSessionRequest, call: Call) -> object:
        return self._sessions.new(request, self._offers, call)

    def _load(self, request: wire.LoadSessionRequest, call: Call) -> object:
        return self._sessions.load(request, self._offers, call, replay=True)

    def _resume(self, request: wire.LoadSessionRequest, call: Call) -> object:
        return self._sessions.load(request, self._offers, call, replay=False)

    def _fork(self, request: wire.LoadSessionRequest, call: Call) -> object:
        return self._sessions.fork(request, self._offers, call)

    def _list(self, request: wire.ListSessionsRequest, call: Call) -> object:
        return self._sessions.page(request)

    def _close(self, request: wire.SessionRequest, call: Call) -> object:
        return self._sessions.close(request.session_id)

    def _delete(self, request: wire.SessionRequest, call: Call) -> object:
        return self._sessions.delete(request.session_id)

    def _prompt(self, request: wire.PromptRequest, call: Call) -> object:
        session = self._sessions.find(request.session_id)
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
        left_open = "" if stop_reason is StopReason.CANCELLED else session.left_open
        meta = wire.PromptMeta(crow=wire.PromptFacts(left_open=left_open)) if left_open else None
        return wire.PromptResponse(stop_reason=stop_reason.value, meta=meta)

    async def _set_mode(self, request: wire.SetModeRequest, call: Call) -> wire.Empty:
        session = self._sessions.find(request.session_id)
        await self._while_ours(session, session.options.choose("mode", request.mode_id))
        return wire.Empty()

    async def _set_option(self, request: wire.SetConfigOptionRequest, call: Call) -> wire.SetConfigOptionResponse:
        session = self._sessions.find(request.session_id)
        await self._while_ours(session, session.options.choose(request.config_id, request.value))
        return wire.SetConfigOptionResponse(config_options=translate_session.config_options(session.options.all()))

    async def _while_ours(self, session: Session, work: Awaitable[T]) -> T:
        """A session that another process has gone on with is closed here, so that it can be loaded again."""
        try:
            return await work
        except SessionTaken as taken:
            await self._sessions.drop(session)
            raise as_rpc_error(taken) from taken
        except CrowError as error:
            raise as_rpc_error(error) from error
