"""Other agents' names for our tools and their arguments, and which tool is meant by a name that no tool has.

A tool's name that no tool has stands for one only where it can be but one. Models add what they were trained with: a
namespace, a number, special tokens of their chat template. `other_agents.toml` has the names.
"""

import difflib
import os
import re
import tomllib
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec

from crow.files.base import Workspace
from crow.messages import SERVER_TOOL, ToolCall, ToolSpec, json_object
from crow.tools.base import Action, BadArguments, Tool
from crow.tools.lenient.json_repair import Unreadable, read_json
from crow.visible import one_line

_NO_LETTERS = re.compile(r"[^a-z0-9]+")


def squeezed(name: str) -> str:
    """A name without the ways in which it can be spelled: `filePath` and `file_path` are the same."""
    return _NO_LETTERS.sub("", name.lower())


with open(os.path.join(os.path.dirname(__file__), "other_agents.toml"), "rb") as _file:
    _OTHERS: dict[str, Any] = tomllib.load(_file)


def _by_alias(names: Mapping[str, str]) -> dict[str, str]:
    """What is meant, by each of its other names."""
    groups: dict[str, str] = _OTHERS["groups"]
    return {
        alias: meant
        for meant, written in names.items()
        for word in written.split()
        for alias in groups.get(word, word).split()
    }


ALIASES = {tool: _by_alias(names) for tool, names in _OTHERS["arguments"].items()}
"""By tool: the argument that is meant, by another name for it, squeezed."""
ITEM_ALIASES = {
    tool: {field: _by_alias(names) for field, names in fields.items()} for tool, fields in _OTHERS["items"].items()
}
"""By tool and argument: the same, for the objects in a list."""
VALUES = {argument: _by_alias(names) for argument, names in _OTHERS["values"].items()}
"""By argument: the value that is meant, by another word for it, squeezed."""
WRAPPERS = frozenset(_OTHERS["wrappers"].split())
"""Names of a field that may hold all the arguments."""
LABELS = frozenset(_OTHERS["labels"].split())
"""What stands beside the arguments in a whole call."""


# --- the tool that is meant by a name that no tool has

_TOKENS = re.compile(r"<\|?[^<>]*\|?>?|\[/?[A-Z_]+\]")
_TO = re.compile(r"\b(?:to|function|name|tool)=[\"']?([\w.:-]+)")
_PREFIX = re.compile(
    r"^(?:(?:functions?|default_api|tools?|tool_?calls?|call|mcp|api|crow|builtin|default|namespace|assistant|commentary"
    r"|repo_browser|fs|file_?system|workspace)(?:[.:/]+|__)|(?:tool|fs)_)",
    re.IGNORECASE,
)
_SUFFIX = re.compile(r"(?:(?<![:.#/_-])[:.#/_-]+\d{1,4}|[_.-]?(?:tool|function)|\(.*\)?)$", re.IGNORECASE | re.DOTALL)

_MEANT = _by_alias(_OTHERS["tools"])


def resolve(name: str, offered: Iterable[str]) -> str | None:
    """The offered tool that is meant; None if there is none, or more than one could be."""
    known = list(dict.fromkeys(offered))
    for spelling in spellings(name):
        found = _matches(spelling, known)
        if len(found) == 1:
            return found.pop()
        if found:
            return None
    return None


def means(name: str, tool: str) -> bool:
    """Whether a name that was written down means this tool."""
    return name == tool or resolve(name, [tool]) == tool


def near(name: str, offered: Iterable[str]) -> list[str]:
    """Offered tools that might be meant."""
    known = list(dict.fromkeys(offered))
    written = list(spellings(name))
    found = [tool for spelling in written for tool in sorted(_matches(spelling, known))]
    by_key = {squeezed(tool): tool for tool in known}
    for spelling in written[-1:]:
        found += [by_key[key] for key in difflib.get_close_matches(squeezed(spelling), list(by_key), 3, 0.6)]
        words = {word for word in re.findall(r"[a-z]+", _snake(spelling)) if len(word) > 2}
        found += [tool for tool in known if words & set(re.findall(r"[a-z]+", _snake(tool)))]
    return list(dict.fromkeys(found))[:5]


def spellings(name: str) -> Iterator[str]:
    """The name, with less and less of what may have been added to it."""
    name = unicodedata.normalize("NFKC", name)
    to = _TO.search(name)
    name = (to[1] if to is not None else _TOKENS.sub(" ", name)).strip(" \t\r\n\"'`{}")
    name = name.split()[0] if name.split() else ""
    yield name
    while (shorter := _PREFIX.sub("", name, count=1)) and shorter != name:
        name = shorter
        yield name
    for _ in range(2):
        shorter = _SUFFIX.sub("", name)
        if shorter and shorter != name:
            name = shorter
            yield name


def _matches(name: str, offered: list[str]) -> set[str]:
    key = squeezed(name)
    if not key:
        return set()
    found = {tool for tool in offered if squeezed(tool) == key}
    if found:
        return found
    found = {tool for tool in offered if _MEANT.get(key) == tool}
    # A server's tools bear its name in front of their own.
    ending = f"_{_snake(name)}"
    return found | {tool for tool in offered if tool.startswith(SERVER_TOOL) and _snake(tool).endswith(ending)}


def _snake(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()).strip("_")


# --- two names for one argument

_ONE_VALUE = frozenset({"path", "content", "command", "edits", "pattern", "old", "new", "cwd", "url"})
"""Arguments that decide what a call does: of two values for one of them none may be overlooked."""


