"""Our errors as the protocol's: a code for the client, and words for the person."""

from collections.abc import Generator
from contextlib import contextmanager

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
