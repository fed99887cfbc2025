"""The files of the folders that a client lets us work in, and no others. Every change is remembered."""

import os
from collections.abc import Sequence

from crow.errors import WorkspaceError
from crow.mcp.serving.edits import PastEdits
from crow.paths import is_inside, shown
from crow.workspace.base import Document
from crow.workspace.local import LocalWorkspace
from crow.workspace.place import ResolvedPath


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
