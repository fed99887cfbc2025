"""Undo: restores the files that the last turn wrote, unless they were changed since, and takes the turn out of the
model's history.

Only what the turn wrote is taken back: a file that holds another text by now is somebody else's work and stays as it
is. Every file that is taken back is shown as a call of Crow's own, with its diff.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, Literal, NamedTuple, TypeVar

import msgspec

from crow import diff
from crow.actions import Deed
from crow.errors import WorkspaceError
from crow.events import (
    Before,
    CallOpened,
    CallStarted,
    CommandGiven,
    Event,
    FileBackedUp,
    FileWritten,
    Journal,
    SentText,
    SubagentDid,
    TurnStarted,
    TurnUndone,
    UserSaid,
)
from crow.files.base import Document, Workspace
from crow.files.resolved_path import ResolvedPath
from crow.messages import SERVER_TOOL
from crow.paths import relative_to, shown
from crow.results import DisplayBlock, Location, ToolKind, ToolResult
from crow.tools.base import Action
from crow.tools.file_changes import digest_of, off_loop_if_large, show_change
from crow.turn.call import Call
from crow.visible import one_line

NOTHING = "There is no turn to undo."
ANOTHER = "A newer turn has run since, so nothing was undone. Check what it did, then try again."
INTERRUPTED = "Interrupted before it was done."
COMMANDS_STAY = "The turn also ran commands. Their effects are not undone."
SERVERS_STAY = "The turn also used MCP tools. Their effects are not undone."
LONGEST_NAME = 60
"""Characters of its prompt by which a turn is named."""

Done = TypeVar("Done")


class UndoableChange(msgspec.Struct):
    """What one turn did to one file, all its calls together."""

    path: str
    before: Before | None
    digest: str = ""
    """The digest of the text that the turn left there; empty if it was stopped before it could say so."""
    mixed: bool = False
    """Somebody else changed the file between two changes of the turn: their text is in none that we kept."""
    missing_folders: int = 0
    """If the file was not there: how many of the folders that it lies in were not there either."""
    attempts: dict[str, Before | None] = {}
    """What calls would replace that have not written yet: subagents may be at it side by side, and not all succeed."""

    def changing(self, call_id: str, before: Before | None) -> None:
        self.attempts[call_id] = before
        if not self.digest:
            self.before = before

    def written(self, call_id: str, digest: str) -> None:
        before = self.attempts.pop(call_id, self.before)
        if not self.digest:
            self.before = before
        elif before is None or digest_of(before.text) != self.digest:
            self.mixed = True
        self.digest = digest


class PastTurn:
    """A turn that can be taken back: its events, in order."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.events: list[Event] = []

    @property
    def is_command(self) -> bool:
        """Crow answered by itself; a command that stands for a prompt is the model's to answer."""
        kinds = {type(event) for event in self.events}
        return CommandGiven in kinds and UserSaid not in kinds

    @property
    def remarks(self) -> list[str]:
        """What is not taken back, whatever becomes of the files."""
        started = {event.call_id for event in self.events if isinstance(event, CallStarted)}
        calls = [event for event in self.events if isinstance(event, CallOpened) and event.call_id in started]
        commands = [COMMANDS_STAY] if any(call.kind is ToolKind.EXECUTE for call in calls) else []
        servers = [SERVERS_STAY] if any(call.tool.startswith(SERVER_TOOL) for call in calls) else []
        return commands + servers

    @property
    def name(self) -> str:
        """The beginning of the prompt, to know it by; empty if it had no words."""
        said = (event.sent for event in self.events if isinstance(event, UserSaid | CommandGiven))
        texts = (part.text for sent in said for part in sent if isinstance(part, SentText))
        return one_line(" ".join(next(texts, "").split()), LONGEST_NAME)

    def changes(self) -> list[UndoableChange]:
        """Its file changes, the last file first."""
        changes: dict[str, UndoableChange] = {}
        for event in self.events:
            match event:
                case FileBackedUp(path=path):
                    made = UndoableChange(path, event.before, missing_folders=event.missing_folders)
                    changes.setdefault(path, made).changing(event.call_id, event.before)
                case FileWritten(path=path) if path in changes:
                    changes[path].written(event.call_id, event.digest)
                case _:
                    pass
        return list(reversed(changes.values()))


