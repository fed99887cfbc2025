"""The names and shapes of the protocol, out of its unstable JSON schema, small enough to be kept beside the tests.

    python -m tests.conformance.digest

writes `protocol.json` anew, from the package that `outside.SDK` names (needs npm). `tests/acp/test_drift.py` compares
our types with it, without a network; `make conformance` says if it is no longer what the package has.
"""

import json
from pathlib import Path
from typing import Any

from tests.conformance import outside

DIGEST = Path(__file__).parent / "protocol.json"
Json = dict[str, Any]
Fields = dict[str, list[str]]
"""By name, with a `?` behind it for one that may be left out: the texts that a value can be, if they are listed."""


def read() -> Json:
    return json.loads(DIGEST.read_text())


def main() -> None:
    DIGEST.write_text(written(digest(outside.unstable_schema())))


def digest(schema: Json) -> Json:
    types: Json = schema["$defs"]
    shapes: dict[str, Fields] = {}
    methods: dict[str, set[str]] = {}
    for name, type in types.items():
        if side := type.get("x-side"):
            methods.setdefault(side, set()).add(type["x-method"])
        variants = _variants(type, types)
        if not variants and type.get("type") == "object":
            shapes[name] = _fields(type, types)
        for value, fields in variants.items():
            shapes[f"{name} {value}"] = fields
    listed = {name: values for name, type in types.items() if (values := _values(type, types))}
    return {
        "from": outside.SDK,
        "methods": {side: sorted(names) for side, names in sorted(methods.items())},
        "lists": listed,
        "types": shapes,
    }


def written(digest: Json) -> str:
    """Each list and each type on a line of its own, so that a change is a line of a diff."""
    parts = [f'"from": {json.dumps(digest["from"])}', f'"methods": {json.dumps(digest["methods"], indent=1)}']
    for part in ("lists", "types"):
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in sorted(digest[part].items()))
        parts.append(f'"{part}": {{\n{lines}\n}}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _resolved(type: Json, types: Json) -> Json:
    while (reference := type.get("$ref", "")).startswith("#/$defs/"):
        type = types[reference.rpartition("/")[2]]
    return type


def _branches(type: Json) -> list[Json]:
    return [*type.get("oneOf", []), *type.get("anyOf", [])]


def _variants(type: Json, types: Json) -> dict[str, Fields]:
    """The shapes that a discriminator tells apart, by its value; empty if there is none. One without it is `other`."""
    found: dict[str, Fields] = {}
    for branch in _branches(type):
        fields = _fields(type | {"oneOf": [], "anyOf": []}, types) | _fields(branch, types)
        constant = next((one["const"] for one in branch.get("properties", {}).values() if "const" in one), None)
        if isinstance(constant, str):
            found[constant] = fields
        elif fields and branch.get("title") != "other":
            found[branch.get("title", "other")] = fields
    return found


def _fields(type: Json, types: Json) -> Fields:
    type = _resolved(type, types)
    found: Fields = {}
    for part in type.get("allOf", []):
        found |= _fields(part, types)
    shapes = [shape for branch in _branches(type) if (shape := _fields(branch, types))]
    for shape in shapes:
        found |= {name if all(name in one for one in shapes) else _optional(name): shape[name] for name in shape}
    for name, value in type.get("properties", {}).items():
        if name != "_meta":
            key = name if name in type.get("required", []) else _optional(name)
            found[key] = _values(value, types)
    return found


def _optional(name: str) -> str:
    return name if name.endswith("?") else f"{name}?"


def _values(type: Json, types: Json) -> list[str]:
    type = _resolved(type, types)
    said = [type["const"]] if "const" in type else type.get("enum", [])
    for branch in (*_branches(type), *type.get("allOf", [])):
        said = [*said, *_values(branch, types)]
    return sorted({value for value in said if isinstance(value, str)})


if __name__ == "__main__":
    main()
