"""What `edit` and `write` share: the diff, the backup for undo, writing, and telling the model what the file became."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeVar

from crow import diff
from crow.actions import Deed
from crow.errors import StaleFile, WorkspaceError
from crow.events import Before, FileBackedUp, FileWritten, Journal
from crow.files import local
from crow.files.base import Document, Workspace
from crow.files.local import encode_like
from crow.files.resolved_path import ResolvedPath
from crow.messages import ToolCall, ToolSpec
from crow.paths import relative_to, shown
from crow.results import DiffBlock, DisplayBlock, Location, ToolKind, ToolResult
from crow.tools.arguments import ignored_arguments
from crow.tools.base import Action, Advice, ReadNeeded, Tool, verb_and_path
from crow.tools.paths_meant import PathMeant
from crow.tools.read import ReadTracker

LARGEST_AT_ONCE = 64 * 1024
"""Characters up to which a text is worked on without leaving the event loop."""
SLICE = 512 * 1024
"""Characters that are encoded at once, so that a long text is not there twice."""
TRIES = 3
"""How often a change is carried over to a newer text before we give up on a file that changes all the time."""
LONGEST_TOLD = 4000
"""Characters of a diff that the model is told."""

Given = TypeVar("Given")


class ShownChange(NamedTuple):
    """A change to a file, as the person sees it."""

    display: tuple[DisplayBlock, ...]
    message: str
    """How many lines were added and removed."""
    locations: tuple[Location, ...]
    old: str | None
    new: str


async def read_needed_of(workspace: Workspace, meant: PathMeant) -> ReadNeeded:
    """A file that is there has to be read before it can be said how it would change."""
    resolved = meant.path
    title = f"Read {relative_to(resolved.real, workspace.roots[0])} before changing it"
    deed = Deed("read", ToolKind.READ, reads=(resolved.real,), read_as=resolved.judged[1:])
    return ReadNeeded(resolved, title, deed, (Location(resolved.real),), note=meant.note)


async def read_judged(workspace: Workspace, path: ResolvedPath) -> Document | None:
    """The file that is to be changed, if it could be judged: one that has just appeared was not there to be judged."""
    before = await workspace.read_document(path)
    if before is not None and not before.unsaved and not path.existed:
        raise StaleFile(f"{shown(path.real)} now exists.")
    return before


async def show_change(path: str, old: str | None, new: str) -> ShownChange:
    """`old` is None for a file that is not there yet."""
    return await off_loop_if_large(len(old or "") + len(new), lambda: _show(path, old, new))


def _show(path: str, old: str | None, new: str) -> ShownChange:
    first_line = new.count("\n", 0, diff.common_beginning(old or "", new)) + 1
    found = diff.changes(old or "", new)  # once, for both: it is what a large file costs
    counted = diff.statistics(old or "", new, found)
    display = diff.display(shown(path), old, new, found)
    return ShownChange(display, str(counted), (Location(path, first_line),), old, new)


async def off_loop_if_large(size: int, work: Callable[[], Given]) -> Given:
    """The result of work on a text that costs more than decoding it, and so leaves the event loop sooner."""
    return await local.off_loop_if_large(size, work, LARGEST_AT_ONCE)


def check_writable(path: str, before: Document | None, text: str) -> None:
    """What is known to speak against the write is better said before anyone is asked."""
    if before is not None and before.obstacle:
        raise WorkspaceError(before.obstacle)
    encode_like(before, path, text)


async def change_file(
    workspace: Workspace, journal: Journal, call_id: str, path: ResolvedPath, text: str, before: Document | None
) -> Document:
    """Writes a text as `Workspace.write_document` does, once what it replaces is stored, so that it can be taken back.

    StorageFailed if it could not be stored: nothing was written then.
    """
    image = None if before is None else Before(before.text, before.encoding, before.mark)
    await journal.record(FileBackedUp(call_id, path.real, image, path.missing_folders if before is None else 0))
    after = await workspace.write_document(path, text, before)
    # What is there by now: an editor may have formatted the text when it saved it.
    journal.append(
        FileWritten(call_id, path.real, await off_loop_if_large(len(after.text), lambda: digest_of(after.text)))
    )
    return after


def digest_of(text: str) -> str:
    """A fingerprint by which a file's text is known again."""
    import hashlib  # costs as much as a third of our start-up, and is needed with the first change only

    digest = hashlib.sha256()
    for start in range(0, len(text), SLICE):
        digest.update(text[start : start + SLICE].encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def told_diff(workspace: Workspace, path: str, old: str, new: str) -> str:
    """What changed between two texts, for the model; cut if it is long."""
    return diff.unified(old, new, relative_to(shown(path), workspace.roots[0]), LONGEST_TOLD)


class ChangeTool(Tool):
    """A tool that changes a file: what it would do depends on what the file holds, which must not be told unasked."""

    kind = ToolKind.EDIT

    def __init__(self, spec: ToolSpec, verb: str, seen: ReadTracker, advice: Advice) -> None:
        self.spec = spec
        self._verb = verb
        self._seen = seen
        self._advice = advice

    def title(self, arguments: dict[str, Any]) -> str:
        return verb_and_path(self._verb, arguments)

    async def look(self, call: ToolCall, workspace: Workspace) -> ReadNeeded:
        raise NotImplementedError

    async def prepare(self, call: ToolCall, workspace: Workspace) -> Action:
        return await self.prepare_once_read(call, workspace, await self.look(call, workspace))


class PreparedChange(NamedTuple):
    """A change to a file that is prepared: whose it is, what it replaces, and what the person is shown of it."""

    call_id: str
    workspace: Workspace
    seen: ReadTracker
    path: ResolvedPath
    before: Document | None
    """The file as it was when the change was prepared; None if it is not there yet."""
    shown: ShownChange
    unknown: tuple[str, ...]
    """Arguments that the tool does not know."""
    advice: Advice


class RefusedChanges(NamedTuple):
    """What was left out of a change because the person refused a part of it."""

    wanted: str
    """The text with all changes."""
    accepted: int
    all: int
    """How many changes there were."""


class ChangeAction(Action):
    """The action of a tool that changes a file: it writes what was shown, or makes the same change in a newer text."""

    tool = ""
    verb = ""

    def __init__(self, change: PreparedChange) -> None:
        self._change = change
        self._path = change.path.real
        self.title = f"{self.verb} {relative_to(self._path, change.workspace.roots[0])}"
        self.deed = Deed(self.tool, ToolKind.EDIT, writes=change.path.judged)
        self.display = change.shown.display
        self.locations = change.shown.locations
        self._refused: RefusedChanges | None = None

    @property
    def is_divisible(self) -> bool:
        return self._change.before is not None

    async def accept(self, accepted: Collection[int]) -> None:
        """From now on it is the change that was accepted: it writes this, or nothing."""
        planned = self._change.shown
        old, blocks = planned.old or "", [block for block in planned.display if isinstance(block, DiffBlock)]
        size = len(old) + len(planned.new)
        text = await off_loop_if_large(size, lambda: diff.with_accepted(old, planned.new, blocks, accepted))
        count = await off_loop_if_large(size, lambda: sum(len(diff.changes_in(block)) for block in blocks))
        self._refused = RefusedChanges(planned.new, len(accepted), count)
        self._change = self._change._replace(shown=await show_change(self._path, planned.old, text))
        self.display, self.locations = self._change.shown.display, self._change.shown.locations

    async def perform(self, journal: Journal) -> ToolResult:
        change = self._change
        before, text = change.before, change.shown.new
        for _ in range(TRIES):
            try:
                after = await change_file(change.workspace, journal, change.call_id, change.path, text, before)
            except StaleFile as changed:
                if self._refused is not None:  # which lines were accepted is known of that text alone
                    raise WorkspaceError(
                        f"{changed.message} Nothing was written.", advice=change.advice.read_again
                    ) from None
                before, text = await self._rebased(changed, before)
            else:
                return await self._result(before, text, after)
        raise WorkspaceError(f"{shown(self._path)} keeps changing. Nothing was written.")

    async def _rebased(self, changed: StaleFile, before: Document | None) -> tuple[Document | None, str]:
        """The file as it is by now, and the same change of its text. WorkspaceError if there is no such change."""
        raise NotImplementedError

    async def _result(self, before: Document | None, text: str, after: Document) -> ToolResult:
        """What was done: the text was written in the place of `before`, and `after` is what the file holds by now."""
        raise NotImplementedError

    async def _told(
        self, done: str, before: Document | None, text: str, after: Document, notes: Sequence[str]
    ) -> ToolResult:
        """What was done, for both. If the editor made something else of the text, that is what both are told of."""
        planned, workspace = self._change.shown, self._change.workspace
        old = None if before is None else before.text
        as_planned = (planned.old, planned.new) == (old, after.text)
        change = planned if as_planned else await show_change(after.path, old, after.text)
        name = relative_to(shown(after.path), workspace.roots[0])
        notes = [*notes, *ignored_arguments(self._change.unknown)]
        told = [f"{done} {name} ({change.message}).", *after.remarks, *notes]
        remarks = list(after.remarks)
        if (refused := self._refused) is not None:
            accepted = f"{refused.accepted} of {refused.all} changes"
            remarks.append(f"{accepted} were accepted.")
            what = told_diff(workspace, after.path, text, refused.wanted)
            told.append(f"The user accepted {accepted} and refused the others, which are not in the file:\n{what}")
        if after.text != text:
            remarks.append("It changed when it was saved.")
            what = told_diff(workspace, after.path, text, after.text)
            told.append(f"The text was changed when it was saved, as editors do that format it:\n{what}")
        message = " ".join([f"{change.message}.", *remarks]) if remarks else change.message
        return ToolResult(ok=True, text="\n".join(told), message=message, display=change.display, brief=change.message)
