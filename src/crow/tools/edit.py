"""`edit`: several replacements in a file, all of them or none."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from crow.actions import Deed
from crow.errors import FileChanged, WorkspaceError
from crow.events import Journal
from crow.messages import ToolCall, ToolSpec
from crow.paths import relative_to, shown
from crow.results import DiffBlock, ToolKind, ToolResult
from crow.tools.advice import OF_A_SESSION, Advice
from crow.tools.base import ArgumentReader, BadArguments, Look, ignored_arguments, verb_and_path
from crow.tools.changing import (
    ShownChange,
    change_file,
    check_writable,
    look_at,
    read_judged,
    show_change,
    told_diff,
    told_result,
    worked_out,
)
from crow.tools.editing import TextEdit
from crow.tools.paths_meant import path_meant
from crow.tools.seen import Seen
from crow.tools.suggestions import missing
from crow.workspace.base import Document, Workspace
from crow.workspace.place import ResolvedPath

if TYPE_CHECKING:  # the matcher is imported for the first edit, not for the session's beginning
    from crow.tools.editing.matching import EditPlan
    from crow.tools.editing.places import Replacement

TRIES = 3
"""How often an edit is carried over to a newer text before we give up on a file that changes all the time."""

DESCRIPTION = (
    "Replace text in a file, at several places in one call: all edits are made, or none. Each `old` is copied exactly "
    "from the file, without line numbers, and must be unique in it, or `all` set. All refer to the file as it is now, "
    "not to each other's results, and must not overlap. To make a new file use `write`."
)


class EditArguments(msgspec.Struct, frozen=True):
    path: Annotated[str, msgspec.Meta(min_length=1, description="absolute, or relative to the working directory")]
    edits: Annotated[list[TextEdit], msgspec.Meta(min_length=1)]


_reader = ArgumentReader(EditArguments)


class Edit:
    kind = ToolKind.EDIT

    def __init__(self, seen: Seen, advice: Advice = OF_A_SESSION) -> None:
        self.spec = ToolSpec("edit", DESCRIPTION, _reader.schema())
        self._seen = seen
        self._advice = advice

    def title(self, arguments: dict[str, Any]) -> str:
        return verb_and_path("Edit", arguments)

    def growing(self, arguments: dict[str, Any]) -> tuple[DiffBlock, ...] | None:
        match arguments:
            case {"path": str(path), "edits": [*edits]}:
                return tuple(diff for edit in edits if (diff := _growing_diff(path, edit)) is not None) or None
            case _:
                return None

    async def look(self, call: ToolCall, workspace: Workspace) -> Look:
        return await look_at(workspace, await path_meant(workspace, _reader.read(call)[0].path))

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "EditAction":
        return await self.prepare_after(call, workspace, await self.look(call, workspace))

    async def prepare_after(self, call: ToolCall, workspace: Workspace, look: Look) -> "EditAction":
        from crow.tools.editing.places import apply

        arguments, unknown = _reader.read(call)
        _check(arguments.edits)
        path = look.path
        before = await read_judged(workspace, path)
        if before is None:
            raise await missing(workspace, path, self._advice, self._advice.make_a_file)
        plan = await worked_out(len(before.text), lambda: self._plan(workspace, before, arguments.edits))
        if look.note:
            plan = plan._replace(overlooked=(*plan.overlooked, look.note))
        new = await worked_out(len(before.text), lambda: apply(before.text, plan.replacements))
        if new == before.text:
            raise WorkspaceError(f"The edits change nothing in {shown(path.real)}.")
        await worked_out(len(new), lambda: check_writable(path.real, before, new))
        change = await show_change(path.real, before.text, new)
        return EditAction(call.id, workspace, self._seen, path, before, plan, change, unknown, self._advice)

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
            raise WorkspaceError(f"{changed}. {error.message}\n{what}", remedy=read_again) from None
        if any(occurs_several_times(known, edit) for edit in edits):
            raise WorkspaceError(f"{changed}, and which place is meant is unclear.\n{what}", remedy=read_again)
        return plan._replace(overlooked=(f"{changed}; the other change was kept:\n{what}", *plan.overlooked))


class EditAction:
    def __init__(
        self,
        call_id: str,
        workspace: Workspace,
        seen: Seen,
        target: ResolvedPath,
        before: Document,
        plan: "EditPlan",
        change: ShownChange,
        unknown: tuple[str, ...],
        advice: Advice,
    ) -> None:
        self._call_id = call_id
        self._workspace = workspace
        self._seen = seen
        self._target = target
        self._path = target.real
        self._before = before
        self._plan = plan
        self._unknown = unknown
        self._advice = advice
        self.deed = Deed("edit", ToolKind.EDIT, writes=target.judged)
        self._change = change
        self.display = change.display
        self.locations = change.locations

    @property
    def title(self) -> str:
        return f"Edit {relative_to(self._path, self._workspace.roots[0])}"

    async def perform(self, journal: Journal) -> ToolResult:
        """What was shown; if the person has changed the file since, the same replacements in the newer text."""
        from crow.tools.editing.places import apply

        before, replacements = self._before, self._plan.replacements
        for _ in range(TRIES):
            text = self._change.new if before is self._before else apply(before.text, replacements)
            try:
                after = await change_file(self._workspace, journal, self._call_id, self._target, text, before)
            except FileChanged as changed:
                now = await self._workspace.read_document(self._target)
                moved = await self._follow(replacements, before, now) if now is not None else None
                if now is None or moved is None:
                    raise self._conflict(changed, now) from None
                before, replacements = now, moved
            else:
                return await self._told(before, text, after)
        raise WorkspaceError(f"{shown(self._path)} changes all the time. Nothing was written.")

    async def _follow(
        self, replacements: "list[Replacement]", before: Document, now: Document
    ) -> "list[Replacement] | None":
        from crow.tools.editing.places import follow

        return await worked_out(len(now.text), lambda: follow(replacements, before.text, now.text))

    def _conflict(self, changed: FileChanged, now: Document | None) -> WorkspaceError:
        what = ""
        if now is not None and self._seen.has_read(self._path):
            what = "\n" + told_diff(self._workspace, self._path, self._before.text, now.text)
        return WorkspaceError(f"{changed.message} Nothing was written.{what}", remedy=self._advice.read_again)

    async def _told(self, before: Document, text: str, after: Document) -> ToolResult:
        notes = [*self._plan.overlooked]
        if before is not self._before:
            what = told_diff(self._workspace, self._path, self._before.text, before.text)
            notes.append(f"The file changed meanwhile; the other change was kept:\n{what}")
        await worked_out(len(text), lambda: self._seen.note_changed(self._path, before.text, text))
        if after.text != text:
            self._seen.note_replaced(self._path, after.text)
        notes += ignored_arguments(self._unknown)
        return await told_result(self._workspace, "Edited", self._change, before.text, text, after, notes)


def _growing_diff(path: str, edit: object) -> DiffBlock | None:
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
                f"{_name(number, edits)} has an empty `old`. To make a file or write all of it anew use `write`; "
                "to add something, take a line beside it as `old` and write it again in `new`."
            )
    if all(edit.old == edit.new for edit in edits):
        raise BadArguments(
            f"{'The edit changes' if len(edits) == 1 else 'The edits change'} nothing: `old` and `new` are the same. "
            "Give in `new` what is to stand there instead."
        )


def _check_new(path: str, text: str, edit: TextEdit, name: str) -> None:
    """A new text that would put something into the file that nobody means to be there."""
    if edit.new in edit.old:
        return
    from crow.tools.editing.leftovers import check_no_leftovers
    from crow.tools.editing.omissions import check_no_wrapper, check_nothing_left_out

    instead = "To leave lines as they are make smaller edits around them, each with only what changes."
    check_nothing_left_out(path, text, edit.new, name, "new text", instead, replaced=edit.old)
    check_no_wrapper(path, text, edit.new, name, "new text", old=edit.old)
    check_no_leftovers(path, text, edit.new, name, "new text", old=edit.old)
