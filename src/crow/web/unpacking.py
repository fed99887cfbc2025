"""Unpacks what a server sends packed, piece by piece and never much at once."""

import zlib
from collections.abc import Generator, Iterator
from typing import Protocol

ENCODINGS = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})
PIECE = 1024 * 1024
"""Bytes that are unpacked at once: what a bomb would unpack to is never all there."""

_GZIP_MARK = b"\x1f\x8b"
_GZIP, _ZLIB, _RAW = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS


class _Member(Protocol):
    """One of zlib's objects, whose class has no public name."""

    @property
    def eof(self) -> bool: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class WrongEncoding(Exception):
    """What was sent is not packed as its header says."""


class Unpacker:
    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._waiting = b""
        """The first bytes of a member, which say how it is packed, until there are enough of them."""
        self._member: _Member | None = None
        self._is_first = True
        self._has_ended = False
        """Whether what follows is none of it: some servers fill up with zeros."""

    @property
    def is_whole(self) -> bool:
        return self._member is None and not (self._is_first and self._waiting)

    def unpack(self, data: bytes) -> Iterator[bytes]:
        if self._encoding in ("", "identity"):
            yield data
            return
        data, self._waiting = self._waiting + data, b""
        while data and not self._has_ended:
            if self._member is not None:
                data = yield from self._unpack_member(self._member, data)
            elif len(data) < len(_GZIP_MARK):
                data, self._waiting = b"", data
            else:
                self._begin(data)

    def _unpack_member(self, member: _Member, data: bytes) -> Generator[bytes, None, bytes]:
        """Gives back what follows it."""
        try:
            while unpacked := member.decompress(data, PIECE):
                yield unpacked
                data = member.unconsumed_tail
        except zlib.error as error:
            raise WrongEncoding from error
        if member.eof:
            self._member, self._is_first = None, False
        return member.unused_data

    def _begin(self, data: bytes) -> None:
        """A file of gzip may be several, one after the other."""
        if self._encoding == "deflate" and self._is_first:
            # Meant is zlib's format, but some servers send what is within it.
            self._member = zlib.decompressobj(_ZLIB if _has_zlib_header(data) else _RAW)
        elif self._encoding != "deflate" and data.startswith(_GZIP_MARK):
            self._member = zlib.decompressobj(_GZIP)
        elif self._is_first:
            raise WrongEncoding
        else:
            self._has_ended = True


def _has_zlib_header(data: bytes) -> bool:
    return data[0] & 0x0F == 8 and int.from_bytes(data[:2]) % 31 == 0
