"""Messages that are nearly JSON: what JavaScript makes of half a character, and bytes that are no text."""

import re

_HALVES = re.compile(
    rb"(?<!\\)((?:\\\\)*)\\"  # an escape, and not the text of one
    rb"(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # both halves
    rb"|u[dD][89a-fA-F][0-9a-fA-F]{2})"  # one alone
)
_ONE_HALF = len(b"uD83D")


def mended(message: bytes | bytearray) -> bytes:
    """With the sign for what cannot be read in place of it. Strict JSON stays as it is."""
    try:
        message.decode()
    except UnicodeDecodeError:
        message = message.decode("utf-8", "replace").encode()
    return bytes(_HALVES.sub(_whole, message))


def _whole(match: re.Match[bytes]) -> bytes:
    return match[1] + b"\\" + (b"ufffd" if len(match[2]) == _ONE_HALF else match[2])
