"""Hands a page to the process that converts it, and waits for it only so long."""

import asyncio
import contextlib
import os
import signal
import sys

import msgspec

from crow.errors import WebError
from crow.web.conversion_job import Converted, Job

PATIENCE = 40.0
"""Seconds. The process has much less time on the processor: this is for a busy machine."""


async def convert_page(job: Job, content: bytes, patience: float = PATIENCE) -> Converted:
    """WebError if it cannot be done, or not in time."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-m", "crow.web.conversion_process"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd="/",
        env={},
        limit=2**16,
    )
    assert process.stdin  # noqa: S101 -- asked for above
    assert process.stdout  # noqa: S101 -- the same
    try:
        async with asyncio.timeout(patience):
            with contextlib.suppress(ConnectionError):
                process.stdin.write(msgspec.json.encode(job) + b"\n" + content)
                await process.stdin.drain()
            answer = await process.stdout.read()
            await process.wait()
    except TimeoutError:
        raise WebError("The page is too intricate to be converted in time.") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)  # `process.kill` might take the exit status from the event loop
            await process.stdout.read()  # asyncio does not see the end of a process behind a full pipe
            await process.wait()
        process.stdin.close()
    try:
        done = msgspec.json.decode(answer, type=Converted)
    except msgspec.DecodeError:
        raise WebError("The page could not be converted: it takes too much time or memory, or is damaged.") from None
    if done.problem:
        raise WebError(done.problem)
    return done
