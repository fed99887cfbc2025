"""All MCP servers of a session: decides whether their tools are too many for a request, and which of them are listed
for the model then.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from mcp_types import Tool as McpToolDefinition

from crow.events import Notice
from crow.files.base import Workspace
from crow.mcp.client.configured import ConfiguredServer, server_name, server_names, shown_name, tool_name
from crow.mcp.client.connection import ServerConnection, State
from crow.mcp.client.inventory import ConnectionContext
from crow.mcp.client.prompts_and_resources import NAME as RESOURCES
from crow.mcp.client.prompts_and_resources import Resources, ServerPrompt, prompts_of
from crow.mcp.client.schemas import SchemaUnfit
from crow.mcp.client.server_errors import ServerNotices
from crow.mcp.client.tool import McpTool
from crow.mcp.client.tool_search import NAME as FIND_TOOLS
from crow.mcp.client.tool_search import FindTools
from crow.messages import SERVER_TOOL, ToolCall, ToolSpec
from crow.tools.base import Action, BadArguments, Tool
from crow.visible import one_line, remark_on

SHARE = 10
"""Tools of servers may take the tenth part of the window."""
UNKNOWN_WINDOW = 32_000
MOST_NAMED = 10
"""Tools that one sentence names."""
MOST_WARNINGS = 10
"""The most warnings about one server's tool list in a session."""


class ServerStatus(msgspec.Struct, frozen=True):
    """The state of a server as `/mcp` shows it."""

    name: str
    known_as: str
    """The server's name in the names of its tools, and in rules."""
    origin: str
    state: str
    cause: str
    tools: tuple[tuple[str, int], ...]
    """The names of the tools, each with its cost in tokens."""
    prompts: tuple[str, ...]
    has_resources: bool
    wants_login: bool
    """The person has to log in before it can be used."""
    remedy: str = ""
    """How the failure can be repaired, where that is known."""
    title: str = ""
    """What it calls itself, in its own words."""
    has_printed: bool = False
    """It has written something to its standard error, since it was started last."""


