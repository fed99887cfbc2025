"""A short-lived helper process whose output is wanted: bounded in time and size, and never left behind."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Sequence
from typing import Literal, NamedTuple

from crow.timeouts import timeout_at

_STEP = 256 * 1024
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""All that a helper gets of our environment: it needs no keys."""


class Output(NamedTuple):
    text: bytes
    cut: Literal["", "time", "size"]
    """Why the output is not whole: the time was up, or there was more than was wanted."""
    status: int
    """Negative if it was ended by a signal, which it is whenever the output was cut."""


async def output_of(argv: Sequence[str], *, cwd: str, until: float, most: int) -> Output:
    """Runs a program, at the longest until that moment of the event loop's clock.

    However this is left, by cancellation too, the program has been ended, with its process group.
    """
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    text = bytearray()
    cut: Literal["", "time", "size"] = ""
    try:
        async with timeout_at(until):
            if not await _read(process, text, most):
                cut = "size"
    except TimeoutError:
        cut = "time"
    finally:
        status = await _end(process)
    return Output(bytes(text[:most]), cut, status)


async def _read(process: asyncio.subprocess.Process, into: bytearray, most: int) -> bool:
    """Reads all there is, unless it is too much."""
    assert process.stdout  # noqa: S101 -- asked for above
    while piece := await process.stdout.read(_STEP):
        into += piece
        if len(into) > most:
            return False
    await process.wait()
    return True


async def _end(process: asyncio.subprocess.Process) -> int:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    # What it wrote last is taken off the pipe: asyncio does not see the end of a process behind a full one.
    assert process.stdout  # noqa: S101 -- asked for above
    while await process.stdout.read(_STEP):
        pass
    return await process.wait()
