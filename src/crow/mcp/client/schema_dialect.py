"""Reduces the JSON Schema of an MCP tool to the keywords that models and providers understand, with one object at the
top.

All other keywords are dropped, and a union at the top is told in words. Schemas are hints for the model: the server
checks the arguments itself, with the schema that it has.
"""

import functools
import math
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec

from crow.visible import one_line

PROSE = ("title", "description")
ONE_SCHEMA = frozenset({"items", "additionalProperties", "propertyNames", "not", "if", "then", "else"})
SCHEMA_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
LARGEST_INTEGER = 2**63
LONGEST_PATTERN = 300
_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_DIFFERS = re.compile(r"\(\?[^:=!<]|\(\?<[^=!]|\\[AZzGQEKpPuUN]|\[\[|[^\x00-\x7f]")
"""In patterns: what not every reader of regular expressions knows, or what takes them long to read."""
Schema = dict[str, Any]
_UNIONS = ("allOf", "anyOf", "oneOf")
_CONDITIONS = ("not", "if", "then", "else", "enum", "const")
"""What providers refuse at the top as well."""
LONGEST_REMARK = 1000


def well_formed(parts: dict[str, Any]) -> dict[str, Any]:
    """What is said in words that are understood, in the form of today."""
    known = {key: said for key, said in parts.items() if key in _FORMS or key == "additionalItems"}
    return {key: said for key, said in _normalised(known).items() if _FORMS[key](said)}


def is_known(key: str) -> bool:
    return key in _FORMS


def is_pattern(said: Any) -> bool:
    return isinstance(said, str) and len(said) <= LONGEST_PATTERN and _can_be_read(said)


@functools.lru_cache(maxsize=256)
def _can_be_read(pattern: str) -> bool:
    if _DIFFERS.search(pattern):
        return False
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


# --- forms of the past


def _normalised(parts: dict[str, Any]) -> dict[str, Any]:
    for exclusive, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(parts.get(exclusive), bool) and parts.pop(exclusive) and plain in parts:
            parts[exclusive] = parts.pop(plain)
    if isinstance(parts.get("items"), list):
        parts["prefixItems"] = parts.pop("items")
        if "additionalItems" in parts:
            parts["items"] = parts["additionalItems"]
    parts.pop("additionalItems", None)
    if "type" in parts:
        _normalise_type(parts)
    _normalise_required(parts)
    return parts


def _normalise_type(parts: dict[str, Any]) -> None:
    said: Any = parts["type"]
    known = [one for one in _TYPES if one in (cast("list[Any]", said) if isinstance(said, list) else [said])]
    if known:
        parts["type"] = known[0] if len(known) == 1 else known
    else:
        del parts["type"]


def _normalise_required(parts: dict[str, Any]) -> None:
    """Each name once. Whether an argument is needed was once said in the argument itself."""
    listed, properties = parts.pop("required", None), parts.get("properties")
    names = cast("list[Any]", listed) if isinstance(listed, list) else []
    of_old = [
        name
        for name, one in (cast("dict[str, Any]", properties) if isinstance(properties, dict) else {}).items()
        if isinstance(one, dict) and cast("dict[str, Any]", one).get("required") is True
    ]
    if of_old or names:
        parts["required"] = list(dict.fromkeys([*(name for name in names if isinstance(name, str)), *of_old]))


# --- what each word must be followed by


def _is_text(said: Any) -> bool:
    return isinstance(said, str)


def _is_truth(said: Any) -> bool:
    return isinstance(said, bool)


def _is_number(said: Any) -> bool:
    if isinstance(said, float):
        return math.isfinite(said)
    return isinstance(said, int) and not isinstance(said, bool)


def _is_positive(said: Any) -> bool:
    return _is_number(said) and said > 0


def _is_count(said: Any) -> bool:
    return isinstance(said, int) and not isinstance(said, bool) and 0 <= said < LARGEST_INTEGER


def _is_schema(said: Any) -> bool:
    return isinstance(said, dict | bool)


def _is_map(said: Any) -> bool:
    return isinstance(said, dict)


def _is_list(said: Any) -> bool:
    return isinstance(said, list)


def _is_filled_list(said: Any) -> bool:
    return isinstance(said, list) and bool(cast("list[Any]", said))


