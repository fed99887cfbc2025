"""Everything a command writes, kept as far as it is worth keeping.

In memory the beginning and the end, as bytes; on disk, once there is more than the model gets to see, the whole of
it up to a bound. Bytes are only looked at when somebody wants to read them, so a flood costs what reading and
dropping costs.
"""

import asyncio
import contextlib
import os
import select
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from crow.workspace import terminal_text as texts
from crow.workspace.failures import reason
from crow.workspace.terminals import OutputFolder

BEGINNING = 64 * 1024
END = 256 * 1024
"""More than the model gets: colours and progress bars shrink to a fraction of what was written."""
LARGEST_FILE = 100_000_000
CHUNK = 64 * 1024
"""What a pipe holds."""
WINDOW = 0.05
BURST = 4 * 2**20
"""Bytes that are read in one window; a command that writes faster waits for its end. About 80 MB a second."""
GLIMPSE = 2000


class OutputExcerpt(NamedTuple):
    text: str
    truncated: bool
    end: int


class Recording:
    """Reads a pipe on a thread of its own: neither a flood nor a slow disk can hold up the event loop."""

    def __init__(self, folder: OutputFolder, name: str, limit: int, on_growth: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._limit = limit
        self._on_growth = on_growth
        self._growth_is_told = False
        self._buffer = OutputBuffer(_File(folder, name, limit))
        self._output, self.writer = os.pipe()
        self._orders, self._orderer = os.pipe()
        self._drained = asyncio.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="crow-terminal", daemon=True)

    def start(self) -> None:
        """Once the command has the writing end of the pipe: ours is closed, so that its end can be seen."""
        os.close(self.writer)
        self.writer = -1
        self._thread.start()

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
        if self._thread.ident is None:
            for descriptor in (self.writer, self._output, self._orders):
                os.close(descriptor)
        os.close(self._orderer)

    async def excerpt(self, since: int) -> OutputExcerpt:
        """What came after a position, within the limit."""
        view = self._buffer.view(since)
        readable = partial(_readable, view, self._limit, self._buffer.file.where())
        is_short = len(view.beginning) + len(view.end_part) <= texts.SLICE
        text, truncated = readable() if is_short else await asyncio.to_thread(readable)
        return OutputExcerpt(text, truncated, view.end)

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
            # While draining, an empty pipe is the answer: others may hold its other end open for ever.
            ready = {descriptor for descriptor, _ in sources.poll(0 if undrained > 0 else None)}
            if self._orders in ready:
                if b"s" in os.read(self._orders, 16):
                    return
                undrained = CHUNK
            if self._output in ready:
                data = os.read(self._output, CHUNK)
                if not data:
                    return
                self._take(data)
                pace.keep(len(data))
                undrained = max(0, undrained - len(data)) if undrained >= 0 else -1
            if undrained == 0 or (undrained > 0 and self._output not in ready):
                undrained = -1
                self._tell(self._drained.set)

    def _take(self, data: bytes) -> None:
        self._buffer.add(data)
        if not self._growth_is_told:
            self._growth_is_told = True
            self._tell(self._grown)

    def _tell(self, callback: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants to know any more
            self._loop.call_soon_threadsafe(callback)

    def _grown(self) -> None:
        self._growth_is_told = False
        self._on_growth()


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


# --- what is kept


class View(NamedTuple):
    beginning: bytes
    end_part: bytes
    missing: int
    """Bytes between the two that are not in memory."""
    end: int
    lines: int


class OutputBuffer:
    """Filled by the thread, read by the event loop."""

    def __init__(self, file: "_File") -> None:
        self.file = file
        self._lock = threading.Lock()
        self._beginning = bytearray()
        self._end = bytearray()
        self._total = 0
        self._lines = 0

    def add(self, data: bytes) -> None:
        with self._lock:
            self._total += len(data)
            self._lines += data.count(b"\n")
            room = BEGINNING - len(self._beginning)
            self._beginning += data[:room]
            self._end += data[room:]
            if len(self._end) > 2 * END:
                del self._end[:-END]
        self.file.add(data, self._total, self._beginning)

    def view(self, since: int) -> View:
        with self._lock:
            beginning = bytes(self._beginning[since:])
            in_end = self._total - len(self._end)
            end_part = bytes(self._end[max(0, since - in_end) :])
            missing = max(0, self._total - since - len(beginning) - len(end_part))
            return View(beginning, end_part, missing, self._total, self._lines)

    def newest(self, size: int) -> View:
        """The last of it, in one piece."""
        with self._lock:
            part = bytes(self._end[-size:])
            if len(part) < size:
                part = bytes(self._beginning[len(part) - size :]) + part
            return View(part, b"", self._total - len(part), self._total, self._lines)


class _File:
    """The whole of the output, once there is more than anyone gets to see without it."""

    def __init__(self, folder: OutputFolder, name: str, limit: int) -> None:
        self._folder = folder
        self._name = name
        self._path = ""
        self._limit = min(limit, BEGINNING)
        """So that all that came before is still in memory when the file is begun."""
        self._descriptor = -1
        self._size = 0
        self._trouble = ""
        self._full = False

    def where(self) -> str:
        """Where the whole output can be read, for a person."""
        if self._trouble:
            return f"it could not be kept: {self._trouble}"
        if not self._size:
            return ""
        whole = f"its first {texts.size_text(LARGEST_FILE)} are" if self._full else "all of it is"
        return f"{whole} in {self._path}"

    def add(self, data: bytes, total: int, beginning: bytearray) -> None:
        if self._trouble or self._full or total <= self._limit:
            return
        try:
            if self._descriptor < 0:
                self._open()
                self._write(bytes(beginning[: total - len(data)]))
            self._write(data)
        except OSError as error:
            self._trouble = reason(error)
            self.close()

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> None:
        self._path = self._folder.make_for(self._name)
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)[: LARGEST_FILE - self._size]
        self._full = len(rest) < len(data)
        while rest:
            written = os.write(self._descriptor, rest)
            self._size += written
            rest = rest[written:]


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
