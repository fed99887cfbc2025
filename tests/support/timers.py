"""The timers that a piece of work has left behind: one that fires later hits whatever its task does by then."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class _NotingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self.noted: list[asyncio.TimerHandle] = []

    def call_at(self, when: float, callback: Callable[..., object], *args: Any, context: Any = None) -> Any:
        handle = super().call_at(when, callback, *args, context=context)
        self.noted.append(handle)
        return handle


def timers_left(work: Callable[[], Coroutine[Any, Any, object]]) -> list[str]:
    """The timers that still run once the work is done. Time limits in it are to be long, so that none expires."""

    async def observed() -> list[str]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, _NotingLoop)
        await work()
        return [repr(timer) for timer in loop.noted if not timer.cancelled() and timer.when() > loop.time()]

    with asyncio.Runner(loop_factory=_NotingLoop) as runner:
        return runner.run(observed())