def last_turn(past: Sequence[Event]) -> PastTurn | None:
    """The last turn that was the model's and has not been taken back yet."""
    turns: list[PastTurn] = []
    undone: set[str] = set()
    for event in past:
        if isinstance(event, TurnStarted):
            turns.append(PastTurn(event.turn_id))
        elif isinstance(event, TurnUndone):
            undone.add(event.turn_id)
        elif turns:
            turns[-1].events.append(event.what if isinstance(event, SubagentDid) else event)
    return next((turn for turn in reversed(turns) if turn.id not in undone and not turn.is_command), None)


async def undo_last_turn(past: Sequence[Event], journal: Journal, workspace: Workspace, turn_id: str = "") -> str:
    """Takes it back as far as that can be done without touching anybody else's work; what to tell the person.

    `past` is everything that happened in the session, with the former texts of changed files. If there are files to
    take back and none of them can be, nothing is done and the turn stays. `turn_id` is the turn that the person was
    shown: if the last one is another by now, nothing is done either.
    """
    turn = last_turn(past)
    if turn is None:
        return NOTHING
    if turn_id and turn_id != turn.id:
        return ANOTHER
    undo = _Undo(turn, past, journal, workspace)
    for change in await asyncio.to_thread(turn.changes):
        await undo.take_back(change)
    if not undo.did_nothing:
        await journal.record(TurnUndone(turn.id))
    return undo.told()


class UndoneFile(NamedTuple):
    """`display` is what an undo would change in the file; `blocked` says why it would change nothing."""

    path: str
    kind: Literal["modified", "deleted"]
    display: tuple[DisplayBlock, ...] = ()
    blocked: str = ""


async def preview_undo(past: Sequence[Event], workspace: Workspace) -> tuple[PastTurn, list[UndoneFile]] | None:
    """The turn that `undo_last_turn` would take back now, and its files; None if there is none. Changes nothing."""
    turn = last_turn(past)
    if turn is None:
        return None
    files = [await _previewed(change, workspace) for change in await asyncio.to_thread(turn.changes)]
    return turn, [file for file in files if file is not None]


async def _previewed(change: UndoableChange, workspace: Workspace) -> UndoneFile | None:
    """None if the file is as before already."""
    path, kind = shown(change.path), "deleted" if change.before is None else "modified"
    try:
        found = await _find(change, workspace)
    except _Refused as refused:
        return UndoneFile(path, kind, blocked=f"{relative_to(path, workspace.roots[0])} {refused}")
    except WorkspaceError as error:
        return UndoneFile(path, kind, blocked=error.message)
    if found is None:
        return None
    _, now = found
    if change.before is None:
        return UndoneFile(path, kind, diff.display(path, now.text, None))
    return UndoneFile(path, kind, (await show_change(path, now.text, change.before.text)).display)


class _Refused(Exception):
    """Why a file stays as it is, as the rest of a sentence that begins with its name."""


async def _find(change: UndoableChange, workspace: Workspace) -> tuple[ResolvedPath, Document] | None:
    """The file that a change is to be taken back in, and what it holds; None if it is as before already. _Refused if it
    is not ours to change, WorkspaceError if it cannot be read."""
    target = await workspace.resolve(change.path)
    if target.real != change.path:
        raise _Refused("has a symbolic link on its path now, which leads elsewhere.")
    now = await workspace.read_document(target)
    if await off_loop_if_large(_size(now), lambda: _is_as_before(now, change.before)):
        return None
    return target, await off_loop_if_large(_size(now), lambda: _check(now, change))


