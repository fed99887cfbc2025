"""What goes wrong with a server, in words for a person."""

from typing import cast

import httpx2
import msgspec
from mcp_types import CONNECTION_CLOSED, URL_ELICITATION_REQUIRED, ElicitationRequiredErrorData
from pydantic import ValidationError

from crow.errors import CrowError
from crow.visible import one_line
from mcp import MCPError

LONGEST = 500
MOST_ADDRESSES = 5
_LOST = ("Connection closed", "SSE stream")
"""How the library's messages begin when it has lost a server."""
MALFORMED = "its answer is malformed"


class ServerFailed(CrowError):
    """The message is the cause, without the server's name. `lasting`: trying again would change nothing."""

    def __init__(self, message: str, *, remedy: str = "", lasting: bool = False) -> None:
        super().__init__(message, remedy=remedy)
        self.lasting = lasting


class LoginNeeded(ServerFailed):
    def __init__(self) -> None:
        super().__init__("it wants you to log in first", lasting=True)


class Address(msgspec.Struct, frozen=True):
    url: str
    message: str
    id: str


class AddressesFirst(ServerFailed):
    """It answers a call when the person has been there."""

    def __init__(self, addresses: tuple[Address, ...]) -> None:
        named = ", ".join(one_line(address.url, 500) for address in addresses)
        super().__init__(f"it wants you to open {named} first" if named else "it wants you to open an address first")
        self.addresses = addresses


class TimedOut(ServerFailed):
    """It took longer to start than it may."""

    def __init__(self, seconds: float, remark: str) -> None:
        super().__init__(f"it has not answered within {seconds:g} s.{remark}", lasting=True)


def first_of(error: BaseException) -> BaseException:
    """The libraries below wrap what went wrong in groups."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def is_lost(error: BaseException) -> bool:
    """Whether the library says so: servers use the same code for anything."""
    return isinstance(error, MCPError) and error.code == CONNECTION_CLOSED and error.message.startswith(_LOST)


def as_failure(error: BaseException) -> ServerFailed:
    error = first_of(error)
    match error:
        case ServerFailed():
            return error
        case MCPError() if is_lost(error):
            return ServerFailed("the connection was closed")
        case MCPError() if error.code == URL_ELICITATION_REQUIRED:
            return AddressesFirst(_addresses(error.data))
        case MCPError() if error.message == MALFORMED:
            return ServerFailed(MALFORMED)
        case MCPError():
            return ServerFailed(f"it answered with an error: {one_line(error.message, LONGEST)}")
        case ValidationError():
            place = ".".join(str(part) for part in error.errors()[0]["loc"])
            return ServerFailed(f"{MALFORMED} ({one_line(place, 100)})")
        case httpx2.HTTPStatusError():
            return ServerFailed(f"it answered with HTTP status {error.response.status_code}")
        case httpx2.TimeoutException() | TimeoutError():
            return ServerFailed("it did not answer in time")
        case httpx2.TransportError():
            return ServerFailed(f"it cannot be reached: {one_line(str(error), LONGEST) or type(error).__name__}")
        case _:
            return ServerFailed(one_line(str(error), LONGEST) or type(error).__name__)


def _addresses(data: object) -> tuple[Address, ...]:
    try:
        wanted = ElicitationRequiredErrorData.model_validate(data).elicitations[:MOST_ADDRESSES]
    except ValidationError:
        return ()
    return tuple(Address(one.url, one.message, one.elicitation_id or one.url) for one in wanted)
