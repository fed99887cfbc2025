"""The tools of a session, by name. Looking one up always gives a tool: an unknown name gives one that says so."""

import functools
import logging
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec

from crow.errors import CrowError
from crow.messages import ToolCall, ToolSpec
from crow.results import ToolKind, ToolResult
from crow.tools.base import Action, BadArguments, Tool
from crow.visible import one_line
from crow.workspace.base import Workspace

logger = logging.getLogger(__name__)


class MoreTools(Protocol):
    """Tools that come and go while the session lives, such as those of servers."""

    def offered(self) -> Sequence[Tool]:
        """Those that the model is told of in its next request."""
        ...

    def find_tool(self, name: str) -> Tool | None:
        """Also one that is not offered."""
        ...


class Toolbox:
    def __init__(self, tools: Iterable[Tool], more: MoreTools | None = None) -> None:
        """`tools` is gone through when one is first asked for: a session is open before they are imported."""
        self.more = more
        self._first = tools
        self._added: dict[str, Tool] = {}

    @functools.cached_property
    def _tools(self) -> dict[str, Tool]:
        return {**{tool.spec.name: tool for tool in self._first}, **self._added}

    def add(self, tool: Tool) -> None:
        """Another one; said before the first is asked for."""
        self._added[tool.spec.name] = tool

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def lasting(self) -> list[Tool]:
        """Those that are there as long as the session is."""
        return list(self._tools.values())

    def all(self) -> list[Tool]:
        """Those that may be offered now."""
        return [*self._tools.values(), *(self.more.offered() if self.more is not None else ())]

    def specs(self) -> list[ToolSpec]:
        return [tool.spec for tool in self.all()]

    def find(self, name: str) -> Tool:
        """The tool of that name, or the only one of those on offer that can be meant by it."""
        if (found := self._find(name)) is not None:
            return found
        # for names that are not as they should be
        from crow.tools.lenient.names import near, resolve
        from crow.tools.lenient.several import hint, several

        known = [tool.spec.name for tool in self.all()]
        meant = resolve(name, known)
        found = self._find(meant) if meant is not None else None
        return (
            found or several(name, known, self._find) or _UnknownTool(name, known, near(name, known), hint(name, known))
        )

    def _find(self, name: str) -> Tool | None:
        return self._tools.get(name) or (self.more.find_tool(name) if self.more is not None else None)


class _UnknownTool:
    kind = ToolKind.OTHER

    def __init__(self, name: str, known: list[str], near: list[str], hint: str) -> None:
        self.spec = ToolSpec(name, "", {})
        self._known = known
        self._near = near
        self._hint = hint

    def title(self, arguments: dict[str, Any]) -> str:
        return f"Unknown tool {self.spec.name[:100]}"

    async def prepare(self, call: ToolCall, workspace: Workspace) -> Action:
        near = " or ".join(f"`{name}`" for name in self._near)
        meant = f" {self._hint}" if self._hint else f" Is {near} meant?" if near else ""
        raise BadArguments(
            f"There is no tool `{one_line(call.name, 100)}`.{meant} The tools are: {', '.join(self._known)}."
        )


def failure(call: ToolCall, error: Exception) -> ToolResult:
    """What went wrong in a tool, told to both. An unforeseen error is logged; only its name is shown."""
    match error:
        case BadArguments() | CrowError():
            return ToolResult.failed(str(error))
        case _:
            logger.error("tool %s crashed", call.name, exc_info=error)
            text = f"`{call.name}` failed unexpectedly ({type(error).__name__}). The log has the details."
            return ToolResult.failed(text)


# --- the tools of a model with a small window: the few that work cannot do without, described in a few words
#
# All tools with their full descriptions take about 3,000 tokens of every request. That is nothing to a window of
# 200,000, and most of one of 8,192.

SMALL_WINDOW = 16_000
"""Tokens: below it, a model gets the small set."""

DESCRIPTIONS = {
    "read": "Read a file as numbered lines, or list a folder. For more, go on with `offset`.",
    "write": "Write a whole file. An existing one must have been read in full: else use `edit`.",
    "edit": "Replace text in a file. `old` is copied exactly from the file, without line numbers, and must be unique.",
    "find": "Find files by name or glob.",
    "search": "Search files for a regular expression.",
    "terminal": "Run a shell command.",
    "ask": "Ask the user, if you cannot go on without an answer.",
    "leave_plan": "In plan mode: show the complete plan and ask to carry it out.",
}

LEFT_OUT = {
    "write": ("append",),
    "search": ("context", "mode"),
    "terminal": ("background", "cwd"),
}
"""Arguments that the model is not told of."""


def small_set(specs: Sequence[ToolSpec]) -> list[ToolSpec]:
    """Those of the tools that belong to it, and all that are not Crow's own: whoever added a server wants its tools."""
    return [_small(spec) if spec.name in DESCRIPTIONS else spec for spec in specs if _belongs(spec.name)]


def _belongs(name: str) -> bool:
    return name in DESCRIPTIONS or name.startswith("mcp__") or name in ("find_tools", "mcp_resources")


@functools.cache
def _small_schema(name: str, schema: bytes) -> dict[str, Any]:
    """The same for the same tool: it is asked for before each request."""
    bare = _bare(msgspec.json.decode(schema, type=dict[str, Any]))
    for left_out in LEFT_OUT.get(name, ()):
        bare["properties"].pop(left_out, None)
    return bare


def _small(spec: ToolSpec) -> ToolSpec:
    return ToolSpec(spec.name, DESCRIPTIONS[spec.name], _small_schema(spec.name, msgspec.json.encode(spec.schema)))


def _bare(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of an object with nothing but the names and types of its properties."""
    bare: dict[str, Any] = {key: schema[key] for key in ("type", "enum", "required") if key in schema}
    if "properties" in schema:
        bare["properties"] = {name: _bare(inner) for name, inner in schema["properties"].items()}
    if "items" in schema:
        bare["items"] = _bare(schema["items"])
    return bare
