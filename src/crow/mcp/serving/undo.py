"""`undo_edit`: takes back the last change that was made to a file here, to the byte."""

from crow import diff
from crow.actions import Deed
from crow.errors import WorkspaceError
from crow.events import Journal
from crow.mcp.serving.history import Change, History
from crow.paths import relative_to, shown
from crow.results import DisplayBlock, Location, ToolKind, ToolResult
from crow.tools.changing import show_change, written_paths
from crow.tools.seen import Seen
from crow.workspace.base import Document, Workspace


async def prepare_undo(workspace: Workspace, history: History, seen: Seen, path: str) -> "UndoAction":
    resolved = workspace.resolve(path)
    change = history.last(resolved)
    if change is None:
        raise WorkspaceError(f"There is no edit of {shown(resolved)} to take back.")
    now = await workspace.read_document(resolved)
    if now is None:
        raise WorkspaceError(f"{shown(resolved)} is not there any more. Nothing was taken back.")
    if not await change.left(now):
        raise WorkspaceError(f"{shown(resolved)} was changed by somebody else since. Nothing was taken back.")
    if change.before is None:
        display: tuple[DisplayBlock, ...] = diff.display(shown(resolved), now.text, None)
        return UndoAction(workspace, history, seen, change, now, path, display, "removed")
    shown_change = await show_change(resolved, now.text, change.before.text)
    return UndoAction(workspace, history, seen, change, now, path, shown_change.display, shown_change.message)


class UndoAction:
    def __init__(
        self,
        workspace: Workspace,
        history: History,
        seen: Seen,
        change: Change,
        now: Document,
        path: str,
        display: tuple[DisplayBlock, ...],
        message: str,
    ) -> None:
        self._workspace = workspace
        self._history = history
        self._seen = seen
        self._change = change
        self._now = now
        self._message = message
        self._name = relative_to(shown(change.path), workspace.roots[0])
        self.title = f"Take back the last edit of {self._name}"
        self.deed = Deed("edit", ToolKind.EDIT, writes=written_paths(workspace, path))
        self.locations = (Location(change.path),)
        self.display = display

    async def perform(self, journal: Journal) -> ToolResult:
        path, before = self._change.path, self._change.before
        if before is None:
            await self._workspace.remove(path, self._now)
            told = f"Removed {self._name} again: it did not exist before."
        else:
            await self._workspace.write_document(path, before.text, self._now, like=before)
            self._seen.note_changed(path, self._now.text, before.text)
            told = f"Took back the last edit of {self._name} ({self._message}). It is what it was before."
        self._history.forget(self._change)
        if left := self._history.count(path):
            told += f" Earlier edits of it that can be taken back: {left}."
        return ToolResult(ok=True, text=told, message=self._message, display=self.display)
