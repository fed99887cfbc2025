"""Shows the steps of a subagent in the call that it works for: soon, but no more often than an eye can follow."""

import asyncio

from crow import events
from crow.results import DisplayBlock
from crow.turn.subagent.steps import Steps

STEPS_EVERY = 0.2
"""Seconds between two pictures of the steps."""
WORDS_EVERY = 1.0
"""The same while nothing but the subagent's words changes."""


class Progress:
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
