"""The place in a list where the next page begins, as text that means nothing to anyone else."""

import base64
import zlib

import msgspec

from crow.errors import BadCursor


class Place(msgspec.Struct, frozen=True, array_like=True):
    updated: int
    """Of the last entry that was shown."""
    id: str


def cursor_for(place: Place, cwd: str | None) -> str:
    content = msgspec.json.encode(place)
    return base64.urlsafe_b64encode(_check(content, cwd) + content).decode()


def place_of(cursor: str, cwd: str | None) -> Place:
    """BadCursor for everything that `cursor_for` did not make for the same list."""
    try:
        raw = base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True)
        check, content = raw[:4], raw[4:]
        place = msgspec.json.decode(content, type=Place)
    except ValueError as error:
        raise _bad() from error
    if check != _check(content, cwd) or not 0 <= place.updated < 1 << 63:
        raise _bad()
    return place


def _check(content: bytes, cwd: str | None) -> bytes:
    return zlib.crc32(repr(cwd).encode("utf-8", "replace"), zlib.crc32(content)).to_bytes(4, "big")


def _bad() -> BadCursor:
    return BadCursor("This cursor does not belong to this list of sessions.", remedy="List from the beginning.")
