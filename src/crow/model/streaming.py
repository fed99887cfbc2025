"""Reads the body of an answer chunk by chunk: with a limit for silence, and not too often where many are read."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Self

import httpx2

FEW_STREAMS = 25
READS_A_SECOND = 4_500
"""Of all streams together, once they are more than a few."""


class Silence(httpx2.ReadTimeout):
    def __init__(self, seconds: float) -> None:
        super().__init__(f"nothing for {seconds:g} s")
        self.seconds = seconds


class SilenceLimit:
    """The longest silence that a stream may keep: one timer for all of its chunks, as one for each costs a fifth more.

    Raises Silence out of its `with` block when the limit expires while a chunk is awaited.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._since: float | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancels_before = 0
        self._timer: asyncio.TimerHandle | None = None
        self._expired = False

    def allow(self, seconds: float) -> None:
        """Another limit from here on; none if the stream has ended, as there is nothing left to wait for."""
        self._seconds = seconds
        if self._timer:
            self._timer.cancel()
            self._look()

    def begin(self) -> None:
        """A chunk is awaited from now on."""
        self._since = self._loop.time()

    def end(self) -> None:
        """A chunk has come; whoever works on it may take as long as it takes."""
        self._since = None

    def __enter__(self) -> Self:
        self._task = asyncio.current_task()
        self._cancels_before = self._task.cancelling() if self._task else 0
        self.begin()
        self._look()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._expired and self._task and self._task.uncancel() <= self._cancels_before:
            raise Silence(self._seconds) from error

    def _look(self) -> None:
        now = self._loop.time()
        due = (now if self._since is None else self._since) + self._seconds
        if due > now:
            self._timer = self._loop.call_at(due, self._look)
        elif self._task:
            self._expired = True
            self._task.cancel()


class _ReadPace:
    """How often streams are read while there are many of them.

    A read costs several times what a token does, and with two hundred streams each round of the event loop would be so
    long that a cancel, which takes a dozen of them, came after most of a second. What waits meanwhile comes with the
    next read. Few streams are read at once.
    """

    def __init__(self) -> None:
        self._streams = 0
        self.gap = 0.0
        """Seconds to wait after a read."""

    def __enter__(self) -> None:
        self._count(1)

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._count(-1)

    def _count(self, change: int) -> None:
        self._streams += change
        self.gap = self._streams / READS_A_SECOND if self._streams > FEW_STREAMS else 0.0


_PACE = _ReadPace()


class _LoopStep:
    """Whether the event loop has gone on since `begin`, as it does with every read from a socket."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.is_over = True

    def begin(self) -> None:
        self.is_over = False
        self._loop.call_soon(self._end)

    def _end(self) -> None:
        self.is_over = True


async def chunks_of(response: httpx2.Response, silence: SilenceLimit) -> AsyncGenerator[bytes]:
    # The library would start a timer for each chunk.
    response.request.extensions["timeout"]["read"] = None
    encoded = "content-encoding" in response.headers  # asked for none, but a proxy may know better
    source = response.aiter_bytes() if encoded else response.aiter_raw()
    async with contextlib.aclosing(source):
        step = _LoopStep()
        with silence, _PACE:
            async for chunk in source:
                silence.end()
                yield chunk
                if _PACE.gap and step.is_over:  # else the chunk came with the read before
                    await asyncio.sleep(_PACE.gap)
                    step.begin()
                silence.begin()
