"""Those who take down what happens: a sink for a real journal, and a journal for whoever needs no more than that."""

import asyncio
from collections.abc import Callable

from crow.events import Event


class RecordingSink:
    """Subscribed to a journal, it keeps what it is told."""

    has_room = True

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._changed = asyncio.Event()

    def take(self, event: Event) -> None:
        self.events.append(event)
        self._changed.set()

    async def until(self, wanted: Callable[[Event], bool]) -> None:
        """Waits for such an event, past or to come."""
        while not any(map(wanted, self.events)):
            self._changed.clear()
            await self._changed.wait()

    async def room(self) -> None:
        pass


class RecordingJournal:
    """A journal that stores nothing and tells nobody."""

    has_room = True

    def __init__(self) -> None:
        self.events: list[Event] = []

    def append(self, event: Event) -> None:
        self.events.append(event)

    async def record(self, *events: Event) -> None:
        for event in events:
            self.append(event)

    async def room(self) -> None:
        pass
