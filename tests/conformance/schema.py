"""The protocol's JSON schema: which type belongs to which method, what it refuses, which keys it does not know."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, relevance


class Schema:
    def __init__(self, path: Path) -> None:
        self._types: dict[str, Any] = json.loads(path.read_text())["$defs"]
        self.requests: dict[str, str] = {}
        self.results: dict[str, str] = {}
        self.notifications: dict[str, str] = {}
        self.receiver: dict[str, str] = {}
        """Which side gets a method's calls."""
        self._validators: dict[str, Draft202012Validator] = {}
        for name, type in self._types.items():
            if method := type.get("x-method"):
                self.receiver[method] = type.get("x-side")
                self._table(name)[method] = name

    def _table(self, name: str) -> dict[str, str]:
        if name.endswith("Response"):
            return self.results
        return self.notifications if name.endswith("Notification") else self.requests

    def complaints(self, name: str, value: Any) -> Iterator[str]:
        """What the type of that name refuses in a value; if nothing, the keys that it does not define."""
        refused = False
        for error in self._validator(name).iter_errors(value):
            refused = True
            cause = _cause(error)
            where = "/".join(str(part) for part in cause.absolute_path) or "(top)"
            yield f"{name} at {where}: {cause.message[:300]}"
        if not refused:
            yield from (f"{name}: the key {key} is not in the schema" for key in self._strays(self._types[name], value))

    def requires_nothing(self, name: str) -> bool:
        return not self._types[name].get("required")

    def _validator(self, name: str) -> Draft202012Validator:
        if name not in self._validators:
            self._validators[name] = Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": self._types})
        return self._validators[name]

    def _resolved(self, type: dict[str, Any]) -> dict[str, Any]:
        while type.get("$ref", "").startswith("#/$defs/"):
            type = self._types[type["$ref"].rpartition("/")[2]]
        return type

    def _known(self, type: dict[str, Any], value: Any) -> tuple[dict[str, Any], bool]:
        """The properties that a type defines for a value, and whether anything goes."""
        type = self._resolved(type)
        properties, free = dict(type.get("properties", {})), bool(type.get("additionalProperties"))
        alternatives = [branch for key in ("oneOf", "anyOf") for branch in type.get(key, [])]
        fitting = [b for b in alternatives if Draft202012Validator({**b, "$defs": self._types}).is_valid(value)]
        for branch in [*type.get("allOf", []), *fitting]:
            more, anything = self._known(branch, value)
            properties |= more
            free = free or anything
        return properties, free

    def _strays(self, type: dict[str, Any], value: Any, path: str = "") -> Iterator[str]:
        if isinstance(value, list):
            items = self._items(type)
            for number, inner in enumerate(value if items else []):
                yield from self._strays(items, inner, f"{path}/{number}")
        elif isinstance(value, dict):
            properties, free = self._known(type, value)
            for key, inner in value.items() if properties else ():
                if key in properties:
                    yield from self._strays(properties[key], inner, f"{path}/{key}")
                elif key != "_meta" and not free:
                    yield f"{path}/{key}"

    def _items(self, type: dict[str, Any]) -> dict[str, Any]:
        type = self._resolved(type)
        branches = [type, *(branch for key in ("anyOf", "oneOf", "allOf") for branch in type.get(key, []))]
        found = (self._resolved(branch).get("items") for branch in branches)
        return next((items for items in found if isinstance(items, dict)), {})


def _cause(error: ValidationError) -> ValidationError:
    """Of several alternatives, the fault in the one whose discriminator (a const) fitted."""
    while error.context:
        branches: dict[Any, list[ValidationError]] = {}
        for inner in error.context:
            branches.setdefault(inner.schema_path[0], []).append(inner)
        fitting = [branch for branch in branches.values() if not any(inner.validator == "const" for inner in branch)]
        error = max((inner for branch in fitting or branches.values() for inner in branch), key=relevance)
    return error
