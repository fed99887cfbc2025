"""Where the subagents of a session work: a few at the same time, each known by its errand while it is there."""

import asyncio

from crow.tools.task import Errand

MOST_AT_ONCE = 4
"""The others wait for a place."""


class Places:
    def __init__(self) -> None:
        self._free = asyncio.Semaphore(MOST_AT_ONCE)
        self._taken: dict[str, Errand] = {}
        """By the call that the subagent works for."""

    async def take(self, errand: Errand) -> None:
        """Waits until there is one."""
        await self._free.acquire()
        self._taken[errand.call_id] = errand

    def leave(self, errand: Errand) -> None:
        del self._taken[errand.call_id]
        self._free.release()

    def errand_of(self, call_id: str) -> Errand | None:
        """Of the subagent that makes this call; None if none of those at work does."""
        return next((errand for errand in self._taken.values() if errand.makes(call_id)), None)
