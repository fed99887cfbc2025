"""Arguments under the names, and in the shape, that a tool knows."""

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeGuard

from crow.tools.lenient.json_repair import json_in
from crow.tools.lenient.names import ALIASES, FOLDER_NAMES, ITEM_ALIASES, LABELS, WRAPPERS, means, squeezed
from crow.tools.lenient.values import Json, as_truth, is_fields, is_items, listed, number_of, whole_number
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


def reshaped(
    name: str,
    fields: Json,
    schema: Mapping[str, Any],
    notes: list[str] | None = None,
    problems: list[str] | None = None,
) -> Json:
    """The fields under the names that the tool knows; also of arguments that have arrived in part only."""
    notes, problems = ([] if notes is None else notes), ([] if problems is None else problems)
    properties: Mapping[str, Any] = schema.get("properties", {})
    reshape = _RESHAPES.get(name)
    fields = _renamed(fields, properties, ALIASES.get(name, {}), notes, problems)
    fields = reshape(fields, notes, problems) if reshape is not None else fields
    for field, aliases in ITEM_ALIASES.get(name, {}).items():
        items = listed(fields.get(field))
        if items is None or field not in properties:
            continue
        known = properties[field]["items"]["properties"]
        renamed = [_renamed(item, known, aliases, notes, problems) if is_fields(item) else item for item in items]
        fields[field] = [_counted(item, notes) if is_fields(item) else item for item in renamed]
    return fields


def _counted(item: Json, notes: list[str]) -> Json:
    """A number of replacements says that all are meant if it is more than one, and how many must be there."""
    if "expected_replacements" not in item:
        return item
    number = whole_number(item["expected_replacements"])
    item = {name: value for name, value in item.items() if name != "expected_replacements"}
    if number is None or number < 1 or (number == 1 and not item.get("all")):
        return item
    if not item.get("all"):
        notes.append(f"`expected_replacements` was read as `all`, for {number} places")
    return {**item, "all": True, "expected_replacements": number}


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
        elif real is not None and _differ(real, squeezed(field), fields[real], value):
            problems.append(f"{_quoted([real, field])} both stand for `{real}`, and differ: give only one of them")
    renamed: dict[str, str] = {}
    for real, names in claims.items():
        if all(fields[name] == fields[names[0]] for name in names):
            renamed |= dict.fromkeys(names, real)
            if squeezed(names[0]) != squeezed(real):
                notes.append(f"`{one_line(names[0], 60)}` was read as `{real}`")
        else:
            problems.append(f"{_quoted(names)} both stand for `{real}`, and differ: give only `{real}`")
    taken = set(renamed.values())
    return {
        renamed.get(field, field): value for field, value in fields.items() if value is not None or field not in taken
    }


_ONE_VALUE = frozenset({"path", "content", "command", "edits", "pattern", "old", "new", "cwd", "url"})
"""Arguments that decide what a call does: of two values for one of them none may be overlooked."""


_BESIDE = FOLDER_NAMES | {"shell", "bash"}
"""Other names that mean something else beside the argument itself: where it is relative to, what runs it."""


def _differ(real: str, other: str, value: Any, other_value: Any) -> bool:
    """Whether another name for an argument says something else than the argument itself."""
    if real not in _ONE_VALUE or value == other_value or other_value in ("", []) or other in _BESIDE:
        return False
    if real == "path" and isinstance(value, str) and isinstance(other_value, str):
        one, two = (f"/{each.removeprefix('./').strip('/')}" for each in (value, other_value))
        return not (one.endswith(two) or two.endswith(one))
    return True


# --- what single tools have of their own

_ENDS = frozenset({"endline", "end", "toline", "lineend", "lastline", "endlineoneindexedinclusive", "stopline", "to"})
_RANGES = frozenset({"viewrange", "linerange", "range", "lines", "linenumbers"})


def _reshape_read(fields: Json, notes: list[str], problems: list[str]) -> Json:
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


def _reshape_edit(fields: Json, notes: list[str], problems: list[str]) -> Json:
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
        if edits is None and fields.get("edits"):
            return {**fields, **flat}
        edits = list(edits or ())
        notes.append(f"{_quoted(flat)} {'was' if len(flat) == 1 else 'were'} read as one of `edits`")
        if flat not in edits:
            edits.append(flat)
    elif flat and edits and len(edits) == 1 and is_fields(edits[0]):
        fields = {field: value for field, value in fields.items() if field not in flat}
        edits = [{**flat, **edits[0]}]
    if edits is None:
        return fields
    fields["edits"] = edits
    return _with_path_of_items(fields, edits, problems)


def _quoted(names: Iterable[str]) -> str:
    return " and ".join(f"`{one_line(name, 60)}`" for name in names)


def _with_path_of_items(fields: Json, edits: list[Any], problems: list[str]) -> Json:
    """A path that stands with the edits counts where the call has none. One call changes one file."""
    paths = [path for edit in edits if is_fields(edit) for path in _paths_of_item(edit)]
    if not paths:
        return fields
    path = fields.get("path") or paths[0]
    others = [other for other in paths if _differ("path", "", path, other)]
    if others:
        named = _quoted(str(one) for one in dict.fromkeys([str(path), *map(str, others)]))
        problems.append(f"the edits are for several files, {named}: make one call for each file, with its `path`")
    bare = [_without_path(edit) if is_fields(edit) else edit for edit in edits]
    return {**fields, "path": path, "edits": bare}


def _paths_of_item(edit: Json) -> list[Any]:
    return [one for name, one in edit.items() if _is_path(name) and one not in (None, "")]


