"""A session's journal: the one place where what happens is written, and from which everyone learns of it."""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Protocol

from crow.errors import StoreSilent
from crow.events import Event, StillWaiting, TurnEnded
from crow.store.base import EventLog
from crow.turn.history import History
from crow.turn.waits import PATIENCE, Wait

SHORTEST_PATIENCE = 1.0
"""Seconds. A disk that takes a moment is nothing to speak of, however impatient the person is."""


HURRY = 2.0
"""Seconds that whatever is still to be stored gets, all in all, once the person has ended the turn."""


class Sink(Protocol):
    """A subscriber to the events of a session. `has_room` is false while it cannot keep up."""

    @property
    def has_room(self) -> bool: ...

    def take(self, event: Event) -> None: ...

    async def room(self) -> None: ...


class _Entry:
    """An event that the sinks have not received yet."""

    __slots__ = ("event", "ready")

    def __init__(self, event: Event, *, ready: bool) -> None:
        self.event = event
        self.ready = ready


class SessionJournal:
    """Hands each event to the store, then keeps the model's history up to date, then tells every sink.

    An event that must be stored first holds back those that come after it, so that everyone learns of them in the
    order in which they are stored. The person is told of a wait for the store after `patience` seconds.
    """

    def __init__(self, log: EventLog, patience: float = PATIENCE) -> None:
        self.history = History()
        self._log = log
        self._sinks: list[Sink] = []
        self._untold: deque[_Entry] = deque()
        self._patience = max(patience, SHORTEST_PATIENCE)
        self._deadline: float | None = None

    def subscribe(self, sink: Sink) -> None:
        self._sinks.append(sink)

    def remember(self, past: Iterable[Event]) -> None:
        """Applies stored events to the model's history, and tells no sink of them."""
        for event in past:
            self.history.apply(event)

    def append(self, event: Event) -> None:
        self._log.add(event)
        if self._untold and not isinstance(event, StillWaiting):  # which is of use now or never
            self._untold.append(_Entry(event, ready=True))
        else:
            self._tell(event)

    async def record(self, *events: Event) -> None:
        # Up to the wait this is one step: who is cancelled in it has recorded all of them.
        for event in events:
            self._log.add(event)
        stored = self._log.store_all(
            full=any(isinstance(event, TurnEnded) for event in events), within=self._time_left()
        )
        if stored.done() and not self._untold:
            for event in events:
                self._tell(event)
        else:
            entries = [_Entry(event, ready=False) for event in events]
            self._untold.extend(entries)
            # Whoever waits here may be cancelled; what is being stored is told of all the same, once it is.
            stored.add_done_callback(lambda _: self._tell_ready(entries))
        with Wait(self, "the session to be stored", "", self._patience):
            try:
                await asyncio.shield(stored)
            except StoreSilent:
                # Nobody waits for the disk any longer, so nothing is held back for it: the turn ends in order.
                self._tell_ready(list(self._untold))
                raise

    def hurry(self) -> None:
        """A cancelled turn ends within moments, whatever its disk does: what is not stored by then is stored later.

        Until `take_time`, `record` fails with StoreSilent when time is up."""
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + HURRY

    def take_time(self) -> None:
        self._deadline = None

    def _time_left(self) -> float | None:
        return None if self._deadline is None else max(0.0, self._deadline - asyncio.get_running_loop().time())

    async def store_all(self) -> None:
        """Waits until everything so far is stored; StorageFailed if it cannot be."""
        await asyncio.shield(self._log.store_all())

    async def release(self) -> None:
        """Stores what is left and gives the log back. StorageFailed if it cannot be stored."""
        await self._log.release()

    @property
    def has_room(self) -> bool:
        return all(sink.has_room for sink in self._sinks)

    async def room(self) -> None:
        for sink in self._sinks:
            await sink.room()

    def _tell_ready(self, entries: Sequence[_Entry]) -> None:
        for entry in entries:
            entry.ready = True
        while self._untold and self._untold[0].ready:
            self._tell(self._untold.popleft().event)

    def _tell(self, event: Event) -> None:
        self.history.apply(event)
        for sink in self._sinks:
            sink.take(event)
