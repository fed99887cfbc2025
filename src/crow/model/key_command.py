"""A key that a command prints, for those that expire within the hour: it is run once, and again when it is refused."""

import asyncio
import contextlib
import os
import signal

from crow.errors import ModelRefusedKey
from crow.timeouts import timeout

PATIENCE = 60.0
"""Seconds. Some ask a service on the network, or wait for a device."""
LONGEST_KEY = 64 * 1024

_PRINTED: dict[str, str] = {}
"""By command, for all sessions of this process."""


async def printed_key(provider: str, command: str, *, again: bool = False) -> str:
    """What the command prints; ModelRefusedKey if that is no key. With `again` it is run although its key is known."""
    if again or command not in _PRINTED:
        _PRINTED[command] = await _run(provider, command)
    return _PRINTED[command]


async def _run(provider: str, command: str) -> str:
    try:
        process = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", command),
            cwd=os.path.expanduser("~"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            # What it complains of may hold what it knows: it is nobody's to read but the person's who runs it by hand.
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise _failed(provider, "could not be started") from error
    try:
        async with timeout(PATIENCE):
            assert process.stdout  # noqa: S101 -- asked for above
            output = await process.stdout.read(LONGEST_KEY)
            status = await process.wait()
    except TimeoutError:
        raise _failed(provider, f"did not end within {PATIENCE:g} s") from None
    finally:
        await _end(process)
    if status:
        raise _failed(provider, f"ended with exit code {status}")
    return _checked(provider, output)


def _checked(provider: str, output: bytes) -> str:
    words = output.decode("utf-8", "replace").split()
    if not words:
        raise _failed(provider, "printed nothing")
    if len(words) > 1 or not (words[0].isascii() and words[0].isprintable()):
        raise _failed(provider, "printed more than a key")
    return words[0]


def _failed(provider: str, what: str) -> ModelRefusedKey:
    return ModelRefusedKey(
        f"The command for the key of {provider} {what}.",
        provider=provider,
        remedy=f"Run it in a shell to see why: it is in providers.{provider}.api_key_command.",
    )


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ends the command with all that it started, if it is still there."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.stdout  # noqa: S101 -- asked for where it was started
    # What it wrote last is taken off the pipe: asyncio does not see the end of a process behind a full one.
    while await process.stdout.read(LONGEST_KEY):
        pass
    await process.wait()
