"""Connections to `crow web`, below any request: how many strangers at a time, for how long, and what becomes of a peer
that does not read.

A stranger is a connection that is no accepted WebSocket. It serves one request and has to be through with it in
time. If too many come, the oldest goes: whoever opens thousands pushes out his own.
"""

import asyncio
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

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


class WebSocketConnection(WebSocketsSansIOProtocol):
    """What a peer sends before it was accepted is not read."""

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

    def connection_lost(self, exc: Exception | None) -> None:
        cast("ServerConfig", self.config).strangers.remove(self.transport)
        super().connection_lost(exc)

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self.transport.abort()  # closing would wait until the peer has read what it was sent
