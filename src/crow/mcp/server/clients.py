"""What `crow mcp` keeps for each client: the folders in which it may work (its roots), what its model has read, its
edits, its commands.

A client may work in the folders that the server was started with, else in those that the host names. Hosts up to
protocol 2025-11-25 are asked once and say when the list changes. Later ones cannot be asked: a call is answered with
the question, and comes again with the answer, each time.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any
from urllib.parse import unquote, urlsplit

import mcp_types as types
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

from crow.actions import Deed
from crow.commands.base import Commands
from crow.commands.terminals import Terminals
from crow.errors import WorkspaceError
from crow.files.base import Document, Workspace
from crow.files.local import LocalWorkspace
from crow.files.resolved_path import ResolvedPath
from crow.mcp.server.file_editor import ADVICE, FileEditor, PastEdits
from crow.paths import is_inside, shown
from crow.tools.background import ReadCommand, StopCommand
from crow.tools.base import Tool
from crow.tools.read import ReadTracker
from crow.tools.terminal import RunCommand

logger = logging.getLogger(__name__)

MOST_CLIENTS = 64
"""Clients whose state is kept; beyond that the one that called least recently begins anew."""
ROOTS_TIMEOUT = 10.0
"""Seconds that a host gets to name its folders."""
ROOTS = "roots"
"""Under which name the question goes to a host that cannot be asked directly."""
LONGEST_LOGGED = 200
"""Characters of a root that cannot be used."""
REMEDY = "Start the server with `crow mcp --root FOLDER`."
NO_FOLDERS = "The host sent an invalid list of folders."

Context = ServerRequestContext[Any, Any]

Judge = Callable[[Deed], str]
"""Why something is refused although the host allowed the call; empty if it is not."""


class OpenFolders(msgspec.Struct, frozen=True):
    """The folders in which a call may work, and who judges what is done there."""

    workspace: Workspace
    judge: Judge


class ServedWorkspace(LocalWorkspace):
    """Every tool resolves a path before it uses it, so this is the one gate that all of them pass.

    What lies behind a resolved path is opened without following links, so that it cannot be moved out of the folders
    afterwards. `outputs` is the folder in which the client's own commands leave what they printed.
    """

    def __init__(self, roots: Sequence[str], edits: PastEdits, outputs: str = "") -> None:
        super().__init__(roots)
        self._edits = edits
        self._outputs = outputs

    async def resolve(self, path: str) -> ResolvedPath:
        resolved = await super().resolve(path)
        if self.contains(resolved.real) or (self._outputs and is_inside(resolved.real, self._outputs)):
            return resolved
        folders = ", ".join(shown(root) for root in self.roots)
        raise WorkspaceError(f"{shown(path)} is outside the allowed folders: {folders}.")

    async def write_document(
        self, path: ResolvedPath, text: str, before: Document | None, *, like: Document | None = None
    ) -> Document:
        folders = await self.disk.run(lambda: _missing_above(path.real)) if before is None else ()
        after = await super().write_document(path, text, before, like=like)
        if like is None:  # with it, a change is taken back, which is none that could be taken back itself
            await self._edits.add(before, after, folders)
        return after


def _missing_above(path: str) -> tuple[str, ...]:
    """The folders that have to be made for a file, the innermost first."""
    missing: list[str] = []
    while not os.path.lexists(path := os.path.dirname(path)):
        missing.append(path)
    return tuple(missing)


class CommandRunner(msgspec.Struct, frozen=True):
    """How one client's commands are run."""

    commands: Commands
    outputs: str
    """The folder in which they leave what they printed."""
    timeout: float
    """The seconds that a command has by default."""


class ServerOptions(msgspec.Struct, frozen=True):
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
    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        self._edits = PastEdits()
        seen = ReadTracker()
        web_tools = options.web_tools() if options.web_tools is not None else ()
        tools: list[Tool] = [FileEditor(seen, self._edits), *web_tools]
        self._terminals: Terminals | None = None
        self._outputs = ""
        if options.commands is not None:
            runner = options.commands()
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
        return OpenFolders(workspace, self._options.judge_in(workspace.roots, self._outputs))

    async def close(self) -> None:
        if self._terminals is not None:
            await self._terminals.close()


