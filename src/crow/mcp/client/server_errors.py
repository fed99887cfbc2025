"""Decides what an MCP server's failure means (lost, log-in needed, key refused, too slow), and writes the notices that
the person gets of it.
"""

import logging
import re
from collections.abc import Callable
from typing import Literal, cast

import httpx2
import msgspec
from mcp_types import CONNECTION_CLOSED, URL_ELICITATION_REQUIRED, ElicitationRequiredErrorData
from pydantic import ValidationError

from crow.config.hosts import shown_address
from crow.errors import CrowError
from crow.events import Notice, Remark
from crow.mcp.client.configured import ConfiguredServer, Origin, bare_address
from crow.visible import one_line
from mcp import MCPError

LONGEST = 500
MOST_URLS = 5
ACCEPTED = 202
FORBIDDEN = 403
NOT_FOUND = 404
SESSION = "mcp-session-id"
"""The header by which a server over HTTP knows us."""
ON_THE_WAY = -31999
"""The code of errors that no server sent: they say in our words what came instead of an answer."""
_LOST = ("Connection closed", "SSE stream")
"""How the library's messages begin when it has lost a server."""
MALFORMED = "its answer is malformed"
TOO_MANY_VALUES = "its answer holds too many values"
_TOO_DEEP = "Maximum serialization depth"
"""How the library's message begins when it cannot write a message."""
_ADDRESS = re.compile(r"https?://[^\s'\"<>]+")


