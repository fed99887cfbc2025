"""What a subagent has done, step by step, as the person sees it inside the call that it works for. Always bounded.

`CutOff` reads the steps of subagents that were at work when Crow was stopped from the session's past.
"""

import msgspec
from msgspec.structs import replace

from crow import events
from crow.paths import relative_to, shown
from crow.results import DiffBlock, DisplayBlock, TerminalBlock, TextBlock, ToolResult
from crow.visible import one_line

DOING, DONE, FAILED, SAID, REMARK = "…", "✓", "✗", "·", "!"

MOST_LIVE = 30
"""Steps that are shown while it works: the last ones."""
MOST_AT_END = 200
LONGEST_STEP = 160
LONGEST_NOTE = 80
LAST_OUTPUT = 1000
"""Characters of what a running call shows."""
LAST_WORDS = 500
"""Characters of what it is saying."""
LARGEST_DIFFS = 64 * 1024
"""Characters of all diffs that are shown at its end. Those that were asked about are shown where they were."""
MOST_DIFFS = 50
MOST_FILES = 50
"""Names of changed files that the model is told."""
MOST_TOLD = 30
"""Steps that the model is told of one that did not finish: the last ones."""


class _Step(msgspec.Struct):
    sign: str
    title: str
    note: str = ""
    started: bool = False
    asked: bool = False
    """The person was asked about it, so it is shown as a call of its own."""

    def __str__(self) -> str:
        note = f" ({one_line(self.note, LONGEST_NOTE)})" if self.note else ""
        return f"{self.sign} {one_line(self.title, LONGEST_STEP)}{note}"


class Steps:
    """Fed with every event of a subagent's conversation, in order."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        """Paths that it has changed, in the order of their first change."""
        self.calls = 0
        self.replies = 0
        """How often its model has answered."""
        self._steps: list[_Step] = []
        self._open: dict[str, _Step] = {}
        self._doing: dict[str, tuple[DisplayBlock, ...]] = {}
        """What the running calls show of themselves."""
        self._diffs: list[DiffBlock] = []
        self._room = LARGEST_DIFFS
        self._left_out = 0
        self._message_id = ""
        self._words: list[str] = []
        self._first_words = ""

    def apply(self, event: events.Event) -> None:
        match event:
            case events.TextDelta():
                self._say(event)
            case events.CallOpened():
                self._note_words()
                self.calls += 1
                self._open[event.call_id] = self._add(DOING, event.title)
            case events.ReplyEnded():
                self.replies += 1
            case events.FileWritten():
                self.files[event.path] = None
            case events.Notice():
                self._add(REMARK, event.title)
            case events.CompactionEnded():
                if event.status == "completed":
                    self._add(DONE, "Summed up its conversation so far")
            case (
                events.CallPreviewed()
                | events.CallDescribed()
                | events.PermissionAsked()
                | events.PermissionAnswered()
                | events.CallStarted()
                | events.CallProgressed()
                | events.CallSettled()
            ):
                if event.call_id in self._open:
                    self._go_on(self._open[event.call_id], event)
            case _:
                pass  # on the way to a step, or nothing that a subagent does

    def has_said(self, words: str) -> bool:
        """Whether a step says all of this."""
        line = " ".join(words.split())
        return len(line) <= LONGEST_STEP and any(step.sign == SAID and step.title == line for step in self._steps)

    def title(self, call_id: str) -> str:
        """The title of a call that has not ended."""
        return self._open[call_id].title

    def now(self) -> tuple[DisplayBlock, ...]:
        """While it works: the last steps, what is being done, what is being said."""
        words = "".join(self._words)[-LAST_WORDS:]
        self._words = [words]
        doing = (glimpse for blocks in self._doing.values() for block in blocks if (glimpse := _glimpse(block)))
        return (*self._list(MOST_LIVE), *doing, *_prose(words))

    def ended(self, *last: str) -> tuple[DisplayBlock, ...]:
        """At its end: the steps, what was changed, and what is to be said of it, which is the model's Markdown."""
        said = (block for text in last for block in _prose(text))
        return (*self._list(MOST_AT_END), *self._shown_diffs(), *said)

    def cut_off(self) -> None:
        """Crow was stopped: what was being done ended with it."""
        for step in self._open.values():
            step.sign, step.note = FAILED, "interrupted" if step.started else "not run"
        self._open.clear()
        self._doing.clear()

    def steps_told(self) -> str:
        """For the model, of one that did not finish: what it did."""
        return f"\nWhat it did:\n{self._lines(MOST_TOLD)}" if self._steps else ""

    def files_told(self, root: str = "") -> str:
        """For the model: which files it changed, as short as that can be said from a folder."""
        if not self.files:
            return ""
        names = [relative_to(shown(path), root) if root else shown(path) for path in self.files]
        more = f" and {len(names) - MOST_FILES} more" if len(names) > MOST_FILES else ""
        return f"\n\n[Files that it changed: {', '.join(names[:MOST_FILES])}{more}]"

    def _say(self, event: events.TextDelta) -> None:
        if event.message_id != self._message_id:
            self._message_id = event.message_id
            self._forget_words()
        self._words.append(event.text)
        if len(self._first_words) < LONGEST_STEP:
            self._first_words += event.text

    def _note_words(self) -> None:
        """What was said before a call stands before it."""
        if words := " ".join(self._first_words.split()):
            self._add(SAID, words)
        self._forget_words()

    def _forget_words(self) -> None:
        self._words.clear()
        self._first_words = ""

    def _add(self, sign: str, title: str) -> _Step:
        step = _Step(sign, title)
        self._steps.append(step)
        return step

    def _go_on(
        self,
        step: _Step,
        event: events.CallPreviewed
        | events.CallDescribed
        | events.PermissionAsked
        | events.PermissionAnswered
        | events.CallStarted
        | events.CallProgressed
        | events.CallSettled,
    ) -> None:
        match event:
            case events.CallPreviewed() | events.CallDescribed():
                step.title = event.title or step.title
            case events.PermissionAsked():
                step.asked, step.note = True, "asks for your permission"
            case events.PermissionAnswered():
                step.note = ""
            case events.CallStarted():
                step.started = True
            case events.CallProgressed():
                self._doing[event.call_id] = event.display
            case events.CallSettled(result=result):
                step.sign, step.note = DONE if result.ok else FAILED, result.message
                self._doing.pop(event.call_id, None)
                del self._open[event.call_id]
                shown_here = result.display if result.ok and not step.asked else ()
                for block in shown_here:
                    if isinstance(block, DiffBlock):
                        self._note_diff(block)

    def _list(self, most: int) -> tuple[DisplayBlock, ...]:
        return (TextBlock(self._lines(most)),) if self._steps else ()

    def _lines(self, most: int) -> str:
        left_out = len(self._steps) - most
        earlier = [f"({left_out} earlier steps)"] if left_out > 0 else []
        return "\n".join([*earlier, *map(str, self._steps[-most:])])

    def _note_diff(self, diff: DiffBlock) -> None:
        size = len(diff.old_text) + len(diff.new_text)
        if size > self._room or len(self._diffs) == MOST_DIFFS:
            self._left_out += 1
        else:
            self._room -= size
            self._diffs.append(diff)

    def _shown_diffs(self) -> list[DisplayBlock]:
        if not self._left_out:
            return [*self._diffs]
        changes = "change" if self._left_out == 1 else "changes"
        return [*self._diffs, TextBlock(f"({self._left_out} more {changes}: too much to be shown here)")]


