"""Serves `crow mcp` over HTTP on this machine: checks the token and the origin of each request, and notices when a
client's session ends.

The library ends a session when its client says so, or asks for nothing for long, and tells nobody. So whoever keeps
something for a client learns it here, by the same clock: it runs while no request of the session is being answered, and
no stream of it is open.
"""

import asyncio
import hmac
import os
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from crow.errors import CrowError
from crow.mcp.server.server import SESSION_ID, CrowServer
from crow.rpc.uvicorn_server import UvicornServer

ADDRESS = "127.0.0.1"
PATH = "/mcp"
LARGEST_REQUEST = 32 * 1024 * 1024
"""Bytes: a file that is created comes in one request."""
MOST_SESSIONS = 64
IDLE_TIMEOUT = 30 * 60.0
"""Seconds without a request or an open stream, after which a client's session ends, and its commands with it."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


def listen(port: int) -> socket.socket:
    """A socket that only this machine reaches; port 0 takes a free one."""
    try:
        return socket.create_server((ADDRESS, port))
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()  # the error's own words name the address once more
        raise CrowError(
            f"Port {port} cannot be used: {reason}.", remedy="Choose another port, or leave it out."
        ) from None


def address_of(listener: socket.socket) -> str:
    return f"http://{ADDRESS}:{listener.getsockname()[1]}{PATH}"


async def serve_http(server: CrowServer, listener: socket.socket, token: str) -> None:
    port = listener.getsockname()[1]
    names = [f"{ADDRESS}:{port}", f"localhost:{port}"]
    # A page that a browser shows can have its own name lead here: it cannot choose these two headers.
    checked = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=names,
        allowed_origins=[f"http://{name}" for name in names],
    )
    app = server.protocol.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=checked,
        max_request_body_size=LARGEST_REQUEST,
        max_sessions=MOST_SESSIONS,
        session_idle_timeout=IDLE_TIMEOUT,
    )
    config = uvicorn.Config(
        with_token(with_session_ends(app, server.clients.forget, IDLE_TIMEOUT), token),
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=1,
    )
    await UvicornServer(config).serve([listener])


def with_token(app: App, token: str) -> App:
    """The app for those who show the token; 401 for everybody else."""
    expected = token.encode()

    async def gate(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or _shows(scope, expected):
            await app(scope, receive, send)
            return
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"www-authenticate", b"Bearer")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": b"The header `Authorization: Bearer TOKEN` is required.\n"})

    return gate


def _shows(scope: Message, expected: bytes) -> bool:
    shown = header_values(scope, "authorization")
    if len(shown) != 1:
        return False
    scheme, _, token = shown[0].partition(b" ")
    return scheme.lower() == b"bearer" and hmac.compare_digest(token, expected)


def with_session_ends(app: App, on_end: Callable[[str], None], idle_timeout: float) -> App:
    """The app; `on_end` is called with the id of each session that a client ended, or that was idle for too long."""
    clocks: dict[str, _IdleClock] = {}

    def end(session_id: str) -> None:
        clocks.pop(session_id).end()
        on_end(session_id)

    async def served(scope: Message, receive: Receive, send: Send) -> None:
        session_id = _session_id(scope)
        if not session_id:
            await app(scope, receive, send)
            return
        if session_id not in clocks:
            clocks[session_id] = _IdleClock(idle_timeout, lambda: end(session_id))
        clock = clocks[session_id]
        clock.begin()
        try:
            await app(scope, receive, send)
        finally:
            clock.finish()
        if scope["method"] == "DELETE" and session_id in clocks:
            end(session_id)

    return served


class _IdleClock:
    """Counts the requests of one session that are under way, and runs while there are none."""

    def __init__(self, idle_timeout: float, on_idle: Callable[[], None]) -> None:
        self._idle_timeout = idle_timeout
        self._on_idle = on_idle
        self._under_way = 0
        self._ended = False
        self._clock: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        self._under_way += 1
        self._stop_clock()

    def finish(self) -> None:
        self._under_way -= 1
        if not self._under_way and not self._ended:
            self._clock = asyncio.get_running_loop().call_later(self._idle_timeout, self._on_idle)

    def end(self) -> None:
        self._ended = True
        self._stop_clock()

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None


def header_values(scope: Message, name: str) -> list[bytes]:
    """The values of a header, one for each time that it was sent."""
    return [value for header, value in scope["headers"] if header == name.encode()]


def _session_id(scope: Message) -> str:
    """Empty for a request that belongs to no session, such as the one that opens it."""
    if scope["type"] != "http":
        return ""
    found = header_values(scope, SESSION_ID)
    return found[0].decode("latin-1") if found else ""
