"""`find_tools`: where servers have more tools than a request should carry, the model looks for the ones it needs."""

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from rapidfuzz import fuzz

from crow.actions import Deed
from crow.events import Journal
from crow.mcp.using.tool import McpTool
from crow.messages import ToolCall, ToolSpec
from crow.results import DisplayBlock, Location, TextBlock, ToolKind, ToolResult
from crow.tools.base import ArgumentReader, ignored_arguments
from crow.visible import one_line
from crow.workspace.base import Workspace

NAME = "find_tools"
MOST_FOUND = 8
LEAST_SCORE = 0.5
_WORD = re.compile(r"[^\W_]+")


class FindToolsArguments(msgspec.Struct, frozen=True):
    query: Annotated[str, msgspec.Meta(min_length=1, max_length=500, description="what the tool should do, in words")]


_reader = ArgumentReader(FindToolsArguments)


class FindTools:
    kind = ToolKind.SEARCH

    def __init__(self, tools: Callable[[], Sequence[McpTool]], on_found: Callable[[Sequence[McpTool]], None]) -> None:
        self._tools = tools
        self._on_found = on_found

    @property
    def spec(self) -> ToolSpec:
        tools = self._tools()
        servers = list(dict.fromkeys(one_line(tool.connection.name, 40) for tool in tools))
        description = (
            f"Find tools of MCP servers: {len(tools)} more than are listed here, of {', '.join(servers[:20])}. "
            "What was found can be called from the next step on."
        )
        return ToolSpec(NAME, description, _reader.schema())

    def title(self, arguments: dict[str, Any]) -> str:
        query = arguments.get("query")
        return f"Find tools: {query}" if isinstance(query, str) and query else "Find tools"

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "FindToolsAction":
        arguments, unknown = _reader.read(call)
        return FindToolsAction(arguments.query, unknown, self._tools, self._on_found)


class FindToolsAction:
    deed = Deed(NAME, ToolKind.SEARCH)
    locations: tuple[Location, ...] = ()
    display: tuple[DisplayBlock, ...] = ()

    def __init__(
        self,
        query: str,
        unknown: tuple[str, ...],
        tools: Callable[[], Sequence[McpTool]],
        on_found: Callable[[Sequence[McpTool]], None],
    ) -> None:
        self.title = f"Find tools: {one_line(query, 100)}"
        self._query = query
        self._unknown = unknown
        self._tools = tools
        self._on_found = on_found

    async def perform(self, journal: Journal) -> ToolResult:
        found = ranked(self._query, self._tools())[:MOST_FOUND]
        self._on_found(found)
        lines = [f"{tool.spec.name}: {one_line(tool.spec.description, 200)}" for tool in found]
        told = lines or ["Nothing fits. Try other words."]
        message = f"{len(found)} found" if found else "Nothing found"
        shown = (TextBlock("\n".join(lines)),) if lines else ()
        text = "\n".join([*told, *ignored_arguments(self._unknown)])
        return ToolResult(ok=True, text=text, message=message, display=shown)


def ranked(query: str, tools: Sequence[McpTool]) -> list[McpTool]:
    """The best first: words of the query in the name count most, then those in the description, then likeness."""
    words = [word.lower() for word in _WORD.findall(query)]
    scored = [(_score(words, tool), index) for index, tool in enumerate(tools)]
    best = sorted((entry for entry in scored if entry[0] >= LEAST_SCORE), key=lambda entry: (-entry[0], entry[1]))
    return [tools[index] for _, index in best]


def _score(words: Sequence[str], tool: McpTool) -> float:
    name = {word.lower() for word in _WORD.findall(f"{tool.connection.name} {tool.definition.name}")}
    described = {word.lower() for word in _WORD.findall(tool.spec.description)}
    return sum(_word_score(word, name, described) for word in words) / max(1, len(words))


def _word_score(word: str, name: set[str], described: set[str]) -> float:
    if word in name:
        return 3.0
    if word in described:
        return 1.5
    alike = max((fuzz.ratio(word, other) for other in name | described), default=0.0)
    return 1.0 if alike >= 80 else 0.0
