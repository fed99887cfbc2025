"""The process of a command: takes over the standard streams, writes and rotates the log, shuts down in order, and
reports a crash in one line.
"""

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from queue import SimpleQueue
from typing import Any

from crow.config.home import LOG_FLAGS, create_folder, home, log_path, reason
from crow.errors import CrowError
from crow.timeouts import timeout

logger = logging.getLogger(__name__)

# --- standard input and output, which belong to the protocol: nothing else in the process, and no child, reaches them


def take_streams_for(program: str, hint: str) -> tuple[int, int] | None:
    """The two descriptors, with a hint for a person who started it by hand; None, and why, if they are not open."""
    if sys.stdin is not None and sys.stdin.isatty():  # pyright: ignore[reportUnnecessaryComparison] -- None if closed
        print(hint, file=sys.stderr)
    try:
        return take_streams()
    except OSError:
        print(f"crow: {program} needs an open standard input and output.", file=sys.stderr)
        return None


def take_streams() -> tuple[int, int]:
    """The two real descriptors, under numbers of their own that children do not inherit.

    What the rest of the process knows as standard input is empty from now on, and what it prints goes to
    standard error. Raises OSError if one of the two is not open.
    """
    for number in (0, 1):
        os.fstat(number)  # else the copy of one would take the number of the other
    # Opened first: it takes the lowest free number, and so becomes standard error where there is none.
    null = os.open(os.devnull, os.O_RDWR)
    os.set_inheritable(2, True)  # noqa: FBT003 -- the function takes it so
    reader, writer = os.dup(0), os.dup(1)
    os.dup2(null, 0)
    os.dup2(2, 1)
    if null != 2:
        os.close(null)
    return reader, writer


# --- the log: a file below CROW_HOME, made when there is something to say, and kept small

LARGEST_LOG = 5 * 1024 * 1024
FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
MOST_WAITING = 1000
"""Lines that may wait for a disk that does not answer."""
LAST_LINES = 1.0
"""Seconds that the last lines get when the program ends."""


def log_to_file(home: str) -> None:
    """Our own messages from INFO on, those of libraries from WARNING on."""
    handler = _LateFileHandler(log_path(home))
    handler.setFormatter(logging.Formatter(FORMAT))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("crow").setLevel(logging.INFO)
    logging.raiseExceptions = False  # a full disk must not print tracebacks into the editor


