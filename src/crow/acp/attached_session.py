"""What a relay remembers of a session that lives in another process, and the few fields that it reads of messages on
their way.

A relay reads no more of a message than is defined here: that is enough to go on with the session when its owner ends.
"""

import msgspec

from crow.acp import crow_meta, jsonrpc, wire
from crow.acp.jsonrpc import Notification, Request, Response
from crow.acp.owner_link import OwnerLink
from crow.session.faces.after_takeover import Seen

_CALL = b'"sessionUpdate":"tool_call'
_BEGINNING = 300
"""In how many bytes of a line that must be for the update to be of a call: the kind is what it begins with."""


class AttachedSession:
    """A session that lives elsewhere."""

    def __init__(self, id: str, params: bytes) -> None:
        self.id = id
        self.params = params
        """Of the request that opened it, to open it again."""
        self.link: OwnerLink | None = None
        """None while it is being attached."""
        self.is_opening = True
        """The request that opens it is not answered yet."""
        self.seen = Seen("", ended=True)
        """How far the owner has told of it."""
        self.open_calls: dict[str, None] = {}
        """The calls that the editor was shown and whose end it was not."""
        self.waiting: list[Request | Notification] = []
        """What came while it was being attached."""
        self.cut_off: list[Request] = []
        """What its owner was asked and had not answered when it ended."""
        self.left_over: list[wire.LeftOverMessage] = []
        """What the turn did not take in that was cut off by that."""

    def note_call(self, told: "CallParams") -> None:
        if told.update.status in ("completed", "failed"):
            self.open_calls.pop(told.update.tool_call_id, None)
        else:
            self.open_calls[told.update.tool_call_id] = None

    def note_state(self, told: "StateParams") -> None:
        self.seen = Seen(told.turn or self.seen.turn, ended=told.state == "idle")


class _About(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a message that says which session it is about."""

    session_id: str = ""


class StateParams(msgspec.Struct, frozen=True, rename="camel"):
    """The part of `_crow/state` that the relay needs."""

    session_id: str = ""
    state: str = ""
    turn: str | None = None


class _CallUpdate(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a call's update that says whether the call is open."""

    tool_call_id: str = ""
    status: str | None = None


class CallParams(msgspec.Struct, frozen=True, rename="camel"):
    session_id: str
    update: _CallUpdate


class _CallLine(msgspec.Struct, frozen=True):
    params: CallParams


class _Withdrawn(msgspec.Struct, frozen=True, rename="camel"):
    request_id: msgspec.Raw


_about = msgspec.json.Decoder(_About)
_call_line = msgspec.json.Decoder(_CallLine)
_state = msgspec.json.Decoder(StateParams)
_withdrawn = msgspec.json.Decoder(_Withdrawn)


def call_in(line: bytes) -> CallParams | None:
    """What an update says of a call; None if it is about something else. Looks at the beginning of other lines only."""
    return _call_line.decode(line).params if line.find(_CALL, 0, _BEGINNING) >= 0 else None


def state_in(params: msgspec.Raw) -> StateParams:
    return _state.decode(params)


def withdrawn_in(params: msgspec.Raw) -> bytes:
    """The id of the request that `$/cancel_request` is about. Raises msgspec's errors."""
    return bytes(_withdrawn.decode(params).request_id)


def with_session(params: bytes, session_id: str) -> bytes:
    """The parameters that opened a session, for another one."""
    fields = msgspec.json.decode(params, type=dict[str, msgspec.Raw])
    return msgspec.json.encode({**fields, "sessionId": session_id})


def session_in(params: msgspec.Raw) -> str:
    """The session that a message is about; empty if it is about none."""
    try:
        return _about.decode(params).session_id
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ""


def left_over_in(response: Response) -> list[wire.LeftOverMessage]:
    """What a new owner says that a turn of the one before did not take in."""
    return crow_meta.read_in(wire.OpenedFacts, response.result).left_over


def seen_in(response: Response) -> Seen:
    """What an owner's answer says of how far the session is. Whether a turn runs is told after it."""
    return Seen(crow_meta.read_in(wire.OpenedFacts, response.result).turn, ended=True)


def is_released(response: Response) -> bool:
    """Whether an owner says that a session no longer lives there."""
    return response.error is not None and response.error.data == jsonrpc.RELEASED


def is_being_released(response: Response) -> bool:
    """Whether an owner begins nothing more in a session, and says that it will let go of it."""
    return response.error is not None and jsonrpc.is_being_released(response.error.data)
