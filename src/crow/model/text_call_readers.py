"""Parsers of tool calls that were written as text, one for each kind of syntax: JSON in tags, markup, Python, fenced
JSON and others.
"""

import ast
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from crow.messages import ToolSpec
from crow.model.base import ModelEvent, Said, Thinking

LONGEST_PYTHON = 64 * 1024
"""Characters of calls in Python's syntax: its parser is not made for hostile input."""


class TextCall(NamedTuple):
    name: str
    arguments: str
    """JSON."""


Reader = Callable[[str, Mapping[str, ToolSpec]], list[TextCall] | None]
"""Reads all calls of a text that consists of nothing else, given the tools by name; None if it does not."""

_json = json.JSONDecoder(strict=False)
"""Models write line ends into strings as they are."""
_BLANK = re.compile(r"\s*")
NAME = r"[\w.:/-]{1,100}"
"""A tool's name, as a regular expression."""


def _json_at(text: str, place: int) -> tuple[Any, int] | None:
    """The JSON value there, and where it ends; None if there is none."""
    place = _skip_blank(text, place)
    try:
        value, end = _json.raw_decode(text, place)
    except (ValueError, RecursionError):
        return None
    return value, end


def _skip_blank(text: str, place: int) -> int:
    found = _BLANK.match(text, place)
    return found.end() if found else place


def _skip(text: str, place: int, pattern: re.Pattern[str]) -> int:
    """Behind the pattern, if it is there, and the blanks around it."""
    place = _skip_blank(text, place)
    found = pattern.match(text, place)
    return _skip_blank(text, found.end()) if found else place


def _tool_name(name: str) -> str:
    """Without what models put around it: `functions.read:0` is `read`."""
    return re.sub(r"^(functions?|default_api|tools?)[.:]|:\d+$", "", name.strip())


_ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input")
_BESIDE = frozenset({"name", "tool_name", "tool", "function", "type", "id", "tool_call_id", "index", *_ARGUMENTS})
"""What a call has; an object with anything else is an answer that happens to have a name."""


def _call_of(value: Any) -> TextCall | None:
    """From an object that names a tool and has its arguments, under one of the usual keys, and nothing else."""
    match value:
        case {"function": {"name": str()} as inner}:
            return _call_of(inner)
        case {"name": str(name)} | {"tool_name": str(name)} | {"function": str(name)} | {"tool": str(name)}:
            pass
        case _:
            return None
    fields = cast("dict[str, Any]", value)
    given: Any = next((fields[key] for key in _ARGUMENTS if key in fields), None)
    if given is None or not fields.keys() <= _BESIDE or _is_schema(given):
        return None
    if isinstance(given, str):
        return TextCall(_tool_name(name), given) if _is_object(given) else None
    return TextCall(_tool_name(name), _dumped(given)) if isinstance(given, dict) else None


def _is_schema(value: Any) -> bool:
    """Whether it says what arguments a tool takes, instead of giving some."""
    match value:
        case {"type": "object", "properties": {}}:
            return True
        case _:
            return False


def _is_object(text: str) -> bool:
    """Whether the text is a JSON object and nothing else."""
    found = _json_at(text, 0)
    return found is not None and isinstance(found[0], dict) and _skip_blank(text, found[1]) == len(text)


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _calls_of(value: Any) -> list[TextCall] | None:
    """From one such object, or a list of them."""
    match value:
        case {"tool_calls": [*inner], **others} if not others:
            value = inner
        case _:
            pass
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    calls = [_call_of(item) for item in values]
    return [call for call in calls if call is not None] if calls and all(calls) else None


def tagged_json(opening: str, closing: str) -> Reader:
    """Objects, or lists of them, each after an opening tag; closing tags may be missing."""
    begin, end = (
        re.compile(f"(?:{opening})"),
        re.compile(rf"(?:{closing}|;|,|\}}(?=\s*(?:{closing})))" if closing else r"[;,]"),
    )

    def read(text: str, tools: Mapping[str, ToolSpec]) -> list[TextCall] | None:
        calls: list[TextCall] = []
        place = 0
        while place < len(text):
            place = _skip(text, place, begin)
            found = _json_at(text, place) or _nearly_json(text, place, end)
            if found is None or (here := _calls_of(found[0])) is None:
                return None
            calls += here
            place = _skip_all(text, found[1], end)
        return calls

    return read


def _nearly_json(text: str, place: int, end: re.Pattern[str]) -> tuple[Any, int] | None:
    """An object that ends with a closing tag, so that nothing of it is missing but perhaps its last brace."""
    tag = next((found for found in end.finditer(text, place) if found[0].startswith(("<", "["))), None)
    if tag is None or tag.start() - place > LONGEST_PYTHON:
        return None
    body = text[place : tag.start()].strip()
    for attempt in (body, body + "}", body.removesuffix("}")):
        found = _json_at(attempt, 0)
        if found is not None and found[1] == len(attempt):
            return found[0], tag.start()
    return None