class ServerFailed(CrowError):
    """The message is the cause, without the server's name. `lasting`: trying again would change nothing.

    `for_model` is the cause as the model is told it, where the message names an address.
    """

    def __init__(self, message: str, *, remedy: str = "", lasting: bool = False, for_model: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.lasting = lasting
        self.for_model = for_model or message


class LoginNeeded(ServerFailed):
    """`server` is what `crow mcp login` calls it."""

    def __init__(self, server: str = "", *, is_address: bool = False) -> None:
        cause = "it requires a login"
        message = f"{cause}: run `crow mcp login {server}`" if server else cause
        super().__init__(message, lasting=True, for_model=f"{cause}: see `/mcp`" if is_address else message)


class KeyRefused(ServerFailed):
    def __init__(self, place: str) -> None:
        super().__init__(f"it rejected the key in its {place}", lasting=True)


class NotCalled(ServerFailed):
    """A call that failed before anything was sent to the server."""


class SessionExpired(ServerFailed):
    """The server does not know our session any more, and has not looked at what was asked in it."""

    def __init__(self) -> None:
        super().__init__("it no longer knows this session")


class RequiredUrl(msgspec.Struct, frozen=True):
    url: str
    message: str
    id: str


class UrlElicitationRequired(ServerFailed):
    """The server answers a call when the person has opened these URLs."""

    def __init__(self, addresses: tuple[RequiredUrl, ...]) -> None:
        named = ", ".join(one_line(address.url, 500) for address in addresses)
        super().__init__(f"it asks you to open {named} first" if named else "it asks you to open an address first")
        self.addresses = addresses


class TimedOut(ServerFailed):
    """The server took longer to start than it may."""

    def __init__(self, seconds: float, remark: str) -> None:
        super().__init__(f"it did not answer within {seconds:g} s.{remark}", lasting=True)


def first_of(error: BaseException) -> BaseException:
    """The first failure inside of an exception group, in which the libraries below wrap what went wrong."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def is_lost(error: BaseException) -> bool:
    """Whether the library says that the connection is lost: servers use the same code for anything."""
    return isinstance(error, MCPError) and error.code == CONNECTION_CLOSED and error.message.startswith(_LOST)


def as_failure(error: BaseException) -> ServerFailed:
    error = first_of(error)
    match error:
        case ServerFailed():
            return error
        case MCPError() if is_lost(error):
            return ServerFailed("the connection was closed")
        case MCPError() if error.code == URL_ELICITATION_REQUIRED:
            return UrlElicitationRequired(_required_urls(error.data))
        case MCPError() if isinstance(error.data, ServerFailed):
            return error.data
        case MCPError() if error.message in (MALFORMED, TOO_MANY_VALUES):
            return ServerFailed(error.message)
        case MCPError():
            return ServerFailed(f"it answered with an error: {one_line(error.message, LONGEST)}")
        case ValueError() if str(error).startswith(_TOO_DEEP):
            return NotCalled("the arguments are nested too deeply to be sent")
        case ValidationError():
            place = ".".join(str(part) for part in error.errors()[0]["loc"])
            return ServerFailed(f"{MALFORMED} ({one_line(place, 100)})")
        case httpx2.HTTPStatusError():
            return fault_of(error.response) or ServerFailed(MALFORMED)
        case httpx2.TimeoutException() | TimeoutError():
            return ServerFailed("it did not answer in time")
        case httpx2.TransportError():
            return ServerFailed(f"it cannot be reached: {_said_by(error)}")
        case _:
            return ServerFailed(_said_by(error))


def _said_by(error: BaseException) -> str:
    said = _ADDRESS.sub(lambda found: shown_address(found[0]), str(error))
    return one_line(said, LONGEST) or type(error).__name__


def fault_of(response: httpx2.Response) -> ServerFailed | None:
    """What is wrong with an answer over HTTP, as far as its head tells. A redirect is one that was not followed."""
    if response.has_redirect_location:
        try:
            target = response.url.join(response.headers["location"])
            where = one_line(shown_address(str(target)), LONGEST)
        except (ValueError, httpx2.InvalidURL):
            return ServerFailed("it redirects to a malformed address: check the url", lasting=True)
        if (target.scheme, target.host, target.port) == (response.url.scheme, response.url.host, response.url.port):
            told = f"it keeps redirecting, finally to {where}: check the url"
            return ServerFailed(told, lasting=True, for_model="it keeps redirecting")
        told = f"it redirects to {where}, which Crow does not follow: check the url"
        return ServerFailed(told, lasting=True, for_model="it redirects to another address, which Crow does not follow")
    if response.status_code == NOT_FOUND and SESSION in response.request.headers:
        return SessionExpired()
    if response.status_code in (FORBIDDEN, NOT_FOUND):
        return ServerFailed(f"it answered with HTTP status {response.status_code}: check the url", lasting=True)
    if not response.is_success:
        return ServerFailed(f"it answered with HTTP status {response.status_code}")
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in ("application/json", "text/event-stream") or response.status_code == ACCEPTED:
        return None
    what = "a web page" if kind == "text/html" else f"the type {one_line(kind, 100)}" if kind else "no type"
    return ServerFailed(f"it answered with {what}, not MCP: check the url", lasting=True)


def _required_urls(data: object) -> tuple[RequiredUrl, ...]:
    try:
        wanted = ElicitationRequiredErrorData.model_validate(data).elicitations[:MOST_URLS]
    except ValidationError:
        return ()
    return tuple(RequiredUrl(one.url, one.message, one.elicitation_id or one.url) for one in wanted)


# --- what the person and the model are told


class ServerNotices:
    """The notices about one server: which one it is, who configured it, what is the matter, what can be done."""

    def __init__(self, server: ConfiguredServer, tell: Callable[[Notice], None]) -> None:
        self._server = server
        self._tell = tell

    def login_needed(self) -> LoginNeeded:
        if self._server.origin is Origin.CONFIG:
            return LoginNeeded(self._server.shown_name)
        # Another server of this name may stand in the configuration, so the editor's is named by its address.
        return LoginNeeded(one_line(bare_address(self._server.settings.url), 500), is_address=True)

    def is_ready_now(self, *, was_ready: bool) -> None:
        self._say("info", f"The MCP server {self._shown} is ready now.", was_ready)

    def has_failed(self, failure: ServerFailed, *, was_ready: bool, given_up: bool) -> None:
        verb = "has stopped" if was_ready else "cannot be used"
        if isinstance(failure, TimedOut):
            next_step = f" {self._by_hand}" if self._server.settings.url else f" It was stopped. {self._by_hand}"
        else:
            next_step = "" if given_up else " Restarting it."
        text = f"The MCP server {self._shown} {verb}: {failure.message.rstrip('.')}.{next_step}"
        self._say("warning", text, was_ready)

    def is_given_up(self, failure: ServerFailed, *, was_ready: bool) -> None:
        why = failure.message.rstrip(".")
        self._say(
            "warning",
            f"The MCP server {self._shown} failed again and is not restarted: {why}. {self._by_hand}",
            was_ready,
        )

    def is_late(self, seconds: float, remark: str) -> None:
        text = f"is not ready after {seconds:g} s. Continuing without it; its tools are added when it is ready.{remark}"
        self._tell(Notice("warning", f"The MCP server {self._shown} {text}"))

    def waits_for_login(self) -> None:
        text = f"The MCP server {self._shown} is waiting for you to log in. Its tools are added after that."
        self._tell(Notice("warning", text))

    def _say(self, severity: Literal["info", "warning"], text: str, was_ready: bool) -> None:
        """What becomes of a server that was in use belongs to the conversation. That one cannot be started is said
        anew whenever the session is opened, as long as it is so."""
        self._tell(Remark(severity, text) if was_ready else Notice(severity, text))

    def warn(self, text: str) -> None:
        self._tell(Notice("warning", f"The MCP server {self._shown}: {text}"))

    @property
    def _shown(self) -> str:
        return f"`{self._server.shown_name}` (from {self._server.origin})"

    @property
    def _by_hand(self) -> str:
        return f"Run `/mcp restart {self._server.shown_name}` to try again."


def gave_no(what: str, server: ConfiguredServer, failed: ServerFailed) -> str:
    """A sentence for the model about something that was asked of a server."""
    return f"The MCP server `{server.shown_name}` gave no {what}: {failed.for_model.rstrip('.')}."


def silence_library() -> None:
    """Turns off the log of the MCP library, which holds whole messages and failures that we tell in our own words."""
    for name in ("mcp", "client", "httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
