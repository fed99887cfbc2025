"""`file_editor`: viewing and changing files, in the form that many hosts know. Our own tools do the work."""

import asyncio
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from crow.events import Journal
from crow.mcp.serving.advice import ADVICE
from crow.mcp.serving.edits import PastEdits
from crow.mcp.serving.insert import prepare_insert
from crow.mcp.serving.undo import UndoAction
from crow.messages import ToolCall, ToolSpec
from crow.results import DisplayBlock, Location, ToolKind, ToolResult
from crow.tools.base import Action, ArgumentReader, BadArguments, Look, Tool, verb_and_path
from crow.tools.changing import look_at
from crow.tools.edit import Edit
from crow.tools.paths_meant import PathMeant, path_meant, path_to_write
from crow.tools.read import Read
from crow.tools.seen import Seen
from crow.tools.write import Write
from crow.workspace.base import Workspace

Value = TypeVar("Value")

Command = Literal["view", "create", "str_replace", "insert", "undo_edit"]

DESCRIPTION = (
    "View and change files. `view`: a text file's numbered lines (with `view_range`, some of them), an image, or a "
    "folder's names. `create`: a file with the content `file_text`; one that exists must have been viewed in full "
    "before. `str_replace`: `old_str`, copied exactly and unique in the file, becomes `new_str`. `insert`: `new_str` "
    "goes after line `insert_line`. `undo_edit`: takes back the last of these changes to the file. A file keeps its "
    "encoding and line ends."
)

_VERBS: dict[str, str] = {
    "view": "View",
    "create": "Write",
    "str_replace": "Edit",
    "insert": "Insert into",
    "undo_edit": "Take back the last edit of",
}

HIGHEST_LINE = 2**31
"""No file has more."""
_ABOUT_PATH = "absolute, or relative to the first of the host's folders"
_ABOUT_RANGE = "first and last line, or name in a folder, counted from 1; -1 as the last means the end"


class FileEditorArguments(msgspec.Struct, frozen=True):
    command: Annotated[Command, msgspec.Meta(description="what is done with the file")]
    path: Annotated[str, msgspec.Meta(min_length=1, description=_ABOUT_PATH)]
    view_range: Annotated[list[int], msgspec.Meta(min_length=2, max_length=2, description=_ABOUT_RANGE)] | None = None
    file_text: Annotated[str, msgspec.Meta(description="for `create`")] | None = None
    old_str: Annotated[str, msgspec.Meta(description="for `str_replace`")] | None = None
    new_str: Annotated[str, msgspec.Meta(description="for `str_replace` (left out: nothing) and `insert`")] | None = (
        None
    )
    insert_line: Annotated[int, msgspec.Meta(ge=0, description="for `insert`; 0: at the beginning")] | None = None


_reader = ArgumentReader(FileEditorArguments)


class FileEditor:
    kind = ToolKind.EDIT

    def __init__(self, seen: Seen, edits: PastEdits) -> None:
        self.spec = ToolSpec("file_editor", DESCRIPTION, _reader.schema())
        self._seen = seen
        self._edits = edits
        self._read, self._write, self._edit = Read(seen, ADVICE), Write(seen, ADVICE), Edit(seen, ADVICE)
        self._one_change_at_a_time = asyncio.Lock()

    def title(self, arguments: dict[str, Any]) -> str:
        return verb_and_path(_VERBS.get(str(arguments.get("command")), "Edit"), arguments)

    async def look(self, call: ToolCall, workspace: Workspace) -> Look | None:
        arguments, _ = _reader.read(call)
        return None if arguments.command == "view" else await _look(arguments, workspace)

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "FileEditorAction":
        arguments, unknown = _reader.read(call)
        if arguments.command != "view":
            return await self.prepare_after(call, workspace, await _look(arguments, workspace))
        wanted = {"path": arguments.path, **_lines(arguments.view_range), **dict.fromkeys(unknown)}
        action = await self._read.prepare(_inner(call, self._read, wanted), workspace)
        return FileEditorAction(action, arguments.command, self._one_change_at_a_time)

    async def prepare_after(self, call: ToolCall, workspace: Workspace, look: Look) -> "FileEditorAction":
        arguments, unknown = _reader.read(call)
        action = await self._prepare_change(call, arguments, unknown, workspace, look)
        return FileEditorAction(action, arguments.command, self._one_change_at_a_time)

    async def _prepare_change(
        self, call: ToolCall, arguments: FileEditorArguments, unknown: tuple[str, ...], workspace: Workspace, look: Look
    ) -> Action:
        common = {"path": arguments.path, **dict.fromkeys(unknown)}
        match arguments.command:
            case "create":
                content = _needed(arguments.file_text, "create", "file_text")
                inner = _inner(call, self._write, {**common, "content": content})
                return await self._write.prepare_after(inner, workspace, look)
            case "str_replace":
                inner = _inner(call, self._edit, {**common, "edits": [_edit(arguments)]})
                return await self._edit.prepare_after(inner, workspace, look)
            case "insert":
                line = _needed(arguments.insert_line, "insert", "insert_line")
                text = _needed(arguments.new_str, "insert", "new_str")
                return await prepare_insert(call, workspace, self._seen, look.path, line, text, unknown)
            case "undo_edit":
                return UndoAction(workspace, self._edits, self._seen, look.path)
            case "view":
                raise AssertionError("`view` changes nothing")


async def _look(arguments: FileEditorArguments, workspace: Workspace) -> Look:
    match arguments.command:
        case "create":
            meant = await path_to_write(workspace, arguments.path)
        case "str_replace":
            meant = await path_meant(workspace, arguments.path)
        case _:
            meant = PathMeant(await workspace.resolve(arguments.path))
    return await look_at(workspace, meant)


class FileEditorAction:
    """What one of our tools prepared. Changes are made one after the other."""

    def __init__(self, action: Action, command: Command, one_change_at_a_time: asyncio.Lock) -> None:
        self._action = action
        self._command = command
        self._one_change_at_a_time = one_change_at_a_time
        self.title = action.title
        self.deed = action.deed
        self.locations: tuple[Location, ...] = action.locations
        self.display: tuple[DisplayBlock, ...] = action.display

    async def perform(self, journal: Journal) -> ToolResult:
        if self._command == "view":
            return await self._action.perform(journal)
        async with self._one_change_at_a_time:
            return await self._action.perform(journal)


def _inner(call: ToolCall, tool: Tool, arguments: dict[str, Any]) -> ToolCall:
    """The call of one of our tools that a call of this one stands for."""
    return ToolCall(call.id, tool.spec.name, msgspec.json.encode(arguments).decode())


def _lines(view_range: list[int] | None) -> dict[str, int]:
    if view_range is None:
        return {}
    first, last = view_range
    if not 1 <= first <= HIGHEST_LINE or (last != -1 and not first <= last <= HIGHEST_LINE):
        raise BadArguments(f"`view_range` [{first}, {last}] is no range of lines: they are counted from 1.")
    return {"offset": first} if last == -1 else {"offset": first, "limit": last - first + 1}


def _edit(arguments: FileEditorArguments) -> dict[str, str]:
    old, new = _needed(arguments.old_str, "str_replace", "old_str"), arguments.new_str or ""
    if not old:
        raise BadArguments("`old_str` is empty. To write all of a file use `create`, to add lines `insert`.")
    if old == new:
        raise BadArguments("`old_str` and `new_str` are the same.")
    return {"old": old, "new": new}


def _needed(value: Value | None, command: Command, name: str) -> Value:
    if value is None:
        raise BadArguments(f"`{command}` needs `{name}`.")
    return value
