"""What a session has changed in its files so far: what each of them held before the first change, against what it holds
now.

Changes that commands or servers made are not known: only Crow's own tools store what they replace.
"""

from typing import Literal, NamedTuple

from crow import diff
from crow.errors import WorkspaceError
from crow.events import Before, TurnIds
from crow.files.base import Workspace
from crow.paths import shown
from crow.results import DiffBlock
from crow.session.persistence import Archive
from crow.store.base import FormerFile
from crow.tools.file_changes import off_loop_if_large


class ChangedFile(NamedTuple):
    path: str
    kind: Literal["added", "modified", "deleted"]
    added: int
    removed: int
    """Lines."""
    turn: str
    """The last turn that changed it."""
    problem: str = ""
    """Why it cannot be read now; empty if it can."""


async def changed_files(archive: Archive, workspace: Workspace) -> list[ChangedFile]:
    """The files that are not as they were before the session, in the order in which they were first changed."""
    found = [await _compared(former, workspace) for former in await archive.former_files()]
    return [changed for changed in found if changed is not None]


async def changes_of(path: str, archive: Archive, workspace: Workspace) -> tuple[DiffBlock, ...]:
    """What the session has changed in one file, as it is shown; nothing if it is as it was. WorkspaceError."""
    changed = (former for former in await archive.former_files() if shown(former.path) == path)
    former = next(changed, None)
    old = _text(former.before) if former is not None else None
    new = await _text_now(former.path, workspace) if former is not None else None
    if old is None and new is None:
        return ()
    return await off_loop_if_large(len(old or "") + len(new or ""), lambda: diff.display(path, old, new))


async def _compared(former: FormerFile, workspace: Workspace) -> ChangedFile | None:
    path, turn, old = shown(former.path), TurnIds.turn_of(former.last_call), _text(former.before)
    try:
        new = await _text_now(former.path, workspace)
    except WorkspaceError as error:
        return ChangedFile(path, "modified", 0, 0, turn, error.message)
    if old == new:
        return None
    kind = "added" if old is None else "deleted" if new is None else "modified"
    lines = await off_loop_if_large(len(old or "") + len(new or ""), lambda: diff.statistics(old or "", new or ""))
    return ChangedFile(path, kind, lines.added, lines.removed, turn)


def _text(before: Before | None) -> str | None:
    return None if before is None else before.text


async def _text_now(path: str, workspace: Workspace) -> str | None:
    """None if there is no such file."""
    target = await workspace.resolve(path)
    if target.real != path:
        raise WorkspaceError(f"{shown(path)} has a symbolic link on its path now, which leads elsewhere.")
    document = await workspace.read_document(target)
    return None if document is None else document.text
