"""One client of the protocol on a WebSocket: each text frame is a message; a peer that does not read is given up."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import msgspec

from crow.acp.agent import Agent
from crow.rpc.connection import Connection
from crow.rpc.lines import FLOOD, LineStream
from crow.timeouts import timeout

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
                self.close(POLICY_VIOLATION, "what was sent was not read")
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
