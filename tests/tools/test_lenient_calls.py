"""Calls that are not written as they should be: what has one meaning is read as that, all else is refused in words."""

import json
import random
import re
from typing import Any

import msgspec
import pytest

from crow.messages import ToolCall, ToolSpec
from crow.tools.arguments import ArgumentReader, arguments_for, read_call, read_call_of, schema_of
from crow.tools.ask import AskArguments, PlanArguments
from crow.tools.base import BadArguments, Toolbox
from crow.tools.edit import EditArguments
from crow.tools.lenient.json_repair import TruncatedJson, Unreadable, read_json, read_nearly
from crow.tools.lenient.names import near, resolve
from crow.tools.read import Read, ReadArguments, ReadTracker
from crow.tools.search import FindArguments, SearchArguments
from crow.tools.task import TaskArguments
from crow.tools.terminal import TerminalArguments
from crow.tools.write import Write, WriteArguments

Json = dict[str, Any]

ARGUMENTS: dict[str, type[msgspec.Struct]] = {
    "read": ReadArguments,
    "write": WriteArguments,
    "edit": EditArguments,
    "find": FindArguments,
    "search": SearchArguments,
    "terminal": TerminalArguments,
    "plan": PlanArguments,
    "ask": AskArguments,
    "task": TaskArguments,
}


def read(tool: str, raw: str) -> Json:
    """The arguments as the tool gets them in the end, without those that were left out."""
    call = read_call(ToolCall("c1", tool, raw), ToolSpec(tool, "", schema_of(ARGUMENTS[tool]))).call
    arguments, _ = ArgumentReader(ARGUMENTS[tool]).read(call)
    written = msgspec.to_builtins(arguments)
    given = json.loads(call.arguments)
    return {name: value for name, value in written.items() if name in given}


# --- JSON

NEARLY = {
    "single quotes": ("{'path': 'a.py', 'limit': 5}", {"path": "a.py", "limit": 5}),
    "double quotes in single ones": ("""{'a': 'say "hi"'}""", {"a": 'say "hi"'}),
    "a trailing comma": ('{"a": [1, 2,],}', {"a": [1, 2]}),
    "doubled commas": ('{"a": 1,, "b": 2}', {"a": 1, "b": 2}),
    "names without quotes": ('{path: "a", limit: 5}', {"path": "a", "limit": 5}),
    "Python's words": ('{"a": True, "b": False, "c": None}', {"a": True, "b": False, "c": None}),
    "JavaScript's word": ('{"a": undefined}', {"a": None}),
    "comments": ('{"a": 1, // one\n # two\n "b": /* three */ 2}', {"a": 1, "b": 2}),
    "a comment in a string is none": ('{"a": "http://b#c", }', {"a": "http://b#c"}),
    "new lines and tabs in strings": ('{"a": "one\n\ttwo"}', {"a": "one\n\ttwo"}),
    "escapes that are none": (r'{"a": "\d+\.\w\s", "b": "C\#"}', {"a": r"\d+\.\w\s", "b": r"C\#"}),
    "the edge of a word": (r'{"pattern": "\bfoo\d\b"}', {"pattern": r"\bfoo\d\b"}),
    "an escaped apostrophe": (r'{"a": "it\'s"}', {"a": "it's"}),
    "a fence": ('```json\n{"a": 1}\n```', {"a": 1}),
    "a fence of no language": ('```\n{"a": 1}```', {"a": 1}),
    "words around it": ('Here you are: {"a": "b"} I hope it helps.', {"a": "b"}),
    "tags around it": ('<tool_call>{"a": "b"}</tool_call>', {"a": "b"}),
    "a special token after it": ('{"a": "b"}<|im_end|>', {"a": "b"}),
    "brackets left out at the end": ('{"a": [{"b": "c"}', {"a": [{"b": "c"}]}),
    "one bracket left out at the end": ('{"a": "b"', {"a": "b"}),
    "a bracket left out inside": ('{"a": [{"b": "c"}}', {"a": [{"b": "c"}]}),
    "a brace left out inside": ('{"a": [{"b": "c"], "d": 1}', {"a": [{"b": "c"}], "d": 1}),
    "a comma left out": ('{"a": "b" "c": 1}', {"a": "b", "c": 1}),
    "a comma left out between objects": ('{"a": [{"b": 1} {"b": 2}]}', {"a": [{"b": 1}, {"b": 2}]}),
    "a bracket too many": ('{"a": "b"}}', {"a": "b"}),
    "the wrong bracket": ('{"a": "b"]', {"a": "b"}),
    "the same twice": ('{"a": "b"}{"a": "b"}', {"a": "b"}),
    "the same twice, on two lines": ('{"a": "b"}\n{"a": "b"}', {"a": "b"}),
    "an empty one before it": ('{}{"a": "b"}', {"a": "b"}),
    "a byte order mark": ('\ufeff{"a": "b"}', {"a": "b"}),
    "full-width punctuation": ("｛“a”：“b”，“c”：1｝", {"a": "b", "c": 1}),  # noqa: RUF001
    "full-width punctuation in a string": ('{"a": "（b，c：d）",}', {"a": "（b，c：d）"}),  # noqa: RUF001
    "equals signs": ('{"a" = "b", c => 1}', {"a": "b", "c": 1}),
    "backticks": ("{a: `one\ntwo`}", {"a": "one\ntwo"}),
    "a pair of surrogates": (r'{"a": "\ud83d\ude00",}', {"a": "😀"}),
    "numbers": ("{a: +1, b: .5, c: 1., d: -2e3}", {"a": 1, "b": 0.5, "c": 1.0, "d": -2000.0}),
}


