"""Coerces single argument values into the type that a schema asks for, where nothing is lost: numbers, lists, truth
values as text.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeGuard

import msgspec

from crow.tools.lenient.json_repair import json_in
from crow.tools.lenient.names import VALUES, squeezed

Json = dict[str, Any]


def is_fields(value: Any) -> TypeGuard[Json]:
    return isinstance(value, dict)


def is_items(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def coerced_fields(fields: Json, schema: Mapping[str, Any]) -> Json:
    properties: Mapping[str, Any] = schema.get("properties", {})
    required: Collection[str] = schema.get("required", ())
    values: Json = {}
    for name, value in fields.items():
        about = properties.get(name)
        if not is_fields(about):
            values[name] = value
        elif name in required or not _says_nothing(value, about):
            values[name] = _coerced(name, value, about)
    return values


def _says_nothing(value: Any, schema: Json) -> bool:
    """Some hosts send every argument, with null for what is left out; some models write that as text."""
    if value is None:
        return True
    is_number = schema.get("type") in ("integer", "number", "boolean")
    return is_number and isinstance(value, str) and value.strip().lower() in ("", "null", "none", "undefined")


def _coerced(name: str, value: Any, schema: Json) -> Any:
    match schema.get("type"):
        case "string":
            return _as_text(name, value, schema)
        case "integer":
            number = whole_number(value)
            return value if number is None else number
        case "number":
            number = number_of(value)
            return value if number is None else number
        case "boolean":
            return as_truth(value)
        case "array":
            return _as_list(name, value, schema)
        case "object" if isinstance(value, str):
            found = json_in(value, "{")
            return coerced_fields(found, schema) if is_fields(found) else value
        case "object" if is_fields(value):
            return coerced_fields(value, schema)
        case _:
            return value


def _as_text(name: str, value: Any, schema: Json) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and "enum" not in schema:
        return str(value)
    if isinstance(value, str) and "enum" in schema and value not in schema["enum"]:
        return _choice(name, value, schema["enum"])
    return value


def _choice(name: str, value: str, choices: Iterable[Any]) -> str:
    found = [choice for choice in choices if isinstance(choice, str) and squeezed(choice) == squeezed(value)]
    if len(found) == 1:
        return found[0]
    meant = VALUES.get(name, {}).get(squeezed(value))
    return meant if meant is not None and meant in choices else value


def whole_number(value: Any) -> int | None:
    number = number_of(value)
    if number is None or not float(number).is_integer():
        return None
    return int(number)


def number_of(value: Any) -> int | float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str) or len(value) > 30:
        return None
    try:
        number = msgspec.json.decode(value.strip().encode(), type=int | float)
    except (msgspec.DecodeError, UnicodeError):
        return None
    return number


def as_truth(value: Any) -> Any:
    if isinstance(value, str):
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(
            value.strip().lower(), value
        )
    return bool(value) if isinstance(value, int) and value in (0, 1) else value


def _as_list(name: str, value: Any, schema: Json) -> Any:
    items: Any = schema.get("items", {})
    about = items if is_fields(items) else {}
    if isinstance(value, str):
        found = json_in(value, "[", "{")
        value = found if is_items(found) or is_fields(found) else value
    if is_fields(value) and about.get("type") == "object":
        value = [value]
    if not is_items(value):
        return value
    return [_coerced(name, one, about) for one in value]


def listed(value: Any) -> list[Any] | None:
    """A list, also one that was written as a string or of one object that stands alone."""
    if isinstance(value, str):
        value = json_in(value, "[", "{")
    if is_fields(value):
        return [value]
    return list(value) if is_items(value) else None
