"""The tool `edit`: several replacements in a file, all of them or none, made anew if the person changed the file
meanwhile.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from crow.errors import StaleFile, WorkspaceError
from crow.files.base import Document, Workspace
from crow.messages import ToolCall, ToolSpec
from crow.paths import shown
from crow.results import DiffBlock, ToolResult
from crow.tools.arguments import ArgumentReader
from crow.tools.base import OF_A_SESSION, Advice, BadArguments, ReadNeeded
from crow.tools.editing import TextEdit
from crow.tools.file_changes import (
    ChangeAction,
    ChangeTool,
    PreparedChange,
    check_writable,
    off_loop_if_large,
    read_judged,
    read_needed_of,
    show_change,
    told_diff,
)
from crow.tools.paths_meant import missing, path_meant
from crow.tools.read import ReadTracker

if TYPE_CHECKING:  # the matcher is imported for the first edit, not for the session's beginning
    from crow.tools.editing.matching import EditPlan

DESCRIPTION = (
    "Replace text in a file, at several places in one call: all edits are made, or none. Each `old` is copied exactly "
    "from the file, without line numbers, and must be unique in it, or `all` set. All refer to the file as it is now, "
    "not to each other's results, and must not overlap. To make a new file use `write`."
)


class EditArguments(msgspec.Struct, frozen=True):
    path: Annotated[str, msgspec.Meta(min_length=1, description="absolute, or relative to the working directory")]
    edits: Annotated[list[TextEdit], msgspec.Meta(min_length=1)]


_reader = ArgumentReader(EditArguments)


class Edit(ChangeTool):
    def __init__(self, seen: ReadTracker, advice: Advice = OF_A_SESSION) -> None:
        super().__init__(ToolSpec("edit", DESCRIPTION, _reader.schema()), "Edit", seen, advice)

    def partial_display(self, arguments: dict[str, Any]) -> tuple[DiffBlock, ...] | None:
        match arguments:
            case {"path": str(path), "edits": [*edits]}:
                return tuple(diff for edit in edits if (diff := _partial_diff(path, edit)) is not None) or None
            case _:
                return None

    async def look(self, call: ToolCall, workspace: Workspace) -> ReadNeeded:
        return await read_needed_of(workspace, await path_meant(workspace, _reader.read(call)[0].path))

    async def prepare_once_read(self, call: ToolCall, workspace: Workspace, look: ReadNeeded) -> "EditAction":
        from crow.tools.editing.replacements import apply

        arguments, unknown = _reader.read(call)
        _check(arguments.edits)
        path = look.path
        before = await read_judged(workspace, path)
        if before is None:
            raise await missing(workspace, path, self._advice, self._advice.make_a_file)
        plan = await off_loop_if_large(len(before.text), lambda: self._plan(workspace, before, arguments.edits))
        if look.note:
            plan = plan._replace(overlooked=(*plan.overlooked, look.note))
        new = await off_loop_if_large(len(before.text), lambda: apply(before.text, plan.replacements))
        if new == before.text:
            raise WorkspaceError(f"The edits change nothing in {shown(path.real)}.")
        await off_loop_if_large(len(new), lambda: check_writable(path.real, before, new))
        change = await show_change(path.real, before.text, new)
        prepared = PreparedChange(call.id, workspace, self._seen, path, before, change, unknown, self._advice)
        return EditAction(prepared, plan)

    def _plan(self, workspace: Workspace, before: Document, edits: Sequence[TextEdit]) -> "EditPlan":
        """In a file that has changed since the model saw it nothing is guessed, and the model learns what changed."""
        from crow.tools.editing.matching import occurs_several_times, plan_edits

        path, text = before.path, before.text
        known, has_read = self._seen.text(path), self._seen.has_read(path)
        for number, edit in enumerate(edits, 1):
            _check_new(path, text, edit, _name(number, edits))
        if known is None or known == text:
            return plan_edits(text, edits, reveal=has_read, advice=self._advice, path=path)
        changed = f"{shown(path)} has changed since you last saw it"
        what = told_diff(workspace, path, known, text) if has_read else ""
        read_again = self._advice.read_again
        try:
            plan = plan_edits(text, edits, exactly=True, reveal=has_read, advice=self._advice, path=path)
        except WorkspaceError as error:
            told = f"{changed}. {error.message}"
            raise WorkspaceError(told, advice=f"{error.advice}\n{what} {read_again}") from None
        if any(occurs_several_times(known, edit) for edit in edits):
            raise WorkspaceError(f"{changed}, and which place is meant is unclear.\n{what}", advice=read_again)
        return plan._replace(overlooked=(f"{changed}; the other change was kept:\n{what}", *plan.overlooked))


class EditAction(ChangeAction):
    """What was shown; if the person has changed the file since, the same replacements in the newer text."""

    tool, verb = "edit", "Edit"

    def __init__(self, change: PreparedChange, plan: "EditPlan") -> None:
        super().__init__(change)
        self._plan = plan
        self._replacements = plan.replacements

    async def _rebased(self, changed: StaleFile, before: Document | None) -> tuple[Document, str]:
        from crow.tools.editing.replacements import apply, follow

        now = await self._change.workspace.read_document(self._change.path)
        if now is None or before is None:
            raise self._conflict(changed, now) from None
        moved = await off_loop_if_large(len(now.text), lambda: follow(self._replacements, before.text, now.text))
        if moved is None:
            raise self._conflict(changed, now) from None
        self._replacements = moved
        return now, apply(now.text, moved)

    def _conflict(self, changed: StaleFile, now: Document | None) -> WorkspaceError:
        what = ""
        if now is not None and self._change.seen.has_read(self._path):
            what = "\n" + self._since_prepared(now)
        return WorkspaceError(f"{changed.message} Nothing was written.{what}", advice=self._change.advice.read_again)

    def _since_prepared(self, now: Document) -> str:
        """What others have changed in the file since the edit was prepared."""
        prepared = self._change.before
        return told_diff(self._change.workspace, self._path, prepared.text if prepared else "", now.text)

    async def _result(self, before: Document | None, text: str, after: Document) -> ToolResult:
        notes = [*self._plan.overlooked]
        if before is not None and before is not self._change.before:
            since = self._since_prepared(before)
            notes.append(f"The file changed in the meantime; the other change was kept:\n{since}")
        seen, old = self._change.seen, before.text if before else ""
        await off_loop_if_large(len(text), lambda: seen.note_changed(self._path, old, text))
        if after.text != text:
            seen.note_replaced(self._path, after.text)
        return await self._told("Edited", before, text, after, notes)


def _partial_diff(path: str, edit: object) -> DiffBlock | None:
    """An edit of which at least the beginning of the new text has arrived."""
    match edit:
        case {"old": str(old), "new": str(new)}:
            return DiffBlock(path, "modify", old, new)
        case _:
            return None


def _name(number: int, edits: Sequence[TextEdit]) -> str:
    return f"Edit {number}" if len(edits) > 1 else "The edit"


def _check(edits: Sequence[TextEdit]) -> None:
    for number, edit in enumerate(edits, 1):
        if not edit.old:
            raise BadArguments(
                f"{_name(number, edits)} has an empty `old`.",
                advice="To create or rewrite a file use `write`; "
                "to add text, use a line next to it as `old` and repeat it in `new`.",
            )
    if all(edit.old == edit.new for edit in edits):
        raise BadArguments(
            f"{'The edit changes' if len(edits) == 1 else 'The edits change'} nothing: `old` and `new` are the same.",
            advice="Put the replacement text in `new`.",
        )


def _check_new(path: str, text: str, edit: TextEdit, name: str) -> None:
    """A new text that would put something into the file that nobody means to be there."""
    if edit.new in edit.old:
        return
    from crow.tools.editing.omissions import check_no_wrapper, check_nothing_left_out
    from crow.tools.editing.refusals import check_no_leftovers

    instead = "To leave lines as they are make smaller edits around them, each with only what changes."
    check_nothing_left_out(path, text, edit.new, name, "new text", instead, replaced=edit.old)
    check_no_wrapper(path, text, edit.new, name, "new text", old=edit.old)
    check_no_leftovers(path, text, edit.new, name, "new text", old=edit.old)
