"""Repairs and shortens an MCP server's messages as bytes, before they are decoded: characters that cannot be read, far
too many values.

A value costs up to thirty times the room of its bytes, and decoding cannot be interrupted: a message of a few
megabytes, all of it brackets, would hold up everyone. So of a long message only what is known to the protocol is
read, lists up to a bound, and whatever is passed over is passed over as bytes.
"""

import re
from functools import cache
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from crow.visible import replace_lone_surrogates

LONG = 64 * 1024
"""Bytes from which on a message is looked at before it is decoded."""
MOST_VALUES = 20_000
"""The most JSON values of a message that is decoded without being shortened first."""
MOST_PIECES = 1000
"""The most pieces of content in one result."""
MOST_LISTED = 2000
"""The most tools, prompts or resources that one server may list."""
MOST_LISTED_BYTES = 2 * 1024 * 1024
"""The most bytes of all that one server lists."""
LONGEST_JSON = 36_000
"""Bytes of oversized structured content that the model gets as text in place of the object."""
DEEPEST = 3
"""A message of a prompt has content, that may be a resource, and that has contents."""
_NO_NUMBERS = re.compile(rb"(?<=[\[,:\s])-?(?:NaN|Infinity)(?=[\],}\s])")
_Part = Raw | UnsetType


class _Message(msgspec.Struct, omit_defaults=True):
    jsonrpc: _Part = UNSET
    id: _Part = UNSET
    method: _Part = UNSET
    params: _Part = UNSET
    result: _Part = UNSET
    error: _Part = UNSET


class _Error(msgspec.Struct):
    code: int = 0
    message: str = ""


class _Result(msgspec.Struct, omit_defaults=True, rename="camel"):
    content: _Part = UNSET
    contents: _Part = UNSET
    messages: _Part = UNSET
    tools: _Part = UNSET
    prompts: _Part = UNSET
    resources: _Part = UNSET
    resource_templates: _Part = UNSET
    structured_content: _Part = UNSET
    description: _Part = UNSET
    instructions: _Part = UNSET
    is_error: _Part = UNSET
    next_cursor: _Part = UNSET
    result_type: _Part = UNSET
    ttl_ms: _Part = UNSET
    cache_scope: _Part = UNSET
    meta: _Part = msgspec.field(default=UNSET, name="_meta")


class _Piece(msgspec.Struct, omit_defaults=True, rename="camel"):
    type: _Part = UNSET
    role: _Part = UNSET
    text: _Part = UNSET
    data: _Part = UNSET
    blob: _Part = UNSET
    uri: _Part = UNSET
    mime_type: _Part = UNSET
    name: _Part = UNSET
    title: _Part = UNSET
    description: _Part = UNSET
    size: _Part = UNSET
    content: _Part = UNSET
    resource: _Part = UNSET


@cache
def _beginning_of_list(length: int) -> type[msgspec.Struct]:
    """A list of which what comes after so many values is passed over. Made when it is needed: it takes milliseconds."""
    return msgspec.defstruct("_Beginning", [(f"_{n}", _Part, UNSET) for n in range(length)], array_like=True)


def is_costly(message: bytes | bytearray | memoryview) -> bool:
    """Whether a message may have so many values in it that it should be cut before it is decoded."""
    if len(message) <= LONG:
        return False
    content = message if isinstance(message, bytes | bytearray) else bytes(message)
    return content.count(b",") + content.count(b"[") + content.count(b"{") > MOST_VALUES


def shortened(message: bytes | bytearray) -> bytes:
    """The same message with far fewer values in it. DecodeError if it is no JSON, or no object."""
    try:
        read = msgspec.json.decode(message, type=_Message)
    except msgspec.DecodeError:  # numbers that are none are what some servers write
        read = msgspec.json.decode(_NO_NUMBERS.sub(b"null", message), type=_Message)
    if _is_too_much(read.params):
        read.params = UNSET
    if _is_too_much(read.error):
        read.error = Raw(msgspec.json.encode(_as(_Error, read.error)))
    if read.result is not UNSET:
        read.result = Raw(msgspec.json.encode(_shortened_result(_as(_Result, read.result))))
    return msgspec.json.encode(read)


