"""An MCP server's tool as one of the session's own: its description, title and kind, its calls, what grants go by."""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec
from mcp_types import Tool as McpToolDefinition
from mcp_types import ToolAnnotations
from msgspec import UNSET, UnsetType

from crow.actions import Deed
from crow.config.settings import McpServerSettings
from crow.events import CallDescribed, CallProgressed, Journal
from crow.files.base import Workspace
from crow.mcp.client.changes import (
    ChangeMeant,
    PastChange,
    change_meant,
    command_of,
    partial_change,
    removes,
    target_of,
    text_now,
)
from crow.mcp.client.connection import ServerConnection
from crow.mcp.client.elicitation import AskingCall
from crow.mcp.client.schemas import fit_for_models, with_real_names
from crow.mcp.client.server_errors import NotCalled, ServerFailed, gave_no
from crow.mcp.results import result_of
from crow.messages import ToolCall, ToolSpec, tokens_of_tool
from crow.paths import relative_to
from crow.results import DiffBlock, DisplayBlock, Location, TextBlock, ToolKind, ToolResult
from crow.tools.arguments import arguments_for
from crow.tools.base import Action, Tool
from crow.visible import every_line, hidden_characters, made_visible, one_line, warning

LONGEST_DESCRIPTION = 2000
LONGEST_NAME = 150
LONGEST_TARGET = 100
"""Characters of a title: of what it calls the tool, and of what it says that a call is about."""
CUT = "… (cut)"


class McpTool(Tool):
    """A tool of a server. Raises SchemaUnfit if no model could be told how to call it."""

    def __init__(self, name: str, definition: McpToolDefinition, connection: ServerConnection) -> None:
        fitted = fit_for_models(definition.input_schema)
        said = (definition.description or definition.title or "").strip()
        self.connection = connection
        self.definition = definition
        self.spec = ToolSpec(name, _described(said, fitted.remark), fitted.schema)
        hidden = [*hidden_characters(definition.name + said[:LONGEST_DESCRIPTION]), *fitted.hidden]
        self.hidden = list(dict.fromkeys(hidden))
        """Characters in its description that could not be seen."""
        self.kind = _kind(definition.annotations)
        self.digest = tool_digest(definition, self.spec, connection.server.settings)
        self.cost = tokens_of_tool(self.spec)
        self.is_current = True
        """Whether the server still has it as it is described here."""
        self._real_names = fitted.real_names

    def title(self, arguments: dict[str, Any]) -> str:
        """In the server's own words, which the question repeats beside the names that decide. Where a command says what
        is done with a file, the title of the whole tool would say too much."""
        command, target = command_of(arguments), one_line(target_of(arguments), LONGEST_TARGET)
        name = f"{self.definition.name} {command}" if command else _title_of(self.definition)
        titled = one_line(f"{self.connection.name}: {name}", LONGEST_NAME)
        return f"{titled} {target}" if target else titled

    def partial_display(self, arguments: dict[str, Any]) -> TextBlock | tuple[DiffBlock, ...] | None:
        return partial_change(with_real_names(arguments, self._real_names))

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "McpAction":
        arguments = with_real_names(arguments_for(call, self.spec.schema), self._real_names)
        meant = await change_meant(arguments, self.definition.name, self.connection.past, workspace.roots)
        return McpAction(self, call.id, arguments, meant, workspace.roots)


