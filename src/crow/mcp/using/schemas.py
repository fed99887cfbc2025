"""A tool's schema as models and their providers take it: one object, in one piece, of today's form and a sensible size.

A single schema that a provider refuses would make every request fail. What can be mended without a loss is mended,
what is malformed is dropped: the server checks the arguments itself.
"""

import math
from collections.abc import Callable
from typing import Any, cast

import msgspec

from crow.mcp.using.argument_names import is_plain, plain_name
from crow.mcp.using.hidden import hidden_characters, made_visible
from crow.mcp.using.unions import NoObject, as_one_object

LARGEST = 32 * 1024
"""Bytes of a schema, about; its description is cut apart from it."""
DEEPEST = 24
_PASSED_OVER = frozenset(
    {"$schema", "$id", "$defs", "definitions", "$comment", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef"}
)
_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_PROSE = ("title", "description")
_ONE_SCHEMA = frozenset(
    {"items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)
_SCHEMA_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SCHEMA_MAPS = frozenset({"patternProperties", "dependentSchemas"})
_LARGEST_INTEGER = 2**63


class SchemaUnfit(Exception):
    """Says what is wrong with it."""


class Fitted(msgspec.Struct, frozen=True):
    schema: dict[str, Any]
    real_names: dict[str, str]
    """Of arguments whose names providers refuse, by the names that the model is given."""
    remark: str
    """What the schema no longer says, for the tool's description."""
    hidden: list[str]
    """Characters in it that could not be seen."""


def fit_for_models(schema: dict[str, Any]) -> Fitted:
    """References are put in place; one that leads into itself becomes "anything" where it would do so again."""
    fitting = _Fitting(schema)
    fitted = fitting.schema(schema, (), 0)
    try:
        whole, remark = as_one_object(fitted)
    except NoObject:
        raise SchemaUnfit("its arguments are no object") from None
    return Fitted(
        {**whole, "type": "object", "properties": whole.get("properties", {})},
        fitting.real_names,
        remark,
        list(fitting.hidden),
    )


class _Fitting:
    def __init__(self, root: dict[str, Any]) -> None:
        self.real_names: dict[str, str] = {}
        self.hidden: dict[str, None] = {}
        self._root = root
        self._left = LARGEST

    def schema(self, value: Any, inside: tuple[str, ...], depth: int) -> dict[str, Any]:
        """`inside` are the references that led here. What is no schema stands for anything."""
        self._enter(depth)
        if not isinstance(value, dict):
            return {"not": {}} if value is False else {}
        parts = cast("dict[str, Any]", value)
        reference = parts.get("$ref")
        if isinstance(reference, str):
            self._spend(len(reference))
            rest = {key: said for key, said in parts.items() if key != "$ref"}
            target = None if reference in inside else self._target(reference)
            merged = {**cast("dict[str, Any]", target), **rest} if isinstance(target, dict) else rest
            return self.schema(merged, (*inside, reference), depth + 1)
        fitted: dict[str, Any] = {}
        for key, said in _of_today(parts).items():
            if key not in _PASSED_OVER and _is_well_formed(key, said):
                self._text(key)
                fitted[key] = self._keyword(key, said, inside, depth + 1)
        if "required" in fitted:
            fitted["required"] = [self._argument(name) for name in fitted["required"]]
        return fitted

    def _keyword(self, key: str, said: Any, inside: tuple[str, ...], depth: int) -> Any:
        if key in _PROSE:
            self._text(said)
            return made_visible(said)
        if key == "properties":
            return {self._argument(name): self._property(name, one, inside, depth) for name, one in said.items()}
        if key in _SCHEMA_MAPS:
            return {name: self.schema(one, inside, depth + 1) for name, one in said.items()}
        if key in _SCHEMA_LISTS:
            return [self.schema(one, inside, depth + 1) for one in said]
        if key in _ONE_SCHEMA and not isinstance(said, bool):
            return self.schema(said, inside, depth)
        return self._data(said, depth)

    def _property(self, name: str, said: Any, inside: tuple[str, ...], depth: int) -> dict[str, Any]:
        self._text(name)
        fitted = self.schema(said, inside, depth + 1)
        return fitted if is_plain(name) else {"title": made_visible(name), **fitted}

    def _argument(self, name: str) -> str:
        if is_plain(name):
            return name
        given = plain_name(name)
        self.real_names[given] = name
        return given

    def _data(self, value: Any, depth: int) -> Any:
        """What is no schema: an example, a default, the values that there are."""
        self._enter(depth)
        match value:
            case dict():
                return {
                    self._text(key): self._data(one, depth + 1) for key, one in cast("dict[str, Any]", value).items()
                }
            case list():
                return [self._data(one, depth + 1) for one in cast("list[Any]", value)]
            case str():
                return self._text(value)
            case int() if abs(value) >= _LARGEST_INTEGER:
                return self._number(value)
            case float() if not math.isfinite(value):
                return None
            case _:
                self._spend(6)
                return value

    def _number(self, value: int) -> float:
        try:
            return float(value)
        except OverflowError:
            raise SchemaUnfit("its schema holds a number that is too large") from None

    def _text(self, text: str) -> str:
        self._spend(len(text) + 4)
        self.hidden.update(dict.fromkeys(hidden_characters(text)))
        return text

    def _target(self, reference: str) -> Any:
        """What a reference within the schema points to; None for any other."""
        if not reference.startswith("#"):
            return None
        found: Any = self._root
        for step in reference[1:].split("/")[1:]:
            if not isinstance(found, dict):
                return None
            found = cast("dict[str, Any]", found).get(step.replace("~1", "/").replace("~0", "~"))
        return found

    def _enter(self, depth: int) -> None:
        if depth > DEEPEST:
            raise SchemaUnfit("its schema is too deep")
        self._spend(2)

    def _spend(self, size: int) -> None:
        """Everything that is looked at counts, however little of it is kept."""
        self._left -= size
        if self._left < 0:
            raise SchemaUnfit(f"its schema is larger than {LARGEST // 1024} KiB")


# --- forms of the past


def _of_today(parts: dict[str, Any]) -> dict[str, Any]:
    parts = dict(parts)
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
    if isinstance(parts.get("properties"), dict):
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
    """Whether an argument is needed was once said in the argument itself."""
    listed = parts.get("required")
    names = cast("list[Any]", listed) if isinstance(listed, list) else []
    of_old = [
        name
        for name, one in cast("dict[str, Any]", parts["properties"]).items()
        if isinstance(one, dict) and cast("dict[str, Any]", one).get("required") is True
    ]
    if of_old or names:
        parts["required"] = list(dict.fromkeys([*(name for name in names if isinstance(name, str)), *of_old]))


# --- what is malformed


def _is_text(said: Any) -> bool:
    return isinstance(said, str)


def _is_number(said: Any) -> bool:
    if isinstance(said, float):
        return math.isfinite(said)
    return isinstance(said, int) and not isinstance(said, bool)


def _is_count(said: Any) -> bool:
    return isinstance(said, int) and not isinstance(said, bool) and 0 <= said < _LARGEST_INTEGER


def _is_schema(said: Any) -> bool:
    return isinstance(said, dict | bool)


def _is_map(said: Any) -> bool:
    return isinstance(said, dict)


def _is_filled_list(said: Any) -> bool:
    return isinstance(said, list) and bool(cast("list[Any]", said))


def _is_list_of_texts(said: Any) -> bool:
    return isinstance(said, list) and all(isinstance(one, str) for one in cast("list[Any]", said))


_FORMS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys((*_PROSE, "format", "pattern", "contentEncoding", "contentMediaType"), _is_text),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains"), _is_count),
    **dict.fromkeys(("minProperties", "maxProperties"), _is_count),
    **dict.fromkeys(_ONE_SCHEMA, _is_schema),
    **dict.fromkeys((*_SCHEMA_MAPS, "properties", "dependentRequired"), _is_map),
    **dict.fromkeys((*_SCHEMA_LISTS, "enum"), _is_filled_list),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), lambda said: isinstance(said, bool)),
    "examples": lambda said: isinstance(said, list),
    "required": _is_list_of_texts,
}


def _is_well_formed(key: str, said: Any) -> bool:
    return key not in _FORMS or _FORMS[key](said)
