"""Serving until the client leaves or we are told to go, and then leaving nothing behind."""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from crow.errors import CrowError
from crow.timeouts import timeout

logger = logging.getLogger(__name__)

FAREWELL = 1.5
"""Seconds that turns, calls and commands get to end; clients lose patience after two."""


async def serve_until_told(serving: Coroutine[Any, Any, None], close: Callable[[], Awaitable[None]]) -> int:
    """The exit status: 0 when the client left, 128 + n after signal n, 1 if serving failed, which is said or logged."""
    loop = asyncio.get_running_loop()
    told_to_go: asyncio.Future[int] = loop.create_future()

    def go(number: int) -> None:
        if not told_to_go.done():
            told_to_go.set_result(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        loop.add_signal_handler(number, go, number)
    task = loop.create_task(serving)
    await asyncio.wait([task, told_to_go], return_when=asyncio.FIRST_COMPLETED)
    try:
        async with timeout(FAREWELL):
            await close()
    except TimeoutError:
        pass  # whoever still hangs is left behind by the exit
    if told_to_go.done():
        return told_to_go.result()
    error = task.exception()
    if isinstance(error, CrowError):
        from crow.cli.failure import report

        return report(error)
    if error is not None:
        logger.error("serving ended", exc_info=error)
        return 1
    return 0
