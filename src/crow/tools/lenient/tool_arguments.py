"""Other forms of single tools' arguments: a last line for `read`, one edit without its list, milliseconds for
`terminal`.
"""

import re
import shlex
from collections.abc import Callable
from typing import Any, TypeGuard

from crow.tools.lenient.names import ALIASES, ITEM_ALIASES, differ, quoted, squeezed
from crow.tools.lenient.values import Json, as_truth, is_fields, is_items, listed, number_of, whole_number

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
        if edits is None and fields.get("edits"):
            return {**fields, **flat}
        edits = list(edits or ())
        notes.append(f"{quoted(flat)} {'was' if len(flat) == 1 else 'were'} read as one of `edits`")
        if flat not in edits:
            edits.append(flat)
    elif flat and edits and len(edits) == 1 and is_fields(edits[0]):
        fields = {field: value for field, value in fields.items() if field not in flat}
        edits = [{**flat, **edits[0]}]
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


_APPENDING = frozenset({"append", "a", "at", "ab"})
_PLACES = frozenset(
    {"insertline", "line", "linenumber", "startline", "endline", "position", "offset", "viewrange", "linerange"}
)


def _normalise_write(fields: Json, notes: list[str], problems: list[str]) -> Json:
    """A mode instead of `append`. A place in the file cannot be overlooked: all of it would be replaced."""
    mode = fields.get("mode")
    if isinstance(mode, str) and mode.lower() in _APPENDING and "append" not in fields:
        fields = {field: value for field, value in fields.items() if field != "mode"} | {"append": True}
    places = [field for field, value in fields.items() if squeezed(field) in _PLACES and value is not None]
    if places:
        problems.append(f"{quoted(places)}: `write` replaces a file or appends to it; to change a part use `edit`")
    return fields


_CASE_IGNORED = frozenset({"i", "ignorecase", "caseinsensitive", "insensitive"})
_LITERAL = frozenset({"literal", "fixedstrings", "fixedstring", "isliteral", "literaltext"})


def _normalise_search(fields: Json, notes: list[str], problems: list[str]) -> Json:
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


def _normalise_terminal(fields: Json, notes: list[str], problems: list[str]) -> Json:
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


def _normalise_plan(fields: Json, notes: list[str], problems: list[str]) -> Json:
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


def _normalise_ask(fields: Json, notes: list[str], problems: list[str]) -> Json:
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


NORMALISERS: dict[str, Callable[[Json, list[str], list[str]], Json]] = {
    "read": _normalise_read,
    "write": _normalise_write,
    "search": _normalise_search,
    "edit": _normalise_edit,
    "terminal": _normalise_terminal,
    "plan": _normalise_plan,
    "ask": _normalise_ask,
}
