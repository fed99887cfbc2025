"""Stores the long texts of records apart from them: cut into pieces by their content, compressed, each piece once.

A file that is edited forty times has forty former texts that differ in a few lines. A text is cut into pieces where
its own bytes say so, not at fixed distances (content-defined chunking): what was inserted before a piece does not
change it. A piece is named by its digest, compressed, and stored once, whichever records and sessions need it. An
attached picture, which a prompt holds as it came and as the model gets it, is stored once for the same reason.
"""

# ruff: noqa: S608 -- what is put into the statements here are our own constants

import hashlib
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, cast

LONG = 32 * 1024
"""Characters. A shorter text stays in its record: unpacking many small ones would make loading slower."""
LONG_FORMER_TEXT = 4 * 1024
"""The same for the former text of a file, of which there are many that hardly differ, and which is seldom read."""
_LEVEL = 1
"""Of compression, as zlib counts it: a higher one takes several times as long, and saves a fifth."""
MARK = "$kept"
"""In place of a long text a record has an object with this key, and the digests of the text's pieces."""

SMALLEST = 16 * 1024
LARGEST = 128 * 1024
"""Bytes of a piece."""
_CLASSES = bytes((zlib.crc32(bytes([byte])) >> 7) & 3 for byte in range(256))
"""By byte: one of four classes."""
_CUT = bytes((0, 2, 1, 3, 0, 1, 2))
"""A piece ends where bytes of these classes follow each other: once in 4 ** 7 = 16,384 bytes on average."""
_SECOND_BEST = _CUT[:4]
"""Where that does not come in time: 64 times as frequent."""
_BLOCK = 8 * LARGEST
"""Bytes whose classes are looked up at once."""
_STEP = 500
"""Digests in one statement."""


class Missing(ValueError):
    """A piece is not there, or cannot be unpacked: the record that needs it is damaged."""


def pieces(data: bytes) -> Iterator[bytes]:
    """The text in pieces; joined again they are the text."""
    start = block = 0
    classes = b""
    """The classes of a part of the text, which begins at `block`: all would take as much room as the text."""
    while len(data) - start > LARGEST:
        if start + LARGEST > block + len(classes):
            block, classes = start, data[start : start + _BLOCK].translate(_CLASSES)
        first, last = start - block + SMALLEST, start - block + LARGEST
        found = classes.find(_CUT, first, last)
        if found < 0:
            found = classes.rfind(_SECOND_BEST, first, last)
        end = block + (last if found < 0 else found)
        yield data[start:end]
        start = end
    yield data[start:]


def take_out(value: Any, into: MutableMapping[str, bytes], long: int = LONG) -> Any:
    """The value with a mark in place of each text of so many characters. The texts' pieces are added to `into`, by
    digest."""
    match value:
        case str() if len(value) >= long:
            digests: list[str] = []
            for piece in pieces(value.encode("utf-8", "surrogatepass")):
                digests.append(_digest(piece))
                into[digests[-1]] = piece
            return {MARK: digests}
        case list() | tuple():
            return [take_out(item, into, long) for item in cast("list[Any]", value)]
        case dict():
            return {key: take_out(item, into, long) for key, item in cast("dict[str, Any]", value).items()}
        case _:
            return value


def put_back(value: Any, piece: Callable[[str], bytes]) -> Any:
    """The value with its long texts. Raises Missing."""
    match value:
        case dict() if MARK in value:
            digests = cast("dict[str, list[str]]", value)[MARK]
            return b"".join(map(piece, digests)).decode("utf-8", "surrogatepass")
        case list():
            return [put_back(item, piece) for item in cast("list[Any]", value)]
        case dict():
            return {key: put_back(item, piece) for key, item in cast("dict[str, Any]", value).items()}
        case _:
            return value


def _digest(piece: bytes) -> str:
    return hashlib.blake2b(piece, digest_size=20).hexdigest()


# --- their tables


def reading_pieces(
    connection: sqlite3.Connection, waiting: Mapping[str, bytes] | None = None
) -> Callable[[str], bytes]:
    """How a piece is read; `waiting` are pieces that no disk took yet."""

    def read(digest: str) -> bytes:
        if waiting and digest in waiting:
            return waiting[digest]
        row = connection.execute("SELECT data FROM contents WHERE digest = ?", (_key(digest),)).fetchone()
        if row is None:
            raise Missing
        try:
            return zlib.decompress(row[0])
        except (zlib.error, TypeError):
            raise Missing from None

    return read


def pack_missing(
    connection: sqlite3.Connection, contents: Mapping[str, bytes], packed: MutableMapping[str, bytes]
) -> None:
    """Packs what is not stored yet, and not packed: before the transaction that stores it, which others wait for."""
    missing = contents.keys() - packed.keys()
    missing -= _stored(connection, missing)
    for digest in missing:
        packed[digest] = zlib.compress(contents[digest], _LEVEL)


def store_contents(
    connection: sqlite3.Connection, session: int, contents: Mapping[str, bytes], packed: Mapping[str, bytes]
) -> None:
    stored = _stored(connection, contents)
    # What was there when it was to be packed may have gone with another session since.
    added = (
        (_key(digest), packed.get(digest) or zlib.compress(contents[digest], _LEVEL))
        for digest in contents.keys() - stored
    )
    connection.executemany("INSERT INTO contents (digest, data) VALUES (?, ?)", added)
    connection.executemany(
        "INSERT OR IGNORE INTO uses (session, content) SELECT ?, key FROM contents WHERE digest = ?",
        ((session, _key(digest)) for digest in contents),
    )


def copy_uses(connection: sqlite3.Connection, source: int, copy: int) -> None:
    connection.execute(
        "INSERT INTO uses (session, content) SELECT ?, content FROM uses WHERE session = ?", (copy, source)
    )


def drop_uses(connection: sqlite3.Connection, session: int, most: int) -> int:
    """Removes the first of the pieces that the session needs, unless another session needs them too. How many it let
    go."""
    first = "SELECT content FROM uses WHERE session = ?1 ORDER BY content LIMIT ?2"
    connection.execute(
        f"""
        DELETE FROM contents WHERE key IN ({first})
        AND NOT EXISTS (SELECT 1 FROM uses WHERE content = contents.key AND session != ?1)
        """,
        (session, most),
    )
    return connection.execute(f"DELETE FROM uses WHERE session = ?1 AND content IN ({first})", (session, most)).rowcount


def _stored(connection: sqlite3.Connection, digests: Iterable[str]) -> set[str]:
    wanted = [_key(digest) for digest in digests]
    found: set[str] = set()
    for start in range(0, len(wanted), _STEP):
        some = wanted[start : start + _STEP]
        query = f"SELECT digest FROM contents WHERE digest IN ({', '.join('?' * len(some))})"
        found.update(digest.hex() for (digest,) in connection.execute(query, some))
    return found


def _key(digest: str) -> bytes:
    try:
        return bytes.fromhex(digest)
    except (ValueError, TypeError):
        raise Missing from None