class Hub:
    """`window` gives the size of the model's window in tokens, if it is known."""

    def __init__(self, context: ConnectionContext, window: Callable[[], int | None]) -> None:
        self._context = context
        self._window = window
        self.on_change: Callable[[], None] = lambda: None
        """Called when a server's state or what it offers has changed, or there is a server less."""
        self._connections: dict[str, ServerConnection] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._lists: dict[ServerConnection, ToolList] = {}
        self._told_of_names: set[str] = set()
        self._found: dict[str, None] = {}
        """Names of deferred tools that were found, the one found last at the end."""
        self._find_tools = FindTools(self)
        self._resources = Resources(self._with_resources)

    # --- servers

    def use(self, wanted: Mapping[str, ConfiguredServer]) -> None:
        """Starts those that are not there yet, all at once, and ends those that are no longer wanted as they are."""
        names = server_names(wanted)
        for name, connection in list(self._connections.items()):
            if (wanted.get(name), names.get(name)) != (connection.server, connection.known_as):
                self._drop(connection)
        for name, server in wanted.items():
            if name not in self._connections:
                self._tell_of_name(server, names)
                connection = ServerConnection(server, names[name], self._context, self._has_changed)
                self._connections[name] = connection
                self._lists[connection] = ToolList(connection, ServerNotices(server, self._context.tell).warn)
                connection.start()

    def _drop(self, connection: ServerConnection) -> None:
        del self._connections[connection.name]
        self._lists.pop(connection).leave()
        self.on_change()
        ending = asyncio.get_running_loop().create_task(connection.close())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    def _tell_of_name(self, server: ConfiguredServer, names: Mapping[str, str]) -> None:
        plain, own = server_name(server.name), names[server.name]
        if plain == own:
            return
        first = next(name for name, known_as in names.items() if known_as == plain)
        text = (
            f"The MCP servers `{shown_name(first)}` and `{server.shown_name}` would have the same name for the model "
            f"and in rules. `{server.shown_name}` (from {server.origin}) is `{own}` there: a rule for its tools is "
            f"`{SERVER_TOOL}{own}__*`."
        )
        if text not in self._told_of_names:
            self._told_of_names.add(text)
            self._context.tell(Notice("warning", text))

    def _has_changed(self, connection: ServerConnection) -> None:
        if connection.state is State.READY and connection in self._lists:
            self._lists[connection].take_in()
        self.on_change()

    async def settled(self) -> None:
        """Returns when each is ready, has failed, or is late."""
        await asyncio.gather(*(connection.settled() for connection in self._connections.values()))

    def unsettled(self) -> list[str]:
        return [one.name for one in self._connections.values() if not one.is_settled]

    def restart(self, name: str) -> bool:
        """Ends a server and starts it again. False if there is no such server."""
        if name in self._connections:
            self._connections[name].restart()
        return name in self._connections

    async def close(self) -> None:
        closing = (one.close() for one in self._connections.values())
        await asyncio.gather(*closing, *self._ending, return_exceptions=True)

    def status(self) -> list[ServerStatus]:
        prompts = prompts_of(self._connections.values())
        return [
            ServerStatus(
                one.name,
                one.known_as,
                one.server.origin,
                one.shown_state,
                one.cause,
                tuple((tool.spec.name, tool.cost) for tool in self._lists[one].tools.values()),
                tuple(prompt.name for prompt in prompts[one.name]),
                one.inventory.has_resources,
                one.wants_login,
                one.remedy,
                one.title,
                one.has_printed,
            )
            for one in self._connections.values()
        ]

    def prompts(self) -> list[ServerPrompt]:
        return [prompt for of_one in prompts_of(self._connections.values()).values() for prompt in of_one]

    # --- tools for the model

    @property
    def cost(self) -> int:
        """Tokens that all tools would take in every request."""
        return sum(tool.cost for tool in self.all_tools().values())

    @property
    def room(self) -> int:
        return (self._window() or UNKNOWN_WINDOW) // SHARE

    @property
    def defers(self) -> bool:
        return self.cost > self.room

    def offered(self) -> list[Tool]:
        """The tools for the next request: all, or `find_tools` and as many of the found ones as there is room for."""
        tools: list[Tool] = [*self.listed(), self._find_tools] if self.defers else [*self.all_tools().values()]
        if self._with_resources():
            tools.append(self._resources)
        return tools

    def find(self, name: str) -> Tool | None:
        """The tool of a name, also one that the request did not offer."""
        if name == FIND_TOOLS and self.defers:
            return self._find_tools
        if name == RESOURCES and self._with_resources():
            return self._resources
        return self.all_tools().get(name) or self._starting(name)

    def _starting(self, name: str) -> Tool | None:
        """A tool that the model knows from before, of a server that is starting again."""
        for one in self._connections.values():
            if one.state is State.STARTING and name.startswith(f"{SERVER_TOOL}{one.known_as}__"):
                return StartingTool(name, one, self._lists[one])
        return None

    def listed(self) -> list[McpTool]:
        """The tools found last, the best match first, in a steady order."""
        tools, room = self.all_tools(), self.room
        chosen: set[str] = set()
        for name in reversed(self._found):
            tool = tools.get(name)
            if tool is not None and tool.cost <= room:
                chosen.add(name)
                room -= tool.cost
        return [tool for name, tool in tools.items() if name in chosen]

    def all_tools(self) -> dict[str, McpTool]:
        return {name: tool for one in self._lists.values() for name, tool in one.tools.items()}

    def have_found(self, tools: Sequence[McpTool]) -> None:
        for tool in reversed(tools):
            self._found.pop(tool.spec.name, None)
            self._found[tool.spec.name] = None

    def _with_resources(self) -> list[ServerConnection]:
        return [one for one in self._connections.values() if one.inventory.has_resources and one.state is State.READY]


# --- the tools of one server


