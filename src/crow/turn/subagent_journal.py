"""Decides what of a subagent's work reaches the session: steps inside its call, and as a call of its own what the
person is asked about.

Everything is kept in the session's journal, as `SubagentDid`. What the person sees are the steps, as the progress of
the call that the subagent works for. Only a call that they are asked about becomes one of the session's own: a question
belongs to a call that the editor knows, and that it can mark as rejected without marking the whole subagent so.
"""

import asyncio
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from msgspec.structs import replace

from crow import events
from crow.results import DisplayBlock, TerminalBlock
from crow.tools.task import SubagentTask
from crow.turn.history import History
from crow.turn.subagent_steps import Steps

TEXT_EVERY = 0.5
"""Seconds after which streamed text is kept, in one piece."""
STEPS_EVERY = 0.2
"""Seconds between two pictures of the steps."""
WORDS_EVERY = 1.0
"""Seconds between two pictures of the steps while nothing but the subagent's words changes."""


def named(task: SubagentTask, text: str) -> str:
    """The text of a title or a question, with the name of the subagent before it."""
    return f"Subagent “{task.name}”: {text}"


class SubagentJournal:
    """Used in a `with`: at its end all text is kept, and from then on the call's result shows the steps."""

    def __init__(self, session: events.Journal, task: SubagentTask, steps: Steps) -> None:
        self.history = History()
        self._session = session
        self._task = task
        self._steps = steps
        self._progress = _Progress(session, task.call_id, steps)
        self._calls: dict[str, events.CallOpened] = {}
        self._requested: dict[str, events.CallRequested] = {}
        self._described: dict[str, events.CallDescribed] = {}
        self._asked: set[str] = set()
        """Calls that are the session's own by now."""
        self._text = _GatheredText(lambda event: session.append(self._kept(event)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._text.keep()
        self._progress.stop()

    @property
    def has_room(self) -> bool:
        return self._session.has_room

    async def room(self) -> None:
        await self._session.room()

    def append(self, event: events.Event) -> None:
        self.history.apply(event)
        if isinstance(event, events.TextDelta | events.ThoughtDelta):
            self._text.grow(event)
        else:
            for passed in self._passed_on(event):
                self._session.append(passed)
        self._show(event)

    async def record(self, *recorded: events.Event) -> None:
        passed: list[events.Event] = []
        for event in recorded:
            self.history.apply(event)
            self._show(event)
            passed += self._passed_on(event)
        if passed:
            await self._session.record(*passed)

    # --- what reaches the session

    def _passed_on(self, event: events.Event) -> Iterator[events.Event]:
        self._text.keep()
        match event:
            case events.FileBackedUp() | events.FileWritten():
                yield event
            case events.PermissionAsked():
                yield from self._made_known(event.call_id)
                yield event
            case (
                events.PermissionAnswered()
                | events.CallDescribed()
                | events.CallStarted()
                | events.CallProgressed()
                | events.OutputGrew()
                | events.CallSettled()
                | events.BackgroundEnded()
            ) if event.call_id in self._asked:
                yield self._with_name(event) if isinstance(event, events.CallDescribed) else event
            case events.StillWaiting():
                whose = f"{event.what} (subagent “{self._task.name}”)"
                yield events.StillWaiting(whose, event.seconds, self._task.call_id)
            case _ if isinstance(event, events.SubagentEvent):
                yield self._kept(event)
            case _:
                pass  # passing, shown among the steps, or nothing that a subagent does

    def _kept(self, event: events.SubagentEvent) -> events.Event:
        return events.SubagentDid(self._task.call_id, event)

    def _made_known(self, call_id: str) -> Iterator[events.Event]:
        """A call becomes the session's own with the first question about it."""
        if call_id in self._asked:
            return
        self._asked.add(call_id)
        opened = self._calls[call_id]
        title = named(self._task, self._steps.title(call_id))
        yield events.CallOpened(call_id, opened.tool, opened.kind, title, own=True)
        yield replace(self._requested[call_id], own=True)
        if call_id in self._described:
            yield self._with_name(self._described[call_id])

    def _with_name(self, event: events.CallDescribed) -> events.CallDescribed:
        return replace(event, title=named(self._task, event.title))

    # --- what is shown

    def _show(self, event: events.Event) -> None:
        if isinstance(event, events.CallProgressed) and event.call_id in self._asked:
            return  # it shows that by itself
        self._steps.apply(event)
        match event:
            case events.CallOpened():
                self._calls[event.call_id] = event
                self._progress.changed(STEPS_EVERY)
            case events.CallRequested():
                self._requested[event.call_id] = event
            case events.CallDescribed():
                self._described[event.call_id] = event
                self._progress.changed(STEPS_EVERY)
            case events.CallProgressed():
                # A client's terminal can be shown only while it is there, so it is not left for later.
                at_once = any(isinstance(block, TerminalBlock) for block in event.display)
                self._progress.changed(0 if at_once else STEPS_EVERY)
            case events.TextDelta():
                self._progress.changed(WORDS_EVERY)
            case events.PermissionAsked():
                self._progress.changed(0)  # the person is about to look
            case events.CallSettled() | events.PermissionAnswered() | events.Notice():
                self._progress.changed(STEPS_EVERY)
            case _:
                pass  # if it became a step, that is shown with the next change


class _GatheredText:
    """Pieces of a message, joined for a moment: they are kept to be read again, not to be shown."""

    def __init__(self, keep: Callable[[events.TextDelta | events.ThoughtDelta], None]) -> None:
        self._keep = keep
        self._first: events.TextDelta | events.ThoughtDelta | None = None
        self._texts: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def grow(self, event: events.TextDelta | events.ThoughtDelta) -> None:
        if self._first is not None and self._first.message_id != event.message_id:
            self.keep()
        if self._first is None:
            self._first = event
            self._timer = asyncio.get_running_loop().call_later(TEXT_EVERY, self.keep)
        self._texts.append(event.text)

    def keep(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._first is not None:
            whole = replace(self._first, text="".join(self._texts))
            self._first = None
            self._texts.clear()
            self._keep(whole)


class _Progress:
    """Shows the steps of a subagent in the call that it works for: soon, but no more often than an eye can follow."""

    def __init__(self, journal: events.Journal, call_id: str, steps: Steps) -> None:
        self._journal = journal
        self._call_id = call_id
        self._steps = steps
        self._loop = asyncio.get_running_loop()
        self._shown: tuple[DisplayBlock, ...] = ()
        self._shown_at = self._loop.time() - STEPS_EVERY  # a first step is shown at once, first words can wait
        self._timer: asyncio.TimerHandle | None = None

    def changed(self, every: float) -> None:
        """There is something new: shown at once, or when the last picture is so old."""
        due = self._shown_at + every
        if due <= self._loop.time():
            self._show()
        elif self._timer is None or due < self._timer.when():
            self.stop()
            self._timer = self._loop.call_at(due, self._show)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _show(self) -> None:
        self.stop()
        self._shown_at = self._loop.time()
        if not self._journal.has_room:  # a client that does not keep up misses a few
            self._timer = self._loop.call_at(self._shown_at + WORDS_EVERY, self._show)
            return
        display = self._steps.now()
        if display and display != self._shown:
            self._shown = display
            self._journal.append(events.CallProgressed(self._call_id, display))