def named_json(opening: str, closing: str) -> Reader:
    """Arguments after an opening that holds the tool's name."""
    begin, end = re.compile(opening), re.compile(closing)

    def read(text: str, tools: Mapping[str, ToolSpec]) -> list[TextCall] | None:
        calls: list[TextCall] = []
        place = 0
        while place < len(text):
            if (head := begin.match(text, place)) is None:
                return None
            found = _json_at(text, head.end())
            if found is None or not isinstance(found[0], dict):
                return None
            calls.append(TextCall(_tool_name(head["name"]), text[_skip_blank(text, head.end()) : found[1]]))
            place = _skip_all(text, found[1], end)
        return calls

    return read


def markup(wrapper: str, function: str, parameter: str, end_parameter: str, end_function: str) -> Reader:
    """A tag for each call and one for each argument, whose text is the value. A value ends where another argument, or
    the end of the call, follows its closing tag: a file's content may hold such tags itself."""
    outside = re.compile(rf"(?:{wrapper})") if wrapper else None
    begin, argument = re.compile(function), re.compile(parameter)
    value_end = re.compile(rf"{end_parameter}(?=\s*+(?:{parameter}|{end_function}|$))")
    unclosed = re.compile(rf"(?={parameter}|{end_function})".replace("?P<key>", "?:"))
    end = re.compile(rf"(?:{end_function})")

    def read(text: str, tools: Mapping[str, ToolSpec]) -> list[TextCall] | None:
        calls: list[TextCall] = []
        place = 0
        is_closed = True
        while place < len(text):
            place = _skip_all(text, place, outside)
            if place == len(text):
                break
            if (head := begin.match(text, place)) is None:
                return None
            name, values = _tool_name(head["name"]), dict[str, Any]()
            place = _skip_blank(text, head.end())
            while (key := argument.match(text, place)) is not None:
                last = value_end.search(text, key.end()) if is_closed else None
                is_closed = last is not None  # if none comes any more, none is looked for behind the next argument
                if (last := last or unclosed.search(text, key.end())) is None:
                    return None
                values[key["key"].strip()] = _typed(text[key.end() : last.start()], key["key"].strip(), tools.get(name))
                place = _skip_blank(text, last.end())
            calls.append(TextCall(name, _dumped(values)))
            if (tail := end.match(text, place)) is None:
                return None  # it was cut off: there may have been more arguments
            place = _skip_blank(text, tail.end())
        return calls

    return read


def _skip_all(text: str, place: int, pattern: re.Pattern[str] | None) -> int:
    while pattern is not None and (further := _skip(text, place, pattern)) != place:
        place = further
    return _skip_blank(text, place)


def _typed(value: str, key: str, tool: ToolSpec | None) -> Any:
    """A value as the tool's schema wants it: what is written between tags is text, unless something else is wanted."""
    properties = cast("dict[str, dict[str, Any]]", tool.schema.get("properties", {})) if tool else {}
    wanted = properties.get(key, {}).get("type", "string")
    if wanted == "string":
        # Where the tags stand on lines of their own, one line end belongs to each; else all of it belongs to the text.
        return value.removeprefix("\n").removesuffix("\n") if value.startswith("\n") else value
    found = _json_at(value, 0)
    if found is not None and _skip_blank(value, found[1]) == len(value):
        return found[0]
    return {"true": True, "false": False}.get(value.strip().lower(), value.strip())


_PYTHON_TAGS = re.compile(r"<\|tool_call_(?:start|end)\|>|<\|python_tag\|>")


def read_python(text: str, tools: Mapping[str, ToolSpec]) -> list[TextCall] | None:
    """`[read(path="a.py"), find(pattern="*.md")]`, in brackets or without, a call on each line."""
    code = _PYTHON_TAGS.sub("", text).strip()
    if not code or len(code) > LONGEST_PYTHON:
        return None
    try:
        body = ast.parse(code).body
        nodes = [node.value for node in body if isinstance(node, ast.Expr)]
        if len(nodes) != len(body):
            return None
        if len(nodes) == 1 and isinstance(nodes[0], ast.List):
            nodes = nodes[0].elts
        calls = [_python_call(node) for node in nodes]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return [call for call in calls if call is not None] if calls and all(calls) else None


def _python_call(node: ast.expr) -> TextCall | None:
    if not isinstance(node, ast.Call) or node.args or any(keyword.arg is None for keyword in node.keywords):
        return None
    values = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in node.keywords}
    return TextCall(_tool_name(ast.unparse(node.func).removesuffix(".call")), _dumped(values))