@pytest.mark.parametrize(("text", "meant"), NEARLY.values(), ids=NEARLY)
def test_what_is_nearly_json_is_read(text: str, meant: Json) -> None:
    assert read_json(text) == meant
    with pytest.raises((msgspec.DecodeError, UnicodeError)):
        msgspec.json.decode(text)


CUT_OFF = {
    "in a string": '{"path": "a", "content": "half of it',
    "in a string, after an escape": '{"path": "a", "content": "half \\"of\\" it\\n',
    "in a string of single quotes": "{'path': 'a', 'content': 'half",
    "in a name": '{"path": "a", "conte',
    "after a name": '{"path": "a", "content"',
    "after a colon": '{"path": "a", "content":',
    "after a comma": '{"path": "a",',
    "in a number": '{"path": "a", "offset": 1',
    "in a word": '{"path": "a", "append": tru',
    "after a brace": "{",
    "in a list": '{"edits": [{"old": "a", "new": "b"},',
    "in three quotes": '{"a": """half"',
    "in the second of two": '{"a": "b"} {"a": "c',
}


@pytest.mark.parametrize("text", CUT_OFF.values(), ids=CUT_OFF)
def test_what_was_cut_off_is_not_read(text: str) -> None:
    with pytest.raises(TruncatedJson):
        read_json(text)


UNCLEAR = {
    "a name with two values in well-formed JSON": ('{"a": {"b": 1, "b": 2}}', "`b` appears twice"),
    "an expression": ('{"a": "b" + c}', "an expression"),
    "an expression beside quotes that are not escaped": ('{"x": "say "hi" now", "a": "b" + "c"}', "at character"),
    "a variable": ('{"content": text}', "a value in quotes"),
    "a variable for a path": ('{"path": file_path}', "a value in quotes"),
    "two objects": ('{"a": "b"}{"a": "c"}', "two different objects"),
    "a name with two values": ('{"a": "b", "a": "c",}', "`a` appears twice"),
    "members after the end": ('{"a": "b"}, "c": 1}', "closed before its last members"),
    "no object": ("I will read the file.", "no object"),
    "an odd quote": ('{"a": "5" wide"}', "at character"),
    "two words without quotes": ("{a: ls -la}", "a value in quotes"),
    "no number": ("{a: NaN}", "a value in quotes"),
    "half a character": (r'{"a": "\ud800"}', "half a character"),
    "too deep": ("{a:" * 100, "nested too deeply"),
    "two strings in a list without a comma": ('["a" "b"]', "a comma"),
}


