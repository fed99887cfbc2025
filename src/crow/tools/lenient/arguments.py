"""Unwraps the arguments of a call that a model put into something else, and gives them the names that the tool has."""

from collections.abc import Collection, Mapping
from typing import Any

from crow.tools.lenient.json_repair import json_in
from crow.tools.lenient.names import ALIASES, ITEM_ALIASES, LABELS, WRAPPERS, differ, means, quoted, squeezed
from crow.tools.lenient.tool_arguments import NORMALISERS
from crow.tools.lenient.values import Json, is_fields, is_items, listed
from crow.visible import one_line

MOST_LAYERS = 4
"""Of wrappers, and of JSON in strings, that are taken off."""


def unwrapped(name: str, given: Any, schema: Mapping[str, Any], notes: list[str], problems: list[str]) -> Json | None:
    """The arguments without what a model put around them."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    given = {} if given is None else given
    for _ in range(MOST_LAYERS):
        if isinstance(given, str):
            given = json_in(given, "{", "[", '"')
        elif is_items(given):
            given = _only_one(given)
        elif is_fields(given):
            fields = given
            wrapper = _wrapper_of(name, fields, properties)
            if wrapper is None:
                return fields
            given = fields[wrapper]
            notes.append(f"what stands in `{one_line(wrapper, 60)}` was read as the arguments")
            problems += _other_tool(name, fields)
        else:
            return None
    return given if is_fields(given) else None


def _only_one(items: list[Any]) -> Any:
    return items[0] if len(items) == 1 and _holds_fields(items[0]) else None


def _wrapper_of(name: str, fields: Json, properties: Mapping[str, Any]) -> str | None:
    """The field that holds all the arguments, if there is one and nothing beside it is an argument."""
    wrappers = WRAPPERS | {squeezed(name)}
    aliases = ALIASES.get(name, {})
    found = [
        field
        for field, value in fields.items()
        if field not in properties
        and squeezed(field) in wrappers
        and _holds_fields(value)
        # `plan` of a plan is the list of its entries, also if there is but one.
        and not (is_items(value) and squeezed(field) in aliases)
    ]
    known = {squeezed(field) for field in properties} | set(ALIASES.get(name, {}))
    others = [field for field in fields if field not in found and squeezed(field) not in LABELS]
    if len(found) != 1 or any(squeezed(field) in known for field in others):
        return None
    return found[0]


def _holds_fields(value: Any) -> bool:
    if isinstance(value, str):
        value = json_in(value, "{", "[", '"')
    return is_fields(_only_one(value) if is_items(value) else value)


def _other_tool(name: str, fields: Json) -> list[str]:
    """A wrapper may name the tool that was meant: it must be the one that was called."""
    named = [value for field, value in fields.items() if squeezed(field) in ("name", "tool", "toolname")]
    return [
        f"they name another tool, `{one_line(value, 60)}`"
        for value in named
        if isinstance(value, str) and not means(value, name)
    ]


def normalised(
    name: str,
    fields: Json,
    schema: Mapping[str, Any],
    notes: list[str] | None = None,
    problems: list[str] | None = None,
) -> Json:
    """The fields under the names that the tool knows; also of arguments that have arrived in part only."""
    notes, problems = ([] if notes is None else notes), ([] if problems is None else problems)
    properties: Mapping[str, Any] = schema.get("properties", {})
    normalise = NORMALISERS.get(name)
    fields = _renamed(fields, properties, ALIASES.get(name, {}), notes, problems)
    fields = normalise(fields, notes, problems) if normalise is not None else fields
    for field, aliases in ITEM_ALIASES.get(name, {}).items():
        items = listed(fields.get(field))
        if items is None or field not in properties:
            continue
        known = properties[field]["items"]["properties"]
        fields[field] = [_renamed(item, known, aliases, notes, problems) if is_fields(item) else item for item in items]
    return fields


def _renamed(
    fields: Json,
    known: Collection[str],
    aliases: Mapping[str, str],
    notes: list[str],
    problems: list[str],
) -> Json:
    """Another name counts where the real one is absent, and only one of the others is there, or all say the same."""
    if all(field in known for field in fields):
        return dict(fields)
    real_names = {squeezed(name): name for name in known}
    claims: dict[str, list[str]] = {}
    for field, value in fields.items():
        if field in known or value is None:
            continue
        real = real_names.get(squeezed(field)) or aliases.get(squeezed(field))
        if real is not None and fields.get(real) is None:
            claims.setdefault(real, []).append(field)
        elif real is not None and differ(real, squeezed(field), fields[real], value):
            problems.append(f"{quoted([real, field])} both stand for `{real}`, and differ: give only one of them")
    renamed: dict[str, str] = {}
    for real, names in claims.items():
        if all(fields[name] == fields[names[0]] for name in names):
            renamed |= dict.fromkeys(names, real)
            if squeezed(names[0]) != squeezed(real):
                notes.append(f"`{one_line(names[0], 60)}` was read as `{real}`")
        else:
            problems.append(f"{quoted(names)} both stand for `{real}`, and differ: give only `{real}`")
    taken = set(renamed.values())
    return {
        renamed.get(field, field): value for field, value in fields.items() if value is not None or field not in taken
    }
