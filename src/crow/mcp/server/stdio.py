"""Serves `crow mcp` to one client over standard input and output: answers unreadable lines, and finishes open calls
when the input ends.

The library's own transport says nothing to a line that it cannot read, and whoever sent it waits for an answer until
its patience ends. Here every line that may be a request is answered. And it cancels what is under way as soon as the
input ends; here that is finished first, so that calls can be piped in.
"""

import asyncio
import json
import math
from typing import Any, cast

import anyio
import pydantic_core
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from crow.mcp.server.server import CrowServer
from crow.rpc.lines import LONGEST_LINE, LineStream, Writer
from crow.timeouts import timeout

Received = SessionMessage | Exception
"""What the library takes from a transport; of ours no exceptions come."""

TIME_TO_FINISH = 1.5
"""Seconds that requests get after the end of the input; hosts lose patience after two."""
Message = JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError
Id = str | int | float | None


class OpenRequests:
    """The client's requests that are not answered yet, so that the end of its input does not cut them off."""

    def __init__(self) -> None:
        self._ids: set[object] = set()
        self._none_left = asyncio.Event()
        self._none_left.set()
        self.are_all_here = False
        """The client's input has ended: what it asked for is finished although it may well have gone."""

    def received(self, message: Message) -> None:
        match message:
            case JSONRPCRequest(id=id):
                self._ids.add(id)
                self._none_left.clear()
            case JSONRPCNotification(method="notifications/cancelled", params={"requestId": str() | int() as id}):
                self._close(id)  # such a request is never answered
            case _:
                pass

    def sent(self, message: Message) -> None:
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._close(message.id)

    async def all_answered(self, seconds: float) -> None:
        """Returns when there are none left, or after so many seconds."""
        try:
            async with timeout(seconds):
                await self._none_left.wait()
        except TimeoutError:
            pass  # whoever serves them cancels them

    def _close(self, id: object) -> None:
        self._ids.discard(id)
        if not self._ids:
            self._none_left.set()


async def serve_stdio(server: CrowServer, reader: int, writer: int) -> None:
    """`reader` and `writer` are the real descriptors, which nothing else in the process can reach.

    OSError if nothing can be written; a client that has left is no failure.
    """
    arriving, arrived = anyio.create_memory_object_stream[Received]()
    leaving, to_send = anyio.create_memory_object_stream[SessionMessage]()
    serving, requests = anyio.CancelScope(), OpenRequests()

    def stop() -> None:
        if output.failure is not None or not requests.are_all_here:
            serving.cancel()

    lines, output = LineStream(reader), Writer(writer, stop)
    try:
        with serving:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_read, lines, arriving, output, requests)
                tasks.start_soon(_write, to_send, output, requests)
                await server.protocol.run(arrived, leaving, server.protocol.create_initialization_options())
    finally:
        lines.close()
        output.stop()
    if output.failure is not None:
        raise output.failure


async def _read(
    lines: LineStream, arriving: MemoryObjectSendStream[Received], output: Writer, requests: OpenRequests
) -> None:
    async with arriving:
        async for line in lines:
            text = line.decode("utf-8", "replace") if line is not None else None
            message = _message(text) if text is not None else None
            if message is not None:
                requests.received(message.message)
                await arriving.send(message)
            elif answer := refusal(text):
                output.send(f"{answer}\n".encode())
                await output.flushed()
        requests.are_all_here = True
        await requests.all_answered(TIME_TO_FINISH)


async def _write(to_send: MemoryObjectReceiveStream[SessionMessage], output: Writer, requests: OpenRequests) -> None:
    async with to_send:
        async for item in to_send:
            output.send(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            await output.flushed()
            requests.sent(item.message)


def _message(line: str) -> SessionMessage | None:
    """None if it is none that can be read."""
    try:
        raw = pydantic_core.from_json(line)
        message = jsonrpc_message_adapter.validate_python(raw, by_name=False)
    except ValueError:
        return None
    # A request whose id cannot be used would pass for a notification, which nobody answers.
    if isinstance(message, JSONRPCNotification) and raw.get("id") is not None:
        return None
    return SessionMessage(message)


# --- what is answered to a line that is no message of the protocol, so that nobody waits for an answer in vain


def refusal(line: str | None) -> str:
    """An error, as a line, with the id that the line has, where that can be told; empty if none is expected.

    None stands for a line that was skipped, being too long.
    """
    if line is None:
        return _error(None, INVALID_REQUEST, f"A line over {LONGEST_LINE // 2**20} MiB was skipped.")
    try:
        raw = json.loads(line)  # which also reads halves of characters: the id may still be found
    except (ValueError, RecursionError):
        return _error(None, PARSE_ERROR, "This line is not JSON.")
    match raw:
        case {"result": _} | {"error": _} if "method" not in raw:
            return ""  # an answer to us: its id is one of ours
        case {"method": str()} if "id" not in raw:
            return ""  # a notification
        case dict():
            return _request_error(cast("dict[str, Any]", raw))
        case list():
            return _error(None, INVALID_REQUEST, "Batches are not supported: send one message per line.")
        case _:
            return _error(None, INVALID_REQUEST, "This line is not a JSON-RPC message.")


def _request_error(raw: dict[str, Any]) -> str:
    id = _usable(raw.get("id"))
    if _holds_half_a_character(raw):
        return _error(id, PARSE_ERROR, "This line contains an unpaired surrogate (\\uD800 to \\uDFFF).")
    what = "its id is neither a string nor a whole number" if isinstance(id, float) else "its form is wrong"
    return _error(id, INVALID_REQUEST, f"This line is not a JSON-RPC request: {what}.")


def _holds_half_a_character(raw: dict[str, Any]) -> bool:
    try:
        json.dumps(raw, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except RecursionError:
        pass  # then it is the depth that is wrong with it
    return False


def _usable(id: object) -> Id:
    """As it came, so that whoever waits for it knows it again."""
    if (
        isinstance(id, bool)
        or not isinstance(id, str | int | float)
        or (isinstance(id, float) and not math.isfinite(id))
    ):
        return None
    return id


def _error(id: Id, code: int, message: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
