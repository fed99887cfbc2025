"""A client on standard input and output: one client, for as long as the input is open.

The library's own transport says nothing to a line that it cannot read, and whoever sent it waits for an answer until
its patience ends. Here every line that may be a request is answered. And it cancels what is under way as soon as the
input ends; here that is finished first, so that calls can be piped in.
"""

import asyncio
import json
import math
from typing import Any, TextIO, cast

import anyio
import anyio.to_thread
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

from crow.mcp.serving.server import CrowServer
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

    async def all_answered(self, patience: float) -> None:
        """Returns when there are none left, or after so many seconds."""
        try:
            async with timeout(patience):
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
    incoming, outgoing = _files(reader, writer)
    arriving, arrived = anyio.create_memory_object_stream[Received]()
    leaving, to_send = anyio.create_memory_object_stream[SessionMessage]()
    serving = anyio.CancelScope()
    lines, requests = _Lines(outgoing, serving), OpenRequests()
    with serving:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read, incoming, arriving, lines, requests)
            tasks.start_soon(_write, to_send, lines, requests)
            await server.protocol.run(arrived, leaving, server.protocol.create_initialization_options())
    if lines.failure is not None:
        raise lines.failure


class _Lines:
    """Lines to the client, one at a time."""

    def __init__(self, file: anyio.AsyncFile[str], serving: anyio.CancelScope) -> None:
        self._file = file
        self._serving = serving
        self._one_at_a_time = anyio.Lock()
        self.nobody_may_read = False
        """The client sends nothing any more: what it asked for is finished although it may well have gone."""
        self.failure: OSError | None = None
        """Why nothing can be written: serving has ended then."""

    async def write(self, line: str) -> None:
        async with self._one_at_a_time:
            try:
                await self._file.write(f"{line}\n")
                await self._file.flush()
            except BrokenPipeError:
                if not self.nobody_may_read:
                    self._serving.cancel()
            except OSError as error:
                self.failure = error
                self._serving.cancel()


async def _read(
    file: TextIO, arriving: MemoryObjectSendStream[Received], lines: _Lines, requests: OpenRequests
) -> None:
    async with arriving:
        # Its thread is left behind when serving ends: a line may never come.
        while line := await anyio.to_thread.run_sync(file.readline, abandon_on_cancel=True):
            message = _message(line)
            if message is not None:
                requests.received(message.message)
                await arriving.send(message)
            elif answer := refusal(line):
                await lines.write(answer)
        lines.nobody_may_read = True
        await requests.all_answered(TIME_TO_FINISH)


async def _write(to_send: MemoryObjectReceiveStream[SessionMessage], lines: _Lines, requests: OpenRequests) -> None:
    async with to_send:
        async for item in to_send:
            await lines.write(item.message.model_dump_json(by_alias=True, exclude_unset=True))
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


def _files(reader: int, writer: int) -> tuple[TextIO, anyio.AsyncFile[str]]:
    """They stay open until the process ends: a thread may be waiting in one of them by then."""
    incoming = open(reader, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
    outgoing = open(writer, "w", encoding="utf-8", newline="\n", closefd=False)  # noqa: SIM115
    return incoming, anyio.wrap_file(outgoing)


# --- what is answered to a line that is no message of the protocol, so that nobody waits for an answer in vain


def refusal(line: str) -> str:
    """An error, as a line, with the id that the line has, where that can be told; empty if none is expected."""
    if not line.strip():
        return ""
    try:
        raw = json.loads(line)  # which also reads halves of characters: the id may still be found
    except (ValueError, RecursionError):
        return _error(None, PARSE_ERROR, "This line is no JSON.")
    match raw:
        case {"result": _} | {"error": _} if "method" not in raw:
            return ""  # an answer to us: its id is one of ours
        case {"method": str()} if "id" not in raw:
            return ""  # a notification
        case dict():
            return _request_error(cast("dict[str, Any]", raw))
        case list():
            return _error(None, INVALID_REQUEST, "Several messages in one line are not supported.")
        case _:
            return _error(None, INVALID_REQUEST, "This line is no message of JSON-RPC.")


def _request_error(raw: dict[str, Any]) -> str:
    id = _usable(raw.get("id"))
    if _holds_half_a_character(raw):
        return _error(id, PARSE_ERROR, "This line holds half a character: a surrogate (\\uD800 to \\uDFFF) by itself.")
    what = "its id is neither a string nor a whole number" if isinstance(id, float) else "its form is wrong"
    return _error(id, INVALID_REQUEST, f"This line is no request of JSON-RPC: {what}.")


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
