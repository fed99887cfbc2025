"""Errors in both directions: ours as the answers that a client gets, and what an error answer of a client means."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

from crow.acp.jsonrpc import ErrorCode, RpcError
from crow.errors import (
    BadCursor,
    CrowError,
    ModelRefusedKey,
    OptionUnknown,
    SessionBusy,
    SessionUnknown,
    SetupNeeded,
    TurnRunning,
)
from crow.visible import one_line


def as_rpc_error(error: CrowError) -> RpcError:
    """`message` is what most clients show; some show `data.details` instead, and only if nothing else is in `data`."""
    return RpcError(_code(error), str(error), {"details": str(error)})


def _code(error: CrowError) -> ErrorCode:
    match error:
        case SetupNeeded() | ModelRefusedKey():
            return ErrorCode.AUTH_REQUIRED
        case TurnRunning() | SessionBusy():
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


def being_loaded() -> RpcError:
    said = "This session is being loaded. Send this again once the load is answered."
    return RpcError(ErrorCode.INVALID_REQUEST, said, {"details": said})


@contextmanager
def answered(session_id: str = "") -> Generator[None, None, None]:
    """Whatever fails in here on purpose becomes the request's answer; the id is that of the session it is about."""
    try:
        yield
    except SessionUnknown:
        raise unknown_session(session_id) from None
    except CrowError as error:
        raise as_rpc_error(error) from error


# --- what a client answers

_NO = re.compile(r"permission|denie|deny|refus|reject|declin|not allowed|forbid|unauthori|cancel", re.IGNORECASE)


def is_refusal(error: RpcError) -> bool:
    """Whether the client would not do what it was asked for; else it could not. A refusal is the person's, and stands;
    where a client only could not, Crow may help itself.
    """
    if error.code == ErrorCode.REQUEST_CANCELLED:
        return True
    return any(_NO.search(words) for words in (error.message, reason_of(error)))


def reason_of(error: RpcError) -> str:
    """What the client said. The protocol's libraries put it into the data, beside a message that is always the same."""
    details: object = error.data
    if isinstance(details, dict):
        data = cast("dict[str, Any]", details)
        details = next((data[key] for key in ("details", "message", "reason") if data.get(key)), "")
    said = details if isinstance(details, str) and details else error.message
    return one_line(said, 200)
