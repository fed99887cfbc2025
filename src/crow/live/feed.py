"""What one face is sent of its session, past and present without a gap; cuts off a client that does not read, and later
catches it up.

The place between what was and what comes is exact: a mark in the log and a subscription to the journal are made in
one step. What comes is held back until what was has been shown.

A face that does not keep up while others watch is cut off, so that it holds up nobody and fills no memory. When it
reads again it gets what it has missed, out of the store.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from crow.errors import CrowError
from crow.events import Event, Notice
from crow.live.face import FaceSink
from crow.session.journal import SessionJournal
from crow.session.persistence import Archive
from crow.store.base import Mark

logger = logging.getLogger(__name__)

MOST_UNSENT = 4 * 1024 * 1024
"""Bytes that a face may leave unread while others watch, before it is cut off."""
LONGEST_SILENCE = 5.0
"""Seconds for which it may have no room, under the same condition."""
MOST_HELD = 2000
"""Events that are held back for a face while it is shown what was; if more come, it is shown those from the store."""
BREATH = 32
"""Events of the past after which others get their turn."""


class SessionStream(msgspec.Struct, frozen=True):
    """Where a face learns of a session: of what comes, and of what was."""

    journal: SessionJournal
    archive: Archive


class _Subscription:
    """A sink of the journal: holds events back until it is opened, then passes them on."""

    def __init__(self, sink: FaceSink, after_each: Callable[[], None]) -> None:
        self._sink = sink
        self._after_each = after_each
        self._held: list[Event] | None = []
        self._is_closed = False
        self.has_overflowed = False

    @property
    def has_room(self) -> bool:
        return self._sink.has_room

    async def room(self) -> None:
        await self._sink.room()

    def take(self, event: Event) -> None:
        if self._is_closed or self.has_overflowed:
            return
        if self._held is None:
            self._sink.take(event)
            self._after_each()
        elif len(self._held) < MOST_HELD:
            self._held.append(event)
        else:
            self.has_overflowed = True
            self._held.clear()

    def open(self) -> None:
        held, self._held = self._held or [], None
        for event in held:
            self._sink.take(event)

    def close(self) -> None:
        self._is_closed = True


class Feed:
    """`is_shared` says whether other faces watch the session."""

    def __init__(self, sink: FaceSink, stream: SessionStream, is_shared: Callable[[], bool]) -> None:
        self._sink = sink
        self._stream = stream
        self._is_shared = is_shared
        self._entered = stream.journal.mark()
        self._passing = stream.journal.passing.events()
        self._subscription = self._subscribe()
        self._slow_since: float | None = None
        self._catching_up: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """The face has been there from the beginning: there is nothing to show it first."""
        self._subscription.open()

    async def join(
        self, show: Callable[[Sequence[Event]], Awaitable[None]], past: Sequence[Event] | None = None
    ) -> None:
        """Has all that happened before the face entered shown, then goes on with what comes.

        `past` is what happened, if that is known; else it is read. StorageFailed if it cannot be.
        """
        await show(await self._stream.archive.section(None, self._entered) if past is None else past)
        await self._go_on(self._entered, self._passing)

    def close(self) -> None:
        """From now on nothing reaches the face."""
        self._stream.journal.unsubscribe(self._subscription)
        self._subscription.close()
        self._sink.close()
        if self._catching_up is not None:
            self._catching_up.cancel()

    def _subscribe(self) -> _Subscription:
        subscription = _Subscription(self._sink, self._check_pace)
        self._stream.journal.subscribe(subscription)
        return subscription

    async def _go_on(self, since: Mark, passing: Sequence[Event]) -> None:
        """Opens the subscription. What was too much to be held back is read from the store first."""
        while self._subscription.has_overflowed:
            self._stream.journal.unsubscribe(self._subscription)
            until = self._stream.journal.mark()
            self._subscription = self._subscribe()
            passing = self._stream.journal.passing.events()
            await play(self._sink, await self._stream.archive.section(since, until))
            since = until
        for event in passing:
            self._sink.take(event)
        self._subscription.open()

    # --- a face that does not keep up

    def _check_pace(self) -> None:
        if self._sink.has_room:
            self._slow_since = None
            return
        now = asyncio.get_running_loop().time()
        self._slow_since = self._slow_since or now
        is_late = self._sink.unsent > MOST_UNSENT or now - self._slow_since > LONGEST_SILENCE
        if is_late and self._is_shared():
            self._cut_off()

    def _cut_off(self) -> None:
        self._slow_since = None
        # What was added until now still comes, all of it before the mark.
        self._stream.journal.unsubscribe(self._subscription)
        missed = self._stream.journal.mark()
        self._catching_up = asyncio.get_running_loop().create_task(self._catch_up(missed))

    async def _catch_up(self, since: Mark) -> None:
        await self._sink.room()
        until = self._stream.journal.mark()
        self._subscription = self._subscribe()
        passing = self._stream.journal.passing.events()
        try:
            await play(self._sink, await self._stream.archive.section(since, until))
            await self._go_on(until, passing)
        except CrowError as error:
            logger.warning("a face that fell behind could not be shown what it missed: %s", error)
            self._sink.take(Notice("warning", f"Some of what happened is not shown here. {error}"))
            with contextlib.suppress(CrowError):
                self._subscription.open()


async def play(sink: FaceSink, events: Sequence[Event]) -> None:
    """Has a sink take events of the past, at the client's pace."""
    for number, event in enumerate(events, 1):
        sink.take(event)
        if not sink.has_room:
            await sink.room()
        elif number % BREATH == 0:
            await asyncio.sleep(0)
