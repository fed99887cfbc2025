"""Decides how long a prompt waits for an MCP server that starts, and when one that failed is started again, or given
up.
"""

import asyncio
from collections.abc import Callable

from crow.mcp.client.server_errors import ServerFailed

ENDING = 1.0
"""Seconds in which one that failed at its start should be gone, so that the cause can be told before work goes on."""
PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
"""Seconds before each further try; after the last one the server is given up until somebody asks for it."""
STABLE_AFTER = 60.0
"""Seconds that a server must have run for its failures to be forgotten."""


class StartupWait:
    """A prompt waits until the server is ready or has failed, and no longer than the server may take to start.

    `limit` gives the seconds; `on_late` is told when they are over.
    """

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


class Retries:
    """A server that failed is started again after ever longer pauses, and not for ever."""

    def __init__(self) -> None:
        self._failures = 0

    @property
    def is_first(self) -> bool:
        """Whether the failure that comes now is the first of its row."""
        return self._failures == 0

    def forget(self) -> None:
        self._failures = 0

    def has_run(self, seconds: float) -> None:
        if seconds > STABLE_AFTER:
            self.forget()

    def next_pause(self, failure: ServerFailed) -> float | None:
        """Seconds until the server is started again; None if it is given up."""
        if failure.lasting or self._failures >= len(PAUSES):
            return None
        self._failures += 1
        return PAUSES[self._failures - 1]
