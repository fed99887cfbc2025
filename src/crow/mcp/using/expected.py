"""How long a prompt waits for a server: until it is ready or has failed, and no longer than it may take to start."""

import asyncio
from collections.abc import Callable

ENDING = 1.0
"""Seconds in which one that failed at its start should be gone, so that the cause can be told before work goes on."""


class Expected:
    """`limit` gives the seconds; `on_late` is told when they are over."""

    def __init__(self, limit: Callable[[], float], on_late: Callable[[], None]) -> None:
        self._limit = limit
        self._on_late = on_late
        self._settled = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_settled(self) -> bool:
        return self._settled.is_set()

    async def settled(self) -> None:
        await self._settled.wait()

    def begin(self) -> None:
        self._settled.clear()
        self._set_timer(self._limit(), self._be_late)

    def settle(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._settled.set()

    def settle_soon(self) -> None:
        """The server failed, and is being ended: nobody waits for that."""
        if not self.is_settled:
            self._set_timer(ENDING, self.settle)

    def _be_late(self) -> None:
        self._on_late()
        self.settle()

    def _set_timer(self, seconds: float, action: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, action)
