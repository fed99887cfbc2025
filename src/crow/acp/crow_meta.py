"""Reads and writes `_meta.crow`, where Crow's own programs say what the protocol has no field for: leniently, field by
field.

`wire.py` has the fields, in a struct for each message that has some. `_meta` may hold anything: whatever is not what a
field of ours would be counts as left out, and costs the other fields nothing.
"""

import contextlib
from collections.abc import Mapping
from typing import Any, TypeVar, cast

import msgspec

Facts = TypeVar("Facts", bound=msgspec.Struct)


class _WithMeta(msgspec.Struct, frozen=True):
    """The part of any message's parameters or result that has `_meta`."""

    meta: Any = msgspec.field(name="_meta", default=None)


_with_meta = msgspec.json.Decoder(_WithMeta)


def read(kind: type[Facts], meta: object) -> Facts:
    """The facts of a message, given its `_meta`. Every field of the struct must have a default."""
    said = _object_at(meta, "crow")
    try:
        return msgspec.convert(said, kind)
    except msgspec.ValidationError:
        return kind(**_readable(kind, said))


def read_in(kind: type[Facts], message: bytes) -> Facts:
    """The facts of a message that is passed on unread, given its parameters or its result as JSON."""
    try:
        return read(kind, _with_meta.decode(message).meta)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return kind()


def written(facts: msgspec.Struct) -> dict[str, object] | None:
    """The `_meta` that says these facts; None if there is nothing to say."""
    said = msgspec.to_builtins(facts)
    return {"crow": said} if said else None


def added(params: bytes, facts: msgspec.Struct) -> msgspec.Raw:
    """The parameters of a message with these facts added to what they say already."""
    fields = msgspec.json.decode(params, type=dict[str, msgspec.Raw])
    meta = _object(msgspec.json.decode(fields.get("_meta", b"{}")))
    meta = {**meta, "crow": {**_object_at(meta, "crow"), **msgspec.to_builtins(facts)}}
    return msgspec.Raw(msgspec.json.encode({**fields, "_meta": meta}))


def _readable(kind: type[msgspec.Struct], said: Mapping[str, object]) -> dict[str, object]:
    """The fields of the struct that are there and have a value of their type."""
    found: dict[str, object] = {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name in said:
            with contextlib.suppress(msgspec.ValidationError):
                found[field.name] = msgspec.convert(said[field.encode_name], field.type)
    return found


def _object_at(value: object, key: str) -> Mapping[str, object]:
    return _object(_object(value).get(key))


def _object(value: object) -> Mapping[str, object]:
    """A JSON object; an empty one for whatever is none."""
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}