class ToolList:
    """`warn` tells the person something of the server."""

    def __init__(self, connection: ServerConnection, warn: Callable[[str], None]) -> None:
        self.tools: dict[str, McpTool] = {}
        """The tools by the names that the model knows."""
        self._connection = connection
        self._warn = warn
        self._warnings = 0
        self._told: set[str] = set()

    def take_in(self) -> None:
        """What the server lists takes the place of what it listed before."""
        before = {tool.definition.name: tool for tool in self.tools.values()}
        listed, again = _each_once(self._connection.inventory.tools)
        names = self._names(listed, before)
        left_out = dict(self._connection.inventory.left_out)
        self.tools = {}
        for definition in listed:
            known, name = before.get(definition.name), names[definition.name]
            try:
                tool = McpTool(name, definition, self._connection)
            except SchemaUnfit as unfit:
                left_out[definition.name] = str(unfit)
                continue
            self.tools[name] = known if known is not None and known.digest == tool.digest else tool
        for tool in before.values():
            tool.is_current = self.tools.get(tool.spec.name) is tool
        self._warn_of(left_out, again)

    def leave(self) -> None:
        """Marks the tools of a server that is no longer used as outdated, for calls that are still about to be made."""
        for tool in self.tools.values():
            tool.is_current = False

    def _names(self, listed: Sequence[McpToolDefinition], before: Mapping[str, McpTool]) -> dict[str, str]:
        """The names that the model knows, by the server's own. A tool keeps its name as long as it is listed."""
        names = {one.name: before[one.name].spec.name for one in listed if one.name in before}
        taken = set(names.values())
        for definition in listed:
            if definition.name not in names:
                names[definition.name] = tool_name(self._connection.known_as, definition.name, taken)
                taken.add(names[definition.name])
        return names

    def _warn_of(self, left_out: Mapping[str, str], again: Sequence[str]) -> None:
        """A second tool of the same name would get another name, one that no rule for the first covers. What hides in a
        description the model reads, and the person hardly ever does."""
        if self._warnings >= MOST_WARNINGS:
            return
        hiding = {tool.definition.name: tool for tool in self.tools.values() if tool.hidden}
        sentences: list[str] = []
        if names := self._not_told("left out", left_out):
            sentences.append(f"Unusable tools are left out: {_some([f'{name} ({left_out[name]})' for name in names])}.")
        if names := self._not_told("again", again):
            sentences.append(f"Tools listed more than once, of which only the first is used: {_some(names)}.")
        if names := self._not_told("hidden", hiding):
            characters = list(dict.fromkeys(character for name in names for character in hiding[name].hidden))
            remark = remark_on(characters)
            sentences.append(f"Tool descriptions contain invisible characters: {_some(names)}. {remark}")
        if sentences:
            self._warnings += 1
            self._warn(" ".join(sentences))

    def _not_told(self, what: str, names: Iterable[str]) -> list[str]:
        found = [name for name in names if f"{what}: {name}" not in self._told]
        self._told.update(f"{what}: {name}" for name in found)
        return found


class StartingTool(Tool):
    """A tool of a server that is still starting: its call waits for the server, and is then one of the tool itself."""

    def __init__(self, name: str, connection: ServerConnection, listed: ToolList) -> None:
        self.spec = ToolSpec(name, "", {})
        self._connection = connection
        self._listed = listed

    def title(self, arguments: dict[str, Any]) -> str:
        tool = self.spec.name.removeprefix(f"{SERVER_TOOL}{self._connection.known_as}__")
        return one_line(f"{self._connection.name}: {tool}")

    async def prepare(self, call: ToolCall, workspace: Workspace) -> Action:
        await self._connection.started()
        tool = self._listed.tools.get(self.spec.name)
        if tool is None:
            raise BadArguments(f"The MCP server `{self._connection.shown_name}` {self._why_not()}. Nothing was called.")
        return await tool.prepare(call, workspace)

    def _why_not(self) -> str:
        if self._connection.state is State.READY:
            return f"has no tool `{one_line(self.spec.name, 100)}`"
        return f"cannot be used: {(self._connection.cause or 'it is still starting').rstrip('.')}"


def _each_once(listed: Iterable[McpToolDefinition]) -> tuple[list[McpToolDefinition], list[str]]:
    """The definitions, each name once; and the names that are listed more than once."""
    first: dict[str, McpToolDefinition] = {}
    again: dict[str, None] = {}
    for definition in listed:
        if first.setdefault(definition.name, definition) is not definition:
            again[definition.name] = None
    return list(first.values()), list(again)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(one_line(name, 150) for name in names[:MOST_NAMED]) + more
