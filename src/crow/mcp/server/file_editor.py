"""The tool `file_editor` of `crow mcp`: view, create, str_replace, insert and undo_edit, in the form that many hosts
know. Our own tools do the work.
"""

import asyncio
import os
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from crow import diff
from crow.actions import Deed
from crow.errors import WorkspaceError
from crow.events import Journal
from crow.files.base import Document, Workspace
from crow.files.resolved_path import PinnedFile, ResolvedPath
from crow.messages import ToolCall, ToolSpec
from crow.paths import relative_to, shown
from crow.results import DisplayBlock, Location, ToolKind, ToolResult
from crow.tools.arguments import ArgumentReader
from crow.tools.base import Action, Advice, BadArguments, ReadNeeded, Tool, verb_and_path
from crow.tools.edit import Edit, EditAction
from crow.tools.editing.matching import EditPlan
from crow.tools.editing.replacements import apply, replacement_after
from crow.tools.file_changes import (
    PreparedChange,
    check_writable,
    digest_of,
    off_loop_if_large,
    read_judged,
    read_needed_of,
    show_change,
)
from crow.tools.paths_meant import PathMeant, path_meant, path_to_write
from crow.tools.read import Read, ReadTracker, count_lines
from crow.tools.write import Write

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
    "undo_edit": "Undo the last edit of",
}

HIGHEST_LINE = 2**31
"""No file has more."""
_PATH_DESCRIPTION = "absolute, or relative to the first of the host's folders"
_RANGE_DESCRIPTION = "first and last line, or name in a folder, counted from 1; -1 as the last means the end"

ADVICE = Advice(
    read_first="View it first.",
    read_again="View it again.",
    read_all="View the whole of it first, or change a part of it with `str_replace`.",
    change_a_part="Change it with `str_replace`.",
    make_a_file="To make a new file use `create`.",
    look_for_it="View the folder to see what is there.",
    make_it_unique="Add lines around it until it is unique.",
    go_on="go on with view_range [{line}, -1]",
    fetch_no_files="For files use `file_editor`.",
    fetch_otherwise="",
    change_otherwise="",
    run_no_files="Not for viewing or changing files: use `file_editor`.",
    search_no_files="Not for files.",
)
"""What our tools advise the model to do, in the names that they have here: those for files are commands of one tool.

There need not be a tool that runs commands, and there is none that searches files: nobody is sent to these.
"""


MOST_KEPT = 32 * 2**20
"""Characters of former texts that are kept for a client; beyond that the oldest edits cannot be taken back."""
WEIGHT_OF_AN_EDIT = 200
"""What an edit counts for there, apart from the text."""


class FileEditorArguments(msgspec.Struct, frozen=True):
    command: Annotated[Command, msgspec.Meta(description="what is done with the file")]
    path: Annotated[str, msgspec.Meta(min_length=1, description=_PATH_DESCRIPTION)]
    view_range: (
        Annotated[list[int], msgspec.Meta(min_length=2, max_length=2, description=_RANGE_DESCRIPTION)] | None
    ) = None
    file_text: Annotated[str, msgspec.Meta(description="for `create`")] | None = None
    old_str: Annotated[str, msgspec.Meta(description="for `str_replace`")] | None = None
    new_str: Annotated[str, msgspec.Meta(description="for `str_replace` (left out: nothing) and `insert`")] | None = (
        None
    )
    insert_line: Annotated[int, msgspec.Meta(ge=0, description="for `insert`; 0: at the beginning")] | None = None


_reader = ArgumentReader(FileEditorArguments)


