"""The calls that a server is working on: when each is over, and what is left at once then."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from crow.results import ToolKind
from crow.timeouts import Timeout

T = TypeVar("T")

_left: "set[asyncio.Future[Any]]" = set()
"""What nobody waits for any more, and is still ending: the loop alone would not keep it."""


class AskedIn(msgspec.Struct, frozen=True):
    """The call in which a server asks something, as the person sees it; empty if it is in none."""

    call_id: str = ""
    title: str = ""
    kind: ToolKind = ToolKind.OTHER


class RunningCall:
    def __init__(self, asked_in: AskedIn, clock: Timeout) -> None:
        self.asked_in = asked_in
        self.clock = clock
        self.over = asyncio.Event()


class RunningCalls:
    """`limit` is how many seconds a call may take."""

    def __init__(self, limit: Callable[[], float]) -> None:
        self._limit = limit
        self._running: list[RunningCall] = []
        self._questions = 0

    @contextmanager
    def running(self, asked_in: AskedIn, clock: Timeout) -> Generator[None]:
        call = RunningCall(asked_in, clock)
        self._running.append(call)
        try:
            yield
        finally:
            self._running.remove(call)
            call.over.set()

    def now(self) -> tuple[RunningCall, ...]:
        """A server asks in one of these: it does not say in which."""
        return tuple(self._running)

    @contextmanager
    def standing_still(self) -> Generator[None]:
        """While the person is asked, the clock of no call runs."""
        self._questions += 1
        self._set_clocks(None)
        try:
            yield
        finally:
            self._questions -= 1
            if not self._questions:
                self._set_clocks(asyncio.get_running_loop().time() + self._limit())

    def _set_clocks(self, end: float | None) -> None:
        for call in self._running:
            if not call.clock.expired():
                call.clock.reschedule(end)


async def unless_over(work: Awaitable[T], calls: Sequence[RunningCall]) -> T | None:
    """What comes of the work; None if all these calls were over before, and the work is cancelled."""
    working = asyncio.ensure_future(work)
    ending = asyncio.gather(*(call.over.wait() for call in calls))
    try:
        await asyncio.wait([working, ending], return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        ending.cancel()


async def left_at_once(work: Awaitable[T]) -> T:
    """Cancelling does not wait for the work's end: to tell a server so, the library waits for one that never reads."""
    working = asyncio.ensure_future(work)
    try:
        await asyncio.wait([working])
        return working.result()
    finally:
        if not working.done():
            working.cancel()
            _left.add(working)
            working.add_done_callback(_forget)


def _forget(work: "asyncio.Future[Any]") -> None:
    _left.discard(work)
    if not work.cancelled():
        work.exception()  # looked at, so that nobody reports it
