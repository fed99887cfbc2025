"""`undo_edit`: takes back the last edit of a file that was made here, to the byte."""

import os
from collections.abc import Sequence

from crow import diff
from crow.actions import Deed
from crow.errors import WorkspaceError
from crow.events import Journal
from crow.mcp.serving.edits import PastEdit, PastEdits
from crow.paths import relative_to, shown
from crow.results import DisplayBlock, Location, ToolKind, ToolResult
from crow.tools.changing import show_change
from crow.tools.seen import Seen
from crow.workspace.base import Document, Workspace
from crow.workspace.place import Place, ResolvedPath


class UndoAction:
    """Which edit is the last one is found out when it is taken back: several calls may have come at once."""

    def __init__(self, workspace: Workspace, edits: PastEdits, seen: Seen, target: ResolvedPath) -> None:
        self._workspace = workspace
        self._edits = edits
        self._seen = seen
        self._target = target
        self._path = target.real
        self._name = relative_to(shown(self._path), workspace.roots[0])
        self.title = f"Take back the last edit of {self._name}"
        self.deed = Deed("edit", ToolKind.EDIT, writes=target.judged)
        self.locations = (Location(self._path),)
        self.display: tuple[DisplayBlock, ...] = ()

    async def perform(self, journal: Journal) -> ToolResult:
        edit = self._edits.last(self._path)
        if edit is None:
            raise WorkspaceError(f"There is no edit of {shown(self._path)} to take back.")
        now = await self._workspace.read_document(self._target)
        if now is None:
            raise WorkspaceError(f"{shown(self._path)} is not there any more. Nothing was taken back.")
        if not await edit.left(now):
            raise WorkspaceError(f"{shown(self._path)} was changed by somebody else since. Nothing was taken back.")
        text, message, display = await self._take_back(edit, now)
        if earlier := self._edits.earlier(self._path):
            text += f" Earlier edits of it that can be taken back: {earlier}."
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
        text = f"Took back the last edit of {self._name} ({change.message}). It is what it was before."
        return text, change.message, change.display


def _remove_empty(folders: Sequence[str]) -> None:
    """Removes the folders that an edit made, the innermost first, up to one in which something else lies by now."""
    for folder in folders:
        try:
            with Place(ResolvedPath(folder)) as place:
                os.rmdir(place.name, dir_fd=place.folder)
        except OSError:
            return
