"""The HTTP transport to an MCP server: the streamable kind and the older one with server-sent events, size limits,
refused requests.
"""

import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import msgspec
from anyio.streams.memory import MemoryObjectSendStream
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import METHOD_NOT_FOUND, PARSE_ERROR, ErrorData, JSONRPCError

from crow.config.hosts import is_header_name, is_header_value
from crow.config.settings import McpServerSettings
from crow.mcp.client.message_guard import BYTE, THROWN_AWAY, MessageGuard, readable
from crow.mcp.client.server_errors import MALFORMED, NOT_FOUND, ON_THE_WAY, ServerFailed, SessionExpired, fault_of
from crow.mcp.client.stdio import LONGEST_LINE
from crow.timeouts import timeout
from crow.visible import one_line

LIMITS = httpx2.Timeout(10.0, read=None)
"""Seconds that a connection may take; how long an answer may take, or an event to come, is the caller's to say."""
CLOSE_TIMEOUT = 1.0
"""Seconds that a server gets for its answer when we leave."""
LARGEST_EVENT = 2 * LONGEST_LINE
"""For the library, which counts all lines of an event together: a single one is stopped before, with the cause."""
TRANSPORT_ERRORS = (
    "Server returned an error response",
    "Not Found",
    "Unexpected content type",
    "Redirect to",
    "Failed to parse JSON response",
    "Failed to parse SSE message",
)
"""How the library's own messages begin, where no answer came that it understands."""
UNAUTHORISED = 401