class FileEditor(Tool):
    kind = ToolKind.EDIT

    def __init__(self, seen: ReadTracker, edits: "PastEdits") -> None:
        self.spec = ToolSpec("file_editor", DESCRIPTION, _reader.schema())
        self._seen = seen
        self._edits = edits
        self._read, self._write, self._edit = Read(seen, ADVICE), Write(seen, ADVICE), Edit(seen, ADVICE)
        self._one_change_at_a_time = asyncio.Lock()

    def title(self, arguments: dict[str, Any]) -> str:
        return verb_and_path(_VERBS.get(str(arguments.get("command")), "Edit"), arguments)

    async def look(self, call: ToolCall, workspace: Workspace) -> ReadNeeded | None:
        arguments, _ = _reader.read(call)
        return None if arguments.command == "view" else await _look(arguments, workspace)

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "FileEditorAction":
        arguments, unknown = _reader.read(call)
        if arguments.command != "view":
            return await self.prepare_once_read(call, workspace, await _look(arguments, workspace))
        wanted = {"path": arguments.path, **_lines(arguments.view_range), **dict.fromkeys(unknown)}
        action = await self._read.prepare(_inner(call, self._read, wanted), workspace)
        return FileEditorAction(action, arguments.command, self._one_change_at_a_time)

    async def prepare_once_read(self, call: ToolCall, workspace: Workspace, look: ReadNeeded) -> "FileEditorAction":
        arguments, unknown = _reader.read(call)
        action = await self._prepare_change(call, arguments, unknown, workspace, look)
        return FileEditorAction(action, arguments.command, self._one_change_at_a_time)

    async def _prepare_change(
        self,
        call: ToolCall,
        arguments: FileEditorArguments,
        unknown: tuple[str, ...],
        workspace: Workspace,
        look: ReadNeeded,
    ) -> Action:
        common = {"path": arguments.path, **dict.fromkeys(unknown)}
        match arguments.command:
            case "create":
                content = _needed(arguments.file_text, "create", "file_text")
                inner = _inner(call, self._write, {**common, "content": content})
                return await self._write.prepare_once_read(inner, workspace, look)
            case "str_replace":
                inner = _inner(call, self._edit, {**common, "edits": [_edit(arguments)]})
                return await self._edit.prepare_once_read(inner, workspace, look)
            case "insert":
                line = _needed(arguments.insert_line, "insert", "insert_line")
                text = _needed(arguments.new_str, "insert", "new_str")
                return await prepare_insert(call, workspace, self._seen, look.path, line, text, unknown)
            case "undo_edit":
                return UndoAction(workspace, self._edits, self._seen, look.path)
            case "view":
                raise AssertionError("`view` changes nothing")


async def _look(arguments: FileEditorArguments, workspace: Workspace) -> ReadNeeded:
    match arguments.command:
        case "create":
            meant = await path_to_write(workspace, arguments.path)
        case "str_replace":
            meant = await path_meant(workspace, arguments.path)
        case _:
            meant = PathMeant(await workspace.resolve(arguments.path))
    return await read_needed_of(workspace, meant)


class FileEditorAction(Action):
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
        raise BadArguments(f"`view_range` [{first}, {last}] is not a valid range: lines are counted from 1.")
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


# --- `insert`: a text between two lines of a file, as an edit whose place is known by its number


async def prepare_insert(
    call: ToolCall,
    workspace: Workspace,
    seen: ReadTracker,
    target: ResolvedPath,
    line: int,
    text: str,
    unknown: tuple[str, ...],
) -> EditAction:
    """The text goes after the line, 0 being the beginning of the file; it gets the line ends that the file has."""
    resolved = target.real
    before = await read_judged(workspace, target)
    if before is None:
        raise WorkspaceError(f"{shown(resolved)} does not exist.", remedy=ADVICE.make_a_file)
    known = seen.text(resolved)
    if known is not None and known != before.text:
        raise WorkspaceError(
            f"{shown(resolved)} has changed since you last saw it: its lines may have other numbers. "
            "Nothing was written.",
            remedy=ADVICE.read_again,
        )
    count = count_lines(before.text)
    if line > count:
        raise WorkspaceError(f"{shown(resolved)} has {count} lines: nothing can be inserted after line {line}.")
    replacement = await off_loop_if_large(len(before.text), lambda: replacement_after(before.text, line, text))
    new = apply(before.text, [replacement])
    check_writable(resolved, before, new)
    change = await show_change(resolved, before.text, new)
    prepared = PreparedChange(call.id, workspace, seen, target, before, change, unknown, ADVICE)
    return EditAction(prepared, EditPlan([replacement]))


