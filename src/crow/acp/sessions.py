"""The methods that are about sessions, for one connection, and the places that the connection has in sessions."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from crow.acp import translate, translate_session, wire
from crow.acp.capabilities import Capabilities
from crow.acp.connection import Connection, PendingRequest
from crow.acp.host import Client, Host, Seat, absolute
from crow.acp.jsonrpc import being_loaded, errors_as_answers, invalid_params, unknown_session
from crow.errors import SessionTaken
from crow.messages import StopReason
from crow.session.models import SessionSetup
from crow.session.session import RunningTurn, Session

PAGE_SIZE = 50

T = TypeVar("T")


class Sessions:
    """`set_up` gives what a session is opened with. The sessions themselves belong to the process: see `Host`.

    The methods do what must keep its order at once and return the rest to wait for.
    """

    def __init__(
        self,
        host: Host,
        set_up: Callable[[], Awaitable[SessionSetup]],
        connection: Connection,
        client: wire.InitializeRequest,
    ) -> None:
        self._host = host
        self._set_up = set_up
        self._connection = connection
        self.initialize(client)
        self._seats: dict[str, Seat] = {}
        """The places that the connection has, by session."""
        self._loading: dict[asyncio.Task[wire.LoadSessionResponse], str] = {}
        """The ids of sessions that are being loaded."""
        self._methods: dict[str, Callable[..., object]] = {
            "session/new": self._new,
            "session/load": partial(self._load, replay=True),
            "session/resume": partial(self._load, replay=False),
            "session/fork": self._fork,
            "session/list": self._list,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/prompt": self._prompt,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
        }

    def initialize(self, client: wire.InitializeRequest) -> None:
        """What the client says that it can do counts for the sessions that are opened from now on."""
        self._client = Client(Capabilities(self._connection, client, self._host.home), self._set_up)

    def answer(self, method: str, request: object, pending: PendingRequest) -> object:
        return self._methods[method](request, pending)

    def _find(self, session_id: str) -> Seat:
        """The connection's place in a session that lives."""
        if session_id in self._loading.values():
            raise being_loaded()
        seat = self._seat(session_id)
        if seat is None:
            raise unknown_session(session_id)
        return seat

    def _seat(self, session_id: str) -> Seat | None:
        seat = self._seats.get(session_id)
        if seat is None or self._host.find(session_id) is seat.session:
            return seat
        del self._seats[session_id]  # the session has ended here: another process went on with it, or deleted it
        return None

    def cancel(self, session_id: str) -> None:
        if session_id in self._seats:
            self._host.cancel(session_id)

    async def end(self) -> None:
        """The connection is gone: its faces leave. What nobody watches any longer is ended."""
        seats = list(self._seats.values())
        self._seats.clear()
        last = [seat.session for seat in seats if self._host.leave(seat)]
        await asyncio.gather(*(session.close() for session in last), return_exceptions=True)

    # --- opening

    async def _new(self, request: wire.NewSessionRequest, pending: PendingRequest) -> wire.NewSessionResponse:
        with errors_as_answers():
            seat = await self._host.create(request, self._client)
        return self._opened(seat, pending)

    def _load(
        self, request: wire.LoadSessionRequest, pending: PendingRequest, *, replay: bool
    ) -> Awaitable[wire.LoadSessionResponse]:
        """Goes on with a session, wherever it was last open. `replay`: the client is shown all of it first.

        Until that is answered, whatever comes for the session is refused: it would reach the one that is put away.
        """
        loading = asyncio.get_running_loop().create_task(self._load_or_join(request, pending, replay=replay))
        self._loading[loading] = request.session_id
        loading.add_done_callback(self._loading.pop)
        return loading

    async def _load_or_join(
        self, request: wire.LoadSessionRequest, pending: PendingRequest, *, replay: bool
    ) -> wire.LoadSessionResponse:
        session_id = request.session_id
        async with self._host.open_close_lock(session_id):
            with errors_as_answers(session_id):
                loaded = await self._host.load(request, self._client, self._seat(session_id), replay=replay)
            seat = self._seats[session_id] = loaded.seat
        try:
            await loaded.show()
        except BaseException:
            del self._seats[session_id]
            await self._host.left(seat)
            raise
        pending.afterwards(lambda: seat.sink.send_title(loaded.entry))
        self._announce(seat, pending)
        modes, options = seat.sink.state(seat.session.options.all())
        return wire.LoadSessionResponse(modes=modes, config_options=options)

    async def _fork(self, request: wire.LoadSessionRequest, pending: PendingRequest) -> wire.NewSessionResponse:
        with errors_as_answers(request.session_id):
            seat = await self._host.fork(request, self._client)
        return self._opened(seat, pending)

    def _opened(self, seat: Seat, pending: PendingRequest) -> wire.NewSessionResponse:
        self._seats[seat.session.id] = seat
        self._announce(seat, pending)
        modes, options = seat.sink.state(seat.session.options.all())
        return wire.NewSessionResponse(session_id=seat.session.id, modes=modes, config_options=options)

    def _announce(self, seat: Seat, pending: PendingRequest) -> None:
        """What the client can only understand once it has the answer."""
        pending.afterwards(lambda: seat.session.welcome(seat.face))
        pending.afterwards(seat.sink.send_usage)
        pending.afterwards(self._host.sweep)

    # --- working in a session

    def _prompt(self, request: wire.PromptRequest, pending: PendingRequest) -> Awaitable[wire.PromptResponse]:
        seat = self._find(request.session_id)
        sent = translate.sent_by(request.prompt)
        if not sent:
            raise invalid_params("the prompt is empty")
        with errors_as_answers():
            turn = seat.session.start_turn(sent, seat.face)
        pending.on_cancel = turn.cancel
        return self._outcome(seat.session, turn)

    async def _outcome(self, session: Session, turn: RunningTurn) -> wire.PromptResponse:
        stop_reason = await self._while_ours(session, turn.outcome())
        left_open = "" if stop_reason is StopReason.CANCELLED else session.left_open
        meta = wire.PromptMeta(crow=wire.PromptFacts(left_open=left_open)) if left_open else None
        return wire.PromptResponse(stop_reason=stop_reason.value, meta=meta)

    async def _set_mode(self, request: wire.SetModeRequest, pending: PendingRequest) -> wire.Empty:
        session = self._find(request.session_id).session
        await self._while_ours(session, session.options.choose("mode", request.mode_id))
        return wire.Empty()

    async def _set_option(
        self, request: wire.SetConfigOptionRequest, pending: PendingRequest
    ) -> wire.SetConfigOptionResponse:
        session = self._find(request.session_id).session
        await self._while_ours(session, session.options.choose(request.config_id, request.value))
        return wire.SetConfigOptionResponse(config_options=translate_session.config_options(session.options.all()))

    async def _while_ours(self, session: Session, work: Awaitable[T]) -> T:
        """A session that another process has gone on with is closed here, so that it can be loaded again."""
        with errors_as_answers(session.id):
            try:
                return await work
            except SessionTaken:
                await self._host.drop(session)
                raise

    # --- listing and ending

    async def _list(self, request: wire.ListSessionsRequest, pending: PendingRequest) -> wire.ListSessionsResponse:
        cwd = None if request.cwd is None else os.path.normpath(absolute("cwd", request.cwd))
        with errors_as_answers():
            page = await self._host.store.page(cwd, request.cursor or "", PAGE_SIZE)
        return wire.ListSessionsResponse(
            sessions=[translate_session.session_info(entry) for entry in page.entries],
            next_cursor=page.next_cursor or None,
        )

    def _close(self, request: wire.SessionRequest, pending: PendingRequest) -> Awaitable[wire.Empty]:
        """It is closed for whatever comes after this call. The last face that leaves ends the session: what that holds
        is let go of before the answer."""
        seat = self._find(request.session_id)
        del self._seats[request.session_id]
        return self._closed(seat.session, is_last=self._host.leave(seat))

    async def _closed(self, session: Session, *, is_last: bool) -> wire.Empty:
        if is_last:
            async with self._host.open_close_lock(session.id):
                with errors_as_answers(session.id):
                    await session.close()
        return wire.Empty()

    def _delete(self, request: wire.SessionRequest, pending: PendingRequest) -> Awaitable[wire.Empty]:
        """It is gone for whatever comes after this call."""
        session_id = request.session_id
        with errors_as_answers(session_id):
            session = self._host.take_away(session_id, self._seat(session_id))
        self._seats.pop(session_id, None)
        return self._deleted(session_id, session)

    async def _deleted(self, session_id: str, session: Session | None) -> wire.Empty:
        async with self._host.open_close_lock(session_id):
            with errors_as_answers(session_id):
                await self._host.delete(session_id, session)
        return wire.Empty()
