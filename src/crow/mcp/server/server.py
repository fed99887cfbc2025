"""The MCP server of `crow mcp`: lists its tools, runs and cancels calls, and makes the protocol's result of what a tool
gave back.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

import mcp_types as types
import msgspec
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from crow import __version__
from crow.commands.terminal_text import last_part
from crow.errors import WorkspaceError
from crow.events import CallProgressed, Event
from crow.mcp.results import call_result
from crow.mcp.server.clients import (
    CallParams,
    Context,
    Judge,
    OpenFolders,
    ServedClient,
    ServedClients,
    ServerOptions,
    ask_for_roots,
    cannot_be_asked,
    existing_folders,
    offers_roots,
    roots_in,
    roots_question,
    start_folder,
)
from crow.messages import ToolCall
from crow.policy.base import Allow, Deny
from crow.results import MAY_CHANGE, TextBlock, ToolKind, ToolResult
from crow.tools.base import Action, ReadNeeded, Tool
from crow.turn.call import Call

logger = logging.getLogger(__name__)
INSTRUCTIONS = "Files of the folders that the host names, changed byte by byte as asked; and the web."
SESSION_ID = "mcp-session-id"
LAST_MOMENT = 1.0
"""Seconds that cancelled calls get to leave everything tidy before the server ends."""
LONGEST_PROGRESS = 1000
"""Bytes of growing output that one progress message carries: the last of it."""
Done = TypeVar("Done")
Report = Callable[[float, str], Awaitable[None]]
"""Tells the host how far a call has come: a number that grows, and words."""
_OPEN_WORLD = frozenset({ToolKind.FETCH, ToolKind.EXECUTE})
_TITLES = {
    "file_editor": "View and edit files",
    "web_search": "Search the web",
    "web_fetch": "Fetch a web page",
    "terminal": "Run a command",
    "terminal_read": "Read a command's output",
    "terminal_stop": "Stop a command",
}


class CrowServer:
    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        self.clients = ServedClients(options)
        self._running: set[asyncio.Task[Any]] = set()
        self._calls = 0
        self._closing = False
        self.protocol: Server[Any] = Server(
            "crow",
            title="Crow",
            version=__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
        )
        self.protocol.add_request_handler("tools/call", CallParams, self._call_tool)
        self.protocol.add_notification_handler(
            "notifications/roots/list_changed", types.NotificationParams, self._roots_changed
        )

    async def close(self) -> None:
        """Ends the calls that still run, and every command. None is left in the middle of a write."""
        self._closing = True
        running = list(self._running)
        for task in running:
            _cancel_once(task)
        await asyncio.gather(_ended_within(LAST_MOMENT, running), self.clients.close())

    # --- what clients ask for

    async def _list_tools(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool_definition(tool) for tool in self._client(ctx).tools.values()])

    async def _call_tool(self, ctx: Context, params: CallParams) -> types.CallToolResult | types.InputRequiredResult:
        client = self._client(ctx)
        if params.name not in client.tools:
            known = ", ".join(client.tools)
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool {params.name[:100]!r}. Available: {known}.")
        try:
            folders = await self._folders(ctx, params, client)
        except WorkspaceError as error:
            return call_result(ToolResult.failed(str(error)))
        if folders is None:
            return roots_question()
        if self._closing:
            raise MCPError(types.CONNECTION_CLOSED, "The server is shutting down.")
        return call_result(await self._to_its_end(self._run(ctx, params, client, folders)))

    async def _roots_changed(self, ctx: Context, params: types.NotificationParams | None) -> None:
        self._client(ctx).roots_changed()

    # --- a call

    async def _folders(self, ctx: Context, params: CallParams, client: ServedClient) -> tuple[str, ...] | None:
        """Where the call may work; None if the host has to be asked first, and cannot be asked from here."""
        if not client.works_in_folders(params.name):
            return ()
        named = await self._named_folders(ctx, params, client)
        return None if named is None else existing_folders(named)

    async def _named_folders(self, ctx: Context, params: CallParams, client: ServedClient) -> tuple[str, ...] | None:
        if self._options.roots:
            return self._options.roots
        if not offers_roots(ctx):
            return start_folder(self._options.folder)
        if cannot_be_asked(ctx):
            return roots_in(params)
        return await client.roots(lambda: ask_for_roots(ctx))

    async def _run(
        self, ctx: Context, params: CallParams, client: ServedClient, folders: tuple[str, ...]
    ) -> ToolResult:
        self._calls += 1
        arguments = msgspec.json.encode(params.arguments or {}).decode()

        async def report(number: float, message: str) -> None:
            with contextlib.suppress(Exception):  # who has left is not told; the call ends by itself
                await ctx.session.report_progress(number, None, message)

        tool = client.tools[params.name]
        call = ToolCall(f"c{self._calls}", params.name, arguments)
        async with client.turn_of(params.name):
            return await serve_call(tool, call, client.open(folders), report)

    async def _to_its_end(self, work: Coroutine[Any, Any, Done]) -> Done:
        """The result of work in a task of its own, cancelled once when we are.

        The library's way to cancel interrupts every further wait as well, which leaves no time to tidy up.
        """
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            _cancel_once(task)
            raise

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a call failed", exc_info=error)

    def _client(self, ctx: Context) -> ServedClient:
        request = ctx.request
        return self.clients.find(request.headers.get(SESSION_ID, "") if request is not None else "")


def _cancel_once(task: asyncio.Task[Any]) -> None:
    """Twice would interrupt its tidying up. When one call ends so, the library cancels all the others too."""
    if not task.cancelling():
        task.cancel()


async def _ended_within(seconds: float, tasks: Sequence[asyncio.Task[Any]]) -> None:
    if tasks:
        await asyncio.wait(tasks, timeout=seconds)


# --- one call: the policy alone decides, as nobody can be asked, and progress is reported to the host


async def serve_call(tool: Tool, call: ToolCall, folders: OpenFolders, report: Report) -> ToolResult:
    """Never fails: what goes wrong is a result, which the model can do something about."""
    journal = ProgressJournal()
    telling = asyncio.get_running_loop().create_task(journal.tell(report))
    try:
        return await Call(call.id, journal, Unattended(folders.judge)).run(tool, call, folders.workspace)
    finally:
        telling.cancel()


class Unattended(msgspec.Struct, frozen=True):
    """The permission of a call with nobody to be asked: the judge alone decides."""

    judge: Judge

    async def verdict_on(self, call_id: str, action: Action | ReadNeeded) -> Allow | Deny:
        reason = self.judge(action.deed)
        return Deny("crow mcp", reason) if reason else Allow("crow mcp")


class ProgressJournal:
    """A journal of which nothing is kept but the last thing that was shown, until the host has been told of it."""

    def __init__(self) -> None:
        self._shown = ""
        self._news = asyncio.Event()

    @property
    def has_room(self) -> bool:
        return not self._news.is_set()

    def append(self, event: Event) -> None:
        match event:
            case CallProgressed(display=(TextBlock(text=text), *_)):
                self._shown = text
                self._news.set()
            case _:
                pass

    async def record(self, *events: Event) -> None:
        for event in events:
            self.append(event)

    async def room(self) -> None:
        pass

    async def tell(self, report: Report) -> None:
        """Until it is cancelled. The numbers only grow, as the protocol wants: nobody knows how much is to come."""
        number = 0
        while True:
            await self._news.wait()
            number += 1
            await report(number, last_part(self._shown, LONGEST_PROGRESS))
            self._news.clear()


# --- tools as the protocol has them


def tool_definition(tool: Tool) -> types.Tool:
    name = tool.spec.name
    return types.Tool(
        name=name,
        title=_TITLES.get(name),
        description=tool.spec.description,
        input_schema=tool.spec.schema,
        annotations=_annotations(tool),
    )


def _annotations(tool: Tool) -> types.ToolAnnotations:
    title = _TITLES.get(tool.spec.name)
    open_world = tool.kind in _OPEN_WORLD
    if tool.kind not in MAY_CHANGE:
        return types.ToolAnnotations(title=title, read_only_hint=True, open_world_hint=open_world)
    # Stopping a command a second time stops nothing more; everything else that changes things may do so each time.
    return types.ToolAnnotations(
        title=title,
        read_only_hint=False,
        destructive_hint=True,
        idempotent_hint=tool.spec.name == "terminal_stop",
        open_world_hint=open_world,
    )
