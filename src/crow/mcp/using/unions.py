"""Schemas that are one of several at their top, which providers refuse: made one object, the forms told in words."""

from collections.abc import Sequence
from typing import Any

import msgspec

from crow.visible import one_line

Schema = dict[str, Any]

_UNIONS = ("allOf", "anyOf", "oneOf")
_CONDITIONS = ("not", "if", "then", "else", "enum", "const")
"""What providers refuse at the top as well."""
LONGEST_REMARK = 1000


class NoObject(Exception):
    """None of the forms is one."""


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
