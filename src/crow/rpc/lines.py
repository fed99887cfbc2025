"""Reads lines from file descriptors and writes to them at the peer's pace: the bottom of every protocol that speaks one
message a line.

Reading looks at each byte once and never hands on a line that is too long. Writing goes straight to the peer while
it reads; what it does not take is kept in order, and its amount is known, so that others can wait.
"""

import asyncio
import contextlib
import errno
import os
import select
import stat
from collections import deque
from collections.abc import Callable

LONGEST_LINE = 64 * 1024 * 1024
LONG_LINE = 1024 * 1024
CHUNK = 256 * 1024
ROOM = 256 * 1024
"""Unsent bytes above which producers of updates have to wait."""
FLOOD = 32 * 1024 * 1024
"""Unsent bytes above which we stop reading: the peer asks and does not take the answers."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""With which some programs of Windows begin what they write: no part of the first line."""

MOST_DRAINED = 64
"""Chunks that are still read from a peer that no longer takes anything: one that goes on sending is not waited for."""


class LineReader:
    """Calls `receive` with each line that is not blank, or with None for one that was skipped, being too long."""

    def __init__(
        self,
        fd: int,
        receive: Callable[[bytes | None], None],
        on_end: Callable[[], None],
        longest: int = LONGEST_LINE,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = fd
        self._receive = receive
        self._on_end = on_end
        self.longest = longest
        """Bytes of the longest line that is handed on; may change at any time."""
        self.keeps_blank = False
        """Whether lines are handed on in which nothing is."""
        self.drops_partial_line = False
        """Whether what comes after the last line end counts for nothing: its peer was killed while it wrote."""
        self._parts: list[bytes | bytearray] = []
        self._length = 0
        self._skipping = False
        self._paused = False
        self._stopped = False
        self._pump: asyncio.Task[None] | None = None

    def start(self) -> None:
        try:
            self._loop.add_reader(self._fd, self._on_readable)
        except PermissionError:  # a regular file: always readable, and epoll does not take it
            self._pump = self._loop.create_task(self._pump_file())

    def stop(self) -> None:
        if self._stopped:
            return
        self._stopped = True
        if self._pump is not None:
            self._pump.cancel()
        elif not self._paused:
            self._loop.remove_reader(self._fd)

    def pause(self) -> None:
        if self._pump is None and not self._paused and not self._stopped:
            self._paused = True
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        if self._paused and not self._stopped:
            self._paused = False
            self._loop.add_reader(self._fd, self._on_readable)

    def drain(self) -> None:
        """Reads what has been sent already, before it is said that the peer has left."""
        if self._pump is not None:
            return
        sent = select.poll()
        sent.register(self._fd, select.POLLIN)
        for _ in range(MOST_DRAINED):
            if self._stopped or not sent.poll(0):
                return
            self._on_readable()

    def _on_readable(self) -> None:
        try:
            data = os.read(self._fd, CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if data:
            self._feed(data)
        else:
            self.stop()
            self._finish()

    async def _pump_file(self) -> None:
        with contextlib.suppress(OSError):  # opened for writing only, or a disk that fails: nothing can be read
            while data := await asyncio.to_thread(os.read, self._fd, CHUNK):
                self._feed(data)
                await asyncio.sleep(0)
        self._finish()

    def _feed(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        for line in lines:
            if self._skipping:
                self._skipping = False
            elif self._parts:
                self._parts.append(line)
                whole = b"".join(self._parts)
                self._parts.clear()
                self._take(whole)
            else:
                self._take(line)
            self._length = 0
        if rest and not self._skipping:
            self._keep(rest)
            if self._length > self.longest:
                self._parts.clear()
                self._skipping = True
                self._receive(None)

    def _keep(self, piece: bytes) -> None:
        """A long line is kept in one piece of memory, which the system gets back as a whole: hundreds of smaller ones
        would lie between things that stay."""
        self._length += len(piece)
        if self._length > LONG_LINE and self._parts:
            if not isinstance(self._parts[0], bytearray):
                self._parts[:] = [bytearray().join(self._parts)]
            self._parts[0] += piece
        else:
            self._parts.append(piece)

    def _take(self, line: bytes) -> None:
        if len(line) > self.longest:
            self._receive(None)
        elif ((line := line.removeprefix(BYTE_ORDER_MARK)) and not line.isspace()) or self.keeps_blank:
            self._receive(line)

    def _finish(self) -> None:
        if self._parts and not self.drops_partial_line:
            self._take(b"".join(self._parts))
        self._parts.clear()
        self._on_end()


class LineStream:
    """The lines of a descriptor, one after the other, as `LineReader` has them. While some wait, no more are read."""

    def __init__(self, fd: int, longest: int = LONGEST_LINE, *, keeps_blank: bool = False) -> None:
        self._waiting: deque[bytes | None] = deque()
        self._has_ended = False
        self._news = asyncio.Event()
        self._reader = LineReader(fd, self._receive, self._end, longest)
        self._reader.keeps_blank = keeps_blank
        self._reader.start()

    def __aiter__(self) -> "LineStream":
        return self

    async def __anext__(self) -> bytes | None:
        while not self._waiting:
            if self._has_ended:
                raise StopAsyncIteration
            self._news.clear()
            self._reader.resume()
            await self._news.wait()
        return self._waiting.popleft()

    def close(self) -> None:
        """Stops reading. The descriptor may be closed after it."""
        self._reader.stop()

    def _receive(self, line: bytes | None) -> None:
        self._waiting.append(line)
        self._news.set()
        self._reader.pause()

    def _end(self) -> None:
        self._has_ended = True
        self._news.set()


class Writer:
    """`on_gone` is called when the peer no longer takes anything. `reader` is paused while it takes too little."""

    def __init__(self, fd: int, on_gone: Callable[[], None], reader: LineReader | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = fd
        self._on_gone = on_gone
        self._reader = reader
        self._backlog: deque[memoryview] = deque()
        self.unsent = 0
        """Bytes that the peer has not taken yet."""
        self._gone = False
        self._is_terminal = os.isatty(fd)
        self.failure: OSError | None = None
        """Why nothing can be written, if it is not that the reader has left."""
        self._room = asyncio.Event()
        self._room.set()
        self._flushed = asyncio.Event()
        self._flushed.set()
        mode = os.fstat(fd).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            os.set_blocking(fd, False)  # our end only; a terminal or a file would share the flag with others

    @property
    def has_room(self) -> bool:
        return self._room.is_set()

    async def room(self) -> None:
        await self._room.wait()

    async def flushed(self) -> None:
        """Returns when the peer has everything, or is gone."""
        await self._flushed.wait()

    def send(self, data: bytes) -> None:
        if self._gone:
            return
        if self._backlog:
            self._keep(memoryview(data))
        elif (rest := self._write(memoryview(data))) and not self._gone:
            self._keep(rest)
            self._loop.add_writer(self._fd, self._on_writable)

    def stop(self) -> None:
        if self._backlog and not self._gone:
            self._on_writable()
        self._drop()

    def _write(self, data: memoryview) -> memoryview:
        try:
            while data:
                data = data[os.write(self._fd, data) :]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            hung_up = self._is_terminal and error.errno == errno.EIO
            self.failure = None if hung_up or isinstance(error, ConnectionError) else error
            self._drop()
            self._on_gone()
        return data

    def _keep(self, data: memoryview) -> None:
        self._backlog.append(data)
        self.unsent += len(data)
        self._flushed.clear()
        if self.unsent > ROOM:
            self._room.clear()
        if self.unsent > FLOOD and self._reader is not None:
            self._reader.pause()

    def _on_writable(self) -> None:
        while self._backlog:
            whole = self._backlog[0]
            rest = self._write(whole)
            if self._gone:
                return
            self.unsent -= len(whole) - len(rest)
            if rest:
                self._backlog[0] = rest
                break
            self._backlog.popleft()
        if self.unsent <= ROOM // 2:
            self._room.set()
            if self._reader is not None:
                self._reader.resume()
        if not self._backlog:
            self._flushed.set()
            self._loop.remove_writer(self._fd)

    def _drop(self) -> None:
        self._gone = True
        self._backlog.clear()
        self._room.set()
        self._flushed.set()
        with contextlib.suppress(ValueError, OSError):
            self._loop.remove_writer(self._fd)