class _LateFileHandler(logging.Handler):
    """Opens its file with the first record; several processes may append to it, and rotate it, at once.

    A thread writes: whoever has something to say does not wait for the disk. Not `logging.handlers`: importing that
    costs as much as a tenth of our start.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        self._writer: threading.Thread | None = None
        self._taken = 0
        self._written = 0
        """Lines. Counted by the thread."""

    def emit(self, record: logging.LogRecord) -> None:
        if self._taken - self._written >= MOST_WAITING:
            return
        line = self.format(record).encode("utf-8", "backslashreplace") + b"\n"
        if self._writer is None:
            writer = threading.Thread(target=self._write_lines, name="crow-log", daemon=True)
            try:
                writer.start()
            except RuntimeError:  # the system gives no thread just now
                self._write(line)
                return
            self._writer = writer
        self._taken += 1
        self._lines.put(line)

    def flush(self) -> None:
        end = time.monotonic() + LAST_LINES
        while self._written < self._taken and time.monotonic() < end:
            time.sleep(0.002)

    def _write_lines(self) -> None:
        while True:
            self._write(self._lines.get())
            self._written += 1

    def _write(self, line: bytes) -> None:
        try:
            create_folder(os.path.dirname(self._path))
            self._rotate()
            fd = os.open(self._path, LOG_FLAGS, 0o600)
            try:
                os.write(fd, line)
            finally:
                os.close(fd)
        except (OSError, CrowError):
            pass  # there is nowhere left to say it

    def _rotate(self) -> None:
        try:
            if os.stat(self._path).st_size > LARGEST_LOG:
                os.replace(self._path, self._path + ".1")
        except FileNotFoundError:
            pass


# --- shutdown

SHUTDOWN = 1.5
"""Seconds that turns, calls and commands get to end; clients give up after two."""


FINISH = 600.0
"""Seconds that work gets that others still wait for, when the program is asked to end."""


def heeded_signals() -> list[signal.Signals]:
    """The signals that end a program, but for those that it was started to ignore, as by `nohup`."""
    ending = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    return [number for number in ending if signal.getsignal(number) is not signal.SIG_IGN]


async def serve_until_shutdown(
    serving: Coroutine[Any, Any, None],
    close: Callable[[], Awaitable[None]],
    finish: Callable[[], Coroutine[Any, Any, None]] | None = None,
) -> int:
    """Serves until the client leaves or a signal asks for the shutdown, then finishes and closes.

    `finish` does what others still wait for. A second signal cuts it short; one that comes after the client has left is
    the first: editors close the program's input and send a signal soon after.

    The exit status is 0 when the client left, 128 + n after signal n, 1 if serving failed, which is said or logged.
    """
    loop = asyncio.get_running_loop()
    shutdown: asyncio.Future[int] = loop.create_future()
    hurry = asyncio.Event()

    def shut_down(number: int) -> None:
        if shutdown.done():
            hurry.set()
        else:
            shutdown.set_result(128 + number)

    for number in heeded_signals():
        loop.add_signal_handler(number, shut_down, number)
    task = loop.create_task(serving)
    await asyncio.wait([task, shutdown], return_when=asyncio.FIRST_COMPLETED)
    if finish is not None:
        await _finish(finish(), hurry)
    try:
        async with timeout(SHUTDOWN):
            await close()
    except TimeoutError:
        pass  # whoever still hangs is left behind by the exit
    if shutdown.done():
        return shutdown.result()
    error = task.exception()
    if isinstance(error, CrowError):
        return report(error)
    if error is not None:
        logger.error("serving ended", exc_info=error)
        return 1
    return 0


async def _finish(work: Coroutine[Any, Any, None], hurry: asyncio.Event) -> None:
    """Does the work until it is done, time is up, or somebody will not wait."""
    finishing = asyncio.ensure_future(work)
    hurrying = asyncio.ensure_future(hurry.wait())
    await asyncio.wait([finishing, hurrying], timeout=FINISH, return_when=asyncio.FIRST_COMPLETED)
    hurrying.cancel()
    finishing.cancel()
    await asyncio.wait([finishing])
    if not finishing.cancelled() and (error := finishing.exception()) is not None:
        logger.error("finishing failed", exc_info=error)


# --- failures


def report(error: Exception) -> int:
    """Says what went wrong and returns the exit code."""
    if isinstance(error, BrokenPipeError):
        _give_up_output()
        return 1
    if isinstance(error, OSError) and not _output_works():
        _give_up_output()
        error = output_failed(error)
    if isinstance(error, FileNotFoundError) and not in_a_folder():
        error = CrowError("The current folder was deleted.", remedy="Change to another with cd.")
    from crow.cli.render_screen import clean_prose

    print(f"crow: {clean_prose(_one_line(_describe(error)))}", file=sys.stderr)
    return 1


def output_failed(error: OSError) -> CrowError:
    return CrowError(f"Standard output cannot be written: {reason(error)}.")


def in_a_folder() -> bool:
    """Whether the folder that the program was started in still exists."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _output_works() -> bool:
    """Whether what was printed so far could be written."""
    try:
        print(end="", flush=True)
    except OSError:
        return False
    return True


def _give_up_output() -> None:
    """Python would complain when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _describe(error: Exception) -> str:
    if isinstance(error, CrowError):
        return str(error)
    said = f"unexpected {type(error).__name__}: {error}" if str(error) else f"unexpected {type(error).__name__}"
    try:
        return f"{said} (details in {log_crash(error)})"
    except (OSError, CrowError) as trouble:
        return f"{said} (and the log cannot be written: {_one_line(str(trouble))})"


def log_crash(error: Exception) -> str:
    """Appends the traceback to the log and returns the log's path."""
    import traceback

    path = log_path(home(os.environ))
    create_folder(os.path.dirname(path))
    text = "".join(traceback.format_exception(error))
    descriptor = os.open(path, LOG_FLAGS, 0o600)
    with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as log:
        log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} crow {' '.join(sys.argv[1:2])} failed\n{text}")
    return path


def _one_line(text: str) -> str:
    return " ".join(text.split())