@pytest.mark.parametrize(("text", "why"), UNCLEAR.values(), ids=UNCLEAR)
def test_what_has_no_meaning_or_two_is_not_read(text: str, why: str) -> None:
    with pytest.raises(Unreadable) as refused:
        read_json(text)
    assert why in str(refused.value)


# --- shapes, names and values

SHAPES: dict[str, tuple[str, Any, Json]] = {
    "arguments in `arguments`": ("read", {"arguments": {"path": "a"}}, {"path": "a"}),
    "a whole call": ("read", {"name": "read", "arguments": {"path": "a"}}, {"path": "a"}),
    "a whole call in JSON": ("read", {"name": "Read", "arguments": '{"path": "a"}'}, {"path": "a"}),
    "a call of OpenAI": (
        "read",
        {"id": "x", "type": "function", "function": {"name": "functions.read", "arguments": '{"path": "a"}'}},
        {"path": "a"},
    ),
    "in `input`": ("read", {"input": {"path": "a"}}, {"path": "a"}),
    "in `parameters`": ("read", {"parameters": {"path": "a", "limit": 3}}, {"path": "a", "limit": 3}),
    "in `tool_input`": ("terminal", {"tool": "terminal", "tool_input": {"command": "ls"}}, {"command": "ls"}),
    "under the tool's name": ("read", {"read": {"path": "a"}}, {"path": "a"}),
    "as a schema": ("read", {"type": "object", "properties": {"path": "a"}}, {"path": "a"}),
    "encoded twice": ("read", '{"path": "a"}', {"path": "a"}),
    "encoded three times": ("read", json.dumps('{"path": "a"}'), {"path": "a"}),
    "encoded twice, and sloppily": ("read", "{'path': 'a',}", {"path": "a"}),
    "a list of one": ("read", [{"path": "a"}], {"path": "a"}),
    "file_path": ("read", {"file_path": "a"}, {"path": "a"}),
    "filePath": ("read", {"filePath": "a"}, {"path": "a"}),
    "filename": ("write", {"filename": "a", "contents": "x"}, {"path": "a", "content": "x"}),
    "target_file and code": ("write", {"target_file": "a", "code": "x"}, {"path": "a", "content": "x"}),
    "another case": ("read", {"Path": "a"}, {"path": "a"}),
    "the same twice": ("read", {"file": "a", "file_path": "a"}, {"path": "a"}),
    "lines": ("read", {"path": "a", "start_line": 5, "end_line": 9}, {"path": "a", "offset": 5, "limit": 5}),
    "a range": ("read", {"path": "a", "view_range": [5, 9]}, {"path": "a", "offset": 5, "limit": 5}),
    "a range in words": ("read", {"path": "a", "lines": "5-9"}, {"path": "a", "offset": 5, "limit": 5}),
    "to the end": ("read", {"path": "a", "view_range": [5, -1]}, {"path": "a", "offset": 5}),
    "counted from 0": ("read", {"path": "a", "offset": 0}, {"path": "a", "offset": 1}),
    "numbers as texts": ("read", {"path": "a", "offset": "5", "limit": " 7 "}, {"path": "a", "offset": 5, "limit": 7}),
    "whole floats": ("read", {"path": "a", "offset": 5.0, "limit": "7.0"}, {"path": "a", "offset": 5, "limit": 7}),
    "nothing for a number": ("read", {"path": "a", "offset": "", "limit": "null"}, {"path": "a"}),
    "null": ("read", {"path": "a", "offset": None, "limit": None}, {"path": "a"}),
    "truth in words": (
        "write",
        {"path": "a", "content": "", "append": "True"},
        {"path": "a", "content": "", "append": True},
    ),
    "one edit": (
        "edit",
        {"path": "a", "edits": {"old": "x", "new": "y"}},
        {"path": "a", "edits": [{"old": "x", "new": "y"}]},
    ),
    "edits in JSON": (
        "edit",
        {"path": "a", "edits": '[{"old": "x", "new": "y"}]'},
        {"path": "a", "edits": [{"old": "x", "new": "y"}]},
    ),
    "a flat edit": ("edit", {"path": "a", "old": "x", "new": "y"}, {"path": "a", "edits": [{"old": "x", "new": "y"}]}),
    "a flat edit of others": (
        "edit",
        {"file_path": "a", "old_string": "x", "new_string": "", "replace_all": "true"},
        {"path": "a", "edits": [{"old": "x", "new": "", "all": True}]},
    ),
    "a flat edit beside its list": (
        "edit",
        {"path": "a", "edits": [{"old": "x", "new": "y"}], "old": "v", "new": "w"},
        {"path": "a", "edits": [{"old": "x", "new": "y"}, {"old": "v", "new": "w"}]},
    ),
    "the same edit beside its list": (
        "edit",
        {"path": "a", "edits": [{"old": "x", "new": "y"}], "old": "x", "new": "y"},
        {"path": "a", "edits": [{"old": "x", "new": "y"}]},
    ),
    "a flat edit and an empty list": (
        "edit",
        {"path": "a", "edits": [], "old_str": "x", "new_str": "y"},
        {"path": "a", "edits": [{"old": "x", "new": "y"}]},
    ),
    "edits by other names": (
        "edit",
        {"path": "a", "changes": [{"search": "x", "replace": "y"}, {"oldText": "v", "newText": "w"}]},
        {"path": "a", "edits": [{"old": "x", "new": "y"}, {"old": "v", "new": "w"}]},
    ),
    "`replace_all` in an edit": (
        "edit",
        {"path": "a", "edits": [{"old": "x", "new": "y", "replace_all": True}]},
        {"path": "a", "edits": [{"old": "x", "new": "y", "all": True}]},
    ),
    "a path with each edit": (
        "edit",
        {"edits": [{"path": "a", "old": "x", "new": "y"}, {"file": "a", "old": "v", "new": "w"}]},
        {"path": "a", "edits": [{"old": "x", "new": "y"}, {"old": "v", "new": "w"}]},
    ),
    "cmd": ("terminal", {"cmd": "ls -la"}, {"command": "ls -la"}),
    "words of a command": ("terminal", {"command": ["git", "log", "a b"]}, {"command": "git log 'a b'"}),
    "a shell and its line": ("terminal", {"command": ["bash", "-lc", "ls | wc"]}, {"command": "ls | wc"}),
    "words beside a command": ("terminal", {"command": "ls", "args": ["-la", "a b"]}, {"command": "ls -la 'a b'"}),
    "in the background": (
        "terminal",
        {"command": "ls", "run_in_background": True, "workdir": "b"},
        {"command": "ls", "background": True, "cwd": "b"},
    ),
    "a search of others": (
        "search",
        {"query": "x", "directory": "b", "include": "*.py", "output_mode": "files_with_matches"},
        {"pattern": "x", "path": "b", "glob": "*.py", "mode": "files"},
    ),
    "the case of a choice": ("search", {"regex": "x", "mode": "Count"}, {"pattern": "x", "mode": "count"}),
    "a number to search for": ("search", {"pattern": 404}, {"pattern": "404"}),
    "a mode of writing": (
        "write",
        {"path": "a", "content": "x", "mode": "append"},
        {"path": "a", "content": "x", "append": True},
    ),
    "a name to find": ("find", {"name": "*.py"}, {"pattern": "*.py"}),
    "todos": (
        "plan",
        {"todos": [{"content": "x", "status": "In Progress"}, {"task": "y"}]},
        {
            "entries": [
                {"content": "x", "status": "in_progress"},
                {"content": "y"},
            ]
        },
    ),
    "a task of others": (
        "task",
        {"description": "t", "prompt": "p", "subagent_type": "Explore"},
        {"title": "t", "prompt": "p", "kind": "explore"},
    ),
}


