"""Where a reference within a schema leads: a pointer from its root, through objects and lists."""

from typing import Any, cast
from urllib.parse import unquote

_MOST_DIGITS = 6


def target_of(reference: str, root: dict[str, Any]) -> dict[str, Any] | None:
    """None if it leads nowhere, out of the schema, or to what is no schema."""
    found: Any = root if reference == "#" or reference.startswith("#/") else None
    for step in unquote(reference).split("/")[1:]:
        found = _one_step(found, step.replace("~1", "/").replace("~0", "~"))
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _one_step(found: Any, step: str) -> Any:
    if isinstance(found, dict):
        return cast("dict[str, Any]", found).get(step)
    if isinstance(found, list) and step.isascii() and step.isdigit() and len(step) <= _MOST_DIGITS:
        members, index = cast("list[Any]", found), int(step)
        return members[index] if index < len(members) else None
    return None