_BESIDE = frozenset(_OTHERS["groups"]["FOLDER"].split()) | {"shell", "bash"}
"""Other names that mean something else beside the argument itself: where it is relative to, what runs it."""


def differ(real: str, other: str, value: Any, other_value: Any) -> bool:
    """Whether another name for an argument says something else than the argument itself."""
    if real not in _ONE_VALUE or value == other_value or other_value in ("", []) or other in _BESIDE:
        return False
    if real == "path" and isinstance(value, str) and isinstance(other_value, str):
        one, two = (f"/{each.removeprefix('./').strip('/')}" for each in (value, other_value))
        return not (one.endswith(two) or two.endswith(one))
    return True


def quoted(names: Iterable[str]) -> str:
    return " and ".join(f"`{one_line(name, 60)}`" for name in names)


# --- tools of others that do what several of ours do, or what none does in that shape

_EDITORS = frozenset({"strreplaceeditor", "strreplacebasededittool", "texteditor", "fileeditor", "editor"})
_UPDATES = frozenset({"updatefile", "modify", "change"})
_SEARCHES = frozenset({"searchfiles"})

_COMMANDS = {"view": "read", "create": "write", "strreplace": "edit", "replace": "edit"}
"""Of the editors that take a command: the tool that does the same."""
_EDITS = frozenset({"edits", "oldstr", "oldstring", "oldtext", "old"})
_TEXTS = frozenset({"filetext", "content", "contents", "filecontent"})
_LOOKS = frozenset({"path", "filepath", "file", "filename", "viewrange", "offset", "limit"})
_REGEX = frozenset({"regex", "regexp", "regexpattern"})
_GLOB = frozenset({"glob", "globpattern"})

_INSERT = "`edit` with a line beside the place as `old`, and in `new` that line again with the added ones"


def hint(name: str, offered: Collection[str]) -> str:
    """What to call instead of a tool that needs another shape; empty if nothing is known of it."""
    keys = {squeezed(spelling) for spelling in spellings(name)}
    for instead in _OTHERS["instead"]:
        if keys.intersection(instead["names"].split()) and instead.get("needs", "") in ("", *offered):
            return f"Use {instead['use']}."
    return ""


def several(name: str, offered: Collection[str], find: Callable[[str], Tool | None]) -> "SeveralTools | None":
    """A tool that stands for several of those that are offered; None if the name is none of the kind."""
    names = {squeezed(spelling) for spelling in spellings(name)}
    for known in (_EDITORS, _UPDATES, _SEARCHES):
        if names & known:
            return SeveralTools(name, known, offered, find)
    return None


class SeveralTools(Tool):
    """A name under which other agents have a tool that does what several of ours do."""

    def __init__(
        self, name: str, names: frozenset[str], offered: Collection[str], find: Callable[[str], Tool | None]
    ) -> None:
        self.spec = ToolSpec(name, "", {})
        self._names = names
        self._offered = offered
        self._find = find

    def title(self, arguments: dict[str, Any]) -> str:
        return one_line(self.spec.name, 100)

    async def prepare(self, call: ToolCall, workspace: Workspace) -> Action:
        raise BadArguments(f"Unknown tool `{one_line(call.name, 100)}`.", advice=self._ways(call))

    def meant(self, call: ToolCall) -> tuple[Tool, ToolCall, str] | None:
        """The one of our tools that does the same, its call, and a remark; None if none does."""
        fields = _fields(call)
        name = self._tool_for(fields)
        tool = self._find(name) if name is not None and name in self._offered else None
        if name is None or tool is None:
            return None
        rest = {field: value for field, value in fields.items() if squeezed(field) != "command"}
        arguments = msgspec.json.encode(rest).decode() if len(rest) != len(fields) else call.arguments
        remark = f"(`{one_line(call.name, 60)}` was read as `{name}`)"
        return tool, msgspec.structs.replace(call, name=name, arguments=arguments), remark

    def _tool_for(self, fields: dict[str, Any]) -> str | None:
        names = {squeezed(name) for name, value in fields.items() if value is not None}
        if self._names is _SEARCHES:
            return "search" if names & _REGEX else "find" if names & _GLOB else None
        command = fields.get("command")
        if self._names is _EDITORS and isinstance(command, str):
            return _COMMANDS.get(squeezed(command))
        found = [tool for tool, marks in (("edit", _EDITS), ("write", _TEXTS)) if names & marks]
        if not found and self._names is _EDITORS and names and names <= _LOOKS:
            return "read"
        return found[0] if len(found) == 1 else None

    def _ways(self, call: ToolCall) -> str:
        """What to call instead."""
        command = _fields(call).get("command")
        if isinstance(command, str) and squeezed(command) == "insert" and "edit" in self._offered:
            return f"To insert lines use {_INSERT}."
        if self._names is _SEARCHES:
            ways = {"search": "what files hold use `search` with `pattern`", "find": "names use `find` with `pattern`"}
            return " ".join(f"For {way}." for tool, way in ways.items() if tool in self._offered)
        ways = {
            "read": "To look at a file use `read` with `path`.",
            "edit": "To replace a text use `edit` with `path` and `edits`, each with `old` and `new`.",
            "write": "To write all of a file use `write` with `path` and `content`.",
        }
        return " ".join(way for tool, way in ways.items() if tool in self._offered)


def _fields(call: ToolCall) -> dict[str, Any]:
    given = json_object(call.arguments)
    if given is None:
        try:
            given = read_json(call.arguments)
        except (Unreadable, RecursionError):
            return {}
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {}
