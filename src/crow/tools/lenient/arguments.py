"""Brings a call's arguments into the form that its tool asks for.

That is without wrappers, under the tool's own names, and of the types of its schema where nothing is lost.
"""

import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeGuard

import msgspec

from crow.tools.lenient.json_repair import json_in
from crow.tools.lenient.names import ALIASES, ITEM_ALIASES, LABELS, VALUES, WRAPPERS, differ, means, quoted, squeezed
from crow.visible import one_line

Json = dict[str, Any]


def is_fields(value: Any) -> TypeGuard[Json]:
    return isinstance(value, dict)


def is_items(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


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


# --- other forms of single tools' arguments: a last line for `read`, one edit without its list

_ENDS = frozenset({"endline", "end", "toline", "lineend", "lastline", "endlineoneindexedinclusive", "stopline", "to"})
_RANGES = frozenset({"viewrange", "linerange", "range", "lines", "linenumbers"})


def _normalise_read(fields: Json, notes: list[str], problems: list[str]) -> Json:
    """A first and a last line instead of a first line and a number of lines; lines that are counted from 0; and a list
    of one file."""
    match fields.get("path"):
        case [{"path": str(path), **rest}] if not any(name in fields for name in rest):
            fields = {**fields, "path": path, **rest}
        case _:
            pass
    for field in list(fields):
        if squeezed(field) in _RANGES and "offset" not in fields and (found := _range_of(fields[field])) is not None:
            del fields[field]
            fields["offset"], fields["end_line"] = found
    ends = [field for field in fields if squeezed(field) in _ENDS]
    if len(ends) == 1 and "limit" not in fields and (last := whole_number(fields[ends[0]])) is not None:
        first = whole_number(fields.get("offset", 1)) or 1
        if last == -1:
            del fields[ends[0]]
        elif last >= first:
            del fields[ends[0]]
            fields["limit"] = last - first + 1
            notes.append(f"lines {first} to {last} were read as `offset` and `limit`")
    if whole_number(fields.get("offset")) == 0:
        del fields["offset"]
    if whole_number(fields.get("limit")) == -1:
        del fields["limit"]
    return fields


def _range_of(value: Any) -> tuple[int, int] | None:
    parts = value.replace(":", "-").replace(",", "-").split("-", 1) if isinstance(value, str) else value
    if not is_items(parts) or len(parts) != 2:
        return None
    first, last = (whole_number(part) for part in parts)
    return (first, last) if first is not None and last is not None else None


def _normalise_edit(fields: Json, notes: list[str], problems: list[str]) -> Json:
    """One edit without its list, beside the list, or in place of it; and a path that stands with the edits."""
    item_names = ITEM_ALIASES["edit"]["edits"]
    flat = {
        field: value
        for field, value in fields.items()
        if field not in ("path", "edits") and squeezed(field) in item_names and value is not None
    }
    edits = listed(fields.get("edits"))
    if any(item_names[squeezed(field)] in ("old", "new") for field in flat):
        fields = {field: value for field, value in fields.items() if field not in flat}
        edits = list(edits or ())
        notes.append(f"{quoted(flat)} {'was' if len(flat) == 1 else 'were'} read as one of `edits`")
        if flat not in edits:
            edits.append(flat)
    if edits is None:
        return fields
    fields["edits"] = edits
    return _with_path_of_items(fields, edits, problems)


def _with_path_of_items(fields: Json, edits: list[Any], problems: list[str]) -> Json:
    """A path that stands with the edits counts where the call has none. One call changes one file."""
    paths = [path for edit in edits if is_fields(edit) for path in _paths_of_item(edit)]
    if not paths:
        return fields
    path = fields.get("path") or paths[0]
    others = [other for other in paths if differ("path", "", path, other)]
    if others:
        named = quoted(str(one) for one in dict.fromkeys([str(path), *map(str, others)]))
        problems.append(f"the edits are for several files, {named}: make one call for each file, with its `path`")
    bare = [_without_path(edit) if is_fields(edit) else edit for edit in edits]
    return {**fields, "path": path, "edits": bare}


def _paths_of_item(edit: Json) -> list[Any]:
    return [one for name, one in edit.items() if _is_path(name) and one not in (None, "")]


def _without_path(edit: Json) -> Json:
    return {name: one for name, one in edit.items() if not _is_path(name)}


def _is_path(name: str) -> bool:
    return name == "path" or ALIASES["edit"].get(squeezed(name)) == "path"


_PLACES = frozenset(
    {"insertline", "line", "linenumber", "startline", "endline", "position", "offset", "viewrange", "linerange"}
)


def _normalise_write(fields: Json, notes: list[str], problems: list[str]) -> Json:
    """A mode instead of `append`, and a place in the file: neither is overlooked, as all of it would be replaced."""
    mode = fields.get("mode")
    if isinstance(mode, str) and mode.lower() in ("append", "a", "at", "ab") and "append" not in fields:
        fields = {field: value for field, value in fields.items() if field != "mode"} | {"append": True}
    places = [field for field, value in fields.items() if squeezed(field) in _PLACES and value is not None]
    if places:
        problems.append(f"{quoted(places)}: `write` replaces a file or appends to it; to change a part use `edit`")
    return fields


def _normalise_terminal(fields: Json, notes: list[str], problems: list[str]) -> Json:
    """A list of words instead of a line, or beside its first: half of a command is not run."""
    command, rest = fields.get("command"), fields.get("args", fields.get("arguments"))
    if _are_words(command):
        command = _command_line(command)
    if isinstance(command, str) and _are_words(rest):
        fields = {field: value for field, value in fields.items() if field not in ("args", "arguments")}
        command = f"{command} {shlex.join(rest)}"
        notes.append("`args` was added to `command`")
    return fields if command is None else {**fields, "command": command}


def _command_line(words: list[str]) -> Any:
    if len(words) == 3 and words[0] in ("bash", "/bin/bash") and words[1] in ("-c", "-lc", "-cl"):
        return words[2]
    # Two lines in a list are no words of one line, and whether the second runs if the first fails is not said.
    return words if any(character.isspace() for character in words[0]) else shlex.join(words)


def _are_words(value: Any) -> TypeGuard[list[str]]:
    return is_items(value) and bool(value) and all(isinstance(word, str) for word in value)


NORMALISERS: dict[str, Callable[[Json, list[str], list[str]], Json]] = {
    "read": _normalise_read,
    "write": _normalise_write,
    "edit": _normalise_edit,
    "terminal": _normalise_terminal,
}


# --- values: numbers, lists, truth values as text


def coerced_fields(fields: Json, schema: Mapping[str, Any]) -> Json:
    properties: Mapping[str, Any] = schema.get("properties", {})
    required: Collection[str] = schema.get("required", ())
    values: Json = {}
    for name, value in fields.items():
        about = properties.get(name)
        if not is_fields(about):
            values[name] = value
        elif name in required or not _says_nothing(value, about):
            values[name] = _coerced(name, value, about)
    return values


def _says_nothing(value: Any, schema: Json) -> bool:
    """Some hosts send every argument, with null for what is left out; some models write that as text."""
    if value is None:
        return True
    is_number = schema.get("type") in ("integer", "number", "boolean")
    return is_number and isinstance(value, str) and value.strip().lower() in ("", "null", "none", "undefined")


def _coerced(name: str, value: Any, schema: Json) -> Any:
    match schema.get("type"):
        case "string":
            return _as_text(name, value, schema)
        case "integer":
            number = whole_number(value)
            return value if number is None else number
        case "number":
            number = number_of(value)
            return value if number is None else number
        case "boolean":
            return as_truth(value)
        case "array":
            return _as_list(name, value, schema)
        case "object" if isinstance(value, str):
            found = json_in(value, "{")
            return coerced_fields(found, schema) if is_fields(found) else value
        case "object" if is_fields(value):
            return coerced_fields(value, schema)
        case _:
            return value


def _as_text(name: str, value: Any, schema: Json) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and "enum" not in schema:
        return str(value)
    if isinstance(value, str) and "enum" in schema and value not in schema["enum"]:
        return _choice(name, value, schema["enum"])
    return value


def _choice(name: str, value: str, choices: Iterable[Any]) -> str:
    found = [choice for choice in choices if isinstance(choice, str) and squeezed(choice) == squeezed(value)]
    if len(found) == 1:
        return found[0]
    meant = VALUES.get(name, {}).get(squeezed(value))
    return meant if meant is not None and meant in choices else value


def whole_number(value: Any) -> int | None:
    number = number_of(value)
    if number is None or not float(number).is_integer():
        return None
    return int(number)


def number_of(value: Any) -> int | float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str) or len(value) > 30:
        return None
    try:
        number = msgspec.json.decode(value.strip().encode(), type=int | float)
    except (msgspec.DecodeError, UnicodeError):
        return None
    return number


def as_truth(value: Any) -> Any:
    if isinstance(value, str):
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(
            value.strip().lower(), value
        )
    return bool(value) if isinstance(value, int) and value in (0, 1) else value


def _as_list(name: str, value: Any, schema: Json) -> Any:
    items: Any = schema.get("items", {})
    about = items if is_fields(items) else {}
    if isinstance(value, str):
        found = json_in(value, "[", "{")
        value = found if is_items(found) or is_fields(found) else value
    if is_fields(value) and about.get("type") == "object":
        value = [value]
    if not is_items(value):
        return value
    return [_coerced(name, one, about) for one in value]


def listed(value: Any) -> list[Any] | None:
    """A list, also one that was written as a string or of one object that stands alone."""
    if isinstance(value, str):
        value = json_in(value, "[", "{")
    if is_fields(value):
        return [value]
    return list(value) if is_items(value) else None
