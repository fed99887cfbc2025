"""Makes the JSON Schema of an MCP tool one that every provider takes: one object of known keywords, of a bounded size,
with its references put in place.

A single schema that a provider refuses would make every request fail. What can be mended without a loss is mended,
what is malformed is dropped: the server checks the arguments itself.
"""

import functools
import hashlib
import math
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import unquote

import msgspec

from crow.visible import hidden_characters, made_visible, one_line

LARGEST = 32 * 1024
"""Bytes of a schema; its description is cut apart from it."""
MOST_LOOKED_AT = 2 * LARGEST
"""The most bytes that are read of a schema, counting a reference's target as often as it is followed."""
DEEPEST = 24
"""The most levels of schemas within schemas."""
MOST_REFERENCES = [DEEPEST, 4, 2, 1, 0]
"""How many references are followed one within another: fewer where the schema would become too large."""
TOO_LARGE = f"its schema is larger than {LARGEST // 1024} KiB"
CONTAINS_ITSELF = "(the same form again)"
NOT_SHOWN = "(too large to be shown)"
LONGEST_ARGUMENT_NAME = 64
LONGEST_PATTERN = 300
LONGEST_REMARK = 1000
LARGEST_INTEGER = 2**63
_PLAIN = re.compile(rf"[A-Za-z0-9_.-]{{1,{LONGEST_ARGUMENT_NAME}}}")
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_.-]")
_MOST_DIGITS = 6

Schema = dict[str, Any]


class SchemaUnfit(Exception):
    """A schema that no model could be given; the message says why."""


class _TooLarge(SchemaUnfit):
    """The schema is too large with so many references followed; it may fit with fewer."""


class Fitted(msgspec.Struct, frozen=True):
    schema: Schema
    real_names: dict[str, str]
    """The names of arguments that providers refuse, by the names that the model is given instead."""
    remark: str
    """What the schema no longer says, for the tool's description."""
    hidden: list[str]
    """Characters in it that could not be seen."""


def fit_for_models(schema: Schema) -> Fitted:
    """References are put in place; one that leads into itself becomes "anything" where it would do so again."""
    limits = MOST_REFERENCES
    while True:
        fitting = _Fitting(schema, limits[0])
        try:
            return fitting.whole()
        except _TooLarge:
            limits = [limit for limit in limits if limit < fitting.followed]  # any other would change nothing
            if not limits:
                raise


class _Place(msgspec.Struct, frozen=True):
    """The place within a schema that is being read."""

    depth: int = 0
    inside: frozenset[int] = frozenset()
    """The targets of the references that led here, by their identity."""
    references: int = 0
    """How many of them there were, one right after another counted once."""

    def below(self) -> "_Place":
        return _Place(self.depth + 1, self.inside, self.references)


