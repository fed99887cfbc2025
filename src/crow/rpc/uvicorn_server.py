"""uvicorn as a part of a program of ours: it serves until it is cancelled, and leaves signals alone."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Generator

import uvicorn


class UvicornServer(uvicorn.Server):
    """`on_start` is called when it listens."""

    def __init__(self, config: uvicorn.Config, on_start: Callable[[], None] = lambda: None) -> None:
        super().__init__(config)
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_start()

    async def main_loop(self) -> None:
        """Until it is cancelled: uvicorn's own looks ten times a second whether it is to end, and what the date is."""
        await asyncio.get_running_loop().create_future()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """They are ours: turns and commands have to be ended before the process is."""
        yield