class _Undo:
    def __init__(self, turn: PastTurn, past: Sequence[Event], journal: Journal, workspace: Workspace) -> None:
        self._turn = turn
        self._journal = journal
        self._workspace = workspace
        ours = f"{turn.id}-u"
        self._calls = sum(isinstance(event, CallOpened) and event.call_id.startswith(ours) for event in past)
        self._restored: list[str] = []
        self._removed: list[str] = []
        self._unchanged: list[str] = []
        self._refused: list[str] = []

    @property
    def did_nothing(self) -> bool:
        """Every file was refused."""
        return bool(self._refused) and not (self._restored or self._removed or self._unchanged)

    async def take_back(self, change: UndoableChange) -> None:
        name = self._name(change.path)
        try:
            found = await _find(change, self._workspace)
            if found is None:
                self._unchanged.append(name)
            elif change.before is None:
                await self._remove(*found, change.missing_folders)
                self._removed.append(name)
            else:
                self._restored.append(name + await self._restore(*found, change.before))
        except _Refused as refused:
            self._refused.append(f"{name} {refused}")
        except WorkspaceError as error:
            self._refused.append(f"{name}: {error.message}")

    def told(self) -> str:
        """What became of it, for the person."""
        turn = f"“{self._turn.name}”" if self._turn.name else "the last turn"
        if self.did_nothing:
            lines = [f"Could not undo {turn}; it stays in the conversation.", *self._told_refused()]
            return "\n\n".join([*lines, "Put these files back as the turn left them, then `/undo` again."])
        lines = [f"Undid {turn}; removed from the model's context."]
        if self._restored:
            lines.append(f"Restored: {', '.join(self._restored)}.")
        if self._removed:
            lines.append(f"Removed: {', '.join(self._removed)}.")
        if self._unchanged:
            lines.append(f"Already as before: {', '.join(self._unchanged)}.")
        lines += self._told_refused()
        if not (self._restored or self._removed or self._unchanged):
            lines.append("Crow's own tools changed no files." if self._turn.remarks else "It changed no files.")
        return "\n\n".join([*lines, *self._turn.remarks])

    def _told_refused(self) -> list[str]:
        if not self._refused:
            return []
        return ["Left unchanged:\n" + "\n".join(f"- {reason}" for reason in self._refused)]

    def _name(self, path: str) -> str:
        return f"`{one_line(relative_to(shown(path), self._workspace.roots[0]))}`"

    # --- one file, shown as a call

    async def _restore(self, target: ResolvedPath, now: Document, before: Before) -> str:
        """What is to be said of it apart from its name."""
        old = Document(now.path, before.text, before.encoding, before.mark)
        change = await show_change(now.path, now.text, old.text)
        result = ToolResult(ok=True, text="", message=change.message, display=change.display)

        def write() -> Awaitable[Document]:
            return self._workspace.write_document(target, old.text, now, like=old)

        after = await self._perform(ToolKind.EDIT, "Restore", change.locations[0], result, write)
        return "" if after.text == old.text else " (changed by the editor when it was saved)"

    async def _remove(self, target: ResolvedPath, now: Document, folders: int) -> None:
        display = diff.display(shown(now.path), now.text, None)
        result = ToolResult(ok=True, text="", message="removed", display=display)

        def remove() -> Awaitable[None]:
            return self._workspace.remove(target, now, folders)

        await self._perform(ToolKind.DELETE, "Remove", Location(now.path), result, remove)

    async def _perform(
        self, kind: ToolKind, verb: str, location: Location, result: ToolResult, work: Callable[[], Awaitable[Done]]
    ) -> Done:
        """Does it as a call of Crow's own. Nobody is asked: whoever calls for an undo wants it."""
        self._calls += 1
        title = f"{verb} {relative_to(location.path, self._workspace.roots[0])}"
        action = _FileAction(title, Deed("undo", kind, writes=(location.path,)), (location,), result, work)
        unfinished = ToolResult.failed(INTERRUPTED)
        async with Call(f"{self._turn.id}-u{self._calls}", self._journal, unfinished=unfinished) as call:
            call.open("undo", kind, title)
            await call.settle(await call.carry_out(action))
        return action.done


class _FileAction(Action, Generic[Done]):
    """Restoring or removing one file, as the action of a call. `done` is what the work gave."""

    done: Done

    def __init__(
        self,
        title: str,
        deed: Deed,
        locations: tuple[Location, ...],
        result: ToolResult,
        work: Callable[[], Awaitable[Done]],
    ) -> None:
        self.title = title
        self.deed = deed
        self.locations = locations
        self._result = result
        self._work = work

    async def perform(self, journal: Journal) -> ToolResult:
        self.done = await self._work()
        return self._result


def _is_as_before(now: Document | None, before: Before | None) -> bool:
    if now is None or before is None:
        return now is before
    return (now.text, now.encoding, now.mark) == (before.text, before.encoding, before.mark)


def _check(now: Document | None, change: UndoableChange) -> Document:
    """The file as it is, if it is as the turn left it."""
    if now is None:
        raise _Refused("is not there any more.")
    if change.mixed:
        raise _Refused("was also changed by somebody else while the turn ran.")
    if not change.digest:
        raise _Refused("is not as it was, and the turn was stopped before it could say what it wrote.")
    if digest_of(now.text) != change.digest:
        raise _Refused("has changed since.")
    return now


def _size(document: Document | None) -> int:
    return len(document.text) if document is not None else 0
