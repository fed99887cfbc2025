"""Runs the command that prints a key (for keys that expire within the hour), and scrubs keys and other secrets out of
what is shown.
"""

import asyncio
import base64
import contextlib
import functools
import os
import re
import signal
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

import msgspec

from crow.config.hosts import MASK
from crow.errors import ModelRefusedKey
from crow.timeouts import timeout

COMMAND_TIMEOUT = 60.0
"""Seconds for a command that prints a key. Some ask a service on the network, or wait for a device."""
LONGEST_KEY = 64 * 1024

_PRINTED: dict[str, str] = {}
"""By command, for all sessions of this process."""


async def printed_key(provider: str, command: str, *, again: bool = False) -> str:
    """What the command prints; ModelRefusedKey if that is no key. The command is run once,
    and with `again` although its key is known."""
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
        async with timeout(COMMAND_TIMEOUT):
            status = await process.wait()
    except TimeoutError:
        raise _failed(provider, f"did not end within {COMMAND_TIMEOUT:g} s") from None
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


# --- out of sight: providers quote what they were sent, in whatever form

SHORTEST_PART = 8
"""Fewer characters of a key tell nothing: many are no more than the vendor's own prefix."""
TELLING_PART = 12
SHORTEST_SECRET = 4
"""Anything shorter protects nothing, and would tear holes into ordinary words."""

CUT = ("…", "...")


def scrub(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets, their usual encodings, and what is left of them where somebody cut them off.

    To be called on the whole text, before anything is cut from it: half a key is no longer recognised as one.
    """
    for secret in secrets:
        for form in _forms(secret):
            text = _without_long(text, form) if len(form) > SHORTEST_PART else _without_short(text, form)
    return text


@functools.lru_cache(maxsize=64)
def _forms(secret: str) -> tuple[str, ...]:
    """All that can stand for the secret, the longest first: one may hold another."""
    if len(secret) < SHORTEST_SECRET:
        return ()
    raw = secret.encode("utf-8", "surrogatepass")
    forms = {secret, quote(raw, safe=""), quote_plus(raw), _in_html(secret)}
    forms |= {base64.b64encode(raw).decode().rstrip("="), base64.urlsafe_b64encode(raw).decode().rstrip("=")}
    forms.add(msgspec.json.encode(raw.decode("utf-8", "replace")).decode()[1:-1])
    return tuple(sorted(forms, key=len, reverse=True))


def _in_html(text: str) -> str:
    for sign, name in (("&", "amp"), ("<", "lt"), (">", "gt"), ('"', "quot"), ("'", "#x27")):
        text = text.replace(sign, f"&{name};")
    return text


def _without_short(text: str, form: str) -> str:
    """Only as a word of its own."""
    return re.sub(rf"(?<![A-Za-z0-9]){re.escape(form)}(?![A-Za-z0-9])", MASK, text, flags=re.IGNORECASE)


def _without_long(text: str, form: str) -> str:
    kept: list[str] = []
    position = 0
    for found in re.finditer(re.escape(form[:SHORTEST_PART]), text, re.IGNORECASE):
        start, end = found.span()
        if start < position:
            continue
        while end < len(text) and end - start < len(form) and text[end].lower() == form[end - start].lower():
            end += 1
        size = end - start
        is_cut = end == len(text) or text.startswith(CUT, end)
        if size == len(form) or is_cut or size >= max(TELLING_PART, len(form) // 2):
            kept += [text[position:start], MASK]
            position = end
    return "".join([*kept, text[position:]])
