"""Pictures and sounds: what a piece of data really is, by its first bytes, whatever it calls itself."""

import base64
import binascii

_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
)
_IN_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}


def media_type(head: bytes) -> str | None:
    """The type of a picture or sound that models take, from its first dozen bytes; None for anything else."""
    if head[:4] == b"RIFF":
        return _IN_RIFF.get(head[8:12])
    return next((kind for beginning, kind in _BEGINNINGS if head.startswith(beginning)), None)


def encoded_media_type(data: str) -> str | None:
    """The same for base64; None also if it is none."""
    try:
        return media_type(base64.b64decode(data, validate=True)[:16])
    except (binascii.Error, ValueError):
        return None
