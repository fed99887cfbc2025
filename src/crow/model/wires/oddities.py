"""Events of a stream whose fields have other types than they should: what can be used of them is."""

from typing import Any, TypeVar, cast, get_args

import msgspec

StructT = TypeVar("StructT", bound=msgspec.Struct)


def convert_loosely(value: Any, kind: type[StructT]) -> StructT:
    """The struct with those of its fields that can be read. What is no object has none, and is an empty struct."""
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind) if isinstance(value, dict) else ():
        written = cast("dict[str, Any]", value).get(field.encode_name)
        if written is not None and (read := _read(written, field.type)) is not None:
            found[field.name] = read
    return kind(**found)


def _read(written: Any, kind: Any) -> Any:
    """The value as the type of its field; None if it cannot be."""
    for strict in (True, False):  # a number may be written as text
        try:
            return msgspec.convert(written, kind, strict=strict)
        except msgspec.ValidationError:
            continue
    for one in get_args(kind):
        if isinstance(one, type) and issubclass(one, msgspec.Struct) and isinstance(written, dict):
            return convert_loosely(cast("Any", written), one)
    return None
