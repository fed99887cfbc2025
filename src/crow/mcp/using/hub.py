"""All servers of a session: what their tools are, which of them the model is told of, what changed."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

import msgspec
from mcp_types import Tool as McpToolDefinition

from crow.config.settings import PermissionRule
from crow.events import Notice
from crow.mcp.using.approvals import Approvals
from crow.mcp.using.connection import Around, Connection, State
from crow.mcp.using.finding import NAME as FIND_TOOLS
from crow.mcp.using.finding import FindTools
from crow.mcp.using.hidden import remark_on
from crow.mcp.using.naming import server_name, server_names, tool_name
from crow.mcp.using.prompts import ServerPrompt, prompts_of
from crow.mcp.using.resources import NAME as RESOURCES
from crow.mcp.using.resources import Resources
from crow.mcp.using.schemas import SchemaUnfit
from crow.mcp.using.tool import McpTool
from crow.mcp.using.wanted import Wanted
from crow.tools.base import Tool
from crow.visible import one_line

SHARE = 10
"""Tools of servers may take the tenth part of the window."""
UNKNOWN_WINDOW = 32_000


class Permissions(msgspec.Struct, frozen=True):
    """What the person has allowed, as far as it is about servers' tools."""

    is_granted: Callable[[str], bool]
    """Whether they said "always" to the tool of this name, for the session or the project."""
    revoke: Callable[[PermissionRule], object]


class ServerStatus(msgspec.Struct, frozen=True):
    """For the person."""

    name: str
    known_as: str
    """In the names of its tools, and in rules."""
    origin: str
    state: str
    cause: str
    tools: tuple[tuple[str, int], ...]
    """Names, and what each costs in tokens."""
    prompts: tuple[str, ...]
    has_resources: bool


