"""A session's journal: the one place where what happens is written, and from which everyone learns of it."""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Protocol

from crow.events import Event, TurnEnded
from crow.turn.history import History


class Sink(Protocol):
    """Someone who wants to know what happens. `has_room` is false while it cannot keep up."""

    @property
    def has_room(self) -> bool: ...

    def take(self, event: Event) -> None: ...

    async def room(self) -> None: ...


class Record(Protocol):
    """Where a session's events are kept: the store's, or nowhere (`Unkept`)."""

    def add(self, event: Event) -> None:
        """Takes the event, to be stored within a second. Costs next to nothing and never fails."""
        ...

    def kept(self, *, full: bool = False) -> "asyncio.Future[None]":
        """Done when everything that was added so far is on disk; fails with StorageFailed if it cannot be.

        What could not be stored is kept in memory and tried again with the next call. `full`: it must also survive
        a power cut.
        """
        ...

    async def release(self) -> None:
        """Stores what is left, and lets go: somebody else may go on with the session."""
        ...


class Unkept:
    """For a session whose folder cannot be written: it works, and nothing of it is kept."""

    def add(self, event: Event) -> None:
        pass

    def kept(self, *, full: bool = False) -> "asyncio.Future[None]":
        future = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return future

    async def release(self) -> None:
        pass


class _Entry:
    """An event that not everyone has been told of yet."""

    __slots__ = ("event", "ready")

    def __init__(self, event: Event, *, ready: bool) -> None:
        self.event = event
        self.ready = ready


class SessionJournal:
    """Hands each event to the store, then keeps the model's history up to date, then tells every sink.

    An event that must be stored first holds back those that come after it, so that everyone learns of them in the
    order in which they are stored.
    """

    def __init__(self, record: Record | None = None) -> None:
        self.history = History()
        self._record = record or Unkept()
        self._sinks: list[Sink] = []
        self._untold: deque[_Entry] = deque()

    def subscribe(self, sink: Sink) -> None:
        self._sinks.append(sink)

    def remember(self, past: Iterable[Event]) -> None:
        """What is stored already: the model knows of it again, and nobody is told."""
        for event in past:
            self.history.apply(event)

    def append(self, event: Event) -> None:
        self._record.add(event)
        if self._untold:
            self._untold.append(_Entry(event, ready=True))
        else:
            self._tell(event)

    async def record(self, event: Event) -> None:
        self._record.add(event)
        stored = self._record.kept(full=isinstance(event, TurnEnded))
        if stored.done() and not self._untold:
            self._tell(event)
        else:
            entry = _Entry(event, ready=False)
            self._untold.append(entry)
            # Whoever waits here may be cancelled; what is being stored is told of all the same, once it is.
            stored.add_done_callback(lambda _: self._tell_ready(entry))
        await asyncio.shield(stored)

    async def kept(self) -> None:
        """Waits until everything so far is stored; StorageFailed if it cannot be."""
        await asyncio.shield(self._record.kept())

    async def release(self) -> None:
        """The last word: stores what is left. StorageFailed if it cannot be."""
        await self._record.release()

    @property
    def has_room(self) -> bool:
        return all(sink.has_room for sink in self._sinks)

    async def room(self) -> None:
        for sink in self._sinks:
            await sink.room()

    def _tell_ready(self, entry: _Entry) -> None:
        entry.ready = True
        while self._untold and self._untold[0].ready:
            self._tell(self._untold.popleft().event)

    def _tell(self, event: Event) -> None:
        self.history.apply(event)
        for sink in self._sinks:
            sink.take(event)
