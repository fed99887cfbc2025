"""Other forms of single tools' arguments: a last line for `read`, one edit without its list, milliseconds for
`terminal`.
"""

import shlex
from collections.abc import Callable
from typing import Any, TypeGuard

from crow.tools.lenient.names import ALIASES, ITEM_ALIASES, differ, quoted, squeezed
from crow.tools.lenient.values import Json, is_fields, is_items, listed, whole_number

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
