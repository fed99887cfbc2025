"""Reads everything that a command writes, on a thread of its own, and gives excerpts of it that are readable.

What is kept of it is the business of `terminal_buffer.py`. A flood costs what reading and dropping costs.
"""

import asyncio
import contextlib
import errno
import os
import select
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from crow.commands import terminal_text as texts
from crow.commands.pty import Channel, read_some
from crow.commands.terminal_buffer import KeptOutput, OutputBuffer, RawOutput, View, WholeOutput
from crow.files.output_folder import OutputFolder
from crow.threads import start_thread

CHUNK = 64 * 1024
"""What a pipe holds; a terminal holds less."""
WINDOW = 0.05
BURST = 4 * 2**20
"""Bytes that are read in one window; a command that writes faster waits for its end. About 80 MB a second."""
GLIMPSE = 2000


class OutputExcerpt(NamedTuple):
    text: str
    truncated: bool
    end: int
    lines: int
    """Of all output, from its beginning on."""


class Recording:
    """Reads a command's output on a thread of its own: neither a flood nor a slow disk can hold up the event loop."""

    def __init__(
        self, channel: Channel, folder: OutputFolder, name: str, limit: int, on_growth: Callable[[], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._limit = limit
        self._on_growth = on_growth
        self._growth_is_told = False
        self.kept = KeptOutput(folder, f"{name.removesuffix('.txt')}.raw")
        self._buffer = OutputBuffer(WholeOutput(folder, name, limit))
        self.raw = RawOutput(self._buffer)
        self._output = channel.reader
        self._orders, self._orderer = os.pipe()
        self._drained = asyncio.Event()
        self._stopped = False
        self._is_started = False

    def start(self) -> None:
        """OSError if the system gives no thread."""
        if start_thread(self._run, "crow-terminal") is None:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        self._is_started = True

    async def drain(self) -> None:
        """Returns when all that had been written by now has been read."""
        self._order(b"d")
        await self._drained.wait()

    def stop(self) -> None:
        """Reads no further. What was kept in memory can still be asked for."""
        if self._stopped:
            return
        self._order(b"s")
        self._stopped = True
        if not self._is_started:
            for descriptor in (self._output, self._orders):
                os.close(descriptor)
            self.kept.close()
        os.close(self._orderer)

    def expect_growth(self) -> None:
        """From now on `on_growth` is called again, once, when there is more."""
        self._growth_is_told = False

    async def excerpt(self, since: int) -> OutputExcerpt:
        """What came after a position, within the limit."""
        view = self._buffer.view(since)
        readable = partial(_readable, view, self._limit, self._buffer.file.where())
        is_short = len(view.beginning) + len(view.end_part) <= texts.QUICK
        text, truncated = readable() if is_short else await asyncio.to_thread(readable)
        return OutputExcerpt(text, truncated, view.end, view.lines)

    def glimpse(self) -> str:
        view = self._buffer.newest(4 * GLIMPSE)
        text = texts.without_escapes(texts.decode_end(view.beginning))
        if view.missing == 0 and len(text) <= GLIMPSE:
            return text
        return f"[… {view.lines:,} lines so far; the last of them:]\n{texts.last_part(text, GLIMPSE)}"

    def _order(self, order: bytes) -> None:
        if not self._stopped:
            with contextlib.suppress(OSError):  # the thread has ended by itself
                os.write(self._orderer, order)

    # --- on the thread

    def _run(self) -> None:
        try:
            self._pump()
        finally:
            self._buffer.file.close()
            self.kept.close()
            os.close(self._output)
            os.close(self._orders)
            self._tell(self._drained.set)

    def _pump(self) -> None:
        sources = select.poll()
        sources.register(self._output, select.POLLIN)
        sources.register(self._orders, select.POLLIN)
        pace = _Pace()
        undrained = -1  # bytes that may still be from before the order to drain; -1 without such an order
        while True:
            # While draining, nothing to be read is the answer: others may hold the other end open for ever.
            ready = {descriptor for descriptor, _ in sources.poll(0 if undrained > 0 else None)}
            if self._orders in ready:
                if b"s" in os.read(self._orders, 16):
                    return
                undrained = CHUNK
            data = read_some(self._output, CHUNK) if self._output in ready else None
            if data == b"":
                return
            if data:
                self._take(data)
                pace.keep(len(data))
                undrained = max(0, undrained - len(data)) if undrained >= 0 else -1
            if undrained == 0 or (undrained > 0 and not data):
                undrained = -1
                self._tell(self._drained.set)

    def _take(self, data: bytes) -> None:
        self._buffer.add(data)
        self.kept.add(data)
        if not self._growth_is_told:
            self._growth_is_told = True
            self._tell(self._on_growth)

    def _tell(self, callback: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants to know any more
            self._loop.call_soon_threadsafe(callback)


class _Pace:
    """Lets a flood through at a speed that leaves the machine to others."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._read = 0

    def keep(self, size: int) -> None:
        self._read += size
        if self._read >= BURST:
            time.sleep(max(0, self._begun + WINDOW - time.monotonic()))
            self._begun, self._read = time.monotonic(), 0


def _readable(view: View, limit: int, where: str) -> tuple[str, bool]:
    if view.missing:
        pieces = (
            texts.first_part(texts.without_escapes(texts.decode_beginning(view.beginning)), limit // 2),
            texts.last_part(texts.without_escapes(texts.decode_end(view.end_part)), limit // 2),
        )
    else:
        text = texts.without_escapes(texts.decode_end(view.beginning + view.end_part))
        pieces = texts.split_to_fit(text, limit)
        if pieces is None:
            return text, False
    size = len(view.beginning) + view.missing + len(view.end_part) - sum(len(piece.encode()) for piece in pieces)
    note = f"{texts.size_text(size)} left out here" + (f"; {where}" if where else "")
    return texts.joined(pieces, note), True
