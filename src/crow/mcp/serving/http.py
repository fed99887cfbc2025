"""Clients over HTTP on this machine: each request shows the token, and comes from no web page."""

import contextlib
import hmac
import os
import socket
from collections.abc import Generator

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from crow.errors import CrowError
from crow.mcp.serving.farewells import App, Message, Receive, Send, values, with_farewells
from crow.mcp.serving.server import CrowServer

ADDRESS = "127.0.0.1"
PATH = "/mcp"
LARGEST_REQUEST = 32 * 1024 * 1024
"""Bytes: a file that is created comes in one request."""
MOST_SESSIONS = 64
LONGEST_SILENCE = 30 * 60.0
"""Seconds without a request or an open stream, after which a client counts as gone, and its commands end."""


def listen(port: int) -> socket.socket:
    """A socket that only this machine reaches; port 0 takes a free one."""
    try:
        return socket.create_server((ADDRESS, port))
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()  # the error's own words name the address once more
        raise CrowError(f"Port {port} cannot be used: {reason}.", remedy="Choose another, or none.") from None


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
        session_idle_timeout=LONGEST_SILENCE,
    )
    config = uvicorn.Config(
        with_token(with_farewells(app, server.clients.forget, LONGEST_SILENCE), token),
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    await _Serving(config).serve([listener])


class _Serving(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """They are ours: commands have to be ended before the process is."""
        yield


def with_token(app: App, token: str) -> App:
    """The app for those who show the token; 401 for everybody else."""
    expected = token.encode()

    async def gate(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or _shows(scope, expected):
            await app(scope, receive, send)
            return
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"www-authenticate", b"Bearer")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": b"The header `Authorization: Bearer TOKEN` is needed.\n"})

    return gate


def _shows(scope: Message, expected: bytes) -> bool:
    shown = values(scope, "authorization")
    if len(shown) != 1:
        return False
    scheme, _, token = shown[0].partition(b" ")
    return scheme.lower() == b"bearer" and hmac.compare_digest(token, expected)
