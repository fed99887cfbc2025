"""Keeps `crow mcp` within the folders that a client lets us work in, and remembers edits so that `undo_edit` can take
them back.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from crow import diff
from crow.actions import Deed
from crow.errors import WorkspaceError
from crow.events import Journal
from crow.files.base import Document, Workspace
from crow.files.local import LocalWorkspace
from crow.files.resolved_path import PinnedFile, ResolvedPath
from crow.paths import is_inside, relative_to, shown
from crow.results import DisplayBlock, Location, ToolKind, ToolResult
from crow.tools.base import Action
from crow.tools.file_changes import digest_of, off_loop_if_large, show_change
from crow.tools.read_lines import ReadTracker

MOST_KEPT = 32 * 2**20
"""Characters of former texts that are kept for a client; beyond that the oldest edits cannot be taken back."""
WEIGHT_OF_AN_EDIT = 200
"""What an edit counts for there, apart from the text."""


# --- what each edit of a file replaced


class PastEdit(msgspec.Struct, frozen=True):
    path: str
    before: Document | None
    """None if the edit made the file."""
    digest: str
    """Of the text that it left there, by which the file is known again."""
    encoding: str
    mark: bool
    follows: bool
    """Whether it found the file as the edit before it had left it; else somebody else was there in between."""
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
        previous = self.last(after.path)
        follows = previous is not None and before is not None and await previous.left(before)
        edit = PastEdit(after.path, before, await _digest(after), after.encoding, after.mark, follows, folders)
        self._edits.append(edit)
        self._size += _weight(edit)
        while self._size > MOST_KEPT:
            self._size -= _weight(self._edits.pop(0))

    def last(self, path: str) -> PastEdit | None:
        return next(self._of(path), None)

    def earlier(self, path: str) -> int:
        """How many edits of a file can be taken back after the last one."""
        count = 0
        for later, _ in pairwise(self._of(path)):
            if not later.follows:
                break
            count += 1
        return count

    def forget(self, edit: PastEdit) -> None:
        """It was taken back. Another edit may look just the same: this very one goes."""
        for place in reversed(range(len(self._edits))):
            if self._edits[place] is edit:
                del self._edits[place]
                self._size -= _weight(edit)
                return

    def _of(self, path: str) -> Iterator[PastEdit]:
        """The last one first."""
        return (edit for edit in reversed(self._edits) if edit.path == path)


async def _digest(document: Document) -> str:
    return await off_loop_if_large(len(document.text), lambda: digest_of(document.text))


def _weight(edit: PastEdit) -> int:
    return WEIGHT_OF_AN_EDIT + (len(edit.before.text) if edit.before is not None else 0)


# --- the files


class ServedWorkspace(LocalWorkspace):
    """Every tool resolves a path before it uses it, so this is the one gate that all of them pass.

    What lies behind a resolved path is opened without following links, so that it cannot be moved out of the folders
    afterwards. `outputs` is the folder in which the client's own commands leave what they printed.
    """

    def __init__(self, roots: Sequence[str], edits: PastEdits, outputs: str = "") -> None:
        super().__init__(roots)
        self._edits = edits
        self._outputs = outputs

    async def resolve(self, path: str) -> ResolvedPath:
        resolved = await super().resolve(path)
        if self.contains(resolved.real) or (self._outputs and is_inside(resolved.real, self._outputs)):
            return resolved
        folders = ", ".join(shown(root) for root in self.roots)
        raise WorkspaceError(f"{shown(path)} lies outside the folders that may be used: {folders}.")

    async def write_document(
        self, path: ResolvedPath, text: str, before: Document | None, *, like: Document | None = None
    ) -> Document:
        folders = await self.disk.run(lambda: _missing_above(path.real)) if before is None else ()
        after = await super().write_document(path, text, before, like=like)
        if like is None:  # with it, a change is taken back, which is none that could be taken back itself
            await self._edits.add(before, after, folders)
        return after


def _missing_above(path: str) -> tuple[str, ...]:
    """The folders that have to be made for a file, the innermost first."""
    missing: list[str] = []
    while not os.path.lexists(path := os.path.dirname(path)):
        missing.append(path)
    return tuple(missing)


# --- taking an edit back


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
        self.title = f"Take back the last edit of {self._name}"
        self.deed = Deed("edit", ToolKind.EDIT, writes=target.judged)
        self.locations = (Location(self._path),)

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
            with PinnedFile(ResolvedPath(folder)) as place:
                os.rmdir(place.name, dir_fd=place.folder)
        except OSError:
            return
