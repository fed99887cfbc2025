"""The `session/…` methods of one connection (new, load, prompt, steer, cancel, set a mode, list, close, delete), and
which sessions it takes part in.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import msgspec

from crow.acp import crow_meta, translate, translate_session, wire
from crow.acp.capabilities import Capabilities
from crow.acp.host import Host
from crow.acp.ownership import all_ended
from crow.acp.session_folders import absolute
from crow.acp.session_opening import Loaded, OpeningClient, Seat
from crow.acp.web_home import web_home
from crow.errors import NothingToSteer, SessionElsewhere, SessionTaken
from crow.events import Notice, Sent, SteeringLeftOver
from crow.messages import StopReason
from crow.rpc.connection import ANSWERED, Answered, Connection, PendingRequest
from crow.rpc.jsonrpc import RpcError, being_loaded, errors_as_answers, invalid_params, released, unknown_session
from crow.session.faces.after_takeover import Seen
from crow.session.models import SessionSetup
from crow.session.running_turn import RunningTurn
from crow.session.session import Session

if TYPE_CHECKING:
    from crow.acp.extensions import Extensions
    from crow.acp.relay import Relay

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
        initialize_params: bytes,
        environ: Mapping[str, str],
        *,
        is_trusted: bool,
    ) -> None:
        """`initialize_params` are `client` as it came. `environ` is what sessions are opened with. A client that is not
        trusted only watches the sessions that it has not begun itself."""
        self._host = host
        self._environ = environ
        self._set_up = set_up
        self._connection = connection
        self._relay: Relay | None = None
        """To the sessions that live in other processes; made for the first one."""
        self._extensions: Extensions | None = None
        self.initialize(client, initialize_params)
        host.ownership.watchers.add(self)
        self._is_trusted = is_trusted
        self._trusted_in: set[str] = set()
        """The sessions that it has begun, or whose code was typed there."""
        self._seats: dict[str, Seat] = {}
        """The places that the connection has, by session."""
        self._loading: dict[asyncio.Task[wire.LoadSessionResponse | Answered], str] = {}
        """The ids of sessions that are being loaded."""
        self._methods: dict[str, Callable[..., object]] = {
            "session/new": self._new,
            "session/load": partial(self._load, replay=True),
            "session/resume": partial(self._load, replay=False),
            "session/fork": self._fork,
            "session/list": self._list,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/status": self._status,
            "session/prompt": self._prompt,
            "_session/steering": self._steer,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
        }

    def initialize(self, client: wire.InitializeRequest, initialize_params: bytes) -> None:
        """What the client says that it can do counts for the sessions that are opened from now on."""
        self._initialize_params = initialize_params
        facts = crow_meta.read(wire.ClientFacts, client.meta)
        self._is_relay = facts.attach > 0
        """The client is another Crow that passes its editor's messages on."""
        self._may_live_elsewhere = self._host.uses_web and not facts.brief
        """Whether its new sessions may live in another process."""
        if self._relay is not None:
            self._relay.initialize(initialize_params)
        capabilities = Capabilities(self._connection, client, self._host.home)
        self._client = OpeningClient(capabilities, self._set_up, self._environ)

    def answer(self, method: str, request: object, pending: PendingRequest) -> object:
        return self._methods[method](request, pending)

    @property
    def extensions(self) -> "Extensions":
        """The methods that are Crow's own."""
        if self._extensions is None:
            from crow.acp.extensions import Extensions

            self._extensions = Extensions(self._host, self._connection, self._find, self._find_trusted)
        return self._extensions

    def _find(self, session_id: str) -> Seat:
        """The connection's place in a session that lives."""
        if session_id in self._loading.values():
            raise being_loaded()
        seat = self._seat(session_id)
        if seat is None and self._is_relay and self._host.find(session_id) is None:
            raise released(session_id)
        if seat is None:
            raise unknown_session(session_id)
        return seat

    def _find_trusted(self, session_id: str) -> Seat:
        """The same; RpcError if the client may watch only."""
        seat = self._find(session_id)
        with errors_as_answers():
            seat.session.faces.check_trusted(seat.face)
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
        self._host.ownership.watchers.discard(self)
        if self._extensions is not None:
            self._extensions.close()
        if self._relay is not None:
            await self._relay.close()
        seats = list(self._seats.values())
        self._seats.clear()
        last = [seat.session for seat in seats if self._host.leave(seat)]
        # Whoever loads one of them at this moment waits until it is closed: it never has two histories.
        await all_ended(*(self._dropped(session) for session in last))

    # --- opening

    def _new(
        self, request: wire.NewSessionRequest, pending: PendingRequest
    ) -> Awaitable[wire.NewSessionResponse | Answered]:
        return self._new_somewhere(request, pending, bytes(pending.params))

    async def _new_somewhere(
        self, request: wire.NewSessionRequest, pending: PendingRequest, params: bytes
    ) -> wire.NewSessionResponse | Answered:
        """In the `crow web` that runs, where it outlives this client; here, if there is none or it refuses."""
        if self._is_relay:
            self._host.ownership.check_accepts_turns()
        elif self._may_live_elsewhere:
            web = await web_home(self._host.home, self._set_up)
            if web is not None and await self._get_relay().create(web, params, pending):
                return ANSWERED
        with errors_as_answers():
            seat = await self._host.create(request, self._client)
        return self._opened(seat, pending)

    def _load(
        self, request: wire.LoadSessionRequest, pending: PendingRequest, *, replay: bool
    ) -> Awaitable[wire.LoadSessionResponse | Answered]:
        """Goes on with a session, wherever it was last open. `replay`: the client is shown all of it first.

        Until that is answered, whatever comes for the session is refused: it would reach the one that is put away.
        """
        params = bytes(pending.params)
        loading = asyncio.get_running_loop().create_task(self._load_or_attach(request, pending, params, replay=replay))
        self._loading[loading] = request.session_id
        loading.add_done_callback(self._loading.pop)
        return loading

    async def _load_or_attach(
        self, request: wire.LoadSessionRequest, pending: PendingRequest, params: bytes, *, replay: bool
    ) -> wire.LoadSessionResponse | Answered:
        session_id, seen = request.session_id, self._seen(request)

        async def load() -> Loaded:
            seat, is_trusted = self._seat(session_id), self._may_take_part(request)
            return await self._host.load(request, self._client, seat, replay=replay, seen=seen, is_trusted=is_trusted)

        async with self._host.open_close_lock(session_id):
            if (self._is_relay or not self._is_trusted) and self._host.find(session_id) is None:
                raise released(session_id)
            with errors_as_answers(session_id):
                try:
                    loaded = await load()
                except SessionElsewhere as there:
                    method = "session/load" if replay else "session/resume"
                    loaded = await self._get_relay().attach(there, method, params, pending, load)
            if isinstance(loaded, Answered):
                return loaded
            seat = self._seats[session_id] = loaded.seat
        left_over = await self._show(loaded)
        pending.afterwards(lambda: seat.sink.send_title(loaded.entry))
        self._announce(seat, pending)
        modes, options = seat.sink.state(seat.session.options.all())
        meta = self._opened_meta(seat, left_over)
        return wire.LoadSessionResponse(modes=modes, config_options=options, meta=meta)

    async def _show(self, loaded: Loaded) -> Sequence[SteeringLeftOver]:
        """Without the session's lock: a client may take its time to read."""
        try:
            return await loaded.show()
        except BaseException:
            del self._seats[loaded.seat.session.id]
            await self._host.left(loaded.seat)
            raise

    def _seen(self, request: wire.LoadSessionRequest) -> Seen | None:
        """How much of a session the client of a relay was shown, before the session's process ended."""
        seen = crow_meta.read(wire.LoadFacts, request.meta).seen if self._is_relay else None
        return None if seen is None else Seen(seen.turn, seen.ended, seen.asked)

    def _may_take_part(self, request: wire.LoadSessionRequest) -> bool:
        """Whether the client is trusted with a session that it loads."""
        session = self._host.find(request.session_id)
        proof = crow_meta.read(wire.LoadFacts, request.meta).proof
        if session is not None and session.faces.is_proved(proof):
            self._trusted_in.add(request.session_id)  # also when it loads the session again
        return self._is_trusted or request.session_id in self._trusted_in

    def _opened_meta(
        self, seat: Seat, left_over: Sequence[SteeringLeftOver] = ()
    ) -> wire.CrowMeta[wire.OpenedFacts] | None:
        if not self._is_relay:
            return None
        session, left = seat.session, translate.left_over(left_over).left_over
        facts = wire.OpenedFacts(turn=session.last_turn, running=session.has_running_turn, left_over=left)
        return wire.CrowMeta(crow=facts)

    def _get_relay(self) -> "Relay":
        if self._relay is None:
            from crow.acp.relay import Relay

            self._relay = Relay(self._connection, self._initialize_params, self._take_over, self._host.session_keys)
        return self._relay

    async def _take_over(self, params: bytes, seen: Seen) -> list[wire.LeftOverMessage]:
        """Goes on here with a session whose process has ended. SessionElsewhere if another one was faster."""
        request = msgspec.json.decode(params, type=wire.LoadSessionRequest)
        async with self._host.open_close_lock(request.session_id):
            loaded = await self._host.load(request, self._client, None, replay=False, seen=seen)
            seat = self._seats[request.session_id] = loaded.seat
        left_over = await self._show(loaded)
        seat.sink.state(seat.session.options.all())  # which the client knows
        for action in self._afterwards(seat):
            action()
        return translate.left_over(left_over).left_over

    async def _fork(self, request: wire.LoadSessionRequest, pending: PendingRequest) -> wire.NewSessionResponse:
        self._check_trusted(request.session_id)
        with errors_as_answers(request.session_id):
            seat = await self._host.fork(request, self._client)
        return self._opened(seat, pending)

    def _opened(self, seat: Seat, pending: PendingRequest) -> wire.NewSessionResponse:
        self._seats[seat.session.id] = seat
        self._trusted_in.add(seat.session.id)
        self._announce(seat, pending)
        modes, options = seat.sink.state(seat.session.options.all())
        return wire.NewSessionResponse(
            session_id=seat.session.id, modes=modes, config_options=options, meta=self._opened_meta(seat)
        )

    def _announce(self, seat: Seat, pending: PendingRequest) -> None:
        """What the client can only understand once it has the answer."""
        for action in self._afterwards(seat):
            pending.afterwards(action)

    def _afterwards(self, seat: Seat) -> Sequence[Callable[[], None]]:
        host = self._host
        return (
            lambda: seat.session.welcome(seat.face),
            lambda: self._hand_on_trust(seat),
            seat.sink.send_usage,
            host.sweep,
            host.ownership.open_socket,
        )

    # --- who is trusted

    def _try_code(self, seat: Seat, request: wire.PromptRequest) -> None:
        """What comes from a client that may watch only is a code, or refused."""
        text = "".join(block.text for block in request.prompt if isinstance(block, wire.TextContent))
        with errors_as_answers():
            seat.session.faces.trust(seat.face, text)
        self._trusted_in.add(seat.session.id)
        self._hand_on_trust(seat)

    def _hand_on_trust(self, seat: Seat) -> None:
        if self._is_relay and seat.face.is_trusted:
            told = wire.TrustedNotification(session_id=seat.session.id, key=seat.session.faces.key)
            self._connection.notify("_crow/trusted", told)

    def _check_trusted(self, session_id: str) -> None:
        """RpcError if the session lives here, and the client may not do as it likes with it."""
        if not self._is_trusted and self._host.find(session_id) is not None:
            self._find_trusted(session_id)

    # --- working in a session

    def _prompt(
        self, request: wire.PromptRequest, pending: PendingRequest
    ) -> Awaitable[wire.PromptResponse] | wire.PromptResponse:
        seat = self._find(request.session_id)
        if not seat.face.is_trusted:
            self._try_code(seat, request)
            return wire.PromptResponse(stop_reason=StopReason.END_TURN.value)
        sent = _sent_by(request)
        seat.face.known.columns = crow_meta.read(wire.PromptRequestFacts, request.meta).terminal_width
        with errors_as_answers():
            seat.session.check_accepts_turn(seat.face)
            self._host.ownership.check_accepts_turns()
            turn = seat.session.start_turn(sent, seat.face)
        pending.on_cancel = turn.cancel
        return self._outcome(seat.session, turn)

    async def _outcome(self, session: Session, turn: RunningTurn) -> wire.PromptResponse:
        try:
            stop_reason = await self._while_ours(session, turn.outcome())
        except RpcError as error:
            if turn.left_over:
                error.data = {"details": error.message, "steering": translate.left_over(turn.left_over)}
            raise
        is_command = turn.is_command and self._client.capabilities.follows_state
        meta = translate.prompt_meta(turn.left_open, turn.left_over, is_command=is_command)
        return wire.PromptResponse(stop_reason=stop_reason.value, meta=meta)

    def _steer(
        self, request: wire.PromptRequest, pending: PendingRequest
    ) -> Awaitable[wire.SteeringResponse] | wire.SteeringResponse:
        seat = self._find(request.session_id)
        if not seat.face.is_trusted:
            self._try_code(seat, request)
            taken = wire.SteeringFacts(message_id="code")  # it is no message of the turn, and never seen again
            return wire.SteeringResponse(outcome="injected", meta=wire.SteeringMeta(steering=taken))
        return self._while_ours(seat.session, _steered(seat, _sent_by(request)))

    async def _set_mode(self, request: wire.SetModeRequest, pending: PendingRequest) -> wire.Empty:
        await self._choose(self._find_trusted(request.session_id), "mode", request.mode_id)
        return wire.Empty()

    async def _set_option(
        self, request: wire.SetConfigOptionRequest, pending: PendingRequest
    ) -> wire.SetConfigOptionResponse:
        seat = self._find_trusted(request.session_id)
        await self._choose(seat, request.config_id, request.value)
        options = seat.session.options.all()
        return wire.SetConfigOptionResponse(config_options=translate_session.config_options(options))

    async def _choose(self, seat: Seat, option: str, value: str) -> None:
        """Whoever else watches the session is told: what may run without being asked is about all of them."""
        session, before = seat.session, {each.id: each.value for each in seat.session.options.all()}
        await self._while_ours(session, session.options.choose(option, value))
        if before.get(option) != value:
            name = next(each.name for each in session.options.all() if each.id == option)
            session.faces.tell_others(seat.face, Notice("info", f"{name}: {value}, chosen in {seat.face.name}."))

    async def _while_ours(self, session: Session, work: Awaitable[T]) -> T:
        """A session that another process has gone on with is closed here, so that it can be loaded again."""
        with errors_as_answers(session.id):
            try:
                return await work
            except SessionTaken:
                await self._host.drop(session)
                raise

    # --- others that go on with it

    @property
    def watches(self) -> bool:
        return bool(self._seats)

    def released(self, session_id: str) -> None:
        """The session is no longer ours; a relay goes on with it elsewhere."""
        if self._seats.pop(session_id, None) is not None and self._is_relay:
            self._connection.notify("_crow/released", wire.SessionRequest(session_id=session_id))

    # --- listing and ending

    async def _status(self, request: wire.SessionRequest, pending: PendingRequest) -> wire.SessionStatusResponse:
        """Without effect on the session. Of one that lives elsewhere its process is asked, if that answers."""
        session = self._host.find(request.session_id)
        if session is not None:
            clients = [face.name for face in session.faces.present]
            facts = wire.StatusFacts(state=session.faces.state, process=os.getpid(), clients=clients)
            return wire.SessionStatusResponse(status="open", meta=wire.CrowMeta(crow=facts))
        with errors_as_answers(request.session_id):
            await self._host.store.find(request.session_id)
            there = (await self._host.store.living()).get(request.session_id)
        if there is None:
            saved = wire.CrowMeta(crow=wire.StatusFacts(state="saved"))
            return wire.SessionStatusResponse(status="saved", meta=saved)
        from crow.acp.owner_link import statuses_of

        facts = (await statuses_of({request.session_id: there}))[request.session_id]
        return wire.SessionStatusResponse(status="open", meta=wire.CrowMeta(crow=facts))

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
        return self._closed(seat.session, is_last=self._host.leave(seat, is_closed=True))

    async def _closed(self, session: Session, *, is_last: bool) -> wire.Empty:
        if is_last:
            async with self._host.open_close_lock(session.id):
                with errors_as_answers(session.id):
                    await self._host.close(session)
        return wire.Empty()

    async def _dropped(self, session: Session) -> None:
        async with self._host.open_close_lock(session.id):
            await self._host.drop(session)

    def _delete(self, request: wire.SessionRequest, pending: PendingRequest) -> Awaitable[wire.Empty]:
        """It is gone for whatever comes after this call."""
        session_id = request.session_id
        self._check_trusted(session_id)
        with errors_as_answers(session_id):
            session = self._host.take_away(session_id, self._seat(session_id))
        self._seats.pop(session_id, None)
        return self._deleted(session_id, session)

    async def _deleted(self, session_id: str, session: Session | None) -> wire.Empty:
        async with self._host.open_close_lock(session_id):
            with errors_as_answers(session_id):
                await self._host.delete(session_id, session)
        return wire.Empty()


async def _steered(seat: Seat, sent: Sequence[Sent]) -> wire.SteeringResponse:
    try:
        facts = wire.SteeringFacts(message_id=await seat.session.steer(sent, seat.face))
    except NothingToSteer as refused:
        meta = wire.SteeringMeta(steering=wire.SteeringFacts(message=str(refused)))
        return wire.SteeringResponse(outcome="promptRequired", reason="noRunningTurn", meta=meta)
    return wire.SteeringResponse(outcome="injected", meta=wire.SteeringMeta(steering=facts))


def _sent_by(request: wire.PromptRequest) -> list[Sent]:
    sent = translate.sent_by(request.prompt)
    if not sent:
        raise invalid_params("the prompt is empty")
    return sent