@pytest.mark.parametrize(("tool", "given", "meant"), SHAPES.values(), ids=SHAPES)
def test_arguments_in_another_shape_are_read(tool: str, given: Any, meant: Json) -> None:
    reader = ArgumentReader(ARGUMENTS[tool])
    plainly, _ = reader.read(ToolCall("c1", tool, json.dumps(meant)))
    raw = json.dumps(given)
    assert reader.read(ToolCall("c1", tool, raw))[0] == plainly
    assert read(tool, raw).keys() == meant.keys()


MISFITS: dict[str, tuple[str, Any, list[str]]] = {
    "all that is missing": ("write", {}, ["- `path` is missing", "- `content` is missing", "an empty object"]),
    "a slip": (
        "read",
        {"paht": "a"},
        ["`path` is missing", "`paht` is unknown: is `path` meant?", '`paht` (text "a")'],
    ),
    "all at once": (
        "edit",
        {"edits": [{"old": 5.5}, {"old": "a", "new": ["b", "c"]}], "colour": "red"},
        [
            "- `path` is missing",
            "- `edits[0].new` is missing",
            "- `edits[0].old` must be text, not the number 5.5",
            "- `edits[1].new` must be text, not a list of 2",
            "- `colour` is unknown",
            'What arrived: `edits` (a list of 2), `colour` (text "red")',
            'A correct call: {"path":"src/main.py","edits":[{"old":',
        ],
    ),
    "two names that differ": ("read", {"file": "a", "filename": "b"}, ["`file` and `filename` both stand for `path`"]),
    "another tool's call": ("read", {"name": "write", "arguments": {"path": "a"}}, ["name another tool, `write`"]),
    "several commands": ("terminal", {"commands": ["ls", "pwd"]}, ["`command` is missing", "`commands` is unknown"]),
    "a place in a file": (
        "write",
        {"path": "a", "content": "x", "insert_line": 5},
        ["`insert_line`: `write` replaces a file or appends to it; to change a part use `edit`"],
    ),
    "several paths": ("read", {"path": ["a", "b"]}, ["`path` must be text, not a list of 2"]),
    "two files in one edit": (
        "edit",
        {"edits": [{"path": "a", "old": "x", "new": "y"}, {"path": "b", "old": "x", "new": "y"}]},
        ["- the edits are for several files, `a` and `b`: make one call for each file"],
    ),
    "an object as a file's text": ("write", {"path": "a", "content": {"text": "x"}}, ["`content` must be text"]),
    "two command lines": ("terminal", {"command": ["cd a", "ls -la"]}, ["`command` must be text, not a list of 2"]),
    "no such choice": ("search", {"pattern": "x", "mode": "colour"}, ["`mode` must be one of"]),
    "a number that is none": ("read", {"path": "a", "offset": "first"}, ["`offset` must be a whole number, not text"]),
    "half a line": ("read", {"path": "a", "offset": 1.5}, ["`offset` must be a whole number, not the number 1.5"]),
    "a list": ("read", [1], ["must be a JSON object, not a list of 1"]),
    "a text": ("read", "a.py", ["must be a JSON object, not text"]),
}


