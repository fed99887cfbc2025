"""The stdio transport to an MCP server: starts its program, reads one JSON message a line, keeps a log of its standard
error, and ends it.

The program is started under a supervisor, so that it and all it starts end with the session, or with Crow.
"""

import asyncio
import contextlib
import errno
import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import cast

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, jsonrpc_message_adapter

from crow.commands.processes import ForkServer, Supervised
from crow.commands.supervisor import Request
from crow.commands.terminal import search_path
from crow.config.home import create_folder
from crow.config.settings import McpServerSettings
from crow.disk import Disk
from crow.errors import ConfigError, FileSystemSilent
from crow.mcp.client.message_guard import (
    BLANK,
    BYTE,
    PASSED_ON,
    THROWN_AWAY,
    MessageGuard,
    Pace,
    failed_answer,
    readable,
)
from crow.mcp.client.server_errors import MALFORMED, ServerFailed
from crow.rpc.lines import LineStream, Writer
from crow.threads import MAKE_ROOM, NO_MORE
from crow.timeouts import timeout
from crow.visible import one_line

Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]

LONGEST_LINE = 32 * 1024 * 1024
MOST_GARBAGE = 1000
"""Lines that are no messages: some servers print a greeting, and then behave."""
PASSED_TO_SERVERS = frozenset({"PATH", "HOME", "USER", "LANG", "TERM", "TMPDIR", "SHELL"})
"""What a server gets of the environment, and the `LC_` variables: keys are none of its business."""
EXIT_GRACE = 0.5
"""Seconds that a server gets to end by itself once its input has ended."""
END_TIMEOUT = 3.9
"""Seconds until nothing of it is left: the fork server's grace and its struggle with what is stubborn."""
KEPT = 1024 * 1024
"""Bytes that are in the log in any case: it is cut down to them when it has twice as many."""
TAIL = 2000
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


