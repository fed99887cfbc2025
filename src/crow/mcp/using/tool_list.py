"""The tools of one server, as it lists them now: each under a name of its own; the person is told what is odd, once."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from mcp_types import Tool as McpToolDefinition

from crow.mcp.using.connection import Connection
from crow.mcp.using.naming import tool_name
from crow.mcp.using.schemas import SchemaUnfit
from crow.mcp.using.tool import McpTool
from crow.visible import one_line, remark_on

MOST_NAMED = 10
"""Tools that one sentence names."""
MOST_WARNINGS = 10
"""Of one server, however often it changes its list."""


class ToolList:
    """`warn` tells the person something of the server."""

    def __init__(self, connection: Connection, warn: Callable[[str], None]) -> None:
        self.tools: dict[str, McpTool] = {}
        """By the name that the model knows."""
        self._connection = connection
        self._warn = warn
        self._warnings = 0
        self._told: set[str] = set()

    def take_in(self) -> None:
        """What the server lists takes the place of what it listed before."""
        before = {tool.definition.name: tool for tool in self.tools.values()}
        listed, again = _each_once(self._connection.has.tools)
        names = self._names(listed, before)
        left_out = dict(self._connection.has.left_out)
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
        self._tell([*self._of_left_out(left_out), *self._of_repeated(again), *self._of_hidden()])

    def leave(self) -> None:
        """The server is used no more."""
        for tool in self.tools.values():
            tool.is_current = False

    def _names(self, listed: Sequence[McpToolDefinition], before: Mapping[str, McpTool]) -> dict[str, str]:
        """By the server's own names. A tool keeps its name as long as it is listed."""
        names = {one.name: before[one.name].spec.name for one in listed if one.name in before}
        taken = set(names.values())
        for definition in listed:
            if definition.name not in names:
                names[definition.name] = tool_name(self._connection.known_as, definition.name, taken)
                taken.add(names[definition.name])
        return names

    # --- for the person

    def _tell(self, sentences: Sequence[str]) -> None:
        if sentences and self._warnings < MOST_WARNINGS:
            self._warnings += 1
            self._warn(" ".join(sentences))

    def _untold(self, what: str, names: Iterable[str]) -> list[str]:
        found = [name for name in names if f"{what}: {name}" not in self._told]
        if self._warnings < MOST_WARNINGS:
            self._told.update(f"{what}: {name}" for name in found)
        return found

    def _of_left_out(self, faults: Mapping[str, str]) -> list[str]:
        names = self._untold("left out", faults)
        if not names:
            return []
        return [f"Tools that cannot be used are left out: {_some([f'{name} ({faults[name]})' for name in names])}."]

    def _of_repeated(self, again: Iterable[str]) -> list[str]:
        """A second tool of the same name would get another name, one that no rule for the first covers."""
        names = self._untold("again", again)
        return [f"It lists tools more than once, and the first counts: {_some(names)}."] if names else []

    def _of_hidden(self) -> list[str]:
        """In what a server says of its tools, which the model reads and the person hardly ever does."""
        hiding = {tool.definition.name: tool for tool in self.tools.values() if tool.hidden}
        names = self._untold("hidden", hiding)
        if not names:
            return []
        characters = list(dict.fromkeys(character for name in names for character in hiding[name].hidden))
        return [f"It hides something in the description of its tools: {_some(names)}. {remark_on(characters)}"]


def _each_once(listed: Iterable[McpToolDefinition]) -> tuple[list[McpToolDefinition], list[str]]:
    """And the names that are listed more than once."""
    first: dict[str, McpToolDefinition] = {}
    again: dict[str, None] = {}
    for definition in listed:
        if first.setdefault(definition.name, definition) is not definition:
            again[definition.name] = None
    return list(first.values()), list(again)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(one_line(name, 150) for name in names[:MOST_NAMED]) + more