class McpAction(Action):
    def __init__(
        self,
        tool: McpTool,
        call_id: str,
        arguments: dict[str, Any],
        meant: ChangeMeant,
        roots: Sequence[str],
    ) -> None:
        self._tool = tool
        self._call_id = call_id
        self._arguments = arguments
        self._meant = meant
        self._roots = roots
        changes = meant.diffs
        changed = {"path": relative_to(changes[0].path, roots[0])} if changes else {}
        self.title = tool.title(arguments | changed)
        changing = ToolKind.DELETE if removes(changes) else ToolKind.EDIT  # for the eye alone, too
        self.deed = Deed(tool.spec.name, changing if changes else tool.kind, digest=tool.digest)
        self.locations = tuple(dict.fromkeys(Location(change.path) for change in changes))
        self.display: tuple[DisplayBlock, ...] = (*changes, TextBlock(_question(tool, arguments)))

    async def perform(self, journal: Journal) -> ToolResult:
        tool, progress = self._tool, _Progress(journal, self._call_id)
        asked_in = AskingCall(self._call_id, self.title, self.deed.kind)
        before = await text_now(self._meant)
        try:
            self._check()
            # The server may have to be started again for this call, and the tool be another then: it is checked again.
            given = await tool.connection.call(
                tool.definition.name, self._arguments, asked_in, progress.show, self._check
            )
        except NotCalled as failed:
            return ToolResult.failed(f"{gave_no('result', tool.connection.server, failed)} Nothing was called.")
        except ServerFailed as failed:
            return ToolResult.failed(gave_no("result", tool.connection.server, failed))
        await self._note(before, undone=not given.is_error)
        result = result_of(given, self._roots, self._meant.diffs)
        if removes(result.display) and self.deed.kind is not ToolKind.DELETE:
            journal.append(CallDescribed(self._call_id, ToolKind.DELETE, self.title, self.locations))
        return result

    async def _note(self, before: str | UnsetType | None, *, undone: bool) -> None:
        """Remembers what the server really changed, for its undo."""
        past, meant = self._tool.connection.past, self._meant
        after = await text_now(meant)
        if meant.undoes is not None and undone:
            past.forget(meant.undoes)
        elif before is not UNSET and after is not UNSET:
            past.add(PastChange(meant.path, before, after))

    def _check(self) -> None:
        if not self._tool.is_current:
            raise ServerFailed(f"it has changed its tool `{self._tool.spec.name}` since, so nothing was called")


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


def _title_of(definition: McpToolDefinition) -> str:
    """What the server calls it for people, if it does; and else its name."""
    hints = definition.annotations
    titles = (definition.title, hints.title if hints is not None else None)
    return next((title for title in titles if title and title.strip()), definition.name).strip()


def _kind(hints: ToolAnnotations | None) -> ToolKind:
    """The kind that a call is shown as. What may run is decided by rules, whatever a server says of itself."""
    if hints is None or not hints.read_only_hint:
        return ToolKind.OTHER
    return ToolKind.FETCH if hints.open_world_hint else ToolKind.READ


def _question(tool: McpTool, arguments: dict[str, Any]) -> str:
    """Everything that will be sent, with nothing that hides."""
    written = msgspec.json.format(msgspec.json.encode(arguments)).decode()
    lines = [f"server: {tool.connection.name} (from {tool.connection.server.origin})", f"tool: {tool.definition.name}"]
    hints = tool.definition.annotations
    if hints is not None and hints.destructive_hint and not hints.read_only_hint:
        lines.append("the server says: this may be destructive")
    lines += ["arguments:", *written.split("\n")]
    remark = warning(tool.connection.name, tool.definition.name, written)
    return every_line("\n".join(lines)) + (f"\n{remark}" if remark else "")


# --- what a person's "always" is bound to: another program under the same name is another server, and a tool that is
# described otherwise is another tool


def tool_digest(definition: McpToolDefinition, spec: ToolSpec, server: McpServerSettings) -> str:
    """`spec` is what the model is told of the tool; of what only the person is told, the hints count."""
    hints = definition.annotations
    said = None if hints is None else (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint)
    return _digest(("tool", definition.name, spec.name, spec.description, spec.schema, said, _identity(server)))


def resources_digest(server: McpServerSettings) -> str:
    """A digest of a server's identity, for a grant to read its resources."""
    return _digest(("resources", _identity(server)))


def _identity(server: McpServerSettings) -> tuple[Any, ...]:
    """Its variables and headers do not count: those are keys, which may be exchanged."""
    return server.command, server.args, server.url


def _digest(said: tuple[Any, ...]) -> str:
    return hashlib.sha256(msgspec.json.encode(said, order="sorted")).hexdigest()[:32]