class Stdio:
    """A transport: the server runs while it is entered.

    `on_end` is called once, with the reason why it no longer talks; `on_leave` when it is being ended, which may take
    a while.
    """

    def __init__(
        self,
        start: "Callable[[], Awaitable[Program]]",
        log: "StderrLog",
        guard: MessageGuard,
        on_end: Callable[[ServerFailed], None],
        on_leave: Callable[[], None],
    ) -> None:
        self._start = start
        self._log = log
        self._guard = guard
        self._on_end = on_end
        self._on_leave = on_leave
        self._garbage = ""
        """The first line that it wrote instead of a message."""
        self._garbage_lines = 0
        self._ending = AsyncExitStack()

    def remark(self) -> str:
        """What may explain why it does not answer, or why it ended; with a blank before it, or empty."""
        if said := self._log.last_words():
            return f" It said: {said}"
        return f" Its output begins with: {self._garbage}" if self._garbage else ""

    async def __aenter__(self) -> Streams:
        async with AsyncExitStack() as ending:
            self._log.begin(self._guard.pace)
            ending.callback(self._log.close)
            program = await self._start()
            ending.push_async_callback(program.end)
            await program.read_errors(self._log)
            ending.callback(program.close_input)
            to_us, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            outgoing, from_us = anyio.create_memory_object_stream[SessionMessage](0)
            for stream in (to_us, incoming, outgoing, from_us):
                ending.callback(stream.close)
            for work in (self._read(program, to_us), self._write(program.input, from_us)):
                ending.push_async_callback(_stop, asyncio.create_task(work))
            self._ending = ending.pop_all()
        return incoming, outgoing

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._on_leave()
        await self._ending.aclose()

    async def _read(self, program: "Program", to_us: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        failure: ServerFailed | None = None
        try:
            async for line in program.lines:
                if line is None:
                    raise ServerFailed(f"it sent a message of more than {LONGEST_LINE // 1024 // 1024} MB")
                await self._guard.pace.rest()
                if not line or line.isspace():
                    self._guard.pace.spend(BLANK)
                elif (message := self._message(line)) is None:
                    self._guard.pace.spend(PASSED_ON)
                elif self._guard.take(message, len(line)):
                    await to_us.send(message)
        except ServerFailed as failed:
            failure = failed
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return  # nobody listens any more: we are ending it ourselves
        if failure is None:
            failure = ServerFailed(f"{await program.how_it_ended()}.{self.remark()}")
        self._on_end(failure)
        to_us.close()

    def _message(self, line: bytes) -> SessionMessage | None:
        """The message in a line; None if there is none. Raises ServerFailed after too many lines of that kind."""
        text = readable(line)
        for content in (text, failed_answer(text, MALFORMED)):
            # Decoded here: the library's own way needs four times the room.
            with contextlib.suppress(ValueError, RecursionError):
                return SessionMessage(jsonrpc_message_adapter.validate_python(json.loads(content), by_name=False))
        self._garbage = self._garbage or one_line(line[:400].decode("utf-8", "replace"), 200)
        self._garbage_lines += 1
        if self._garbage_lines > MOST_GARBAGE:
            raise ServerFailed(f"it writes to its output what is not MCP, such as: {self._garbage}")
        return None

    async def _write(self, to_server: Writer, from_us: MemoryObjectReceiveStream[SessionMessage]) -> None:
        with contextlib.suppress(anyio.ClosedResourceError):  # the reader learns of the end, and says why
            async for sent in from_us:
                if isinstance(sent.message, JSONRPCRequest):
                    self._guard.asks()
                to_server.send(sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                # A server that no longer reads is found out by its end, or by the limit of the call.
                await to_server.room()


async def _stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


# --- the program


class Program:
    """A server's process, with pipes to its three standard streams."""

    def __init__(self, process: Supervised, output: int, entry: int, errors: int) -> None:
        self.process = process
        self.lines = LineStream(output, LONGEST_LINE, keeps_blank=True)
        self.input = Writer(entry, lambda: None)
        self._output = output
        self._errors = errors
        self._error_reader: asyncio.BaseTransport | None = None
        self._input_closing = contextlib.ExitStack()
        self._input_closing.callback(os.close, entry)
        self._input_closing.callback(self.input.stop)

    async def read_errors(self, log: "StderrLog") -> None:
        self._error_reader, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: log, os.fdopen(self._errors, "rb", 0)
        )

    def close_input(self) -> None:
        """A server that behaves ends then."""
        self._input_closing.close()

    async def how_it_ended(self) -> str:
        """Asked once its output has ended: the process may need a moment longer."""
        with contextlib.suppress(TimeoutError):
            async with timeout(EXIT_GRACE):
                ending = await asyncio.shield(self.process.exited)
                if ending.signal:
                    return f"it was ended by {ending.signal}"
                return f"it ended with exit status {ending.code}" if ending.code is not None else "it was killed"
        return "it closed its output"

    async def end(self) -> None:
        """Its input has been closed: it gets a moment to end by itself, then it and all it started are ended."""
        with contextlib.suppress(TimeoutError):
            async with timeout(EXIT_GRACE):
                await asyncio.shield(self.process.exited)
        try:
            with contextlib.suppress(TimeoutError):
                async with timeout(END_TIMEOUT):
                    await self.process.end()
        finally:
            # With its socket closed, the supervisor goes on ending what may be left.
            self.process.close()
            if self._error_reader is not None:
                self._error_reader.close()
            self.close_input()
            self.lines.close()
            os.close(self._output)


def environment_for(settings: McpServerSettings, environ: Mapping[str, str]) -> dict[str, str]:
    passed = {name: value for name, value in environ.items() if name in PASSED_TO_SERVERS or name.startswith("LC_")}
    return {**passed, "PATH": search_path(environ), **settings.env}


def find_program(command: str, path: str, folder: str) -> str:
    """The absolute path of a command. A relative one with a slash in it is meant from the session's folder."""
    if "\0" in command:
        raise ServerFailed("its command contains a null character", lasting=True)
    spelled = os.path.expanduser(command)
    places = [folder] if "/" in spelled else [place for place in path.split(os.pathsep) if os.path.isabs(place)]
    for place in places:
        candidate = os.path.join(place, spelled)
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    if "/" in spelled and os.path.exists(os.path.join(folder, spelled)):
        remedy = "Make it executable: chmod +x."
        raise ServerFailed(f"`{one_line(command)}` cannot be run", remedy=remedy, lasting=True)
    raise ServerFailed(f"command `{one_line(command)}` not found", remedy=_how_to_find(spelled, places), lasting=True)


def _how_to_find(command: str, places: Sequence[str]) -> str:
    """Where the program was looked for; or, if its arguments were taken for a part of its name, where they belong."""
    first, *arguments = command.split() or [""]
    if arguments and any(os.access(os.path.join(place, first), os.X_OK) for place in places):
        written = ", ".join(f'"{argument}"' for argument in arguments)
        return one_line(f'Put its arguments in `args`: command = "{first}", args = [{written}].', 500)
    if "/" in command:
        return f"Looked for {one_line(os.path.join(places[0], command), 500)}."
    return f"Looked in PATH: {one_line(os.pathsep.join(places), 1000) or 'empty'}."


async def start_program(
    fork_server: ForkServer, settings: McpServerSettings, folder: str, environ: Mapping[str, str]
) -> Program:
    """ServerFailed says why it could not be started."""
    environment = environment_for(settings, environ)
    search = environment.get("PATH", os.defpath)
    try:  # beside the event loop: a folder of PATH may lie on a disk that hangs
        program, real_folder = await Disk(folder).run(
            lambda: (find_program(settings.command, search, folder), os.path.realpath(folder))
        )
    except FileSystemSilent as silent:
        raise ServerFailed(f"`{one_line(settings.command)}` is on a disk that does not respond") from silent
    words: Sequence[str] = (program, *settings.args)
    variables = [f"{name}={value}" for name, value in environment.items()]
    if any("\0" in text for text in (*words, *variables)):
        raise ServerFailed("its arguments or variables contain a null character", lasting=True)
    request = Request(
        os.fsencode(real_folder),
        [os.fsencode(word) for word in words],
        [os.fsencode(variable) for variable in variables],
    )
    (output, its_output), (its_entry, entry), (errors, its_errors) = os.pipe(), os.pipe(), os.pipe()
    ours, theirs = (output, entry, errors), (its_output, its_entry, its_errors)
    try:
        process = await fork_server.run(request, *theirs)
    except BaseException as error:
        for descriptor in ours:
            os.close(descriptor)
        if isinstance(error, OSError):
            raise _could_not_start(error, settings.command) from None
        raise
    finally:
        for descriptor in theirs:
            os.close(descriptor)
    return Program(process, *ours)


def _could_not_start(error: OSError, command: str) -> ServerFailed:
    if error.errno == errno.EAGAIN:
        return ServerFailed(f"`{one_line(command)}` could not be started: {NO_MORE}", remedy=MAKE_ROOM)
    reason = "it is not a program" if error.errno == errno.ENOEXEC else os.strerror(error.errno or 0).lower()
    return ServerFailed(f"`{one_line(command)}` could not be started: {reason}", lasting=True)


# --- its standard error: a file of its own, for its owner's eyes, that does not grow for ever


def stderr_path(home: str, server: str) -> str:
    return os.path.join(home, "mcp", "log", f"{_NOT_IN_NAMES.sub('_', server)[:80].strip('.') or 'server'}.log")


class StderrLog(asyncio.Protocol):
    """Kept in the file as far as that can be written; the end of it is kept at hand."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: int | None = None
        self._tail = b""
        self._pace: Pace | None = None
        self._transport: asyncio.ReadTransport | None = None

    @property
    def has_some(self) -> bool:
        return bool(self._tail)

    def begin(self, pace: Pace | None = None) -> None:
        """Of a server that is started: the file is made when there is something to put into it."""
        self.close()
        self._tail = b""
        self._pace = pace

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        self.add(data)
        if self._pace is None or self._transport is None:
            return
        self._pace.spend(THROWN_AWAY + len(data) * BYTE)
        if seconds := self._pace.due():
            self._transport.pause_reading()
            asyncio.get_running_loop().call_later(seconds, self._read_on, self._transport)

    def _read_on(self, transport: asyncio.ReadTransport) -> None:
        if not transport.is_closing():
            transport.resume_reading()

    def _open(self) -> None:
        with contextlib.suppress(OSError, ConfigError):  # a server is no worse for a log that cannot be kept
            create_folder(os.path.dirname(self._path))
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.open(self._path, flags, 0o600)

    def add(self, data: bytes) -> None:
        if not self._tail:
            self._open()
        self._tail = (self._tail + data)[-TAIL:]
        if self._file is None:
            return
        with contextlib.suppress(OSError):
            size = os.fstat(self._file).st_size  # another session may write to it, too
            if size + len(data) > 2 * KEPT:
                before = max(KEPT - len(data), 0)
                data = os.pread(self._file, before, max(size - before, 0)) + data[-KEPT:]
                os.ftruncate(self._file, 0)
            os.write(self._file, data)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def last_words(self) -> str:
        """The last line that says something, for a sentence; empty if nothing was said."""
        lines = [line.strip() for line in self._tail.decode("utf-8", "replace").splitlines()]
        said = [line for line in lines if line]
        return one_line(said[-1], 300) if said else ""
