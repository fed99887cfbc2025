"""Which tools a subagent has. One that it calls by name and does not have is refused with the reason."""

from collections.abc import Sequence
from typing import Any

from crow.messages import ToolCall
from crow.results import LOOKING
from crow.tools.base import Action, BadArguments, Tool
from crow.tools.task import Kind
from crow.tools.toolbox import Toolbox
from crow.workspace.base import Workspace

WITHHELD = frozenset({"task", "ask", "plan", "leave_plan"})
"""Tools that a subagent never has: it sends nobody, and the person's attention is the agent's that sent it."""

NOT_FOR_ANY = "No subagent has the tool `{}`: do the task without it, or say in your report what is missing."
NOT_FOR_EXPLORERS = (
    "`{}` was not called: a subagent of kind `explore` can only read, search and look on the web. "
    "Say in your report what should be done."
)


def tools_for(kind: Kind, session: Toolbox, fresh: Sequence[Tool]) -> Toolbox:
    """`session` are the tools of the one that sends it; `fresh` take the place of those that remember something."""
    new = {tool.spec.name: tool for tool in fresh}
    tools = [new.get(tool.spec.name, tool) for tool in session.lasting() if _has(kind, tool)]
    toolbox = Toolbox(tools)
    toolbox.more = _More(kind, session)
    return toolbox


def _has(kind: Kind, tool: Tool) -> bool:
    return tool.spec.name not in WITHHELD and (kind == "work" or tool.kind in LOOKING)


class _More:
    """What comes and goes is of servers: not for explorers, as what a server says of its tools is no promise."""

    def __init__(self, kind: Kind, session: Toolbox) -> None:
        self._kind = kind
        self._session = session

    def offered(self) -> Sequence[Tool]:
        more = self._session.more
        return more.offered() if more is not None and self._kind == "work" else ()

    def find_tool(self, name: str) -> Tool | None:
        """Asked for what is not among the subagent's lasting tools."""
        if name in WITHHELD:
            return _Refused(self._session.find(name), NOT_FOR_ANY)
        more = self._session.more
        served = more.find_tool(name) if more is not None else None
        if self._kind == "work":
            return served
        known = served is not None or name in self._session
        return _Refused(self._session.find(name), NOT_FOR_EXPLORERS) if known else None


class _Refused:
    """It looks like the tool that was called, so that the person reads what was wanted."""

    def __init__(self, tool: Tool, reason: str) -> None:
        self.spec = tool.spec
        self.kind = tool.kind
        self._tool = tool
        self._reason = reason

    def title(self, arguments: dict[str, Any]) -> str:
        return self._tool.title(arguments)

    async def prepare(self, call: ToolCall, workspace: Workspace) -> Action:
        raise BadArguments(self._reason.format(self.spec.name))
