"""Starts the separate process that converts a page or a PDF, hands the page over, and waits only so long."""

import asyncio
import contextlib
import os
import signal
import sys

import msgspec

from crow.errors import WebError
from crow.threads import MAKE_ROOM, NO_MORE
from crow.timeouts import timeout
from crow.web.conversion_job import Converted, Job

CONVERSION_TIMEOUT = 30.0
"""Seconds for one process. It has much less time on the processor: this is for a busy machine."""


async def convert_page(job: Job, content: bytes, seconds: float = CONVERSION_TIMEOUT) -> Converted:
    """WebError if it cannot be done, or not in time."""
    done = await _ask(job, content, seconds)
    if done is None and job.kind == "html":
        # Whatever it failed at, time, memory, depth or a fault in a library: the plain way needs next to nothing of
        # each, and has a process of its own, where nothing is used up yet.
        done = await _ask(msgspec.structs.replace(job, kind="plain"), content, seconds)
    if done is None:
        raise WebError("The page could not be converted: it takes too much time or memory, or is damaged.")
    if done.problem:
        raise WebError(done.problem)
    return done


async def _ask(job: Job, content: bytes, seconds: float) -> Converted | None:
    """The answer of the process; None if there is none in time, or none that makes sense."""
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-m", "crow.web.conversion_process"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd="/",
            env={},
            limit=2**16,
        )
    except (BlockingIOError, RuntimeError):  # the second: Python 3.11 waits for each child on a thread
        raise WebError(f"The page could not be converted: {NO_MORE}.", remedy=MAKE_ROOM) from None
    assert process.stdin  # noqa: S101 -- asked for above
    assert process.stdout  # noqa: S101 -- the same
    try:
        async with timeout(seconds):
            with contextlib.suppress(ConnectionError):
                process.stdin.write(msgspec.json.encode(job) + b"\n" + content)
                await process.stdin.drain()
            answer = await process.stdout.read()
            await process.wait()
            return msgspec.json.decode(answer, type=Converted)
    except (TimeoutError, msgspec.DecodeError):
        return None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)  # `process.kill` might take the exit status from the event loop
            await process.stdout.read()  # asyncio does not see the end of a process behind a full pipe
            await process.wait()
        process.stdin.close()
