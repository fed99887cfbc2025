"""The words of schemas that models and providers understand, where they are well-formed; all others are dropped.

They are hints for the model: the server checks the arguments itself, with the schema that it has.
"""

import functools
import math
import re
import warnings
from collections.abc import Callable
from typing import Any, cast

PROSE = ("title", "description")
ONE_SCHEMA = frozenset({"items", "additionalProperties", "propertyNames", "not", "if", "then", "else"})
SCHEMA_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
LARGEST_INTEGER = 2**63
LONGEST_PATTERN = 300
_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_DIFFERS = re.compile(r"\(\?[^:=!<]|\(\?<[^=!]|\\[AZzGQEKpPuUN]|\[\[|[^\x00-\x7f]")
"""In patterns: what not every reader of regular expressions knows, or what takes them long to read."""


def well_formed(parts: dict[str, Any]) -> dict[str, Any]:
    """What is said in words that are understood, in the form of today."""
    known = {key: said for key, said in parts.items() if key in _FORMS or key == "additionalItems"}
    return {key: said for key, said in _of_today(known).items() if _FORMS[key](said)}


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


def _of_today(parts: dict[str, Any]) -> dict[str, Any]:
    for exclusive, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(parts.get(exclusive), bool) and parts.pop(exclusive) and plain in parts:
            parts[exclusive] = parts.pop(plain)
    if isinstance(parts.get("items"), list):
        parts["prefixItems"] = parts.pop("items")
        if "additionalItems" in parts:
            parts["items"] = parts["additionalItems"]
    parts.pop("additionalItems", None)
    if "type" in parts:
        _mend_type(parts)
    _mend_required(parts)
    return parts


def _mend_type(parts: dict[str, Any]) -> None:
    said: Any = parts["type"]
    known = [one for one in _TYPES if one in (cast("list[Any]", said) if isinstance(said, list) else [said])]
    if known:
        parts["type"] = known[0] if len(known) == 1 else known
    else:
        del parts["type"]


def _mend_required(parts: dict[str, Any]) -> None:
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
