"""Names a wait to the person after five seconds, and again while it lasts, ever less often.

Nothing is said while something comes, nor while the person is being asked: they know whose turn it is. What drips (a
build that prints a line now and then) is named no more often than what is silent.

    with context.waiting("the model's answer") as wait:
        async for event in stream:
            wait.heard()

A wait that is over sooner leaves no trace, and costs one timer.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from crow.events import CallProgressed, Event, Journal, StillWaiting

PATIENCE = 5.0
GAPS = (1.0, 2.0, 3.0, 6.0, 12.0)
"""From one note to the next, in units of the turn's patience; the last one again and again. A silent wait is
so named after 5, 15, 30 and 60 seconds, then each minute."""


class Wait:
    """`is_asked` says whether the person is being asked something: such a wait is theirs, and never named."""

    def __init__(
        self,
        journal: Journal,
        what: str,
        call_id: str,
        patience: float,
        is_asked: Callable[[], bool] = lambda: False,
    ) -> None:
        self._journal = journal
        self._what = self._usual = what
        self._call_id = call_id
        self._patience = patience
        self._is_asked = is_asked
        self._loop = asyncio.get_running_loop()
        self._since = 0.0
        """When something last came."""
        self._told = 0
        self._last_told = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        self._begin(self._loop.time())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def heard(self) -> None:
        """Something came. Cheap enough for every token, since the timer is left where it is."""
        self._since = self._loop.time()

    def name(self, what: str) -> None:
        """Something else is waited for; nothing stands for what was waited for at first."""
        self._what = what or self._usual

    def rest(self, seconds: float) -> None:
        """The person was told of a pause: the wait begins after it."""
        self._begin(self._loop.time() + seconds)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Others are waited for in here."""
        self._stop()
        try:
            yield
        finally:
            self._begin(self._loop.time())

    def _begin(self, moment: float) -> None:
        self._stop()
        self._since = moment
        self._set_timer()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self) -> None:
        self._timer = self._loop.call_at(self._due(), self._look)

    def _due(self) -> float:
        """When the next note is due, if nothing comes until then."""
        silent = self._since + self._patience
        if not self._told:
            return silent
        return max(silent, self._last_told + GAPS[min(self._told, len(GAPS) - 1)] * self._patience)

    def _look(self) -> None:
        now = self._loop.time()
        if self._is_asked():
            self._since = now
        elif now >= self._due():
            self._told += 1
            self._last_told = now
            self._journal.append(StillWaiting(self._what, round(now - self._since), self._call_id))
        self._set_timer()


class HeardJournal:
    """A journal for a running call: what the call shows is seen, so that it is not waited for in silence."""

    def __init__(self, journal: Journal, wait: Wait) -> None:
        self._journal = journal
        self._wait = wait

    @property
    def has_room(self) -> bool:
        return self._journal.has_room

    def append(self, event: Event) -> None:
        if isinstance(event, CallProgressed):
            self._wait.heard()
        self._journal.append(event)

    async def record(self, *events: Event) -> None:
        await self._journal.record(*events)

    async def room(self) -> None:
        await self._journal.room()