class _Fitting:
    def __init__(self, root: Schema, references: int) -> None:
        self.followed = 0
        """References one within another, where they were the most."""
        self._real_names: dict[str, str] = {}
        self._hidden: dict[str, None] = {}
        self._root = root
        self._references = references
        self._left = MOST_LOOKED_AT

    def whole(self) -> Fitted:
        whole, remarks = _flattened(self._schema(self._root, _Place()))
        schema = {**whole, "type": "object", "properties": whole.get("properties", {})}
        if len(msgspec.json.encode(schema)) > LARGEST:
            raise _TooLarge(TOO_LARGE)
        remark = one_line(" ".join(remarks), LONGEST_REMARK)
        return Fitted(schema, self._real_names, remark, list(self._hidden))

    def _schema(self, value: Any, place: _Place) -> Schema:
        """A schema within the schema. What is no schema stands for anything."""
        self._enter(place)
        if not isinstance(value, dict):
            return {"not": {}} if value is False else {}
        parts = cast("Schema", value)
        self._look_at(parts)
        if isinstance(parts.get("$ref"), str):
            parts, place = self._followed(parts, place)
        return {key: self._keyword(key, said, place) for key, said in well_formed(parts).items()}

    def _followed(self, parts: Schema, place: _Place) -> tuple[Schema, _Place]:
        """With what the reference leads to put in its place. What is said beside a reference holds."""
        inside = place.inside
        while isinstance(reference := parts.get("$ref"), str):
            self._spend(len(reference))
            beside = {key: said for key, said in parts.items() if key != "$ref"}
            target = _referenced(reference, self._root)
            if target is None:
                return beside, place
            if id(target) in inside:
                return _in_short(target, beside, CONTAINS_ITSELF), place
            if place.depth and place.references == self._references:
                return _in_short(target, beside, NOT_SHOWN), place
            self._look_at(target)
            inside |= {id(target)}
            parts = {**target, **beside}
        references = place.references + 1 if place.depth else 0
        self.followed = max(self.followed, references)
        return parts, _Place(place.depth, inside, references)

    def _keyword(self, key: str, said: Any, place: _Place) -> Any:
        self._spend(len(key) + 4)
        if key in PROSE:
            return self._prose(said)
        if key == "required":
            return [self._argument(name) for name in said]
        if key == "properties":
            return {self._argument(name): self._property(name, one, place) for name, one in said.items()}
        if key == "patternProperties":
            patterns = [self._text(pattern) for pattern in said if is_pattern(pattern)]
            return {pattern: self._schema(said[pattern], place.below()) for pattern in patterns}
        if key in SCHEMA_LISTS:
            return [self._schema(one, place.below()) for one in said]
        if key in ONE_SCHEMA and not isinstance(said, bool):
            return self._schema(said, place.below())
        return self._data(said, place)

    def _property(self, name: str, said: Any, place: _Place) -> Schema:
        fitted = self._schema(said, place.below())
        return fitted if is_plain(name) else {"title": self._prose(name), **fitted}

    def _argument(self, name: str) -> str:
        self._text(name)
        if is_plain(name):
            return name
        given = plain_name(name)
        self._real_names[given] = name
        return given

    def _data(self, value: Any, place: _Place) -> Any:
        """What is no schema: an example, a default, the values that there are."""
        self._enter(place)
        match value:
            case dict():
                fields = cast("Schema", value).items()
                return {self._text(key): self._data(one, place.below()) for key, one in fields}
            case list():
                return [self._data(one, place.below()) for one in cast("list[Any]", value)]
            case str():
                return self._text(value)
            case int() if abs(value) >= LARGEST_INTEGER:
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

    def _prose(self, text: str) -> str:
        return made_visible(self._text(text))

    def _text(self, text: str) -> str:
        self._spend(len(text) + 4)
        self._hidden.update(dict.fromkeys(hidden_characters(text)))
        return text

    # --- what it takes: everything that is looked at counts, however little of it is kept

    def _enter(self, place: _Place) -> None:
        if place.depth > DEEPEST:
            raise _TooLarge("its schema is too deep")
        self._spend(2)

    def _look_at(self, parts: Schema) -> None:
        self._spend(len(parts))
        for key, said in parts.items():
            if isinstance(said, dict | list) and key in _KEYWORDS:
                self._spend(len(cast("Schema | list[Any]", said)))

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise _TooLarge(TOO_LARGE)


def _in_short(target: Schema, beside: Schema, why: str) -> Schema:
    """Anything of its type, in place of a form that is left out."""
    said = beside.get("description")
    described = {"description": f"{said} {why}" if isinstance(said, str) else why}
    return {**({"type": target["type"]} if "type" in target else {}), **beside, **described}


# --- keywords: those that models and providers understand, in the form of today

PROSE = ("title", "description")
ONE_SCHEMA = frozenset({"items", "additionalProperties", "propertyNames", "not", "if", "then", "else"})
SCHEMA_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_KEYWORDS: dict[str, type[Any] | tuple[type[Any], ...]] = {
    **dict.fromkeys((*PROSE, "format", "contentEncoding", "contentMediaType", "pattern"), str),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), (int, float)),
    **dict.fromkeys(_COUNTS, int),
    **dict.fromkeys(ONE_SCHEMA, (dict, bool)),
    **dict.fromkeys(("properties", "patternProperties"), dict),
    **dict.fromkeys((*SCHEMA_LISTS, "enum", "required", "examples"), list),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), bool),
    **dict.fromkeys(("type", "const", "default"), object),
}
_DIFFERS = re.compile(r"\(\?[^:=!<]|\(\?<[^=!]|\\[AZzGQEKpPuUN]|\[\[|[^\x00-\x7f]")
"""In patterns: what not every reader of regular expressions knows, or what takes them long to read."""


