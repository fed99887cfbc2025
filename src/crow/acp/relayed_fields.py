"""The few fields that a relay reads of messages on their way: which session they are about, and whether its calls have
ended. It reads no more of a message than is defined here.
"""

import msgspec

_CALL = b'"sessionUpdate":"tool_call'
_BEGINNING = 300
"""In how many bytes of a line that must be for the update to be of a call: the kind is what it begins with."""


class _About(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a message that says which session it is about."""

    session_id: str = ""


class _CallUpdate(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a call's update that says whether the call is open."""

    tool_call_id: str = ""
    status: str | None = None


class CallParams(msgspec.Struct, frozen=True, rename="camel"):
    session_id: str
    update: _CallUpdate


class _CallLine(msgspec.Struct, frozen=True):
    params: CallParams


class _SessionTakes(msgspec.Struct, frozen=True):
    notices: object = None


class _Takes(msgspec.Struct, frozen=True):
    session: _SessionTakes | None = None


class _Hello(msgspec.Struct, frozen=True, rename="camel"):
    """The part of `initialize` that says whether the editor shows notices."""

    client_capabilities: _Takes | None = None


class _Withdrawn(msgspec.Struct, frozen=True, rename="camel"):
    request_id: msgspec.Raw


_about = msgspec.json.Decoder(_About)
_call_line = msgspec.json.Decoder(_CallLine)
_withdrawn = msgspec.json.Decoder(_Withdrawn)


def session_in(params: msgspec.Raw) -> str:
    """The session that a message is about; empty if it is about none."""
    try:
        return _about.decode(params).session_id
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ""


def takes_notices(initialize_params: bytes) -> bool:
    """Whether an editor that began like this shows notices."""
    try:
        takes = msgspec.json.decode(initialize_params, type=_Hello).client_capabilities
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return takes is not None and takes.session is not None and takes.session.notices is not None


def with_session(params: bytes, session_id: str) -> bytes:
    """The parameters that opened a session, for another one."""
    fields = msgspec.json.decode(params, type=dict[str, msgspec.Raw])
    return msgspec.json.encode({**fields, "sessionId": session_id})


def call_in(line: bytes) -> CallParams | None:
    """What an update says of a call; None if it is about something else. Looks at the beginning of other lines only."""
    return _call_line.decode(line).params if line.find(_CALL, 0, _BEGINNING) >= 0 else None


def withdrawn_in(params: msgspec.Raw) -> bytes:
    """The id of the request that `$/cancel_request` is about. Raises msgspec's errors."""
    return bytes(_withdrawn.decode(params).request_id)
