"""A session that lives in another process, as a relay knows it: where it is in being attached, lost or closed, what
waits for it, and what the editor was shown.

    OPENING ◀──▶ ASKED ──▶ ATTACHED ◀──▶ LOST      each of them ──▶ CLOSED
"""

import asyncio
from collections.abc import Callable, Sequence
from enum import Enum, auto

import msgspec

from crow.acp import crow_meta, wire
from crow.acp.owner_link import OwnerLink
from crow.acp.owner_links import SessionReleased
from crow.acp.relayed_fields import CallParams, StateParams
from crow.rpc import jsonrpc
from crow.rpc.connection import Connection, ConnectionLost
from crow.rpc.jsonrpc import ErrorCode, Notification, Request, Response, RpcError
from crow.session.faces.after_takeover import Seen

MOST_WAITING = 1000
"""Messages that are kept for a session while it is being attached."""


class State(Enum):
    OPENING = auto()
    """Its owner is being connected to: what comes for it waits."""
    ASKED = auto()
    """Its owner was asked to open it, and has not answered yet: what comes for it is passed on behind that."""
    ATTACHED = auto()
    """It is open at its owner."""
    LOST = auto()
    """Its owner has ended or let go of it, and the next one is being found: what comes for it waits."""
    CLOSED = auto()
    """It is not relayed any longer: it lives in this process, or the editor does not have it."""


class AskedRequest:
    """A request of the editor's that an owner has not answered yet."""

    def __init__(self, session: "RelayedSession", request: Request, link: OwnerLink) -> None:
        self.session = session
        self.request = request
        self.link = link
        self.key = b""
        """Its id at the owner."""
        self.cancels: list[Notification] = []
        """The editor's cancels that came after it: they go with it, should it have to be sent once more."""
        self.is_released = False
        """The owner has let go of the session since. A turn that it had begun would have been answered before that."""