# --- `undo_edit`: what each edit of a file replaced, and taking the last one back


class PastEdit(msgspec.Struct, frozen=True):
    path: str
    before: Document | None
    """None if the edit made the file."""
    digest: str
    """Of the text that it left there, by which the file is known again."""
    encoding: str
    mark: bool
    folders: tuple[str, ...] = ()
    """Those that it made for the file, the innermost first."""

    async def left(self, now: Document) -> bool:
        """Whether the file is as this edit left it."""
        if (now.encoding, now.mark) != (self.encoding, self.mark):
            return False
        return await _digest(now) == self.digest


class PastEdits:
    def __init__(self) -> None:
        self._edits: list[PastEdit] = []
        self._size = 0

    async def add(self, before: Document | None, after: Document, folders: tuple[str, ...] = ()) -> None:
        edit = PastEdit(after.path, before, await _digest(after), after.encoding, after.mark, folders)
        self._edits.append(edit)
        self._size += _weight(edit)
        while self._size > MOST_KEPT:
            self._size -= _weight(self._edits.pop(0))

    def last(self, path: str) -> PastEdit | None:
        return next((edit for edit in reversed(self._edits) if edit.path == path), None)

    def forget(self, edit: PastEdit) -> None:
        """It was taken back. Another edit may look just the same: this very one goes."""
        for place in reversed(range(len(self._edits))):
            if self._edits[place] is edit:
                del self._edits[place]
                self._size -= _weight(edit)
                return


async def _digest(document: Document) -> str:
    return await off_loop_if_large(len(document.text), lambda: digest_of(document.text))


def _weight(edit: PastEdit) -> int:
    return WEIGHT_OF_AN_EDIT + (len(edit.before.text) if edit.before is not None else 0)


class UndoAction(Action):
    """`undo_edit`: takes back the last edit of a file that was made here, to the byte.

    Which edit is the last one is found out when it is taken back: several calls may have come at once.
    """

    def __init__(self, workspace: Workspace, edits: PastEdits, seen: ReadTracker, target: ResolvedPath) -> None:
        self._workspace = workspace
        self._edits = edits
        self._seen = seen
        self._target = target
        self._path = target.real
        self._name = relative_to(shown(self._path), workspace.roots[0])
        self.title = f"Undo the last edit of {self._name}"
        self.deed = Deed("edit", ToolKind.EDIT, writes=target.judged)
        self.locations = (Location(self._path),)

    async def perform(self, journal: Journal) -> ToolResult:
        edit = self._edits.last(self._path)
        if edit is None:
            raise WorkspaceError(f"There is no edit of {shown(self._path)} to undo.")
        now = await self._workspace.read_document(self._target)
        if now is None:
            raise WorkspaceError(f"{shown(self._path)} no longer exists. Nothing was undone.")
        if not await edit.left(now):
            raise WorkspaceError(f"{shown(self._path)} has been changed by someone else since. Nothing was undone.")
        text, message, display = await self._take_back(edit, now)
        self._edits.forget(edit)
        return ToolResult(ok=True, text=text, message=message, display=display)

    async def _take_back(self, edit: PastEdit, now: Document) -> tuple[str, str, tuple[DisplayBlock, ...]]:
        """What is told of it to the model and to the person."""
        before = edit.before
        if before is None:
            await self._workspace.remove(self._target, now)
            _remove_empty(edit.folders)
            text = f"Removed {self._name} again: it did not exist before."
            return text, "removed", diff.display(shown(self._path), now.text, None)
        await self._workspace.write_document(self._target, before.text, now, like=before)
        self._seen.note_changed(self._path, now.text, before.text)
        change = await show_change(self._path, now.text, before.text)
        text = f"Undid the last edit of {self._name} ({change.message}). The file is what it was before."
        return text, change.message, change.display


def _remove_empty(folders: Sequence[str]) -> None:
    """Removes the folders that an edit made, the innermost first, up to one in which something else lies by now."""
    for folder in folders:
        try:
            with PinnedFile(ResolvedPath(folder)) as place:
                os.rmdir(place.name, dir_fd=place.folder)
        except OSError:
            return
