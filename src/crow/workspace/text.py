"""Bytes and text without loss: what was decoded here is encoded to the very bytes it came from.

Nothing is normalised, no line end and no character. A file that is neither UTF-8 nor marked as UTF-16 or UTF-32 is
taken for Latin-1, in which every byte has a meaning: right or not, all that is not edited stays as it was.
"""

from collections.abc import Iterator
from typing import NamedTuple

from crow.errors import WorkspaceError
from crow.paths import shown
from crow.workspace.endings import with_line_feeds

MARK = "\ufeff"
"""The byte order mark, as a character."""

_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\0\0", "utf-32-le"),  # before UTF-16, whose mark it begins with
    (b"\0\0\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_NAMES = {
    "utf-8": "UTF-8",
    "latin-1": "Latin-1",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "utf-32-le": "UTF-32",
    "utf-32-be": "UTF-32",
}


class Decoded(NamedTuple):
    text: str
    """Without the byte order mark."""
    encoding: str
    mark: bool
    """There is a byte order mark before the text."""


def decode(path: str, content: bytes) -> Decoded:
    decoded = _decode_marked(content) or _decode_plain(content)
    if decoded is None or "\0" in decoded.text:
        raise binary(path, len(content))
    return decoded


def binary(path: str, size: int) -> WorkspaceError:
    return WorkspaceError(f"{shown(path)} is a binary file ({size:,} bytes).")


def mark_of(head: bytes) -> tuple[bytes, str]:
    """The byte order mark that a file begins with, if it does, and the encoding that it names, else UTF-8."""
    return next(((mark, encoding) for mark, encoding in _MARKS if head.startswith(mark)), (b"", "utf-8"))


def decode_text(path: str, content: bytes) -> str:
    return decode(path, content).text


def encode(path: str, text: str, encoding: str = "utf-8", *, mark: bool = False) -> bytes:
    """The bytes of a text in a file's own encoding; what it has no bytes for is refused, never replaced."""
    if "\0" in text:
        raise WorkspaceError(f"{shown(path)}: a null character would make it a binary file. Nothing was written.")
    try:
        return (MARK if mark else "").encode(encoding) + text.encode(encoding)
    except UnicodeEncodeError as error:
        raise WorkspaceError(
            f"{shown(path)} is encoded as {encoding_name(encoding)}, which has no {_name(text[error.start])}. "
            "Nothing was written.",
            remedy="Use characters that the file's encoding has.",
        ) from None


def encoding_name(encoding: str) -> str:
    return _NAMES.get(encoding, encoding)


def could_be_shown_as(content: bytes, text: str) -> bool:
    """Whether an editor that shows this text may be showing these very bytes, unchanged.

    Editors differ in what they make of carriage returns, the byte order mark, the last line end, and of bytes that
    are no UTF-8: some drop them, some show a replacement, some guess an encoding. None of that is the person's doing.
    """
    try:
        return _bare(content.decode()) == _bare(text)
    except UnicodeDecodeError:
        bare = _bare(text.replace("\ufffd", ""))
        return any(_bare(view) == bare for view in _guesses(content))


def _guesses(content: bytes) -> Iterator[str]:
    yield content.decode("utf-8", "ignore").replace("\ufffd", "")
    yield content.decode("latin-1")
    yield content.decode("cp1252", "ignore")
    if marked := _decode_marked(content):
        yield marked.text


def _bare(text: str) -> str:
    return with_line_feeds(text).lstrip(MARK).removesuffix("\n")


def _decode_marked(content: bytes) -> Decoded | None:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            try:
                return Decoded(content[len(mark) :].decode(encoding), encoding, mark=True)
            except UnicodeDecodeError:
                continue
    return None


def _decode_plain(content: bytes) -> Decoded | None:
    if b"\0" in content:
        return None
    try:
        return Decoded(content.decode(), "utf-8", mark=False)
    except UnicodeDecodeError:
        return Decoded(content.decode("latin-1"), "latin-1", mark=False)


def _name(character: str) -> str:
    code = f"U+{ord(character):04X}"
    return f"“{character}” ({code})" if character.isprintable() else f"character {code}"