def _is_anything(said: Any) -> bool:
    return True


_FORMS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys((*PROSE, "format", "contentEncoding", "contentMediaType"), _is_text),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _is_count),
    **dict.fromkeys(ONE_SCHEMA, _is_schema),
    **dict.fromkeys(("properties", "patternProperties"), _is_map),
    **dict.fromkeys((*SCHEMA_LISTS, "enum", "required"), _is_filled_list),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), _is_truth),
    **dict.fromkeys(("type", "const", "default"), _is_anything),
    "multipleOf": _is_positive,
    "pattern": is_pattern,
    "examples": _is_list,
}


# --- schemas that are one of several at their top, which providers refuse: made one object, the forms told in words


class NoObject(Exception):
    """No form of the union describes an object."""


def as_one_object(schema: Schema) -> tuple[Schema, str]:
    """The schema, and what it no longer says: which arguments belong together, and which conditions there are."""
    whole, remarks = _flattened(schema)
    return whole, one_line(" ".join(remarks), LONGEST_REMARK)


def _flattened(schema: Schema) -> tuple[Schema, list[str]]:
    whole = {key: said for key, said in schema.items() if key not in (*_UNIONS, *_CONDITIONS)}
    remarks: list[str] = []
    for part in schema.get("allOf", ()):
        one, said = _flattened(part)
        whole = _both(whole, one)
        remarks += said
    for union in ("anyOf", "oneOf"):
        if union in schema:
            form, said = _any_of(schema[union], whole.get("required", ()))
            whole = _both(whole, form)
            remarks += said
    if any(union in schema for union in _UNIONS):
        whole.pop("additionalProperties", None)  # of one of them, it would shut out the arguments of the others
    conditions = {key: schema[key] for key in _CONDITIONS if key in schema}
    if conditions:
        remarks.append(f"The arguments must also fit: {msgspec.json.encode(conditions).decode()}")
    return whole, remarks


def _any_of(forms: Sequence[Schema], needed: Sequence[str]) -> tuple[Schema, list[str]]:
    """An object that fits whatever fits one of them: what all of them need is needed."""
    flattened = [_flattened(form) for form in forms if form.get("type", "object") == "object" or _has_object(form)]
    if not flattened:
        raise NoObject
    objects = [form for form, _ in flattened]
    seen: dict[str, list[Schema]] = {}
    for form in objects:
        for name, said in form.get("properties", {}).items():
            known = seen.setdefault(name, [])
            if said not in known:
                known.append(said)
    properties = {name: said[0] if len(said) == 1 else {"anyOf": said} for name, said in seen.items()}
    common = [name for name in _required(objects[0]) if all(name in _required(form) for form in objects)]
    whole = {"properties": properties, **({"required": common} if common else {})}
    labels = list(dict.fromkeys(_label(form, {*common, *needed}) for form in objects))
    told = [f"The arguments take one of these forms: {'; or '.join(labels)}."] if len(labels) > 1 else []
    return whole, [*told, *(remark for _, said in flattened for remark in said)]


def _has_object(form: Schema) -> bool:
    return isinstance(form["type"], list) and "object" in form["type"]


def _required(form: Schema) -> list[str]:
    return form.get("required", [])


def _label(form: Schema, known: set[str]) -> str:
    """One form in a few words: what it is called, what it needs beside what is needed anyway."""
    called = one_line(str(form.get("title") or form.get("description") or ""), 100)
    fixed = {name: said["const"] for name, said in form.get("properties", {}).items() if "const" in said}
    needs = [f"{name} = {msgspec.json.encode(value).decode()}" for name, value in fixed.items()]
    needs += [name for name in _required(form) if name not in known and name not in fixed]
    return f"{called} ({', '.join(needs)})" if called and needs else called or ", ".join(needs) or "nothing more"


def _both(one: Schema, other: Schema) -> Schema:
    """An object that fits only what fits both."""
    properties = dict(one.get("properties", {}))
    for name, said in other.get("properties", {}).items():
        known = properties.get(name, said)
        properties[name] = said if known == said else {"allOf": [known, said]}
    required = list(dict.fromkeys([*_required(one), *_required(other)]))
    merged = {**other, **one, "properties": properties}
    return {**merged, "required": required} if required else merged
