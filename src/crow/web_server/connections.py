"""Connections to `crow web`, below any request: how many strangers at a time, for how long, and what becomes of a peer
that does not read.

A stranger is a connection that is no accepted WebSocket. It serves one request and has to be through with it in
time. If too many come, the oldest goes: whoever opens thousands pushes out his own.
"""

import asyncio
from http import HTTPStatus
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Response
from websockets.server import ServerProtocol

from crow.web_server.answers import HttpAnswer, refusal, security_headers

MOST_STRANGERS = 128
STRANGER_LIFETIME = 30.0
"""Seconds from the connection to the end of its one request."""
ACCEPTED_AT_ONCE = 64
"""Connections that are accepted in one step of the event loop: less than the system has descriptors for us."""
LISTEN_BACKLOG = 4096
"""Connections that the system keeps until they are accepted."""


class Strangers:
    def __init__(self) -> None:
        self._deadlines: dict[asyncio.Transport, asyncio.TimerHandle] = {}

    def add(self, transport: asyncio.Transport) -> None:
        while len(self._deadlines) >= MOST_STRANGERS:
            oldest = next(iter(self._deadlines))
            self.remove(oldest)
            oldest.abort()
        self._deadlines[transport] = asyncio.get_running_loop().call_later(STRANGER_LIFETIME, transport.abort)

    def remove(self, transport: asyncio.Transport) -> None:
        """It is no stranger any longer, or gone."""
        deadline = self._deadlines.pop(transport, None)
        if deadline is not None:
            deadline.cancel()


class ServerConfig(uvicorn.Config):
    """The configuration of the server, through which each connection finds the strangers."""

    strangers: Strangers


class HttpConnection(H11Protocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] -- as uvicorn has it
        cast("ServerConfig", self.config).strangers.add(transport)
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        cast("ServerConfig", self.config).strangers.remove(self.transport)
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: Any) -> None:
        # Those of every other server on this machine, which nobody here reads and which may be too long.
        self.headers = [(name, value) for name, value in self.headers if name != b"cookie"]
        super().handle_websocket_upgrade(event)

    def send_400_response(self, msg: str) -> None:
        """To what is no request, no gate has been asked: the answer has the headers of all others."""
        is_begun = False
        if self.cycle is not None:  # pyright: ignore[reportUnnecessaryComparison] -- None before the first request
            is_begun, self.cycle.disconnected = self.cycle.response_started, True  # this is its answer
        if not is_begun:
            self.transport.write(_serialized(refusal(400, msg)))
        self.transport.close()


def _serialized(answer: HttpAnswer) -> bytes:
    first = b"HTTP/1.1 %d %s" % (answer.status, HTTPStatus(answer.status).phrase.encode())
    return b"\r\n".join([first, *(b"%s: %s" % header for header in answer.closing_headers), b"", answer.body])


class _Handshake(ServerProtocol):
    """Answers what is no handshake as every other request is answered, and repeats nothing of it."""

    def reject(self, status: int, text: str) -> Response:
        response = super().reject(status, "This is no handshake of a WebSocket.\n")
        for name, value in security_headers():
            response.headers[name.decode()] = value.decode()
        return response


class WebSocketConnection(WebSocketsSansIOProtocol):
    """What a peer sends before it was accepted is not read."""

    def __init__(self, config: uvicorn.Config, *rest: Any, **more: Any) -> None:
        super().__init__(config, *rest, **more)
        self.conn = _Handshake(max_size=config.ws_max_size, logger=self.logger)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            # All else was seen to be right before.
            self.transport.write(_serialized(refusal(431, "A line of the request is too long, or there are too many.")))
            self.transport.close()

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if not self.close_sent:
            self.transport.pause_reading()
            cast("dict[str, Any]", self.scope)["crow.abort"] = self.transport.abort

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.accept":
            cast("ServerConfig", self.config).strangers.remove(self.transport)
            self.transport.resume_reading()
        elif message["type"] == "websocket.http.response.body":
            self.handshake_complete = True  # else each refusal would be logged as a fault

    def connection_lost(self, exc: Exception | None) -> None:
        cast("ServerConfig", self.config).strangers.remove(self.transport)
        super().connection_lost(exc)

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self.transport.abort()  # closing would wait until the peer has read what it was sent
