"""The tool `find_tools`: ranks MCP tools by a query, for a model that is not given all of them with each request."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Protocol

import msgspec
from rapidfuzz import fuzz

from crow.actions import Deed
from crow.events import Journal
from crow.files.base import Workspace
from crow.mcp.client.tool import McpTool
from crow.messages import BYTES_A_TOKEN, ToolCall, ToolSpec
from crow.results import TextBlock, ToolKind, ToolResult
from crow.tools.arguments import ArgumentReader, ignored_arguments
from crow.tools.base import Action, Tool
from crow.visible import one_line

NAME = "find_tools"
MOST_FOUND = 8
SHARES_OF_ROOM = 2
"""How much more than listed tools those may take, once, that are told in words."""
MOST_SERVERS = 20
LEAST_SCORE = 0.5
_WORD = re.compile(r"[^\W_]+")


class FindToolsArguments(msgspec.Struct, frozen=True):
    query: Annotated[str, msgspec.Meta(min_length=1, max_length=500, description="what the tool should do, in words")]


_reader = ArgumentReader(FindToolsArguments)


class ToolCatalogue(Protocol):
    """The tools of all servers, when they are more than are listed for the model."""

    @property
    def room(self) -> int:
        """Tokens that listed tools may take in every request."""
        ...

    def all_tools(self) -> Mapping[str, McpTool]:
        """All tools by name."""
        ...

    def listed(self) -> Sequence[McpTool]:
        """The tools that the next request carries."""
        ...

    def have_found(self, tools: Sequence[McpTool]) -> None:
        """The best match first: as many of them are listed from now on as there is room for."""
        ...


class FindTools(Tool):
    kind = ToolKind.SEARCH

    def __init__(self, tools: ToolCatalogue) -> None:
        self._tools = tools

    @property
    def spec(self) -> ToolSpec:  # pyright: ignore[reportIncompatibleVariableOverride] -- made anew for each request
        tools, listed = self._tools.all_tools(), {tool.spec.name for tool in self._tools.listed()}
        others = [tool for name, tool in tools.items() if name not in listed]
        servers = list(dict.fromkeys(one_line(tool.connection.name, 40) for tool in others))
        more = f", and {len(servers) - MOST_SERVERS} more" if len(servers) > MOST_SERVERS else ""
        description = (
            f"Find tools of MCP servers: there are {len(others)} more than are listed here, of "
            f"{', '.join(servers[:MOST_SERVERS])}{more}. What was found can be called by its exact name from the next "
            "step on."
        )
        return ToolSpec(NAME, description, _reader.schema())

    def title(self, arguments: dict[str, Any]) -> str:
        query = arguments.get("query")
        return f"Find tools: {query}" if isinstance(query, str) and query else "Find tools"

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "FindToolsAction":
        arguments, unknown = _reader.read(call)
        return FindToolsAction(arguments.query, unknown, self._tools)


class FindToolsAction(Action):
    deed = Deed(NAME, ToolKind.SEARCH)

    def __init__(self, query: str, unknown: tuple[str, ...], tools: ToolCatalogue) -> None:
        self.title = f"Find tools: {one_line(query, 100)}"
        self._query = query
        self._unknown = unknown
        self._tools = tools

    async def perform(self, journal: Journal) -> ToolResult:
        found = ranked(self._query, list(self._tools.all_tools().values()))[:MOST_FOUND]
        self._tools.have_found(found)
        listed = {tool.spec.name for tool in self._tools.listed()}
        lines = [f"{tool.spec.name}: {one_line(tool.spec.description, 200)}" for tool in found]
        unlisted = [tool for tool in found if tool.spec.name not in listed]
        told = [*lines, *_arguments_of(unlisted, self._tools.room)] if found else ["No match. Try other words."]
        message = f"{len(found)} found" if found else "Nothing found"
        shown = (TextBlock("\n".join([*lines, *_for_the_person(unlisted)])),) if lines else ()
        text = "\n".join([*told, *ignored_arguments(self._unknown)])
        return ToolResult(ok=True, text=text, message=message, display=shown)


def _arguments_of(unlisted: Sequence[McpTool], room: int) -> list[str]:
    """What the model has to know in order to call tools that its next request has no room for."""
    if not unlisted:
        return []
    lines = ["", "These are not listed, as there is no room for them. Call them by their exact names all the same:"]
    left = SHARES_OF_ROOM * room * BYTES_A_TOKEN
    for tool in unlisted:
        told = _told(tool, left, alone=tool is unlisted[0])
        left -= len(told.encode())
        lines.append(told)
    return lines


def _told(tool: McpTool, most: int, *, alone: bool) -> str:
    """In full or, if that is too long, in short; one that is alone is told at least in part."""
    name = tool.spec.name
    schema = msgspec.json.encode(tool.spec.schema)
    if len(schema) <= most:
        return f"{name} takes arguments of this JSON schema: {schema.decode()}"
    short = _in_short(tool.spec.schema)
    if len(short.encode()) <= most or alone:
        return f"{name} takes these arguments: {one_line(short, most)}"
    return f"{name}: its arguments are too long for this answer. Look for its name alone."


def _in_short(schema: Mapping[str, Any]) -> str:
    """The names of arguments, those that are needed first, and of what type they are."""
    properties: Mapping[str, Any] = schema["properties"]
    needed = [name for name in schema.get("required", ()) if name in properties]
    names = [*needed, *(name for name in properties if name not in needed)]
    kinds = {name: msgspec.json.encode(properties[name].get("type", "any")).decode().strip('"') for name in names}
    return "; ".join(f"{name}{' (required)' if name in needed else ''}: {kinds[name]}" for name in names)


def _for_the_person(unlisted: Sequence[McpTool]) -> list[str]:
    if not unlisted:
        return []
    names = ", ".join(tool.spec.name for tool in unlisted)
    return ["", f"The model was told the arguments of these in words, as its requests have no room for them: {names}"]


def ranked(query: str, tools: Sequence[McpTool]) -> list[McpTool]:
    """The best first: words of the query in the name count most, then those in the description, then likeness.

    A tool whose exact name is looked for is the only one.
    """
    if named := [tool for tool in tools if tool.spec.name == query.strip()]:
        return named
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
