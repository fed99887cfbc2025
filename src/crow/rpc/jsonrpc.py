"""JSON-RPC 2.0 messages: reading and writing lines, which code and words a client gets for each of Crow's errors, and
what a client's error means.

Ids are kept as the raw bytes that the peer sent, so that they are echoed to the letter, whatever they are.
"""

import enum
import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

import msgspec

from crow.errors import (
    BadCursor,
    CrowError,
    ModelRefusedKey,
    NotTrusted,
    OptionUnknown,
    SessionBusy,
    SessionUnknown,
    SetupNeeded,
    TurnRunning,
)
from crow.visible import join_surrogates, one_line, replace_lone_surrogates


class ErrorCode(enum.IntEnum):
    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    REQUEST_CANCELLED = -32800
    AUTH_REQUIRED = -32000
    RESOURCE_NOT_FOUND = -32002


class RpcError(Exception):
    """An error answer: raised by a handler to send one, raised to a caller who got one."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Unreadable(RpcError):
    """A line that is no message. `id` is what can be echoed of it: `null` if nothing can."""

    def __init__(self, code: int, message: str, id: bytes = b"null") -> None:
        super().__init__(code, message)
        self.id = id


class Request(NamedTuple):
    id: bytes
    method: str
    params: msgspec.Raw


class Notification(NamedTuple):
    method: str
    params: msgspec.Raw


class Response(NamedTuple):
    id: bytes
    result: msgspec.Raw
    error: "ErrorBody | None"


class ErrorBody(msgspec.Struct, frozen=True, omit_defaults=True):
    code: int = ErrorCode.INTERNAL_ERROR
    message: str = ""
    data: Any = None


ABSENT = msgspec.Raw()


class _Envelope(msgspec.Struct, frozen=True):
    jsonrpc: msgspec.Raw = ABSENT
    id: msgspec.Raw = ABSENT
    method: msgspec.Raw = ABSENT
    params: msgspec.Raw = ABSENT
    result: msgspec.Raw = ABSENT
    error: msgspec.Raw = ABSENT


_envelope = msgspec.json.Decoder(_Envelope)
_string = msgspec.json.Decoder(str)
_error_body = msgspec.json.Decoder(ErrorBody)
_encoder = msgspec.json.Encoder()


def read_line(line: bytes) -> Request | Notification | Response:
    """The message in a line; raises Unreadable with the error that the peer should get."""
    message = _read_envelope(line)
    id = _readable_id(bytes(message.id))
    if bytes(message.jsonrpc) != b'"2.0"':
        raise Unreadable(ErrorCode.INVALID_REQUEST, 'Invalid request: "jsonrpc" must be "2.0"', id or b"null")
    if message.method:
        return _read_call(message, id)
    if id is None or not (message.result or message.error):
        raise Unreadable(ErrorCode.INVALID_REQUEST, 'Invalid request: "method" is missing', id or b"null")
    return Response(id, message.result, _read_error(message.error))


def _read_envelope(line: bytes) -> _Envelope:
    try:
        if not line.isascii():
            line.decode()  # strings that are skipped over are not checked by the decoder
        return _envelope.decode(line)
    except msgspec.ValidationError as error:
        raise Unreadable(ErrorCode.INVALID_REQUEST, f"Invalid request: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        repaired = replace_lone_surrogates(line)
        if repaired != line:
            return _read_envelope(repaired)
        raise Unreadable(ErrorCode.PARSE_ERROR, f"Parse error: {error}") from None
    except RecursionError:
        raise Unreadable(ErrorCode.PARSE_ERROR, "Parse error: nested too deeply") from None


def _read_call(message: _Envelope, id: bytes | None) -> Request | Notification:
    try:
        method = _string.decode(message.method)
    except (msgspec.DecodeError, UnicodeError):
        text = 'Invalid request: "method" must be a string'
        raise Unreadable(ErrorCode.INVALID_REQUEST, text, id or b"null") from None
    params = message.params
    if not params or bytes(memoryview(params)[:5]) == b"null":
        params = msgspec.Raw(b"{}")
    if not message.id:
        return Notification(method, params)
    if id is None:
        raise Unreadable(ErrorCode.INVALID_REQUEST, 'Invalid request: "id" must be a number, a string or null')
    return Request(id, method, params)


def _readable_id(raw: bytes) -> bytes | None:
    """Numbers, strings and null are ids; everything else is none."""
    return raw if raw == b"null" or raw[:1] in (b'"', b"-") or raw[:1].isdigit() else None


def _read_error(raw: msgspec.Raw) -> ErrorBody | None:
    if not raw or bytes(raw) == b"null":
        return None
    try:
        return _error_body.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ErrorBody(message="the error could not be read")


def clean(value: Any) -> Any:
    """The same JSON value with every lone surrogate replaced by U+FFFD."""
    match value:
        case str():
            return value if value.isascii() else join_surrogates(value)
        case dict():
            return {clean(k): clean(v) for k, v in value.items()}  # pyright: ignore[reportUnknownVariableType] -- JSON
        case list():
            return [clean(v) for v in value]  # pyright: ignore[reportUnknownVariableType] -- JSON
        case _:
            return value


def _encode(value: object) -> bytes:
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        # A model or a tool produced half a character; it must not cost the message.
        return _encoder.encode(clean(msgspec.to_builtins(value)))


def write_request(id: int, method: str, params: object) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"method":%b,"params":%b}\n' % (id, _encode(method), _encode(params))


def write_notification(method: str, params: object) -> bytes:
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}\n' % (_encode(method), _encode(params))


def write_result(id: bytes, result: object) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (id, _encode(result))


def write_error(id: bytes, error: RpcError) -> bytes:
    body = ErrorBody(int(error.code), error.message, error.data)
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (id, _encode(body))


def write_response(id: bytes, response: Response) -> bytes:
    """An answer as it came, under another id."""
    if response.error is not None:
        return b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (id, _encode(response.error))
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (id, bytes(response.result) or b"null")


# --- errors


def as_rpc_error(error: CrowError) -> RpcError:
    """`message` is what most clients show; some show `data.details` instead, and only if nothing else is in `data`."""
    return RpcError(_code(error), str(error), {"details": str(error)})


def _code(error: CrowError) -> ErrorCode:
    match error:
        case SetupNeeded() | ModelRefusedKey():
            return ErrorCode.AUTH_REQUIRED
        case TurnRunning() | SessionBusy() | NotTrusted():
            return ErrorCode.INVALID_REQUEST
        case BadCursor() | OptionUnknown():
            return ErrorCode.INVALID_PARAMS
        case _:
            return ErrorCode.INTERNAL_ERROR


def invalid_params(what: str) -> RpcError:
    return RpcError(ErrorCode.INVALID_PARAMS, f"Invalid params: {what}")


def unknown_session(session_id: str) -> RpcError:
    shown = session_id[:100]
    return RpcError(ErrorCode.RESOURCE_NOT_FOUND, f"There is no session {shown!r}", {"uri": shown})


def released(session_id: str) -> RpcError:
    """For a relay: the session no longer lives here, and can be claimed."""
    return RpcError(ErrorCode.RESOURCE_NOT_FOUND, f"The session {session_id[:100]!r} was released", RELEASED)


RELEASED = {"crow": "released"}


def is_released(response: Response) -> bool:
    """Whether an owner says to a relay that a session no longer lives there."""
    return response.error is not None and response.error.data == RELEASED


def being_released() -> RpcError:
    """The process is to end. It lets go of the session as soon as what runs in it has ended."""
    said = f"This Crow (process {os.getpid()}) is ending. Another one goes on with the session: send it again."
    return RpcError(ErrorCode.INVALID_REQUEST, said, {"details": said, "crow": BEING_RELEASED})


BEING_RELEASED = "being released"


def is_being_released(response: Response) -> bool:
    """Whether an owner begins nothing more in a session, and says that it will let go of it."""
    data = response.error.data if response.error is not None else None
    return isinstance(data, dict) and cast("dict[object, object]", data).get("crow") == BEING_RELEASED


def being_loaded() -> RpcError:
    said = "This session is being loaded. Send this again once the load is answered."
    return RpcError(ErrorCode.INVALID_REQUEST, said, {"details": said})


@contextmanager
def errors_as_answers(session_id: str = "") -> Generator[None, None, None]:
    """Whatever fails in here on purpose becomes the request's answer; the id is that of the session it is about."""
    try:
        yield
    except SessionUnknown:
        raise unknown_session(session_id) from None
    except CrowError as error:
        raise as_rpc_error(error) from error


_NO = re.compile(
    r"permission|denie|deny|refus|reject|declin|not allowed|disallow|disabl|prohibit|block|forbid|unauthori|cancel",
    re.IGNORECASE,
)


def says_no(error: RpcError) -> bool:
    """Whether an error's words say no where its code says that the client cannot: the person's no stands, whatever
    code goes with it. An error without such words is not a yes.
    """
    return any(_NO.search(words) for words in (error.message, reason_of(error)))


def reason_of(error: RpcError) -> str:
    """What the client said. The protocol's libraries put it into the data, beside a message that is always the same."""
    details: object = error.data
    if isinstance(details, dict):
        data = cast("dict[str, Any]", details)
        details = next((data[key] for key in ("details", "message", "reason") if data.get(key)), "")
    said = details if isinstance(details, str) and details else error.message
    return one_line(said, 200)