@pytest.mark.parametrize(("tool", "given", "said"), MISFITS.values(), ids=MISFITS)
def test_all_that_is_wrong_is_said_at_once(tool: str, given: Any, said: list[str]) -> None:
    with pytest.raises(BadArguments) as refused:
        read(tool, json.dumps(given))
    assert [phrase for phrase in said if phrase not in str(refused.value)] == []
    assert "A correct call: {" in str(refused.value)


def test_a_call_that_was_cut_off_is_refused_in_words() -> None:
    with pytest.raises(BadArguments) as refused:
        read("write", '{"path": "a", "content": "half')
    assert "the call was cut off (the text of `content` has no closing quote), so nothing was run" in str(refused.value)


@pytest.mark.parametrize(
    ("raw", "doubled"),
    [
        (r'{"path": "a", "p\u0061th": "b", "content": ""}', "path"),
        ('{"path": "a", "content": "x", "content": "y"}', "content"),
        ('{"path": "a", "content": "x", "content": "x"}', ""),
        (r'{"path": "a", "content": "{\"path\": 1, \"content\": 2} \"path\""}', ""),
    ],
)
def test_a_name_with_two_values_is_noticed_however_it_is_spelled(raw: str, doubled: str) -> None:
    call = ToolCall("c1", "write", raw)
    tool = ArgumentReader(ARGUMENTS["write"])
    if doubled:
        with pytest.raises(BadArguments, match=f"`{doubled}`"):
            tool.read(call)
    else:
        assert msgspec.to_builtins(tool.read(call)[0])["path"] == "a"


