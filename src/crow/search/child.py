"""Runs a short-lived helper program, such as ripgrep, for its output: bounded in time and size, never left behind."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Sequence
from typing import Literal, NamedTuple

from crow.errors import WorkspaceError
from crow.threads import MAKE_ROOM, NO_MORE
from crow.timeouts import timeout_at

_STEP = 256 * 1024
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""All that a helper gets of our environment: it needs no keys."""


_GUARDED = """
exec 3<&0 </dev/null
{ read -r _ <&3; kill -9 -$$; } >/dev/null 2>&1 &
guard=$!
"$@" 3<&-
status=$?
kill -9 $guard
wait $guard
exit $status
"""
"""Runs a program beside a guard that waits for the end of our standard input. That comes with the end of whoever holds
the other end, however it comes, kill -9 too; the guard then ends the whole process group."""


class Output(NamedTuple):
    text: bytes
    cut: Literal["", "time", "size"]
    """Why the output is not whole: the time was up, or there was more than was wanted."""
    status: int
    """Neither 0 nor 1 if the program was ended by a signal, which it is whenever the output was cut."""


async def output_of(argv: Sequence[str], *, cwd: str, until: float, most: int, passed: Sequence[int] = ()) -> Output:
    """Runs a program, at the longest until that moment of the event loop's clock. It inherits the passed descriptors,
    which must be above those that a shell has names for.

    However this is left, by cancellation or by the end of our own process too, the program has been ended, with its
    process group.
    """
    leash, ours = os.pipe()
    try:
        return await _output_of(argv, cwd, leash, until, most, passed)
    finally:
        os.close(ours)


async def _output_of(
    argv: Sequence[str], cwd: str, leash: int, until: float, most: int, passed: Sequence[int]
) -> Output:
    process = await _start(argv, cwd, leash, passed)
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


async def _start(argv: Sequence[str], cwd: str, leash: int, passed: Sequence[int]) -> asyncio.subprocess.Process:
    """Starts the program. The leash is its own from then on: here it is closed."""
    starting = asyncio.get_running_loop().create_task(
        asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", _GUARDED, "sh", *argv),
            cwd=cwd,
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            stdin=leash,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=passed,
        )
    )
    try:
        return await asyncio.shield(starting)
    except (BlockingIOError, RuntimeError):  # the second: Python 3.11 waits for each child on a thread
        raise WorkspaceError(
            f"{os.path.basename(argv[0])} could not be started: {NO_MORE}.", remedy=MAKE_ROOM
        ) from None
    except asyncio.CancelledError:
        # asyncio would end the shell alone, while the program may be running already.
        with contextlib.suppress(OSError):
            await _end(await starting)
        raise
    finally:
        os.close(leash)


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
