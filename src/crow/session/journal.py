"""A session's journal: the one place where what happens is written, and from which everyone learns of it."""

from typing import Protocol

from crow.events import Event
from crow.turn.history import History


class Sink(Protocol):
    """Someone who wants to know what happens. `has_room` is false while it cannot keep up."""

    @property
    def has_room(self) -> bool: ...

    def take(self, event: Event) -> None: ...

    async def room(self) -> None: ...


class SessionJournal:
    """Keeps the model's history up to date and tells every sink, in this order."""

    def __init__(self) -> None:
        self.history = History()
        self._sinks: list[Sink] = []

    def subscribe(self, sink: Sink) -> None:
        self._sinks.append(sink)

    def append(self, event: Event) -> None:
        self.history.apply(event)
        for sink in self._sinks:
            sink.take(event)

    @property
    def has_room(self) -> bool:
        return all(sink.has_room for sink in self._sinks)

    async def room(self) -> None:
        for sink in self._sinks:
            await sink.room()
