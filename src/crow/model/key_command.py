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
    output, end = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", command),
            cwd=os.path.expanduser("~"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=end,
            # What it complains of may hold what it knows: it is nobody's to read but the person's who runs it by hand.
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        os.close(output)
        raise _failed(provider, "could not be started") from error
    finally:
        os.close(end)
    printed = _Printed(process.pid, output)
    try:
        async with timeout(PATIENCE):
            status = await process.wait()
    except TimeoutError:
        raise _failed(provider, f"did not end within {PATIENCE:g} s") from None
    finally:
        printed.close()
        await process.wait()
    if printed.is_too_long:
        raise _failed(provider, "printed more than a key")
    if status:
        raise _failed(provider, f"ended with exit code {status}")
    return _checked(provider, bytes(printed.text))


class _Printed:
    """What a command has printed so far. Its end is that of the command, not of the pipe, which whatever the command
    left running in the background may keep open for ever."""

    def __init__(self, command: int, pipe: int) -> None:
        self.text = bytearray()
        self._command = command
        self._pipe = pipe
        os.set_blocking(pipe, False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(pipe, self._read)

    @property
    def is_too_long(self) -> bool:
        return len(self.text) > LONGEST_KEY

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self._pipe, LONGEST_KEY):
                self.text += piece
                if self.is_too_long:
                    self._end_command()
                    break
            self._loop.remove_reader(self._pipe)

    def _end_command(self) -> None:
        """With all that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._command, signal.SIGKILL)

    def close(self) -> None:
        """Takes what was printed last, and ends whatever is still running."""
        if not self.is_too_long:
            self._read()
        self._loop.remove_reader(self._pipe)
        os.close(self._pipe)
        self._end_command()


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
