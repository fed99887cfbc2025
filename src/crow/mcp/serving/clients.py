"""What is kept for each client: what its model has seen, what can be taken back, where it may work, its commands."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

import msgspec

from crow.errors import WorkspaceError
from crow.mcp.serving.advice import ADVICE
from crow.mcp.serving.calling import Judge, OpenFolders
from crow.mcp.serving.edits import PastEdits
from crow.mcp.serving.file_editor import FileEditor
from crow.mcp.serving.workspace import ServedWorkspace
from crow.tools.background import ReadCommand, StopCommand
from crow.tools.base import Tool
from crow.tools.seen import Seen
from crow.tools.terminal import RunCommand
from crow.workspace.base import Commands
from crow.workspace.terminals import Terminals

MOST_CLIENTS = 64
"""Clients whose state is kept; beyond that the one that called least recently begins anew."""


class CommandRunner(msgspec.Struct, frozen=True):
    """How one client's commands are run."""

    commands: Commands
    outputs: str
    """The folder in which they leave what they printed."""
    timeout: float
    """The seconds that a command has by default."""


class Offering(msgspec.Struct, frozen=True):
    """What the server was started with."""

    folder: str
    """Where it was started; empty if that is not there any more."""
    judge_in: Callable[[Sequence[str], str], Judge]
    """Judges what is done in these folders, with the folder for commands' output."""
    roots: tuple[str, ...] = ()
    """The folders that it was given; then the host is not asked."""
    web_tools: Callable[[], Sequence[Tool]] | None = None
    """Those of one client: they keep the pages that it reads, and need no folder. None: the web is not offered."""
    commands: Callable[[], CommandRunner] | None = None
    """None: no commands are run."""


class ServedClient:
    def __init__(self, offering: Offering) -> None:
        self._offering = offering
        self._edits = PastEdits()
        seen = Seen()
        web_tools = offering.web_tools() if offering.web_tools is not None else ()
        tools: list[Tool] = [FileEditor(seen, self._edits), *web_tools]
        self._terminals: Terminals | None = None
        self._outputs = ""
        if offering.commands is not None:
            runner = offering.commands()
            self._terminals, self._outputs = Terminals(runner.commands), runner.outputs
            tools += [
                RunCommand(self._terminals, runner.timeout, ADVICE),
                ReadCommand(self._terminals),
                StopCommand(self._terminals),
            ]
        self.tools = {tool.spec.name: tool for tool in tools}
        self._without_folders = frozenset(tool.spec.name for tool in web_tools)
        self._roots: tuple[str, ...] | None = None
        self._changes_of_roots = 0
        self._asking = asyncio.Lock()
        self._editing = asyncio.Lock()
        self._refusal: WorkspaceError | None = None

    async def roots(self, ask: Callable[[], Awaitable[tuple[str, ...]]]) -> tuple[str, ...]:
        """The host's folders. It is asked once, and again when it said that they changed, be it while it answered.

        Where it names none, the next call asks again; those that were waiting have their answer.
        """
        known_refusal = self._refusal
        async with self._asking:
            if self._roots is not None:
                return self._roots
            if self._refusal is not None and self._refusal is not known_refusal:
                raise self._refusal
            changes = self._changes_of_roots
            try:
                found = await ask()
            except WorkspaceError as refusal:
                self._refusal = refusal
                raise
            if changes == self._changes_of_roots:
                self._roots = found
            return found

    def turn_of(self, tool: str) -> AbstractAsyncContextManager[None]:
        """Calls of `file_editor` are made one after the other, as the host sent them, also if it does not wait."""
        return self._editing if isinstance(self.tools[tool], FileEditor) else nullcontext()

    def works_in_folders(self, tool: str) -> bool:
        """Whether a tool has to do with files; the web can be used without any folder."""
        return tool not in self._without_folders

    def roots_changed(self) -> None:
        self._roots = None
        self._changes_of_roots += 1

    def open(self, roots: Sequence[str]) -> OpenFolders:
        workspace = ServedWorkspace(roots, self._edits, self._outputs)
        return OpenFolders(workspace, self._offering.judge_in(workspace.roots, self._outputs))

    async def close(self) -> None:
        if self._terminals is not None:
            await self._terminals.close()


class ServedClients:
    """By the id of their session; those that have none share one state, since nobody can tell them apart."""

    def __init__(self, offering: Offering) -> None:
        self.offering = offering
        self._clients: dict[str, ServedClient] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def find(self, session_id: str) -> ServedClient:
        client = self._clients.pop(session_id, None) or ServedClient(self.offering)
        self._clients[session_id] = client  # at the end: the least recent one comes first
        if len(self._clients) > MOST_CLIENTS:
            self.forget(next(iter(self._clients)))
        return client

    def forget(self, session_id: str) -> None:
        """Ends the commands of a client that has left."""
        client = self._clients.pop(session_id, None)
        if client is not None:
            task = asyncio.get_running_loop().create_task(client.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        closing = [client.close() for client in self._clients.values()]
        await asyncio.gather(*closing, *self._closing, return_exceptions=True)
