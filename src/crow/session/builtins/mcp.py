"""/mcp: which MCP servers there are, how they are, and what their tools cost."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from crow.events import CommandInfo, Sent
from crow.session.commands import Reply
from crow.session.servers import Servers
from crow.turn.conversation import TurnIds
from crow.visible import one_line

if TYPE_CHECKING:
    from crow.mcp.using.hub import ServerStatus

MOST_TOOLS = 30
"""Tools of one server that are listed."""
NONE = (
    "There are no MCP servers in this session. Your editor can bring some, `[mcp_servers]` in your `config.toml`, "
    "or a project that you trust."
)


class Mcp:
    info = CommandInfo("mcp", "Shows the MCP servers, their tools and what these cost", "[restart NAME]")

    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Reply:
        verb, _, name = arguments.partition(" ")
        if verb == "restart" and name.strip():
            self._servers.restart(name.strip())
            return Reply(f"`{one_line(name.strip(), 100)}` is being started again.")
        if arguments:
            return Reply("`/mcp` shows the servers; `/mcp restart NAME` starts one again.")
        return Reply("\n".join(self._lines()))

    def _lines(self) -> Iterator[str]:
        status = self._servers.status()
        if not status:
            yield "The MCP servers have not been started yet." if self._servers.wanted() else NONE
            return
        count = sum(len(server.tools) for server in status)
        tools = "1 tool" if count == 1 else f"{count} tools"
        if self._servers.defers:
            yield f"{tools} of MCP servers, which would take about {self._servers.cost:,} tokens in every request."
            yield "That is more than a tenth of the model's window: it is told of a tool when it looks for one."
        else:
            yield f"{tools} of MCP servers, about {self._servers.cost:,} tokens in every request."
        for server in status:
            yield ""
            yield from _server(server)


def _server(server: "ServerStatus") -> Iterator[str]:
    cause = f": {one_line(server.cause, 500)}" if server.cause else ""
    yield f"**{one_line(server.name, 100)}** (from {server.origin}): {server.state}{cause}"
    if server.known_as != server.name:
        yield f"Its tools are `mcp__{server.known_as}__…`, for the model and in rules."
    if server.tools or server.prompts or server.has_resources:
        yield ""
    for name, cost in server.tools[:MOST_TOOLS]:
        yield f"- `{name}`, {cost:,} tokens"
    if len(server.tools) > MOST_TOOLS:
        rest = server.tools[MOST_TOOLS:]
        yield f"- and {len(rest)} more, {sum(cost for _, cost in rest):,} tokens"
    if server.prompts:
        yield f"- prompts: {', '.join(f'`/{name}`' for name in server.prompts[:MOST_TOOLS])}"
    if server.has_resources:
        yield "- has resources"