def test_what_the_model_gets_back_is_what_it_wrote_or_what_was_read() -> None:
    spec = ToolSpec("read", "", schema_of(ReadArguments))

    def returned(raw: str) -> tuple[str, str]:
        read = read_call(ToolCall("c1", "read", raw), spec)
        return read.returned, read.note

    assert returned('{ "path" : "a" }') == ('{ "path" : "a" }', "")
    assert returned('{"file": "a"}') == ('{"file": "a"}', "(`file` was read as `path`)")
    note = '(the arguments were no JSON object and were read as {"path":"a"})'
    assert returned("{'path': 'a'}") == ('{"path":"a"}', note)
    assert returned("{'path': 'a") == ("{'path': 'a", "")


def test_a_servers_tool_gets_the_form_and_keeps_its_own_judgement() -> None:
    schema = {
        "type": "object",
        "properties": {"user_id": {"type": "integer"}, "tags": {"type": "array"}, "input": {"type": "string"}},
        "required": ["user_id"],
    }

    def given(raw: Any) -> Json:
        return arguments_for(ToolCall("c1", "mcp__a__b", json.dumps(raw)), schema)

    assert given({"userId": "5", "tags": "[1]", "other": 1}) == {"user_id": 5, "tags": [1], "other": 1}
    assert given({"arguments": {"user_id": 5}}) == {"user_id": 5}
    assert given({"user_id": "me"}) == {"user_id": "me"}
    assert given({"user_id": 5, "input": '{"a": 1}'}) == {"user_id": 5, "input": '{"a": 1}'}
    with pytest.raises(BadArguments, match="`user_id`"):
        given({"id": 5})


# --- names of tools

OFFERED = [
    "read",
    "write",
    "edit",
    "find",
    "search",
    "terminal",
    "terminal_read",
    "terminal_stop",
    "plan",
    "ask",
    "web_search",
    "web_fetch",
    "task",
    "mcp__docs__look_up",
    "mcp__notes__add",
    "mcp__tasks__add",
]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("READ", "read"),
        ("functions.read", "read"),
        ("functions.functions.read", "read"),
        ("default_api.read", "read"),
        ("default_api:read", "read"),
        ("mcp.read", "read"),
        ("read:0", "read"),
        ("functions.read:12", "read"),
        ("read_1", "read"),
        ("read_tool", "read"),
        ("readTool", "read"),
        ("read()", "read"),
        (" read\n", "read"),
        ('"read"', "read"),
        ("read<|channel|>commentary", "read"),
        ("read<|im_end|>", "read"),
        ("<|channel|>commentary to=functions.read", "read"),
        ("<tool_call>read", "read"),
        ("web-search", "web_search"),
        ("webSearch", "web_search"),
        ("TerminalRead", "terminal_read"),
        ("read_file", "read"),
        ("ReadFile", "read"),
        ("readFile_1", "read"),
        ("ls", "read"),
        ("write_file", "write"),
        ("edit_file", "edit"),
        ("str_replace", "edit"),
        ("MultiEdit", "edit"),
        ("Bash", "terminal"),
        ("shell", "terminal"),
        ("run_command", "terminal"),
        ("container.exec", "terminal"),
        ("grep", "search"),
        ("Glob", "find"),
        ("todo_write", "plan"),
        ("TodoWrite", "plan"),
        ("WebFetch", "web_fetch"),
        ("look_up", "mcp__docs__look_up"),
        ("docs__look_up", "mcp__docs__look_up"),
        ("mcp__docs__lookUp", "mcp__docs__look_up"),
        ("add", None),
        ("rm", None),
        ("", None),
        ("<|im_end|>", None),
        ("str_replace_editor", None),
        ("search_files", None),
        ("reader", None),
    ],
)
def test_a_name_that_can_mean_one_tool_only_means_it(name: str, meant: str | None) -> None:
    assert resolve(name, OFFERED) == meant
    assert meant is None or resolve(name, [tool for tool in OFFERED if tool != meant]) != meant