def well_formed(parts: Schema) -> Schema:
    """What is said in keywords that are understood, with values of their types."""
    known = {key: said for key, said in parts.items() if key in _KEYWORDS}
    if isinstance(known.get("items"), list):  # the older form of a tuple
        known["prefixItems"] = known.pop("items")
        if "additionalItems" in parts:
            known["items"] = parts["additionalItems"]
    if "type" in known:
        said: Any = known["type"]
        types = [one for one in _TYPES if one in (cast("list[Any]", said) if isinstance(said, list) else [said])]
        known["type"] = types[0] if len(types) == 1 else types
    if isinstance(names := known.get("required"), list):
        known["required"] = list(dict.fromkeys(name for name in cast("list[Any]", names) if isinstance(name, str)))
    return {key: said for key, said in known.items() if _is_well_formed(key, said)}


def _is_well_formed(key: str, said: Any) -> bool:
    types = _KEYWORDS[key]
    if not isinstance(said, types) or (isinstance(said, bool) and types in (int, (int, float))):
        return False
    match said:
        case str():
            return key != "pattern" or is_pattern(said)
        case float() if types is not object:
            return math.isfinite(said) and (key != "multipleOf" or said > 0)
        case int():
            return (key not in _COUNTS or 0 <= said < LARGEST_INTEGER) and (key != "multipleOf" or said > 0)
        case list():
            return bool(cast("list[Any]", said)) or key in ("const", "default", "examples")
        case _:
            return True


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


# --- schemas that are one of several at their top, which providers refuse: made one object, the forms told in words


_UNIONS = ("allOf", "anyOf", "oneOf")
_CONDITIONS = ("not", "if", "then", "else", "enum", "const")
"""What providers refuse at the top as well."""


def _flattened(schema: Schema) -> tuple[Schema, list[str]]:
    """The schema, and what it no longer says: which arguments belong together, and which conditions there are."""
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
    flattened = [_flattened(form) for form in forms if "object" in form.get("type", "object")]
    if not flattened:
        raise SchemaUnfit("its arguments are no object")
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


# --- names of arguments that providers refuse: the model is given plain ones, the server gets its own


def is_plain(name: str) -> bool:
    return _PLAIN.fullmatch(name) is not None


def plain_name(name: str) -> str:
    """With a short hash: no other argument has it, so that it can be known again wherever it stands."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{_NOT_PLAIN.sub('_', name)[: LONGEST_ARGUMENT_NAME - 9]}_{digest}"


def with_real_names(value: Any, real_names: Mapping[str, str]) -> Any:
    """Arguments as the server knows them."""
    if not real_names:
        return value
    match value:
        case dict():
            fields = cast("Schema", value)
            return {real_names.get(name, name): with_real_names(one, real_names) for name, one in fields.items()}
        case list():
            return [with_real_names(one, real_names) for one in cast("list[Any]", value)]
        case _:
            return value


# --- references: pointers from the root, through objects and lists


def _referenced(reference: str, root: Schema) -> Schema | None:
    """The schema that a reference leads to; None if it leads nowhere, out of the schema, or to what is no schema."""
    found: Any = root if reference == "#" or reference.startswith("#/") else None
    for step in unquote(reference).split("/")[1:]:
        found = _one_step(found, step.replace("~1", "/").replace("~0", "~"))
    return cast("Schema", found) if isinstance(found, dict) else None


def _one_step(found: Any, step: str) -> Any:
    if isinstance(found, dict):
        return cast("Schema", found).get(step)
    if isinstance(found, list) and step.isascii() and step.isdigit() and len(step) <= _MOST_DIGITS:
        members, index = cast("list[Any]", found), int(step)
        return members[index] if index < len(members) else None
    return None
