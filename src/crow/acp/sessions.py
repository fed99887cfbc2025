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
from crow.acp.capabilities import Capabilities, given_servers
from crow.errors import NothingToSteer, SessionElsewhere, SessionTaken
from crow.events import Notice, Sent
from crow.live.face import Face
from crow.live.host import Host
from crow.live.opening import Opened, OpenRequest, absolute
from crow.live.ownership import all_ended
from crow.live.session import LiveSession, Place
from crow.messages import StopReason
from crow.rpc.connection import ANSWERED, Answered, Connection, PendingRequest
from crow.rpc.jsonrpc import RpcError, being_loaded, errors_as_answers, invalid_params, released, unknown_session
from crow.session.models import SessionSetup
from crow.session.running_turn import RunningTurn

if TYPE_CHECKING:
    from crow.acp.extensions import Extensions
    from crow.acp.inbox import Inbox
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
        inbox: "Callable[[], Inbox]",
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
        self._inbox = inbox
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
        self._places: dict[str, Place] = {}
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
        self._client = Capabilities(self._connection, client, self._host.home)

    def answer(self, method: str, request: object, pending: PendingRequest) -> object:
        return self._methods[method](request, pending)

    @property
    def extensions(self) -> "Extensions":
        """The methods that are Crow's own."""
        if self._extensions is None:
            from crow.acp.extensions import Extensions

            self._extensions = Extensions(
                self._host.store, self._inbox, self._connection, self._find, self._find_trusted
            )
        return self._extensions

    def _find(self, session_id: str) -> Place:
        """The connection's place in a session that lives."""
        if session_id in self._loading.values():
            raise being_loaded()
        place = self._place(session_id)
        if place is None and self._is_relay and self._host.find(session_id) is None:
            raise released(session_id)
        if place is None:
            raise unknown_session(session_id)
        return place

    def _find_trusted(self, session_id: str) -> Place:
        """The same; RpcError if the client may watch only."""
        place = self._find(session_id)
        with errors_as_answers():
            place.live.faces.check_trusted(place.face)
        return place

    def _place(self, session_id: str) -> Place | None:
        place = self._places.get(session_id)
        if place is None or self._host.find(session_id) is place.live:
            return place
        del self._places[session_id]  # the session has ended here: another process went on with it, or deleted it
        return None

    def _face(self, session_id: str) -> Face | None:
        place = self._place(session_id)
        return place.face if place is not None else None

    def cancel(self, session_id: str) -> None:
        if session_id in self._places:
            self._host.cancel(session_id)

    async def end(self) -> None:
        """The connection is gone: its faces leave. What nobody watches any longer is ended."""
        self._host.ownership.watchers.discard(self)
        if self._extensions is not None:
            self._extensions.close()
        if self._relay is not None:
            await self._relay.close()
        places = list(self._places.values())
        self._places.clear()
        endings = [(live.id, self._host.leave(live, face)) for live, face in places]
        # Whoever loads one of them at this moment waits until it is closed: it never has two histories.
        await all_ended(*(self._ended(session_id, ending) for session_id, ending in endings))

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
            web = await self._host.web_home(self._set_up)
            if web is not None and await self._get_relay().create(web, params, pending):
                return ANSWERED
        with errors_as_answers():
            opened = await self._host.create(self._open_request(request))
        return self._new_answer(opened, pending)

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
        session_id = request.session_id

        async def load() -> Opened:
            trusted = self._may_take_part(request)
            wanted = self._open_request(request, session_id, replay=replay, trusted=trusted)
            return await self._host.load(wanted, self._face(session_id))

        async with self._host.open_close_lock(session_id):
            if (self._is_relay or not self._is_trusted) and self._host.find(session_id) is None:
                raise released(session_id)
            with errors_as_answers(session_id):
                try:
                    opened = await load()
                except SessionElsewhere as there:
                    method = "session/load" if replay else "session/resume"
                    opened = await self._get_relay().attach(there, method, params, pending, load)
            if isinstance(opened, Answered):
                return opened
            self._places[session_id] = Place(opened.live, opened.face)
        await self._show(opened)
        live, face = opened.live, opened.face
        if (entry := opened.entry) is not None:
            pending.afterwards(lambda: face.sink.send_title(entry))
        self._announce(live, face, pending)
        options = live.session.options.all()
        face.sink.know(options)
        return wire.LoadSessionResponse(
            modes=translate_session.modes(options),
            config_options=translate_session.config_options(options),
        )

    def _open_request(
        self,
        request: wire.NewSessionRequest,
        session_id: str = "",
        *,
        replay: bool = False,
        trusted: bool = True,
    ) -> OpenRequest:
        servers, problems = given_servers(request.mcp_servers or ())
        return OpenRequest(
            client=self._client,
            cwd=request.cwd,
            further=request.additional_directories or (),
            servers=servers,
            problems=problems,
            set_up=self._set_up,
            environ=self._environ,
            session_id=session_id,
            replay=replay,
            is_trusted=trusted,
        )

    async def _show(self, opened: Opened) -> None:
        """Without the session's lock: a client may take its time to read."""
        try:
            await opened.show()
        except BaseException:
            live, face = opened.live, opened.face
            del self._places[live.id]
            await self._ended(live.id, self._host.leave(live, face))
            raise

    def _may_take_part(self, request: wire.LoadSessionRequest) -> bool:
        """Whether the client is trusted with a session that it loads."""
        live = self._host.find(request.session_id)
        proof = crow_meta.read(wire.LoadFacts, request.meta).proof
        if live is not None and live.faces.is_proved(proof):
            self._trusted_in.add(request.session_id)  # also when it loads the session again
        return self._is_trusted or request.session_id in self._trusted_in

    def _get_relay(self) -> "Relay":
        if self._relay is None:
            from crow.acp.relay import Relay

            self._relay = Relay(self._connection, self._initialize_params, self._open_here, self._host.session_keys)
        return self._relay

    async def _open_here(self, params: bytes) -> None:
        """Opens a session whose process has ended, without a replay. SessionElsewhere if another one has it."""
        request = msgspec.json.decode(params, type=wire.LoadSessionRequest)
        async with self._host.open_close_lock(request.session_id):
            opened = await self._host.load(self._open_request(request, request.session_id), None)
            live, face = opened.live, opened.face
            self._places[request.session_id] = Place(live, face)
        await self._show(opened)
        face.sink.know(live.session.options.all())
        for action in self._afterwards(live, face):
            action()

    async def _fork(self, request: wire.LoadSessionRequest, pending: PendingRequest) -> wire.NewSessionResponse:
        self._check_trusted(request.session_id)
        with errors_as_answers(request.session_id):
            opened = await self._host.fork(self._open_request(request, request.session_id))
        return self._new_answer(opened, pending)

    def _new_answer(self, opened: Opened, pending: PendingRequest) -> wire.NewSessionResponse:
        live, face = opened.live, opened.face
        self._places[live.id] = Place(live, face)
        self._trusted_in.add(live.id)
        self._announce(live, face, pending)
        options = live.session.options.all()
        face.sink.know(options)
        return wire.NewSessionResponse(
            session_id=live.id,
            modes=translate_session.modes(options),
            config_options=translate_session.config_options(options),
        )

    def _announce(self, live: LiveSession, face: Face, pending: PendingRequest) -> None:
        """What the client can only understand once it has the answer."""
        for action in self._afterwards(live, face):
            pending.afterwards(action)

    def _afterwards(self, live: LiveSession, face: Face) -> Sequence[Callable[[], None]]:
        host = self._host
        return (
            lambda: live.welcome(face),
            lambda: self._hand_on_trust(live, face),
            face.sink.send_usage,
            host.sweep,
            host.ownership.open_socket,
        )

    # --- who is trusted

    def _try_code(self, place: Place, request: wire.PromptRequest) -> None:
        """What comes from a client that may watch only is a code, or refused."""
        text = "".join(block.text for block in request.prompt if isinstance(block, wire.TextContent))
        with errors_as_answers():
            place.live.faces.trust(place.face, text)
        self._trusted_in.add(place.live.id)
        self._hand_on_trust(*place)

    def _hand_on_trust(self, live: LiveSession, face: Face) -> None:
        if self._is_relay and face.is_trusted:
            told = wire.TrustedNotification(session_id=live.id, key=live.faces.key)
            self._connection.notify("_crow/trusted", told)

    def _check_trusted(self, session_id: str) -> None:
        """RpcError if the session lives here, and the client may not do as it likes with it."""
        if not self._is_trusted and self._host.find(session_id) is not None:
            self._find_trusted(session_id)

    # --- working in a session

    def _prompt(
        self, request: wire.PromptRequest, pending: PendingRequest
    ) -> Awaitable[wire.PromptResponse] | wire.PromptResponse:
        live, face = place = self._find(request.session_id)
        if not face.is_trusted:
            self._try_code(place, request)
            return wire.PromptResponse(stop_reason=StopReason.END_TURN.value)
        sent = _sent_by(request)
        face.known.columns = crow_meta.read(wire.PromptRequestFacts, request.meta).terminal_width
        with errors_as_answers():
            live.session.check_accepts_turn(face.name)
            self._host.ownership.check_accepts_turns()
            turn = live.start_turn(sent, face)
        pending.on_cancel = turn.cancel
        return self._outcome(live, turn)

    async def _outcome(self, live: LiveSession, turn: RunningTurn) -> wire.PromptResponse:
        try:
            stop_reason = await self._while_ours(live, turn.outcome())
        except RpcError as error:
            if turn.left_over:
                error.data = {"details": error.message, "steering": translate.left_over(turn.left_over)}
            raise
        is_command = turn.is_command and self._client.follows_state
        meta = translate.prompt_meta(turn.left_open, turn.left_over, is_command=is_command)
        return wire.PromptResponse(stop_reason=stop_reason.value, meta=meta)

    def _steer(
        self, request: wire.PromptRequest, pending: PendingRequest
    ) -> Awaitable[wire.SteeringResponse] | wire.SteeringResponse:
        place = self._find(request.session_id)
        if not place.face.is_trusted:
            self._try_code(place, request)
            taken = wire.SteeringFacts(message_id="code")  # it is no message of the turn, and never seen again
            return wire.SteeringResponse(outcome="injected", meta=wire.SteeringMeta(steering=taken))
        return self._while_ours(place.live, _steered(place, _sent_by(request)))

    async def _set_mode(self, request: wire.SetModeRequest, pending: PendingRequest) -> wire.Empty:
        await self._choose(self._find_trusted(request.session_id), "mode", request.mode_id)
        return wire.Empty()

    async def _set_option(
        self, request: wire.SetConfigOptionRequest, pending: PendingRequest
    ) -> wire.SetConfigOptionResponse:
        place = self._find_trusted(request.session_id)
        await self._choose(place, request.config_id, request.value)
        options = place.live.session.options.all()
        return wire.SetConfigOptionResponse(config_options=translate_session.config_options(options))

    async def _choose(self, place: Place, option: str, value: str) -> None:
        """Whoever else watches the session is told: what may run without being asked is about all of them."""
        live, face = place
        options = live.session.options
        before = {each.id: each.value for each in options.all()}
        await self._while_ours(live, options.choose(option, value))
        if before.get(option) != value:
            name = next(each.name for each in options.all() if each.id == option)
            live.faces.tell_others(face, Notice("info", f"{name}: {value}, chosen in {face.name}."))

    async def _while_ours(self, live: LiveSession, work: Awaitable[T]) -> T:
        """A session that another process has gone on with is closed here, so that it can be loaded again."""
        with errors_as_answers(live.id):
            try:
                return await work
            except SessionTaken:
                await self._host.end(live, "taken")
                raise

    # --- others that go on with it

    @property
    def watches(self) -> bool:
        return bool(self._places)

    def released(self, session_id: str) -> None:
        """The session is no longer ours; a relay goes on with it elsewhere."""
        if self._places.pop(session_id, None) is not None and self._is_relay:
            self._connection.notify("_crow/released", wire.ReleasedNotification(session_id=session_id))

    # --- listing and ending

    async def _status(self, request: wire.SessionRequest, pending: PendingRequest) -> wire.SessionStatusResponse:
        """Without effect on the session. Of one that lives elsewhere its process is asked, if that answers."""
        live = self._host.find(request.session_id)
        if live is not None:
            clients = [face.name for face in live.faces.present]
            facts = wire.StatusFacts(state=live.faces.state, process=os.getpid(), clients=clients)
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
        live, face = self._find(request.session_id)
        del self._places[request.session_id]
        return self._closed(live.id, self._host.leave(live, face, is_closed=True))

    async def _closed(self, session_id: str, ending: Awaitable[None] | None) -> wire.Empty:
        with errors_as_answers(session_id):
            await self._ended(session_id, ending)
        return wire.Empty()

    async def _ended(self, session_id: str, ending: Awaitable[None] | None) -> None:
        if ending is not None:
            async with self._host.open_close_lock(session_id):
                await ending

    def _delete(self, request: wire.SessionRequest, pending: PendingRequest) -> Awaitable[wire.Empty]:
        """It is gone for whatever comes after this call."""
        session_id = request.session_id
        self._check_trusted(session_id)
        with errors_as_answers(session_id):
            ending = self._host.take_away(session_id, self._face(session_id))
        self._places.pop(session_id, None)
        return self._deleted(session_id, ending)

    async def _deleted(self, session_id: str, ending: Awaitable[None] | None) -> wire.Empty:
        async with self._host.open_close_lock(session_id):
            with errors_as_answers(session_id):
                await self._host.delete(session_id, ending)
        return wire.Empty()


async def _steered(place: Place, sent: Sequence[Sent]) -> wire.SteeringResponse:
    try:
        facts = wire.SteeringFacts(message_id=await place.live.steer(sent, place.face))
    except NothingToSteer as refused:
        meta = wire.SteeringMeta(steering=wire.SteeringFacts(message=str(refused)))
        return wire.SteeringResponse(outcome="promptRequired", reason="noRunningTurn", meta=meta)
    return wire.SteeringResponse(outcome="injected", meta=wire.SteeringMeta(steering=facts))


def _sent_by(request: wire.PromptRequest) -> list[Sent]:
    sent = translate.sent_by(request.prompt)
    if not sent:
        raise invalid_params("the prompt is empty")
    return sent