def checked_url(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise ServerFailed("its address must begin with http:// or https://", lasting=True)
    try:
        has_host = bool(httpx2.URL(url).host)
        urlsplit(url)
    except (ValueError, httpx2.InvalidURL):
        has_host = False
    if not has_host:
        raise ServerFailed("its address is malformed: check the url", lasting=True)
    return url


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """A value may be a key: it is not shown."""
    for name, value in headers.items():
        if not is_header_name(name):
            raise ServerFailed(f"`{one_line(name, 100)}` is not a valid header name", lasting=True)
        if not is_header_value(value):
            raise ServerFailed(f"the value of its header `{name}` contains invalid characters", lasting=True)
    return dict(headers)


def is_authorised(settings: McpServerSettings) -> bool:
    """Whether the configuration has the header that the tokens of a login would go into."""
    return any(name.lower() == "authorization" for name in settings.headers)


class Remote:
    """A transport: connected while it is entered. `on_end` is told when the server no longer sends, or forgot us.

    `on_unauthorised` is told that the server does not let us in, and that it does so after all.
    """

    def __init__(
        self,
        settings: McpServerSettings,
        auth: httpx2.Auth | None,
        guard: MessageGuard,
        on_unauthorised: Callable[[bool], None],
        on_end: Callable[[ServerFailed], None],
    ) -> None:
        self._settings = settings
        self._auth = auth
        self._guard = guard
        self._on_unauthorised = on_unauthorised
        self._on_end = on_end
        self._entered = self._transport()
        self._leaving = False
        self._faults: dict[Any, ServerFailed] = {}
        """What came instead of an answer, by the id of the question."""

    async def __aenter__(self) -> tuple[Any, Any]:
        return await self._entered.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        with contextlib.suppress(TimeoutError):
            async with timeout(CLOSE_TIMEOUT):
                return await self._entered.__aexit__(kind, error, trace)
        return None

    @asynccontextmanager
    async def _transport(self) -> AsyncGenerator[tuple[Any, Any]]:
        async with self._connected() as (messages, outgoing), anyio.create_task_group() as tasks:
            to_us, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            tasks.start_soon(self._pass_on, messages, to_us)
            try:
                yield incoming, outgoing
            finally:
                self._leaving = True
                tasks.cancel_scope.cancel()
                for stream in (to_us, incoming, messages, outgoing):
                    stream.close()

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[tuple[Any, Any]]:
        url, headers = checked_url(self._settings.url), checked_headers(self._settings.headers)
        if self._settings.type == "sse":
            async with sse_client(url, headers, httpx_client_factory=self._http, auth=self._auth) as streams:
                yield streams
            return
        http = self._http(headers, auth=self._auth)
        async with http, streamable_http_client(url, http_client=http, max_sse_event_size=LARGEST_EVENT) as streams:
            yield streams

    def _http(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        # Redirects are followed by the library, within the same origin. The limits that it would set are not ours: it
        # takes a server that had nothing to say for five minutes for a dead one.
        return httpx2.AsyncClient(headers=headers, timeout=LIMITS, auth=auth, event_hooks={"response": [self._look]})

    async def _look(self, response: httpx2.Response) -> None:
        response.aiter_bytes = self._limited(response)
        shows_token = response.request.headers.get("authorization", "").startswith("Bearer ")
        if response.status_code == UNAUTHORISED:
            self._on_unauthorised(True)  # noqa: FBT003 -- yes or no
        elif shows_token and response.is_success:
            self._on_unauthorised(False)  # noqa: FBT003 -- yes or no
        asked = _question_in(response.request)
        if asked is not None:
            self._guard.asks()
        self._note_fault(response, asked)
        is_ours = response.request.method == "POST" and response.url == self._settings.url
        if response.status_code == NOT_FOUND and is_ours and asked is None:
            # Most likely it was started anew, and knows nothing of us. Whoever asked something learns it as an answer.
            self._on_end(SessionExpired())

    def _note_fault(self, response: httpx2.Response, asked: int | str | None) -> None:
        """A redirect that is followed is one as well, until the answer comes."""
        fault = fault_of(response)
        if fault is None and not self._faults:
            return
        if fault is not None and self._settings.type == "sse" and response.request.method == "GET":
            if response.is_success:  # any other the library tells of
                self._on_end(fault)
            return
        self._faults.pop(asked, None)
        if fault is not None and asked is not None:
            self._faults[asked] = fault

    def _limited(self, response: httpx2.Response) -> Callable[..., AsyncGenerator[bytes]]:
        """The body as it is when unpacked, each message mended and none of it too much: the library would keep any
        amount of it, and read it at once. An endless one comes in whole lines, any other as a whole.
        """
        unlimited = response.aiter_bytes
        is_endless = response.headers.get("content-type", "").lower().startswith("text/event-stream")

        async def limited(chunk_size: int | None = None) -> AsyncGenerator[bytes]:
            begun: list[bytes] = []
            size = 0
            async with aclosing(unlimited(chunk_size)) as chunks:
                async for chunk in chunks:
                    size += len(chunk)
                    if size > LONGEST_LINE:
                        raise self._too_long()
                    end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1 if is_endless else 0
                    if end:
                        self._guard.pace.spend(chunk.count(b"\n") * THROWN_AWAY + len(chunk) * BYTE)
                        await self._guard.pace.rest()
                        yield _readable_events(b"".join((*begun, chunk[:end])))
                        begun.clear()
                        size = len(chunk) - end
                    begun.append(chunk[end:])
            rest = b"".join(begun)
            yield _readable_events(rest) if is_endless else readable(rest)

        return limited

    def _too_long(self) -> Exception:
        failure = ServerFailed(f"it sent a message of more than {LONGEST_LINE // 1024 // 1024} MB")
        self._on_end(failure)
        return httpx2.StreamError(failure.message)  # what the library turns into the end of that call

    def _explained(self, message: SessionMessage | Exception) -> SessionMessage | Exception:
        """With our words in place of the library's, where no answer came."""
        if not isinstance(message, SessionMessage) or not isinstance(message.message, JSONRPCError):
            return message
        failed = message.message
        fault = self._faults.pop(failed.id, None)
        no_method = failed.error.code == METHOD_NOT_FOUND
        is_expired = isinstance(fault, SessionExpired) and not no_method
        if not is_expired and not failed.error.message.startswith(TRANSPORT_ERRORS):
            return message
        if fault is None:
            error = ErrorData(code=PARSE_ERROR, message=MALFORMED)
        else:  # a server of the newer protocol may say with a status that there is no such method
            error = ErrorData(code=METHOD_NOT_FOUND if no_method else ON_THE_WAY, message=fault.message, data=fault)
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=failed.id, error=error))

    async def _pass_on(self, messages: Any, to_us: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        failure = ServerFailed("it closed the connection")
        try:
            async for message in messages:
                await self._guard.pace.rest()
                if self._guard.take(message):
                    await to_us.send(self._explained(message))
        except ServerFailed as failed:
            failure = failed
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return
        if not self._leaving:
            self._on_end(failure)
        to_us.close()


def _readable_events(lines: bytes) -> bytes:
    """Lines of an event stream, each message in them readable."""
    return b"".join(
        b"data:" + readable(line[5:]) if line.startswith(b"data:") else readable(line)
        for line in lines.splitlines(keepends=True)
    )


class _Question(msgspec.Struct):
    id: int | str
    method: str
    """An answer of ours has an id, too, but no method."""


def _question_in(request: httpx2.Request) -> int | str | None:
    """The id of the message that it carries; None if it carries none that is to be answered."""
    if request.method != "POST":
        return None
    try:
        return msgspec.json.decode(request.content, type=_Question).id
    except (msgspec.DecodeError, UnicodeError, httpx2.StreamError):
        return None