class Hub:
    """`window` gives the size of the model's window in tokens, if it is known."""

    def __init__(
        self, around: Around, permissions: Permissions, approvals: Approvals, window: Callable[[], int | None]
    ) -> None:
        # The library logs messages with all they carry, and failures that we tell in our own words.
        for name in ("mcp", "client", "httpx2", "httpcore2"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._around = around
        self._permissions = permissions
        self._approvals = approvals
        self._window = window
        self._connections: dict[str, Connection] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._tools: dict[str, McpTool] = {}
        self._warned: set[str] = set()
        self._found: dict[str, None] = {}
        """Names of deferred tools that were found, the one found last at the end."""
        self._find_tools = FindTools(self)
        self._resources = Resources(self._with_resources)

    # --- servers

    def use(self, wanted: Mapping[str, Wanted]) -> None:
        """Starts those that are not there yet, all at once, and ends those that are no longer wanted as they are."""
        names = server_names(wanted)
        for name, connection in list(self._connections.items()):
            if (wanted.get(name), names.get(name)) != (connection.wanted, connection.known_as):
                self._drop(connection)
        for name, server in wanted.items():
            if name not in self._connections:
                self._tell_of_name(server, names)
                self._connections[name] = Connection(server, names[name], self._around, self._take_in)
                self._connections[name].start()

    def _drop(self, connection: Connection) -> None:
        del self._connections[connection.name]
        self._tools = {name: tool for name, tool in self._tools.items() if tool.connection is not connection}
        ending = asyncio.get_running_loop().create_task(connection.close())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    def _tell_of_name(self, server: Wanted, names: Mapping[str, str]) -> None:
        plain, own = server_name(server.name), names[server.name]
        if plain == own:
            return
        first = next(name for name, known_as in names.items() if known_as == plain)
        self._warn_once(
            f"The MCP servers `{one_line(first, 100)}` and `{one_line(server.name, 100)}` would have the same name for "
            f"the model and in rules. `{one_line(server.name, 100)}` (from {server.origin}) is `{own}` there: a rule "
            f"for its tools is `mcp__{own}__*`."
        )

    async def settled(self) -> None:
        """Returns when each is ready, has failed, or is late."""
        await asyncio.gather(*(connection.settled() for connection in self._connections.values()))

    def unsettled(self) -> list[str]:
        return [one.name for one in self._connections.values() if not one.is_settled]

    def restart(self, name: str) -> bool:
        """False if there is no such server."""
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
                one.wanted.origin,
                one.state,
                one.cause,
                tuple((tool.spec.name, tool.cost) for tool in self._tools.values() if tool.connection is one),
                tuple(prompt.name for prompt in prompts[one.name]),
                one.has.has_resources,
            )
            for one in self._connections.values()
        ]

    def prompts(self) -> list[ServerPrompt]:
        return [prompt for of_one in prompts_of(self._connections.values()).values() for prompt in of_one]

    # --- tools for the model

    @property
    def cost(self) -> int:
        """Tokens that all tools would take in every request."""
        return sum(tool.cost for tool in self._tools.values())

    @property
    def room(self) -> int:
        return (self._window() or UNKNOWN_WINDOW) // SHARE

    @property
    def defers(self) -> bool:
        return self.cost > self.room

    def offered(self) -> list[Tool]:
        """All of them, or `find_tools` and of those that were found as many as there is room for."""
        tools: list[Tool] = [*self.listed(), self._find_tools] if self.defers else [*self._tools.values()]
        if self._with_resources():
            tools.append(self._resources)
        return tools

    def find(self, name: str) -> Tool | None:
        """Also one that is not offered."""
        if name == FIND_TOOLS and self.defers:
            return self._find_tools
        if name == RESOURCES and self._with_resources():
            return self._resources
        return self._tools.get(name)

    def listed(self) -> list[McpTool]:
        """The tools found last, the best match first, in a steady order."""
        room = self.room
        chosen: set[str] = set()
        for name in reversed(self._found):
            tool = self._tools.get(name)
            if tool is not None and tool.cost <= room:
                chosen.add(name)
                room -= tool.cost
        return [tool for name, tool in self._tools.items() if name in chosen]

    def all_tools(self) -> dict[str, McpTool]:
        return self._tools

    def have_found(self, tools: Sequence[McpTool]) -> None:
        for tool in reversed(tools):
            self._found.pop(tool.spec.name, None)
            self._found[tool.spec.name] = None

    def _with_resources(self) -> list[Connection]:
        return [one for one in self._connections.values() if one.has.has_resources and one.state is State.READY]

    # --- what a server has now

    def _take_in(self, connection: Connection) -> None:
        """Its tools replace those it had; one that is no longer what was allowed is asked about again."""
        if connection.state is not State.READY:
            return
        before = {tool.definition.name: tool for tool in self._tools.values() if tool.connection is connection}
        self._tools = {name: tool for name, tool in self._tools.items() if tool.connection is not connection}
        for definition in self._listed_once(connection):
            known = before.pop(definition.name, None)
            name = known.spec.name if known is not None else self._name(connection, definition)
            try:
                tool = McpTool(name, definition, connection, self._allowed)
            except SchemaUnfit as unfit:
                self._leave_out(connection, definition.name, str(unfit))
                continue
            if known is not None and known.digest == tool.digest:
                tool = known
            self._tools[name] = tool
            self._check(tool, known)
        for gone in before.values():
            gone.is_current = False
        self._tell_of_hidden(connection)

    def _name(self, connection: Connection, definition: McpToolDefinition) -> str:
        return tool_name(connection.known_as, definition.name, self._tools)

    def _tell_of_hidden(self, connection: Connection) -> None:
        """In what a server says of its tools, which the model reads and the person hardly ever does."""
        hiding = [tool for tool in self._tools.values() if tool.connection is connection and tool.hidden]
        if hiding:
            names = one_line(", ".join(tool.definition.name for tool in hiding), 300)
            remark = remark_on(list(dict.fromkeys(character for tool in hiding for character in tool.hidden)))
            server = one_line(connection.name, 100)
            self._warn_once(
                f"The MCP server `{server}` hides something in the description of its tools: {names}. {remark}"
            )

    def _listed_once(self, connection: Connection) -> list[McpToolDefinition]:
        """A second tool of the same name would get another name, one that no rule for the first covers."""
        listed: dict[str, McpToolDefinition] = {}
        again: dict[str, None] = {}
        for definition in connection.has.tools:
            if listed.setdefault(definition.name, definition) is not definition:
                again[definition.name] = None
        if again:
            server, names = one_line(connection.name, 100), one_line(", ".join(again), 300)
            self._warn_once(f"The MCP server `{server}` lists tools more than once, and the first counts: {names}.")
        return list(listed.values())

    def _check(self, tool: McpTool, known: McpTool | None) -> None:
        name = tool.spec.name
        if known is tool:
            return
        if known is not None:
            known.is_current = False
        approved = known.digest if known is not None else self._approvals.digest(name)
        granted = self._permissions.is_granted(name)
        if granted and approved != tool.digest:
            self._permissions.revoke(PermissionRule(name, "allow"))
            again = " You had allowed it; you will be asked again."
        else:
            again = ""
        if known is not None or again:
            text = f"The tool `{name}` is no longer what it was: its server, its description or its arguments changed."
            self._around.tell(Notice("warning", text + again))

    def _allowed(self, tool: McpTool) -> None:
        if self._permissions.is_granted(tool.spec.name):
            self._approvals.keep(tool.spec.name, tool.digest)

    def _leave_out(self, connection: Connection, tool: str, fault: str) -> None:
        name, server = one_line(tool, 100), one_line(connection.name, 100)
        self._warn_once(f"The tool {name} of the MCP server `{server}` is left out: {fault}.")

    def _warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._around.tell(Notice("warning", text))
