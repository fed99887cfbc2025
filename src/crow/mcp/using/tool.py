"""A server's tool as one of the session's own."""

from typing import Any

import msgspec
from mcp_types import Tool as McpToolDefinition
from mcp_types import ToolAnnotations

from crow.actions import Deed
from crow.events import CallProgressed, Journal
from crow.mcp.using.answering import AskedIn
from crow.mcp.using.argument_names import with_real_names
from crow.mcp.using.changes import changes_of, command_of, growing_change, target_of
from crow.mcp.using.connection import Connection
from crow.mcp.using.content import result_of
from crow.mcp.using.digests import tool_digest
from crow.mcp.using.failures import NotCalled, ServerFailed
from crow.mcp.using.schemas import fit_for_models
from crow.mcp.using.telling import gave_no
from crow.messages import ToolCall, ToolSpec
from crow.paths import relative_to
from crow.results import DiffBlock, DisplayBlock, Location, TextBlock, ToolKind, ToolResult
from crow.tokens import tokens_of_tool
from crow.tools.base import arguments_for
from crow.visible import every_line, hidden_characters, made_visible, one_line, warning
from crow.workspace.base import Workspace

LONGEST_DESCRIPTION = 2000
LONGEST_TARGET = 100
"""Characters of what a title says that a call is about."""
CUT = "… (cut)"


class McpTool:
    """SchemaUnfit if no model could be told how to call it."""

    def __init__(self, name: str, definition: McpToolDefinition, connection: Connection) -> None:
        fitted = fit_for_models(definition.input_schema)
        said = (definition.description or definition.title or "").strip()
        self.connection = connection
        self.definition = definition
        self.spec = ToolSpec(name, _described(said, fitted.remark), fitted.schema)
        hidden = [*hidden_characters(definition.name + said[:LONGEST_DESCRIPTION]), *fitted.hidden]
        self.hidden = list(dict.fromkeys(hidden))
        """Characters in its description that could not be seen."""
        self.kind = _kind(definition.annotations)
        self.digest = tool_digest(definition, self.spec, connection.wanted.settings)
        self.cost = tokens_of_tool(self.spec)
        self.is_current = True
        """Whether the server still has it as it is described here."""
        self._real_names = fitted.real_names

    @property
    def shown_name(self) -> str:
        return one_line(f"{self.connection.name}: {self.definition.name}", 150)

    def title(self, arguments: dict[str, Any]) -> str:
        target = one_line(target_of(arguments), LONGEST_TARGET)
        if target and (command := command_of(arguments)):
            target = f"{command} {target}"
        return f"{self.shown_name} {target}" if target else self.shown_name

    def growing(self, arguments: dict[str, Any]) -> TextBlock | tuple[DiffBlock, ...] | None:
        return growing_change(with_real_names(arguments, self._real_names))

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "McpAction":
        arguments = with_real_names(arguments_for(call, self.spec.schema), self._real_names)
        changes = await changes_of(arguments, workspace)
        return McpAction(self, call.id, arguments, changes, workspace)


class McpAction:
    def __init__(
        self,
        tool: McpTool,
        call_id: str,
        arguments: dict[str, Any],
        changes: tuple[DiffBlock, ...],
        workspace: Workspace,
    ) -> None:
        self._tool = tool
        self._call_id = call_id
        self._arguments = arguments
        self._roots = workspace.roots
        changed = {"path": relative_to(changes[0].path, workspace.roots[0])} if changes else {}
        self.title = tool.title(arguments | changed)
        kind = ToolKind.EDIT if changes else tool.kind  # for the eye alone, too
        self.deed = Deed(tool.spec.name, kind, digest=tool.digest)
        self.locations = tuple(dict.fromkeys(Location(change.path) for change in changes))
        self.display: tuple[DisplayBlock, ...] = (*changes, TextBlock(_question(tool, arguments)))

    async def perform(self, journal: Journal) -> ToolResult:
        tool, progress = self._tool, _Progress(journal, self._call_id)
        asked_in = AskedIn(self._call_id, self.title, self.deed.kind)
        try:
            self._check()
            # The server may have to be started again for this call, and the tool be another then: it is checked again.
            given = await tool.connection.call(
                tool.definition.name, self._arguments, asked_in, progress.show, self._check
            )
        except NotCalled as failed:
            return ToolResult.failed(f"{gave_no('result', tool.connection.wanted, failed)} Nothing was called.")
        except ServerFailed as failed:
            return ToolResult.failed(gave_no("result", tool.connection.wanted, failed))
        return result_of(given, self._roots)

    def _check(self) -> None:
        if not self._tool.is_current:
            raise ServerFailed(f"it changed its tool `{self._tool.spec.name}` in the meantime, and nothing was called")


class _Progress:
    """Shown as it comes: the guard lets through as much as an eye can follow."""

    def __init__(self, journal: Journal, call_id: str) -> None:
        self._journal = journal
        self._call_id = call_id

    async def show(self, progress: float, total: float | None, message: str | None) -> None:
        amount = f"{progress:g} of {total:g}" if total else f"{progress:g}"
        text = f"{one_line(message, 300)} ({amount})" if message else amount
        self._journal.append(CallProgressed(self._call_id, (TextBlock(text),)))


def _described(said: str, remark: str) -> str:
    cut = CUT if len(said) > LONGEST_DESCRIPTION else ""
    text = made_visible(said[:LONGEST_DESCRIPTION]) + cut
    return f"{text}\n\n{remark}".strip() if remark else text


def _kind(hints: ToolAnnotations | None) -> ToolKind:
    """For the eye alone: what may run is decided by rules, whatever a server says of itself."""
    if hints is None or not hints.read_only_hint:
        return ToolKind.OTHER
    return ToolKind.FETCH if hints.open_world_hint else ToolKind.READ


def _question(tool: McpTool, arguments: dict[str, Any]) -> str:
    """Everything that will be sent, with nothing that hides."""
    written = msgspec.json.format(msgspec.json.encode(arguments)).decode()
    lines = [f"server: {tool.connection.name} (from {tool.connection.wanted.origin})", f"tool: {tool.definition.name}"]
    hints = tool.definition.annotations
    if hints is not None and hints.destructive_hint and not hints.read_only_hint:
        lines.append("the server says: it may destroy things")
    lines += ["arguments:", *written.split("\n")]
    remark = warning(tool.connection.name, tool.definition.name, written)
    return every_line("\n".join(lines)) + (f"\n{remark}" if remark else "")
