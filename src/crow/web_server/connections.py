"""Connections to `crow web`: how many strangers at a time, for how long; clients of the protocol on a WebSocket; peers
that do not read.

A stranger is a connection that is no accepted WebSocket. It serves one request and has to be through with it in
time. If too many come, the oldest goes: whoever opens thousands pushes out his own.
"""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any, cast

import msgspec
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Response
from websockets.server import ServerProtocol

from crow.acp.agent import Agent
from crow.rpc.connection import Connection
from crow.rpc.lines import FLOOD, LineStream
from crow.timeouts import timeout
from crow.web_server.gate import HttpAnswer, refusal, security_headers

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

GOING_AWAY = 1001
PROTOCOL_ERROR = 1002
POLICY_VIOLATION = 1008
READ_TIMEOUT = 60.0
"""Seconds for which a peer need not read what waits for it."""
MOST_UNSENT = 64 * 1024 * 1024
"""Bytes that may wait for it."""
POLL_INTERVAL = 1.0
"""Seconds between two looks at how much waits, while the peer does not read."""
CLOSE_TIMEOUT = 1.0
"""Seconds that a peer gets to read the last that it is told."""

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
        response = super().reject(status, "This is not a WebSocket handshake.\n")
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
            self.transport.write(_serialized(refusal(431, "A request line is too long, or there are too many.")))
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


# --- a client of the protocol: each text frame is a message


class WebSocketClient:
    """`abort` ends the connection although the peer has not read all that it was sent."""

    def __init__(self, agent: Agent, receive: Receive, send: Send, abort: Callable[[], None]) -> None:
        self._agent = agent
        self._receive = receive
        self._send = send
        self._abort = abort
        self._closing: asyncio.Future[tuple[int, str]] = asyncio.get_running_loop().create_future()

    def close(self, code: int, reason: str) -> None:
        """Ends it, soon. Whoever closes first gives the reason."""
        if not self._closing.done():
            self._closing.set_result((code, reason))

    async def run(self) -> None:
        """Until one of both sides ends it. The client leaves its sessions then, which go on or end without it."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)  # noqa: FBT003 -- the method takes it so
            connection = self._agent.connect(theirs.fileno(), theirs.fileno())
            lines = LineStream(ours.fileno(), longest=2**40)
            tasks = [
                asyncio.ensure_future(work)
                for work in (connection.run(), self._take_frames(connection), self._send_lines(connection, lines))
            ]
            try:
                await asyncio.wait([*tasks, self._closing], return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                lines.close()
                await self._agent.close()
                await connection.close()
                await self._send_close()

    async def _take_frames(self, connection: Connection) -> None:
        is_first = True
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            if text is None:
                continue  # binary frames are ignored: so the protocol's transport has it
            if is_first and not _is_initialize(text):
                self.close(PROTOCOL_ERROR, "initialize must come first")
                return
            is_first = False
            if connection.unsent > FLOOD:
                await connection.room()
            connection.receive(text.encode("utf-8", "surrogatepass"))

    async def _send_lines(self, connection: Connection, lines: LineStream) -> None:
        async for line in lines:
            if line is not None and not await self._deliver(line, connection):
                self.close(POLICY_VIOLATION, "messages were not read in time")
                return

    async def _deliver(self, line: bytes, connection: Connection) -> bool:
        """False if the peer does not read."""
        loop = asyncio.get_running_loop()
        end = loop.time() + READ_TIMEOUT
        sending = asyncio.ensure_future(self._send({"type": "websocket.send", "text": line.decode("utf-8", "replace")}))
        try:
            while not sending.done():
                await asyncio.wait([sending], timeout=POLL_INTERVAL)
                if not sending.done() and (loop.time() > end or connection.unsent > MOST_UNSENT):
                    return False
            sending.result()
        finally:
            sending.cancel()
        return True

    async def _send_close(self) -> None:
        code, reason = self._closing.result() if self._closing.done() else (1000, "")
        with contextlib.suppress(Exception):
            # It may be that the peer has gone, or reads nothing: then not even this can be said.
            async with timeout(CLOSE_TIMEOUT):
                await self._send({"type": "websocket.close", "code": code, "reason": reason})
                return
        self._abort()


def _is_initialize(text: str) -> bool:
    try:
        return msgspec.json.decode(text, type=_Method).method == "initialize"
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


class _Method(msgspec.Struct):
    method: str = ""