def test_a_name_that_a_servers_tool_has_too_is_not_guessed() -> None:
    offered = [*OFFERED, "mcp__files__read_file"]
    assert resolve("read_file", offered) is None
    assert near("read_file", offered)[:2] == ["mcp__files__read_file", "read"]


def test_a_tool_of_others_is_the_one_of_ours_that_its_arguments_mean_if_that_is_offered() -> None:
    call = ToolCall("c1", "str_replace_editor", '{"command": "create", "path": "a", "file_text": "b"}')
    read = read_call_of(call, Toolbox([Read(), Write(ReadTracker())]).find(call.name))
    assert (read.call.name, read.arguments) == ("write", {"path": "a", "content": "b"})
    assert read.returned == read.call.arguments
    assert read_call_of(call, Toolbox([Read()]).find(call.name)).call == call


def test_near_names_are_suggested() -> None:
    assert near("raed", OFFERED)[:1] == ["read"]
    assert near("add", OFFERED)[:2] == ["mcp__notes__add", "mcp__tasks__add"]
    assert near("zzz", OFFERED) == []


# --- a great many

WORDS = [
    "x = 1",
    "it's",
    'say "hi"',
    "a\nb\n",
    "\tindent",
    "C:\\new\\table",
    "\\d+\\n",
    "{'a': 1}",
    '{"b": [1, 2]}',
    "é…😀",
    "// no comment",
    "# none",
    "```py\nx\n```",
    "a, b: c}",
    "",
    "null",
    "</tool_call>",
    "\u2028",
]


def some_text(dice: random.Random) -> str:
    return "".join(dice.choice(WORDS) for _ in range(dice.randrange(4)))


def some_object(dice: random.Random) -> tuple[str, Json]:
    match dice.randrange(4):
        case 0:
            return "read", {"path": "src/" + some_text(dice), "offset": dice.randrange(1, 99), "limit": 7}
        case 1:
            return "write", {"path": "a.py", "content": some_text(dice), "append": dice.random() < 0.5}
        case 2:
            return "terminal", {"command": "ls " + some_text(dice), "timeout": 1.5}
        case _:
            edits = [{"old": some_text(dice), "new": some_text(dice)} for _ in range(dice.randrange(1, 3))]
            return "edit", {"path": "a.py", "edits": edits}


def sloppily(dice: random.Random, value: Any, depth: int = 0) -> str:
    """A value as a model writes it that has forgotten half of what JSON is."""
    blank = dice.choice(["", "", " ", "\n  ", " /* so */ ", " // so\n"])
    match value:
        case bool() | None:
            return dice.choice([json.dumps(value), str(value)])
        case dict():
            members = [f"{_name(dice, name)}:{blank}{sloppily(dice, one, depth + 1)}" for name, one in value.items()]
            return "{" + blank + f",{blank}".join(members) + dice.choice(["", "", ","]) + blank + "}"
        case list():
            return (
                "[" + f",{blank}".join(sloppily(dice, one, depth + 1) for one in value) + dice.choice(["", ","]) + "]"
            )
        case str():
            return _string(dice, value)
        case _:
            return json.dumps(value)