def _without_path(edit: Json) -> Json:
    return {name: one for name, one in edit.items() if not _is_path(name)}


def _is_path(name: str) -> bool:
    return name == "path" or ALIASES["edit"].get(squeezed(name)) == "path"


_APPENDING = frozenset({"append", "a", "at", "ab"})
_PLACES = frozenset(
    {"insertline", "line", "linenumber", "startline", "endline", "position", "offset", "viewrange", "linerange"}
)


def _reshape_write(fields: Json, notes: list[str], problems: list[str]) -> Json:
    """A mode instead of `append`. A place in the file cannot be overlooked: all of it would be replaced."""
    mode = fields.get("mode")
    if isinstance(mode, str) and mode.lower() in _APPENDING and "append" not in fields:
        fields = {field: value for field, value in fields.items() if field != "mode"} | {"append": True}
    places = [field for field, value in fields.items() if squeezed(field) in _PLACES and value is not None]
    if places:
        problems.append(f"{_quoted(places)}: `write` replaces a file or appends to it; to change a part use `edit`")
    return fields


_CASE_IGNORED = frozenset({"i", "ignorecase", "caseinsensitive", "insensitive"})
_LITERAL = frozenset({"literal", "fixedstrings", "fixedstring", "isliteral", "literaltext"})


def _reshape_search(fields: Json, notes: list[str], problems: list[str]) -> Json:
    """Switches that a pattern can say by itself."""
    pattern = fields.get("pattern")
    if not isinstance(pattern, str):
        return fields
    switches = {field: as_truth(value) for field, value in fields.items()}
    literal = [f for f, on in switches.items() if squeezed(f) in _LITERAL or (squeezed(f), on) == ("isregex", False)]
    any_case = [f for f in switches if squeezed(f) in _CASE_IGNORED or squeezed(f) == "casesensitive"]
    if any(switches[field] is True or squeezed(field) == "isregex" for field in literal):
        pattern = re.escape(pattern)
    if any(switches[field] is (squeezed(field) != "casesensitive") for field in any_case):
        pattern = f"(?i){pattern}"
    rest = {field: value for field, value in fields.items() if field not in (*literal, *any_case)}
    return {**rest, "pattern": pattern}


_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?)\s*", re.IGNORECASE)
_MILLISECONDS = frozenset({"timeoutms", "timeoutmilliseconds", "timeoutmillis"})


def _reshape_terminal(fields: Json, notes: list[str], problems: list[str]) -> Json:
    """A list of words instead of a line; words of their own; a time in milliseconds."""
    extra = fields.get("args", fields.get("arguments"))
    command = _command_line(fields.get("command"))
    if isinstance(command, str) and _are_words(extra):
        fields = {field: value for field, value in fields.items() if field not in ("args", "arguments")}
        command = " ".join([command, shlex.join(extra)]).strip()
        notes.append("`args` was added to `command`")
    if command is not None:
        fields["command"] = command
    if isinstance(timeout := fields.get("timeout"), str) and (found := _DURATION.fullmatch(timeout)) is not None:
        unit = found[2].lower()
        factor = 0.001 if unit.startswith(("ms", "mil")) else 60 if unit.startswith("m") else 1
        fields["timeout"] = float(found[1]) * factor
    for field in [field for field in fields if squeezed(field) in _MILLISECONDS]:
        number = number_of(fields[field])
        if number is not None and fields.get("timeout") is None:
            fields["timeout"] = number / 1000
            del fields[field]
    return fields


def _command_line(value: Any) -> Any:
    if not _are_words(value):
        return value
    words = value
    if len(words) == 1:
        return words[0]
    if len(words) == 3 and words[0] in ("bash", "/bin/bash") and words[1] in ("-c", "-lc", "-cl"):
        return words[2]
    # Two lines in a list are no words of one line, and whether the second runs if the first fails is not said.
    return value if any(character.isspace() for character in words[0]) else shlex.join(words)


def _are_words(value: Any) -> TypeGuard[list[str]]:
    return is_items(value) and bool(value) and all(isinstance(word, str) for word in value)


def _reshape_plan(fields: Json, notes: list[str], problems: list[str]) -> Json:
    """Entries that are only texts, and a tick instead of a status."""
    entries = listed(fields.get("entries"))
    if entries is None:
        return fields
    fields["entries"] = [_entry(entry) for entry in entries]
    return fields


def _entry(entry: Any) -> Any:
    if isinstance(entry, str):
        return {"content": entry}
    if not is_fields(entry):
        return entry
    fields = entry
    for tick in ("done", "completed", "checked"):
        if isinstance(fields.get(tick), bool) and "status" not in fields:
            rest = {name: value for name, value in fields.items() if name != tick}
            return {**rest, "status": "completed" if fields[tick] else "pending"}
    return fields


def _reshape_ask(fields: Json, notes: list[str], problems: list[str]) -> Json:
    """Options that are objects with a label."""
    options = listed(fields.get("options"))
    if options is None:
        return fields
    labels = [_label(option) for option in options]
    if all(isinstance(label, str) for label in labels):
        fields["options"] = labels
    return fields


def _label(option: Any) -> Any:
    if not is_fields(option):
        return option
    return next((option[name] for name in ("label", "text", "title", "value", "option") if name in option), option)


_RESHAPES: dict[str, Callable[[Json, list[str], list[str]], Json]] = {
    "read": _reshape_read,
    "write": _reshape_write,
    "search": _reshape_search,
    "edit": _reshape_edit,
    "terminal": _reshape_terminal,
    "plan": _reshape_plan,
    "ask": _reshape_ask,
}
