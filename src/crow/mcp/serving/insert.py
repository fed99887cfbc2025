"""`insert`: a text between two lines of a file, as an edit whose place is known by its number."""

from crow.errors import WorkspaceError
from crow.mcp.serving.advice import ADVICE
from crow.messages import ToolCall
from crow.paths import shown
from crow.tools.changing import check_writable, read_judged, show_change, worked_out
from crow.tools.edit import EditAction
from crow.tools.editing.line_ends import with_ends_of, without_foreign_ends
from crow.tools.editing.matching import EditPlan, Replacement, apply
from crow.tools.seen import Seen, count_lines
from crow.workspace.base import Workspace
from crow.workspace.place import ResolvedPath
from crow.workspace.text import usual_line_end


async def prepare_insert(
    call: ToolCall,
    workspace: Workspace,
    seen: Seen,
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
    replacement = await worked_out(len(before.text), lambda: replacement_after(before.text, line, text))
    new = apply(before.text, [replacement])
    check_writable(resolved, before, new)
    change = await show_change(resolved, before.text, new)
    plan = EditPlan([replacement])
    return EditAction(call.id, workspace, seen, target, before, plan, change, unknown, ADVICE)


def replacement_after(before: str, line: int, text: str) -> Replacement:
    """The replacement of nothing by whole lines. After a last line without an end, that line gets one instead."""
    end = usual_line_end(before)
    fitted = with_ends_of("", without_foreign_ends(before, text), end)
    start = 0
    for _ in range(line):
        start = before.find("\n", start) + 1
        if start == 0:
            return Replacement(len(before), len(before), end + fitted, 1)
    return Replacement(start, start, fitted if fitted.endswith(("\n", "\r")) else fitted + end, 1)