def _name(dice: random.Random, name: str) -> str:
    return dice.choice([f'"{name}"', f"'{name}'", name, f"“{name}”"])


def _string(dice: random.Random, text: str) -> str:
    written = json.dumps(text, ensure_ascii=dice.random() < 0.5)
    if dice.random() < 0.3:
        written = re.sub(r"(?<!\\)((?:\\\\)*)\\n", "\\1\n", written).replace("\\t", "\\t")
    if dice.random() < 0.3:
        inner = written[1:-1].replace('\\"', '"').replace("'", "\\'")
        written = f"'{inner}'"
    return written


def around(dice: random.Random, text: str) -> str:
    match dice.randrange(6):
        case 0:
            return f"```json\n{text}\n```"
        case 1:
            return f"Now: {text} Done."
        case 2:
            return f"\ufeff{text}<|im_end|>"
        case 3:
            return f"{text}{text}"
        case _:
            return text


def test_a_great_many_sloppy_calls_are_read_as_they_were_meant() -> None:
    dice = random.Random(11)
    for _ in range(10_000):
        _, meant = some_object(dice)
        text = around(dice, sloppily(dice, meant))
        assert read_json(text) == meant, text


ALSO = {
    "path": ["file_path", "filePath", "target_file"],
    "content": ["contents", "file_text"],
    "command": ["cmd", "script"],
    "old": ["old_string", "oldText", "search"],
    "new": ["new_string", "newText", "replace"],
    "limit": ["max_lines"],
}


def in_another_shape(dice: random.Random, tool: str, meant: Json) -> Any:
    """The same arguments under other names, in wrappers, and with values in other forms."""
    match meant:
        case {"path": path, "edits": [only]} if dice.random() < 0.5:
            meant = {"path": path, **only} if dice.random() < 0.5 else {"path": path, "edits": only}
        case _:
            pass
    given: Any = _misnamed(dice, meant)
    for _ in range(dice.randrange(3)):
        match dice.randrange(4):
            case 0:
                given = {dice.choice(["arguments", "input", "parameters", "tool_input"]): given}
            case 1:
                given = {"name": tool, "arguments": given}
            case 2:
                given = [given]
            case _:
                given = json.dumps(given)
    return given


def _misnamed(dice: random.Random, value: Any) -> Any:
    match value:
        case dict():
            return {dice.choice([name, *ALSO.get(name, [])]): _misnamed(dice, one) for name, one in value.items()}
        case list():
            items = [_misnamed(dice, one) for one in value]
            return dice.choice([items, items, json.dumps(items)])
        case bool() | int() | float():
            return dice.choice([value, str(value), json.dumps(value)])
        case _:
            return value


def test_a_great_many_calls_in_other_shapes_are_read_as_they_were_meant() -> None:
    dice = random.Random(13)
    for _ in range(5_000):
        tool, meant = some_object(dice)
        reader = ArgumentReader(ARGUMENTS[tool])
        raw = json.dumps(in_another_shape(dice, tool, meant))
        assert reader.read(ToolCall("c1", tool, raw))[0] == msgspec.convert(meant, ARGUMENTS[tool]), raw


def test_a_great_many_calls_that_were_cut_off_lose_no_string_s_end() -> None:
    """What is read of a part is the whole, or lacks only what may be left out: no text in it is half of another."""
    dice = random.Random(12)
    for _ in range(10_000):
        _, meant = some_object(dice)
        text = sloppily(dice, meant)
        part = text[: dice.randrange(len(text))]
        try:
            found = read_nearly(part)
        except Unreadable:
            continue
        assert texts_of(found) <= texts_of(meant), (part, found)


def texts_of(value: Any) -> set[str]:
    match value:
        case str():
            return {value}
        case dict():
            return {text for one in value.values() for text in texts_of(one)}
        case list():
            return {text for one in value for text in texts_of(one)}
        case _:
            return set()