class RelayedSession:
    """`params` are those of the request that opened the session, to open it again. One that has a `link` from the
    beginning is attached."""

    def __init__(self, editor: Connection, id: str, params: bytes, link: OwnerLink | None = None) -> None:
        self.id = id
        self.params = params
        self._seen = Seen("", ended=True)
        """How far the owner has told of it."""
        self._editor = editor
        self._link = link
        self._state = State.OPENING if link is None else State.ATTACHED
        self._waiting: list[Request | Notification] = []
        self._cut_off: list[AskedRequest] = []
        """What an owner was asked and had not answered when it ended."""
        self._open_calls: dict[str, None] = {}
        """The calls that the editor was shown and whose end it was not."""

    # --- its state

    @property
    def state(self) -> State:
        return self._state

    @property
    def is_opening(self) -> bool:
        """Whether the request that opens it is not answered yet."""
        return self._state in (State.OPENING, State.ASKED)

    @property
    def link(self) -> OwnerLink | None:
        """The link to its owner, which it has while it is asked for or attached."""
        return self._link

    def ask(self, link: OwnerLink) -> None:
        self._state, self._link = State.ASKED, link

    def attach(self, link: OwnerLink) -> None:
        self._state, self._link = State.ATTACHED, link

    def lose(self) -> None:
        """The session no longer lives where it did."""
        self._state, self._link = State.OPENING if self.is_opening else State.LOST, None
        self._end_calls()

    def close(self) -> None:
        self._state, self._link = State.CLOSED, None

    # --- what waits for it

    @property
    def has_waiting(self) -> bool:
        """Whether messages wait for it, which no other may overtake."""
        return bool(self._waiting)

    def wait(self, message: Request | Notification) -> None:
        if len(self._waiting) < MOST_WAITING:
            self._waiting.append(message)
        elif isinstance(message, Request):
            self.refuse(message, jsonrpc.being_loaded())

    def withdraw(self, request_id: bytes) -> bool:
        """Whether a request of that id has waited. If so, it is answered as cancelled."""
        for message in self._waiting:
            if isinstance(message, Request) and message.id == request_id:
                self._waiting.remove(message)
                self.refuse(message, RpcError(ErrorCode.REQUEST_CANCELLED, "Request cancelled"))
                return True
        return False

    def take_waiting(self) -> Sequence[Request | Notification]:
        waiting, self._waiting = self._waiting, []
        return waiting

    def refuse(self, request: Request, error: RpcError) -> None:
        self._editor.send(jsonrpc.write_error(request.id, error))

    # --- what was cut off

    def cut_off(self, asked: AskedRequest) -> None:
        """The owner has ended before it answered. The request is answered once it is known how the session goes on."""
        self._cut_off.append(asked)

    @property
    def shown(self) -> Seen:
        """How much of the session the editor has seen, once its owner has ended."""
        has_prompted = any(asked.request.method == "session/prompt" for asked in self._cut_off)
        return Seen(self._seen.turn, self._seen.ended, asked=has_prompted)

    def answer_cut_off(self, left_over: Sequence[wire.LeftOverMessage] = (), more: str = "") -> None:
        """`left_over` is what the turn that was cut off did not take in; `more` is a sentence that is added."""
        cut_off, self._cut_off = self._cut_off, []
        for asked in cut_off:
            process, data = asked.link.there.process, dict[str, object]()
            if asked.request.method == "session/prompt":
                said = f"The turn was cut off: the Crow in which it ran (process {process}) has ended.{more}"
                data = {"steering": wire.LeftOver(left_over=list(left_over))} if left_over else data
            else:
                said = f"The Crow in which this session lived (process {process}) has ended.{more} Try again."
            self.refuse(asked.request, RpcError(ErrorCode.INTERNAL_ERROR, said, {"details": said, **data}))

    # --- what the editor is shown of it

    def note_call(self, told: CallParams) -> None:
        if told.update.status in ("completed", "failed"):
            self._open_calls.pop(told.update.tool_call_id, None)
        else:
            self._open_calls[told.update.tool_call_id] = None

    def note_state(self, told: StateParams) -> None:
        self._seen = Seen(told.turn or self._seen.turn, ended=told.state == "idle")

    def note_opened(self, response: Response) -> None:
        """What an owner's answer says of how far the session is. The owner may end before it says anything more."""
        facts = crow_meta.read_in(wire.OpenedFacts, response.result)
        self._seen = Seen(facts.turn, ended=not facts.running)

    def _end_calls(self) -> None:
        """Of a call that had only begun nothing may be stored: nobody else would tell of its end."""
        for call_id in self._open_calls:
            update = wire.ToolCallUpdate(tool_call_id=call_id, status="failed")
            self._editor.notify("session/update", wire.SessionNotification(session_id=self.id, update=update))
        self._open_calls.clear()

    # --- opening it at an owner

    async def open_at(
        self,
        link: OwnerLink,
        method: str,
        params: msgspec.Raw,
        answer: Callable[[Response], None],
        began: Callable[[bytes], None] = lambda _: None,
    ) -> None:
        """`answer` is called before anything that comes after the answer is passed on. SessionReleased if the session
        no longer lives there, ConnectionLost if its owner does not."""
        if link.has_ended:
            raise ConnectionLost
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def settle(response: Response | None) -> None:
            if answered.done():
                return
            if response is None or jsonrpc.is_released(response):
                answered.set_exception(SessionReleased())
                return
            if response.error is None:
                self.note_opened(response)
            answer(response)
            answered.set_result(None)

        began(link.pass_on(method, params, settle))
        await answered

    async def resume_at(self, link: OwnerLink, proof: str) -> list[wire.LeftOverMessage]:
        """Opens it at its new owner, which shows what the editor has missed. Gives what the turn did not take in that
        was cut off. RpcError if the owner refuses; else raises what `open_at` does."""
        answers: list[Response] = []
        shown = self.shown
        facts = wire.LoadFacts(seen=wire.SeenTurn(turn=shown.turn, ended=shown.ended, asked=shown.asked), proof=proof)
        await self.open_at(link, "session/resume", crow_meta.added(self.params, facts), answers.append)
        if (error := answers[0].error) is not None:
            raise RpcError(error.code, error.message, error.data)
        if link.has_ended:
            raise ConnectionLost
        return crow_meta.read_in(wire.OpenedFacts, answers[0].result).left_over
