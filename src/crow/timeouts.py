"""Time limits in the place of `asyncio.timeout`, which expire as a TimeoutError also while their task is being
cancelled.

Before Python 3.11.4, `asyncio.timeout` raises a TimeoutError only in a task that nobody has asked to stop. In one that
cleans up after a cancel it raises CancelledError when time is up, and the rest of the clean-up is skipped: a program
that did not end by itself was never killed. Debian 12 has Python 3.11.2. Nothing else in Crow uses `asyncio.timeout`.
"""

import asyncio
from types import TracebackType
from typing import Self


class Timeout:
    """A limit for the body of an `async with`: TimeoutError when it expires, CancelledError if someone cancels."""

    def __init__(self, deadline: float | None) -> None:
        self._timeout = asyncio.timeout_at(deadline)  # noqa: TID251 -- its one use
        self._task: asyncio.Task[object] | None = None
        self._cancels_before = 0

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._task = asyncio.current_task()
        self._cancels_before = self._task.cancelling() if self._task else 0
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._timeout.__aexit__(kind, error, trace)  # takes its own cancel back
        if isinstance(error, asyncio.CancelledError) and self.expired() and not self._cancelled_since():
            raise TimeoutError from error

    def _cancelled_since(self) -> bool:
        return self._task is not None and self._task.cancelling() > self._cancels_before

    def expired(self) -> bool:
        return self._timeout.expired()

    def reschedule(self, deadline: float | None) -> None:
        """Moves the limit to that moment of the event loop's clock, or takes it away."""
        self._timeout.reschedule(deadline)


def timeout(seconds: float | None) -> Timeout:
    """A limit of so many seconds from now; None stands for no limit."""
    return timeout_at(None if seconds is None else asyncio.get_running_loop().time() + seconds)


def timeout_at(deadline: float | None) -> Timeout:
    """A limit at that moment of the event loop's clock; None stands for no limit."""
    return Timeout(deadline)
