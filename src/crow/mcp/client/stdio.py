"""The stdio transport to an MCP server: one JSON message a line; lines that are no message are passed over."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, cast

import anyio
import msgspec
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCRequest, jsonrpc_message_adapter

from crow.mcp.client.message_guard import BLANK, MessageGuard, without_too_much
from crow.mcp.client.program import ErrorSink, Program, StderrLog
from crow.mcp.client.raw_messages import LONG, id_of, is_costly, repaired, shortened
from crow.mcp.client.server_errors import MALFORMED, ServerFailed
from crow.rpc.lines import LineStream, Writer
from crow.visible import one_line

Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]

LONGEST_LINE = 32 * 1024 * 1024
MOST_GARBAGE = 1000
"""Lines that are no messages: some servers print a greeting, and then behave."""


class ServerOutput:
    """The output of a running server: its messages, and the lines that are none."""

    def __init__(self, errors: StderrLog) -> None:
        self._errors = errors
        self.garbage = ""
        """The first line that it wrote instead of a message."""
        self._garbage_lines = 0

    def remark(self) -> str:
        """What may explain why it does not answer, or why it ended; with a blank before it, or empty."""
        said = self._errors.last_words()
        if said:
            return f" It said: {said}"
        return f" Its output begins with: {self.garbage}" if self.garbage else ""

    def understood(self, line: bytes) -> SessionMessage | None:
        """The message in a line; None if there is none. Raises ServerFailed after too many lines of that kind."""
        if message := _message(line) or _message(repaired(line)) or _malformed_answer(line):
            return message
        self.garbage = self.garbage or one_line(line[:400].decode("utf-8", "replace"), 200)
        self._garbage_lines += 1
        if self._garbage_lines > MOST_GARBAGE:
            raise ServerFailed(f"it writes what is no MCP to its output, such as: {self.garbage}")
        return None


def _message(line: bytes) -> SessionMessage | None:
    """Cut before the library looks at it, which needs many times the room of the line."""
    is_cut = is_costly(line)
    try:
        said: Any = msgspec.json.decode(shortened(line) if is_cut else line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None if is_cut else _as_the_library_reads(line)
    if isinstance(said, dict):
        without_too_much(cast("dict[str, Any]", said).get("result"))
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_python(said, by_name=False))
    except ValueError:
        return None


def _as_the_library_reads(line: bytes) -> SessionMessage | None:
    """The library also reads numbers that are none, such as NaN."""
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        return None


def _malformed_answer(line: bytes) -> SessionMessage | None:
    """An error for the request that a malformed answer belongs to, so that nobody waits for a better answer."""
    id = id_of(repaired(line))
    if id is None:
        return None
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=PARSE_ERROR, message=MALFORMED)))


class Stdio:
    """A transport: the server runs while it is entered. `on_end` is told why it no longer talks, once.

    `on_leave` is told that it is being ended, which may take a while.
    """

    def __init__(
        self,
        start: Callable[[], Awaitable[Program]],
        errors: StderrLog,
        guard: MessageGuard,
        on_end: Callable[[ServerFailed], None],
        on_leave: Callable[[], None],
    ) -> None:
        self.output = ServerOutput(errors)
        self._start = start
        self._errors = errors
        self._guard = guard
        self._on_end = on_end
        self._on_leave = on_leave
        self._ending = AsyncExitStack()

    async def __aenter__(self) -> Streams:
        async with AsyncExitStack() as ending:
            self._errors.begin()
            ending.callback(self._errors.close)
            program = await self._start()
            ending.push_async_callback(program.end)
            lines, to_server = await program.open(ErrorSink(self._errors.take, self._guard.pace), LONGEST_LINE)
            ending.callback(program.close_input)
            to_us, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            outgoing, from_us = anyio.create_memory_object_stream[SessionMessage](0)
            for stream in (to_us, incoming, outgoing, from_us):
                ending.callback(stream.close)
            reading = asyncio.create_task(self._read(program, lines, to_us))
            ending.push_async_callback(_stop, reading)
            ending.push_async_callback(_stop, asyncio.create_task(_write(to_server, from_us, self._guard)))
            self._ending = ending.pop_all()
        return incoming, outgoing

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._on_leave()
        await self._ending.aclose()

    async def _read(
        self, program: Program, lines: LineStream, to_us: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        failure: ServerFailed | None = None
        try:
            async for line in lines:
                if line is None:
                    raise ServerFailed(f"it sent a message of more than {LONGEST_LINE // 1024 // 1024} MB")
                await self._guard.pace.rest()
                if not line or line.isspace():
                    self._guard.pace.spend(BLANK)
                elif (message := await self._message(line)) is not None:
                    self._guard.take(message)
                    await to_us.send(message)
        except ServerFailed as failed:
            failure = failed
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return  # nobody listens any more: we are ending it ourselves
        if failure is None:
            failure = ServerFailed(f"{await program.how_it_ended()}.{self.output.remark()}")
        self._on_end(failure)
        to_us.close()

    async def _message(self, line: bytes) -> SessionMessage | None:
        """The message in a line; None if it has none that is of use."""
        if len(line) > LONG:
            message = await asyncio.to_thread(self.output.understood, line)
            wanted = message is None or self._guard.wants_message(message)
        else:
            wanted = self._guard.wants(line)
            message = self.output.understood(line) if wanted else None
        if message is None and wanted:
            self._guard.count()
        return message if wanted else None


async def _write(to_server: Writer, from_us: MemoryObjectReceiveStream[SessionMessage], guard: MessageGuard) -> None:
    with contextlib.suppress(anyio.ClosedResourceError):  # the reader learns of the end, and says why
        async for sent in from_us:
            if isinstance(sent.message, JSONRPCRequest):
                guard.asks()
            to_server.send(sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            # A server that no longer reads is found out by its end, or by the limit of the call.
            await to_server.room()


async def _stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
