"""An MCP server's tool as one of the session's own: its description, title and kind, the file change that its arguments
ask for, its calls.

The target of a call and the change to a file are read from its arguments, which servers name in a few usual ways. What
they do with them is their business: the diff in a question shows what the model asks for, beside the arguments
themselves, and what was really done comes with the result.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from mcp_types import Tool as McpToolDefinition
from mcp_types import ToolAnnotations

from crow.actions import Deed
from crow.config.settings import McpServerSettings
from crow.errors import CrowError
from crow.events import CallProgressed, Journal
from crow.mcp.using.connection import ServerConnection
from crow.mcp.using.content import result_of
from crow.mcp.using.elicitation import AskingCall
from crow.mcp.using.schemas import fit_for_models, with_real_names
from crow.mcp.using.server_errors import NotCalled, ServerFailed, gave_no
from crow.messages import ToolCall, ToolSpec, tokens_of_tool
from crow.paths import relative_to
from crow.results import DiffBlock, DisplayBlock, Location, TextBlock, ToolKind, ToolResult
from crow.tools.arguments import arguments_for
from crow.tools.base import Action
from crow.visible import every_line, hidden_characters, language_of, made_visible, one_line, warning
from crow.workspace.base import Workspace
from crow.workspace.resolved_path import ResolvedPath

LONGEST_DESCRIPTION = 2000
LONGEST_TARGET = 100
"""Characters of what a title says that a call is about."""
CUT = "… (cut)"
PATHS = ("path", "file_path", "filepath", "filename", "file")
TARGETS = (*PATHS, "uri", "url", "query", "pattern", "command", "name", "title", "id")
REPLACEMENTS = (
    ("old_str", "new_str"),
    ("old_string", "new_string"),
    ("oldText", "newText"),
    ("old_text", "new_text"),
    ("old", "new"),
)
WHOLE = ("file_text", "content", "contents", "new_content")
_WORD = re.compile(r"[A-Za-z_]{1,30}")
LARGEST_DIFF = 64 * 1024
"""Characters of all that a diff shows; a larger change is shown by its arguments alone."""


class McpTool:
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

    @property
    def shown_name(self) -> str:
        return one_line(f"{self.connection.name}: {self.definition.name}", 150)

    def title(self, arguments: dict[str, Any]) -> str:
        target = one_line(target_of(arguments), LONGEST_TARGET)
        if target and (command := command_of(arguments)):
            target = f"{command} {target}"
        return f"{self.shown_name} {target}" if target else self.shown_name

    def partial_display(self, arguments: dict[str, Any]) -> TextBlock | tuple[DiffBlock, ...] | None:
        return partial_change(with_real_names(arguments, self._real_names))

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "McpAction":
        arguments = with_real_names(arguments_for(call, self.spec.schema), self._real_names)
        changes = await changes_of(arguments, workspace)
        return McpAction(self, call.id, arguments, changes, workspace)


class McpAction(Action):
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
        asked_in = AskingCall(self._call_id, self.title, self.deed.kind)
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
        lines.append("the server says: it may destroy things")
    lines += ["arguments:", *written.split("\n")]
    remark = warning(tool.connection.name, tool.definition.name, written)
    return every_line("\n".join(lines)) + (f"\n{remark}" if remark else "")


# --- what a call is about


def target_of(arguments: Mapping[str, Any]) -> str:
    """What a title names; empty if no argument is known to be it."""
    return next((value for name in TARGETS if isinstance(value := arguments.get(name), str) and value.strip()), "")


def command_of(arguments: Mapping[str, Any]) -> str:
    """What is done with a file by a tool that does several things, such as `view`; empty if none of them is named."""
    command = arguments.get("command")
    return command if _path(arguments) and isinstance(command, str) and _WORD.fullmatch(command) else ""


def partial_change(arguments: Mapping[str, Any]) -> TextBlock | tuple[DiffBlock, ...] | None:
    """What has arrived of a change to a file, its path as the model wrote it; None if it does not look like one."""
    path = _path(arguments)
    if not path or list(arguments)[-1] in PATHS:  # the last argument may be half of what it will be
        return None
    if replaced := _replacements(arguments):
        return tuple(DiffBlock(path, "modify", old, new) for old, new in replaced)
    text = _whole_text(arguments)
    return TextBlock(text, language=language_of(path)) if text is not None else None


async def changes_of(arguments: Mapping[str, Any], workspace: Workspace) -> tuple[DiffBlock, ...]:
    """The changes to a file of the workspace that are asked for; none if that cannot be told."""
    resolved = await _resolved(arguments, workspace)
    if resolved is None:
        return ()
    path = resolved.real
    if replaced := _replacements(arguments):
        diffs = tuple(DiffBlock(path, "modify", old, new) for old, new in replaced)
    else:
        diffs = await _whole_file_change(resolved, arguments, workspace)
    return diffs if sum(len(diff.old_text) + len(diff.new_text) for diff in diffs) <= LARGEST_DIFF else ()


async def _resolved(arguments: Mapping[str, Any], workspace: Workspace) -> ResolvedPath | None:
    """The file that is to be changed; None if none is named, or one that is not the workspace's."""
    given = _path(arguments)
    if not given:
        return None
    try:
        path = await workspace.resolve(given)
    except CrowError:
        return None
    return path if workspace.contains(path.real) else None


def _path(arguments: Mapping[str, Any]) -> str:
    return next((value for name in PATHS if isinstance(value := arguments.get(name), str) and value), "")


def _whole_text(arguments: Mapping[str, Any]) -> str | None:
    return next((value for name in WHOLE if isinstance(value := arguments.get(name), str)), None)


def _replacements(arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [pair for part in (arguments, *_edits(arguments)) if (pair := _replacement(part)) is not None]


def _edits(arguments: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    edits = arguments.get("edits")
    return [edit for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else []  # pyright: ignore[reportUnknownVariableType] -- JSON


def _replacement(part: Mapping[str, Any]) -> tuple[str, str] | None:
    for names in REPLACEMENTS:
        old, new = (part.get(name) for name in names)
        if isinstance(old, str) and isinstance(new, str):
            return old, new
    return None


async def _whole_file_change(
    path: ResolvedPath, arguments: Mapping[str, Any], workspace: Workspace
) -> tuple[DiffBlock, ...]:
    text = _whole_text(arguments)
    if text is None or len(text) > LARGEST_DIFF:
        return ()
    try:
        before = await workspace.read_document(path)
    except CrowError:
        return ()
    if before is None:
        return (DiffBlock(path.real, "add", "", text),)
    return (DiffBlock(path.real, "modify", before.text, text),)


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
