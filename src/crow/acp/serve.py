"""Serving one client until it leaves or we are told to go."""

import asyncio
import signal
from collections.abc import Mapping

from crow.acp.agent import Agent

FAREWELL = 1.5
"""Seconds that turns and children get to end; clients lose patience after two."""


async def serve(reader: int, writer: int, home: str, environ: Mapping[str, str]) -> int:
    """The exit status: 0 when the client left, 128 + n after signal n."""
    loop = asyncio.get_running_loop()
    agent = Agent(home, environ)
    connection = agent.connect(reader, writer)
    told_to_go: asyncio.Future[int] = loop.create_future()

    def go(number: int) -> None:
        if not told_to_go.done():
            told_to_go.set_result(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        loop.add_signal_handler(number, go, number)
    serving = loop.create_task(connection.run())
    await asyncio.wait([serving, told_to_go], return_when=asyncio.FIRST_COMPLETED)
    try:
        async with asyncio.timeout(FAREWELL):
            await agent.close()
            await connection.close()
    except TimeoutError:
        pass  # whoever still hangs is left behind by the exit
    return told_to_go.result() if told_to_go.done() else 0