class ServedClients:
    """By the id of their session; those that have none share one state, since nobody can tell them apart."""

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        self._clients: dict[str, ServedClient] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def find(self, session_id: str) -> ServedClient:
        client = self._clients.pop(session_id, None) or ServedClient(self.options)
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


# --- the folders that a host names


class NamedRoots(BaseModel):
    """What a host names. The library's own type takes no list in which something else than a `file:` stands."""

    roots: list[Any]


class CallParams(types.CallToolRequestParams):
    """A call, in which answers to our questions are left as they came, for the same reason."""

    input_responses: dict[str, Any] | None = None  # pyright: ignore[reportIncompatibleVariableOverride] -- wider


def offers_roots(ctx: Context) -> bool:
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and capabilities.roots is not None


def cannot_be_asked(ctx: Context) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def roots_question() -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests={ROOTS: types.ListRootsRequest()})


def roots_in(params: CallParams) -> tuple[str, ...] | None:
    """The folders that came with a call, in answer to the question; None if it has not been asked yet."""
    answered = (params.input_responses or {}).get(ROOTS)
    if answered is None:
        return None
    try:
        return folders_of(NamedRoots.model_validate(answered))
    except ValueError:
        raise WorkspaceError(NO_FOLDERS, remedy=REMEDY) from None


async def ask_for_roots(ctx: Context) -> tuple[str, ...]:
    """Asks on the stream of the request that needs to know, which every transport has.

    A host that has folders to name and does not name them opens none: it may have meant fewer than we would guess.
    """
    # Not by the session's own `send_request`, which refuses the whole list if one root in it has a wrong form.
    stream = ctx.session._request_outbound  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001
    try:
        answered = await stream.send_raw_request("roots/list", None, {"timeout": ROOTS_TIMEOUT})
        result = NamedRoots.model_validate(answered)
    except MCPError as error:
        logger.warning("roots/list failed: %s", error)
        if error.code == types.REQUEST_TIMEOUT:
            raise WorkspaceError(
                f"The host did not name its folders within {ROOTS_TIMEOUT:g} s.", remedy=REMEDY
            ) from None
        raise WorkspaceError("The host refused to name its folders.", remedy=REMEDY) from None
    except ValueError as error:
        logger.warning("roots/list was answered with something else: %s", error)
        raise WorkspaceError(NO_FOLDERS, remedy=REMEDY) from None
    return folders_of(result)


def folders_of(named: NamedRoots) -> tuple[str, ...]:
    """The host's roots as paths; what lies elsewhere than on this machine is none of ours, nor what is no address."""
    paths = [path for root in named.roots if (path := _folder(root))]
    if not paths:
        raise WorkspaceError("The host did not provide a usable folder.", remedy=REMEDY)
    return tuple(dict.fromkeys(paths))


def existing_folders(folders: Sequence[str]) -> tuple[str, ...]:
    """Those that are there now. What is named but missing is not made, and a file is not taken for a folder."""
    found = tuple(folder for folder in folders if os.path.isdir(folder))
    if not found:
        named = ", ".join(shown(folder) for folder in folders)
        raise WorkspaceError(f"No folder to work in. Missing, or not a folder: {named}.", remedy=REMEDY)
    return found


def start_folder(folder: str) -> tuple[str, ...]:
    """The folder that the server was started in, for a host that names none.

    Programs with windows start their servers in `/`, which nobody means to open.
    """
    if not folder:
        raise WorkspaceError(
            "The host names no folder, and the folder the server was started in no longer exists.", remedy=REMEDY
        )
    if folder == "/":
        raise WorkspaceError("The host names no folder, and the server was started in /.", remedy=REMEDY)
    return (folder,)


def _folder(root: object) -> str:
    """Empty if the root is no folder here. One that makes no sense closes none of the others."""
    match root:
        case {"uri": str(uri)}:
            path = _path_in(uri)
        case _:
            path = ""
    if not path:
        logger.warning("a root that is no folder here: %s", shown(str(root)[:LONGEST_LOGGED]))
    return path


def _path_in(uri: str) -> str:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        return ""
    path = unquote(parts.path)
    return "" if "\0" in path else path