def _glimpse(block: DisplayBlock) -> DisplayBlock | None:
    """The part of what a running call shows that the steps show, too: its terminal, or the end of its text."""
    match block:
        case TerminalBlock():
            return block
        case TextBlock() if block.text:
            return TextBlock(block.text[-LAST_OUTPUT:])
        case _:
            return None


def _prose(text: str) -> tuple[DisplayBlock, ...]:
    return (TextBlock(text, prose=True),) if text.strip() else ()


class CutOff:
    """Collects the steps of subagents whose call has not ended, for the result of a call that was cut off.

    It is fed with every event of a session, in order.
    """

    def __init__(self) -> None:
        self._steps: dict[str, Steps] = {}
        """The steps of each subagent by the call that it works for, until that call has ended."""
        self._parents: dict[str, str] = {}
        """For each call of a subagent the call that the subagent works for."""

    def apply(self, event: events.Event) -> None:
        match event:
            case events.SubagentDid(call_id=call_id, what=what):
                if isinstance(what, events.CallOpened):
                    self._parents[what.call_id] = call_id
                self._steps.setdefault(call_id, Steps()).apply(what)
            case events.CallSettled() if event.call_id in self._steps:
                del self._steps[event.call_id]
            case (
                events.PermissionAsked()
                | events.PermissionAnswered()
                | events.CallStarted()
                | events.CallSettled()
                | events.FileWritten()
            ):
                # Files, and what follows when the person is asked about a call, are the session's own events.
                steps = self._steps.get(self._parents.get(event.call_id, ""))
                if steps is not None:
                    steps.apply(event)
            case _:
                pass  # of the session, and about no subagent: those come inside of `SubagentDid`

    def told(self, call_id: str, interrupted: ToolResult) -> ToolResult:
        """The end of a call, with what a subagent did in it if there was one."""
        steps = self._steps.get(call_id)
        if steps is None:
            return interrupted
        steps.cut_off()
        text = f"{interrupted.text}{steps.steps_told()}{steps.files_told()}"
        return replace(interrupted, text=text, display=steps.ended(interrupted.message))