_GEMMA_CALL = re.compile(rf"<\|tool_call>\s*call:(?P<name>{NAME})(?=\{{)")
_GEMMA_END = re.compile(r"<tool_call\|>")
_GEMMA_TEXT = re.compile(r'<\|"\|>(?P<text>.*?)<\|"\|>', re.DOTALL)
_GEMMA_KEY = re.compile(r"\s*(?P<key>\w+)\s*:\s*")
_GEMMA_BARE = re.compile(r"[^,{}\[\]<>]+")


class _GemmaReader:
    """Reads JSON whose keys are bare words, and whose texts stand between tokens."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.place = 0

    def value(self) -> Any:
        """ValueError if there is none."""
        self.place = _skip_blank(self._text, self.place)
        match self._text[self.place : self.place + 1]:
            case "{":
                return dict(self._items("}", self._pair))
            case "[":
                return list(self._items("]", self.value))
            case _:
                if (text := _GEMMA_TEXT.match(self._text, self.place)) is not None:
                    self.place = text.end()
                    return text["text"]
                word = self._found(_GEMMA_BARE)[0].strip()
                found = _json_at(word, 0)
                return found[0] if found is not None and found[1] == len(word) else word

    def _pair(self) -> tuple[str, Any]:
        return self._found(_GEMMA_KEY)["key"], self.value()

    def _items(self, closing: str, read: Callable[[], Any]) -> list[Any]:
        items: list[Any] = []
        self.place = _skip_blank(self._text, self.place + 1)
        while not self._text.startswith(closing, self.place):
            items.append(read())
            self.place = _skip_blank(self._text, self.place)
            if self._text.startswith(",", self.place):
                self.place = _skip_blank(self._text, self.place + 1)
            elif not self._text.startswith(closing, self.place):
                raise ValueError(self.place)
        self.place += 1
        return items

    def _found(self, pattern: re.Pattern[str]) -> re.Match[str]:
        if (found := pattern.match(self._text, self.place)) is None:
            raise ValueError(self.place)
        self.place = found.end()
        return found


def read_gemma(text: str, tools: Mapping[str, ToolSpec]) -> list[TextCall] | None:
    calls: list[TextCall] = []
    reader = _GemmaReader(text)
    while reader.place < len(text):
        if (head := _GEMMA_CALL.match(text, reader.place)) is None:
            return None
        reader.place = head.end()
        try:
            values = reader.value()
        except (ValueError, RecursionError):
            return None
        calls.append(TextCall(_tool_name(head["name"]), _dumped(values)))
        if (end := _GEMMA_END.match(text, reader.place)) is None:
            return None
        reader.place = _skip_blank(text, end.end())
    return calls


_HARMONY_HEAD = re.compile(
    rf"(?:<\|start\|>assistant)?\s*+(?:to=(?P<early>{NAME})\s*+)?<\|channel\|>\s*+(?P<channel>analysis|commentary|final)"
    rf"\s*+(?:to=(?P<name>{NAME})\s*+)?(?:(?:<\|constrain\|>\s*+\w++|code|json)\s*+)?<\|message\|>"
)
_HARMONY_END = re.compile(r"<\|end\|>|<\|call\|>|<\|return\|>|(?=<\|start\|>)|\Z")


def read_harmony(text: str, tools: Mapping[str, ToolSpec]) -> tuple[list[TextCall], list[ModelEvent]] | None:
    """The calls, and what is said and thought before them."""
    before: list[ModelEvent] = []
    calls: list[TextCall] = []
    place = 0
    while place < len(text):
        head = _HARMONY_HEAD.match(text, place)
        end = _HARMONY_END.search(text, head.end()) if head is not None else None
        if head is None or end is None:
            return None
        said, place = text[head.end() : end.start()], _skip_blank(text, end.end())
        name = _tool_name(head["name"] or head["early"] or "")
        if name:
            if name not in tools or not _is_object(said):
                return None
            calls.append(TextCall(name, said.strip()))
        elif calls:
            return None  # it goes on after its calls, as if they had been made
        elif said.strip():
            before.append((Thinking if head["channel"] == "analysis" else Said)(said))
    return calls, before


_FENCE = re.compile(r"(```+|~~~+)[ \t]*+\w*+\s")


def read_fenced(text: str, tools: Mapping[str, ToolSpec]) -> list[TextCall] | None:
    """One object, and nothing else in the reply: any other code block is an example."""
    found = _FENCE.match(text)
    if found is None or not text.endswith(found[1]):
        return None
    body = text[found.end() : -len(found[1])]
    value = _json_at(body, 0)
    if value is None or _skip_blank(body, value[1]) != len(body) or not isinstance(value[0], dict):
        return None
    return _calls_of(value[0])
