"""A tool's schema as models take it: an object, in one piece, of a sensible size."""

from typing import Any, cast

import msgspec

from crow.mcp.using.hidden import made_visible

LARGEST = 32 * 1024
"""Bytes of a schema; its description is cut apart from it."""
DEEPEST = 24
_PROSE = ("title", "description")
_PASSED_OVER = frozenset({"$schema", "$id", "$defs", "definitions", "$comment", "$anchor"})


class SchemaUnfit(Exception):
    """Says what is wrong with it."""


def fit_for_models(schema: dict[str, Any]) -> dict[str, Any]:
    """References are put in place; one that leads into itself becomes "anything" where it would do so again."""
    fitted = _Fitting(schema).fit(schema, (), 0)
    fitted["type"] = "object"
    fitted.setdefault("properties", {})
    return fitted


class _Fitting:
    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._left = LARGEST

    def fit(self, value: Any, inside: tuple[str, ...], depth: int) -> Any:
        """`inside` are the references that led here."""
        if depth > DEEPEST:
            raise SchemaUnfit("its schema is too deep")
        match value:
            case dict():
                return self._object(cast("dict[str, Any]", value), inside, depth)
            case list():
                return [self.fit(item, inside, depth + 1) for item in cast("list[Any]", value)]
            case _:
                self._spend(len(msgspec.json.encode(value)) + 1)
                return value

    def _object(self, parts: dict[str, Any], inside: tuple[str, ...], depth: int) -> Any:
        reference = parts.get("$ref")
        if isinstance(reference, str):
            rest = {key: value for key, value in parts.items() if key != "$ref"}
            target = None if reference in inside else self._target(reference)
            merged = {**cast("dict[str, Any]", target), **rest} if isinstance(target, dict) else rest
            return self.fit(merged, (*inside, reference), depth + 1)
        fitted: dict[str, Any] = {}
        for key, value in parts.items():
            if key in _PASSED_OVER:
                continue
            self._spend(len(key) + 4)
            if key in _PROSE and isinstance(value, str):
                value = made_visible(value)  # noqa: PLW2901 -- the same text, readable
            fitted[key] = self.fit(value, inside, depth + 1)
        return fitted

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

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise SchemaUnfit(f"its schema is larger than {LARGEST // 1024} KiB")