def id_of(message: bytes | bytearray) -> int | str | None:
    """The id of an answer that cannot be understood; None if there is none, or it is no answer."""
    try:
        read = msgspec.json.decode(message, type=_Message)
        return None if read.method is not UNSET or read.id is UNSET else msgspec.json.decode(read.id, type=int | str)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _shortened_result(result: _Result) -> _Result:
    for name in ("content", "contents", "messages"):
        setattr(result, name, _shortened_pieces(name, getattr(result, name)))
    for name in ("tools", "prompts", "resources", "resource_templates"):
        setattr(result, name, _shortened_list(getattr(result, name)))
    for name in ("meta", "description", "instructions", "is_error", "next_cursor", "result_type", "ttl_ms"):
        if _is_too_much(getattr(result, name)):
            setattr(result, name, UNSET)
    if _is_too_much(result.structured_content):
        if result.content in (UNSET, Raw(b"[]")):  # else it says the same, as with most servers
            said = {"type": "text", "text": _both_ends(bytes(cast("Raw", result.structured_content)))}
            result.content = Raw(msgspec.json.encode([said]))
        result.structured_content = UNSET
    return result


def _shortened_pieces(field: str, pieces: _Part) -> _Part:
    if not _is_too_much(pieces):
        return pieces
    firsts = _firsts(pieces, MOST_PIECES + 1)
    kept: list[Any] = [_shortened_piece(piece) for piece in firsts[:MOST_PIECES]]
    if len(firsts) > MOST_PIECES:
        note = {
            "type": "text",
            "text": f"(there are more than {MOST_PIECES:,} pieces of content: the others are left out)",
        }
        kept.append({"content": note, "messages": {"role": "user", "content": note}}.get(field, note | {"uri": "…"}))
    return Raw(msgspec.json.encode(kept))


def _shortened_piece(piece: Raw, depth: int = 0) -> Any:
    if not _starts_with(piece, b"{"):
        return None if _starts_with(piece, b"[") else piece
    read = _as(_Piece, piece)
    for name in read.__struct_fields__:
        value = getattr(read, name)
        if _starts_with(value, b"{") and depth < DEEPEST:
            setattr(read, name, _shortened_piece(value, depth + 1))
        elif _starts_with(value, b"[") or _starts_with(value, b"{"):
            setattr(read, name, UNSET)
    return read


def _shortened_list(listed: _Part) -> _Part:
    if not _is_too_much(listed):
        return listed
    kept: list[Raw] = []
    size = 0
    for one in _firsts(listed, MOST_LISTED + 1):
        size += len(memoryview(one))
        if size > MOST_LISTED_BYTES:
            break
        kept.append(one)
    return Raw(msgspec.json.encode(kept))


def _firsts(values: _Part, most: int) -> list[Raw]:
    read = _as(_beginning_of_list(most), values)
    found = (getattr(read, name) for name in read.__struct_fields__)
    return [value for value in found if value is not UNSET]


def _as(kind: Any, value: _Part) -> Any:
    """DecodeError if it is something else than it should be."""
    return msgspec.json.decode(cast("Raw", value), type=kind)


def _is_too_much(value: _Part) -> bool:
    return value is not UNSET and not _starts_with(value, b'"') and is_costly(memoryview(value))


def _starts_with(value: _Part, character: bytes) -> bool:
    return isinstance(value, Raw) and bytes(memoryview(value)[:1]) == character


def _both_ends(written: bytes) -> str:
    half = LONGEST_JSON // 2
    beginning, end = (part.decode("utf-8", "replace") for part in (written[:half], written[-half:]))
    return f"{beginning}\n[… {len(written) - LONGEST_JSON:,} bytes left out …]\n{end}"


# --- messages that are nearly JSON: what JavaScript makes of half a character, and bytes that are no text


def repaired(message: bytes | bytearray) -> bytes:
    """A message with U+FFFD for what cannot be read in it. Strict JSON stays as it is."""
    try:
        message.decode()
    except UnicodeDecodeError:
        message = message.decode("utf-8", "replace").encode()
    return replace_lone_surrogates(bytes(message))
