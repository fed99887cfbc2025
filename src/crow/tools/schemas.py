"""The JSON schema of a tool's arguments, made from the struct that they are read into, so that the two cannot differ.

In one piece and without titles: models read references badly, and pay for every word. And plain enough for hosts that
know little of JSON Schema: every value has one type, and what is optional is simply not required.
"""

import functools
from collections.abc import Mapping
from typing import Any, cast

import msgspec

_UNLISTED = "x-unlisted"
UNLISTED = msgspec.Meta(extra_json_schema={_UNLISTED: True})
"""Of an argument that models know from the tools of others, and that they are not told of."""


@functools.cache
def schema_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Made once for all sessions, and never changed: it takes a millisecond for each of a session's tools."""
    _, components = msgspec.json.schema_components([kind])
    return _plain(components[kind.__name__], components)


def _plain(schema: Any, components: Mapping[str, Any]) -> Any:
    match schema:
        case {"$ref": str(reference)}:
            return _plain(components[reference.rpartition("/")[2]], components)
        case {"anyOf": [value, {"type": "null"}], **about}:
            return _plain({**value, **about}, components)
        case {"enum": [str(), *_]} if "type" not in schema:
            return _plain({"type": "string", **schema}, components)
        case dict():
            parts = cast("dict[str, Any]", schema)
            return {key: _plain(value, components) for key, value in parts.items() if not _says_nothing(key, value)}
        case list():
            return [_plain(item, components) for item in cast("list[Any]", schema)]
        case _:
            return schema


def _says_nothing(key: str, value: Any) -> bool:
    """A title repeats a name; a default that is empty is what everybody expects. A property may be called so too."""
    if key == "title" and isinstance(value, str):
        return True
    return (key == "default" and value in (None, "")) or (isinstance(value, dict) and _UNLISTED in value)
