"""The tools of a session, by name. Looking one up always gives a tool: an unknown name gives one that says so."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from crow.errors import CrowError
from crow.messages import ToolCall, ToolSpec
from crow.results import ToolKind, ToolResult
from crow.tools.base import Action, BadArguments, Tool
from crow.workspace.base import Workspace

logger = logging.getLogger(__name__)


class Toolbox:
    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = {tool.spec.name: tool for tool in tools}

    def add(self, tool: Tool) -> None:
        self._tools[tool.spec.name] = tool

    def specs(self, is_offered: Callable[[ToolKind], bool]) -> list[ToolSpec]:
        """Of the tools whose kind is on offer."""
        return [tool.spec for tool in self._tools.values() if is_offered(tool.kind)]

    def find(self, name: str) -> Tool:
        return self._tools.get(name) or _UnknownTool(name, list(self._tools))


class _UnknownTool:
    kind = ToolKind.OTHER

    def __init__(self, name: str, known: list[str]) -> None:
        self.spec = ToolSpec(name, "", {})
        self._known = known

    def title(self, arguments: dict[str, Any]) -> str:
        return f"Unknown tool {self.spec.name[:100]}"

    def growing(self, arguments: dict[str, Any]) -> str:
        return ""

    async def prepare(self, call: ToolCall, workspace: Workspace) -> Action:
        raise BadArguments(f"There is no tool `{call.name[:100]}`. The tools are: {', '.join(self._known)}.")


def failure(call: ToolCall, error: Exception) -> ToolResult:
    """What went wrong in a tool, told to both. An unforeseen error is logged; only its name is shown."""
    match error:
        case BadArguments():
            return ToolResult.failed(str(error))
        case CrowError():
            return ToolResult.failed(str(error))
        case _:
            logger.error("tool %s crashed", call.name, exc_info=error)
            text = f"`{call.name}` failed unexpectedly ({type(error).__name__}). The log has the details."
            return ToolResult.failed(text)
