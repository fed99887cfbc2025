"""Tools of other agents that do what several of ours do: which one is meant by the arguments, or what to call instead.

Others do what none of ours does in that shape: of these the model is told the tool to take, and how.
"""

from collections.abc import Callable, Collection
from typing import Any

import msgspec

from crow.files.base import Workspace
from crow.messages import ToolCall, ToolSpec, json_object
from crow.tools.base import Action, BadArguments, Tool
from crow.tools.lenient.json_repair import Unreadable, read_json
from crow.tools.lenient.names import spellings, squeezed
from crow.tools.lenient.values import is_fields
from crow.visible import one_line

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

_APPLY_PATCH = "`edit` with `path` and `edits`, each with the `old` text and the `new` one; for a new file use `write`"
_INSERT = "`edit` with a line beside the place as `old`, and in `new` that line again with the added ones"
_DELETE = "`terminal` with `command`, such as `rm` for a file that is to go"
_PARALLEL = "the tools themselves: several calls in one reply are run, reads side by side"
_HINTS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("applypatch", "applydiff", "patch", "replaceblock"), ("edit", _APPLY_PATCH)),
    **dict.fromkeys(
        ("appendtofile", "appendfile", "fileappend"), ("write", '`write` with `path`, `content` and `"append": true`')
    ),
    **dict.fromkeys(("insertcontent", "insert", "inserttext", "inserteditintofile", "insertlines"), ("edit", _INSERT)),
    **dict.fromkeys(("deletefile", "removefile", "delete", "rm", "deletepath"), ("terminal", _DELETE)),
    **dict.fromkeys(
        ("renamefile", "movefile", "mv", "copyfile", "createdirectory", "mkdir"),
        ("terminal", "`terminal` with `command`, such as `mv`, `cp` or `mkdir -p`"),
    ),
    **dict.fromkeys(
        ("python", "runpython", "codeinterpreter", "ipython", "executepython"),
        ("terminal", "`terminal` with `command`, such as `python3 -c '…'`, or a script that `write` made"),
    ),
    **dict.fromkeys(("multitooluseparallel", "multitooluse", "parallel", "batch"), ("", _PARALLEL)),
    **dict.fromkeys(
        ("attemptcompletion", "finish", "done", "submit", "finalanswer"), ("", "no tool: say it as your answer")
    ),
    "think": ("", "no tool: go on with the next call, or with your answer"),
}
"""By the squeezed name of a tool that none of ours is like: the tool that must be there, and what to do instead."""


def hint(name: str, offered: Collection[str]) -> str:
    """What to call instead of a tool that needs another shape; empty if nothing is known of it."""
    for spelling in spellings(name):
        needed, words = _HINTS.get(squeezed(spelling), ("", ""))
        if words and (not needed or needed in offered):
            return f"Use {words}."
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
        raise BadArguments(f"There is no tool `{one_line(call.name, 100)}`.", advice=self._ways(call))

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
    return given if is_fields(given) else {}
