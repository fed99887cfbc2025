"""How families of models write tool calls as text, and reading it.

Every family of open models was trained on a syntax of its own. A text is read as calls only if it consists of nothing
else, and each of them names a tool that was offered.
"""

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from crow.messages import ToolSpec
from crow.model.base import ModelEvent, Said, Thinking

_BAR, _BLOCK = "\uff5c", "\u2581"
"""What DeepSeek's special tokens are made of."""

END_TOKENS = (
    *("<|im_end|>", "</s>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|return|>", "<|call|>", "<|endoftext|>"),
    *("<|end_of_text|>", "<|END_OF_TURN_TOKEN|>", f"<{_BAR}end{_BLOCK}of{_BLOCK}sentence{_BAR}>", "<end_of_turn>"),
    *("<eos>", "<|user|>", "<|observation|>", "<|end_of_role|>", "[/INST]", "<|END_RESPONSE|>", "<|eom|>", "<|eot|>"),
)
"""Special tokens that end a reply and that some servers forget to take out."""

PHI_OPENING = "functools["
LONGEST_PYTHON = 64 * 1024
"""Characters of calls in Python's syntax: its parser is not made for hostile input."""


class TextCall(NamedTuple):
    name: str
    arguments: str
    """JSON."""


class Syntax(NamedTuple):
    """How one family of models writes its calls."""

    name: str
    """For people."""
    flag: str
    """Which of vLLM's parsers reads it."""
    openings: tuple[str, ...]
    """What such calls begin with."""
    read: Callable[[str, Mapping[str, ToolSpec]], "list[TextCall] | None"]
    """All calls of a text that consists of nothing else; None if it does not."""


class Recovered(NamedTuple):
    calls: list[TextCall]
    syntax: Syntax
    before: list[ModelEvent] = []  # noqa: RUF012 -- never changed
    """What the same text says and thinks before them."""


def parse(text: str, tools: Sequence[ToolSpec], *, whole_reply: bool) -> Recovered | None:
    """The calls that a text consists of; None unless each names one of the tools. `whole_reply`: nothing was said
    before it, so that it may also be JSON or Python without any tags, or one fenced object."""
    offered = {tool.name: tool for tool in tools}
    if text.lstrip().startswith(HARMONY.openings):
        return _harmony(text.strip(), offered)
    text = without_end_tokens(text).strip()
    for syntax in (*TAGGED, *(BARE if whole_reply else ())):
        if not syntax.openings or text.startswith(syntax.openings):
            calls = syntax.read(text, offered)
            if calls and all(call.name in offered for call in calls):
                return Recovered(calls, syntax)
    return None


def without_end_tokens(text: str) -> str:
    while (shorter := text.rstrip()).endswith(END_TOKENS):
        token = next(token for token in END_TOKENS if shorter.endswith(token))
        text = shorter.removesuffix(token)
    return text


# --- what the syntaxes are made of

_json = json.JSONDecoder(strict=False)
"""Models write line ends into strings as they are."""
_BLANK = re.compile(r"\s*")
_NAME = r"[\w.:/-]{1,100}"


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


def _call_of(value: Any) -> TextCall | None:
    """From an object that names a tool and has its arguments, under one of the usual keys."""
    match value:
        case {"function": {"name": str()} as inner}:
            return _call_of(inner)
        case {"name": str(name)} | {"tool_name": str(name)} | {"function": str(name)} | {"tool": str(name)}:
            pass
        case _:
            return None
    fields = cast("dict[str, Any]", value)
    keys = ("arguments", "parameters", "args", "input", "tool_input")
    given: Any = next((fields[key] for key in keys if key in fields), None) or dict[str, Any]()
    if isinstance(given, str):
        return TextCall(_tool_name(name), given) if _is_object(given) else None
    return TextCall(_tool_name(name), _dumped(given)) if isinstance(given, dict) else None


def _is_object(text: str) -> bool:
    """Whether the text is a JSON object and nothing else."""
    found = _json_at(text, 0)
    return found is not None and isinstance(found[0], dict) and _skip_blank(text, found[1]) == len(text)


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _calls_of(value: Any) -> list[TextCall] | None:
    """From one such object, or a list of them."""
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    calls = [_call_of(item) for item in values]
    return [call for call in calls if call is not None] if calls and all(calls) else None


def _tagged_json(opening: str, closing: str) -> Callable[[str, Mapping[str, ToolSpec]], list[TextCall] | None]:
    """Objects, or lists of them, each after an opening tag; closing tags may be missing."""
    begin, end = re.compile(f"(?:{opening})"), re.compile(rf"(?:{closing}|;|,)" if closing else r"[;,]")

    def read(text: str, tools: Mapping[str, ToolSpec]) -> list[TextCall] | None:
        calls: list[TextCall] = []
        place = 0
        while place < len(text):
            place = _skip(text, place, begin)
            found = _json_at(text, place)
            if found is None or (here := _calls_of(found[0])) is None:
                return None
            calls += here
            place = _skip(text, found[1], end)
            while (further := _skip(text, place, end)) != place:
                place = further
        return calls

    return read


def _named_json(opening: str, closing: str) -> Callable[[str, Mapping[str, ToolSpec]], list[TextCall] | None]:
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
            place = _skip(text, found[1], end)
            while (further := _skip(text, place, end)) != place:
                place = further
        return calls

    return read


def _markup(
    wrapper: str, function: str, parameter: str, end_parameter: str, end_function: str
) -> Callable[[str, Mapping[str, ToolSpec]], list[TextCall] | None]:
    """A tag for each call and one for each argument, whose text is the value. A value ends where another argument, or
    the end of the call, follows its closing tag: a file's content may hold such tags itself."""
    outside = re.compile(rf"(?:{wrapper})") if wrapper else None
    begin, argument = re.compile(function), re.compile(parameter)
    value_end = re.compile(rf"{end_parameter}(?=\s*(?:{parameter}|{end_function}|$))")
    end = re.compile(rf"(?:{end_function})")

    def read(text: str, tools: Mapping[str, ToolSpec]) -> list[TextCall] | None:
        calls: list[TextCall] = []
        place = 0
        while place < len(text):
            place = _skip_all(text, place, outside)
            if place == len(text):
                break
            if (head := begin.match(text, place)) is None:
                return None
            name, values = _tool_name(head["name"]), dict[str, Any]()
            place = _skip_blank(text, head.end())
            while (key := argument.match(text, place)) is not None:
                if (last := value_end.search(text, key.end())) is None:
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
        # One line end belongs to each tag; what is beyond belongs to the text.
        return value.removeprefix("\n").removesuffix("\n")
    found = _json_at(value, 0)
    if found is not None and _skip_blank(value, found[1]) == len(value):
        return found[0]
    return {"true": True, "false": False}.get(value.strip().lower(), value.strip())


_GLM_CALL = re.compile(
    rf"(?:<tool_calls>\s*)?<tool_call>\s*(?P<name>{_NAME})\s*(?=<arg_key>|<tool_sep>|</tool_call>|$)"
)
_GLM_ARGUMENT = re.compile(
    r"(?:<tool_sep>)?\s*<arg_key>(?P<key>.*?)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>"
    r"(?=\s*(?:<arg_key>|</tool_call>|$))",
    re.DOTALL,
)
_GLM_END = re.compile(r"(?:</tool_call>|</tool_calls>)")


def _glm(text: str, tools: Mapping[str, ToolSpec]) -> list[TextCall] | None:
    calls: list[TextCall] = []
    place = 0
    while place < len(text):
        if (head := _GLM_CALL.match(text, place)) is None:
            return None
        name, values = _tool_name(head["name"]), dict[str, Any]()
        place = _skip_blank(text, head.end())
        while (argument := _GLM_ARGUMENT.match(text, place)) is not None:
            key = argument["key"].strip()
            values[key] = _typed(argument["value"], key, tools.get(name))
            place = _skip_blank(text, argument.end())
        calls.append(TextCall(name, _dumped(values)))
        if (tail := _GLM_END.match(text, place)) is None:
            return None
        place = _skip_all(text, tail.end(), _GLM_END)
    return calls


_PYTHON_TAGS = re.compile(
    r"(?:<\|python_start\|>|<\|python_end\|>|<\|python_tag\|>|<\|tool_call_start\|>|<\|tool_call_end\|>"
    r"|</?function_calls>)"
)


def _pythonic(text: str, tools: Mapping[str, ToolSpec]) -> list[TextCall] | None:
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
    return TextCall(_tool_name(ast.unparse(node.func)), _dumped(values))


_GEMMA_CALL = re.compile(rf"<start_function_call>\s*call:(?P<name>{_NAME})\{{")
_GEMMA_VALUE = re.compile(r"\s*,?\s*(?P<key>\w+):(?:<escape>(?P<text>.*?)<escape>|(?P<other>[^,{}<>]*))", re.DOTALL)
_GEMMA_END = re.compile(r"\}\s*<end_function_call>")


def _gemma(text: str, tools: Mapping[str, ToolSpec]) -> list[TextCall] | None:
    calls: list[TextCall] = []
    place = 0
    while place < len(text):
        if (head := _GEMMA_CALL.match(text, place)) is None:
            return None
        name, values = _tool_name(head["name"]), dict[str, Any]()
        place = head.end()
        while (found := _GEMMA_VALUE.match(text, place)) is not None:
            told = found["text"]
            values[found["key"]] = told if told is not None else _typed(found["other"], found["key"], tools.get(name))
            place = found.end()
        if (end := _GEMMA_END.match(text, place)) is None:
            return None
        calls.append(TextCall(name, _dumped(values)))
        place = _skip_blank(text, end.end())
    return calls


_HARMONY_MESSAGE = re.compile(
    rf"(?:<\|start\|>assistant)?\s*(?:to=(?P<early>{_NAME})\s*)?<\|channel\|>\s*(?P<channel>analysis|commentary|final)"
    rf"\s*(?:to=(?P<name>{_NAME}))?\s*(?:<\|constrain\|>\s*\w+|code|json)?\s*<\|message\|>(?P<text>.*?)"
    r"(?:<\|end\|>|<\|call\|>|<\|return\|>|(?=<\|start\|>)|$)\s*",
    re.DOTALL,
)


def _read_elsewhere(text: str, tools: Mapping[str, ToolSpec]) -> list[TextCall] | None:
    return None


HARMONY = Syntax("harmony", "openai", ("<|channel|>", "<|start|>assistant"), _read_elsewhere)
"""Messages on several channels, of which some are thoughts and some are calls: `_harmony` reads them."""


def _harmony(text: str, tools: Mapping[str, ToolSpec]) -> Recovered | None:
    before: list[ModelEvent] = []
    calls: list[TextCall] = []
    place = 0
    while place < len(text):
        if (found := _HARMONY_MESSAGE.match(text, place)) is None:
            return None
        place = found.end()
        name = _tool_name(found["name"] or found["early"] or "")
        if name:
            if name not in tools or not _is_object(found["text"]):
                return None
            calls.append(TextCall(name, found["text"].strip()))
        elif found["text"].strip():
            before.append((Thinking if found["channel"] == "analysis" else Said)(found["text"]))
    return Recovered(calls, HARMONY, before)


_FENCE = re.compile(r"(?P<fence>```+|~~~+)[ \t]*\w*[ \t]*\n(?P<body>.*?)\n?[ \t]*(?P=fence)", re.DOTALL)


def _fenced(text: str, tools: Mapping[str, ToolSpec]) -> list[TextCall] | None:
    """One object, and nothing else in the reply: any other code block is an example."""
    if (found := _FENCE.fullmatch(text)) is None:
        return None
    value = _json_at(found["body"], 0)
    if value is None or _skip_blank(found["body"], value[1]) != len(found["body"]) or not isinstance(value[0], dict):
        return None
    return _calls_of(value[0])


_INVOKE = (rf'<invoke\s+name="(?P<name>{_NAME})"\s*>', r'<parameter\s+name="(?P<key>[^"]+)"[^>]*>', r"</parameter>")
_DSML = f"{_BAR}DSML{_BAR}"
_DEEPSEEK = {
    part: f"<{_BAR}tool{_BLOCK}{part.replace('_', _BLOCK)}{_BAR}>"
    for part in ("calls_begin", "call_begin", "sep", "call_end", "calls_end")
}
_FUNCTION = (rf"<function=(?P<name>{_NAME})>", r"<parameter=(?P<key>[^>]+)>", r"</parameter>")

TAGGED = (
    Syntax(
        "Qwen-Coder",
        "qwen3_coder",
        ("<tool_call>", "<function=", "<seed:tool_call>"),
        _markup(r"</?(?:seed:)?tool_call>", *_FUNCTION, r"</function>"),
    ),
    Syntax("GLM", "glm45", ("<tool_call>", "<tool_calls>"), _glm),
    Syntax(
        "Hermes",
        "hermes",
        ("<tool_call>", "<tool_calls>", "<function_call>", "<TOOLCALL>", "<tools>"),
        _tagged_json(
            r"<tool_calls?>|<function_call>|<TOOLCALL>|<tools>", r"</tool_calls?>|</function_call>|</TOOLCALL>|</tools>"
        ),
    ),
    Syntax(
        "Llama",
        "llama3_json",
        ("<function=",),
        _named_json(rf"<function=(?P<name>{_NAME})>", r"</function>"),
    ),
    Syntax("Llama", "llama3_json", ("<|python_tag|>",), _tagged_json(r"<\|python_tag\|>", "")),
    Syntax("Mistral", "mistral", ("[TOOL_CALLS]",), _tagged_json(r"\[TOOL_CALLS\]", r"\[/TOOL_CALLS\]")),
    Syntax(
        "Mistral",
        "mistral",
        ("[TOOL_CALLS]",),
        _named_json(
            r"\[TOOL_CALLS\]\s*(?P<name>[\w.-]{1,100})\s*(?:\[CALL_ID\]\s*\w*\s*)?(?:\[ARGS\])?", r"\[/TOOL_CALLS\]"
        ),
    ),
    Syntax(
        "DeepSeek",
        "deepseek_v3",
        (_DEEPSEEK["calls_begin"], _DEEPSEEK["call_begin"]),
        _named_json(
            rf"(?:{_DEEPSEEK['calls_begin']})?\s*{_DEEPSEEK['call_begin']}\s*(?:function{_DEEPSEEK['sep']})?"
            rf"(?P<name>{_NAME})(?:{_DEEPSEEK['sep']})?\s*(?:```(?:json)?)?",
            rf"```|{_DEEPSEEK['call_end']}|{_DEEPSEEK['calls_end']}",
        ),
    ),
    Syntax(
        "DeepSeek",
        "deepseek_v32",
        (f"<{_DSML}",),
        _markup(
            f"</?{_DSML}(?:function_calls|tool_calls)>",
            rf'<{_DSML}invoke\s+name="(?P<name>{_NAME})"\s*>',
            rf'<{_DSML}parameter\s+name="(?P<key>[^"]+)"[^>]*>',
            f"</{_DSML}parameter>",
            f"</{_DSML}invoke>",
        ),
    ),
    Syntax(
        "Kimi",
        "kimi_k2",
        ("<|tool_calls_section_begin|>", "<|tool_call_begin|>"),
        _named_json(
            rf"(?:<\|tool_calls_section_begin\|>)?\s*<\|tool_call_begin\|>\s*(?P<name>{_NAME})\s*"
            r"<\|tool_call_argument_begin\|>",
            r"<\|tool_call_end\|>|<\|tool_calls_section_end\|>",
        ),
    ),
    Syntax("Gemma", "functiongemma", ("<start_function_call>",), _gemma),
    HARMONY,
    Syntax(
        "MiniMax",
        "minimax_m2",
        ("<minimax:tool_call>", "<function_calls>", "<invoke ", "<tool_calls>"),
        _markup(r"</?(?:minimax:tool_call|function_calls|tool_calls)>", *_INVOKE, r"</invoke>"),
    ),
    Syntax(
        "Granite", "granite", ("<|tool_call|>",), _tagged_json(r"<\|tool_call\|>", r"<\|/tool_call\|>|</\|tool_call\|>")
    ),
    Syntax(
        "Command",
        "cohere_command3",
        ("<|START_ACTION|>",),
        _tagged_json(r"<\|START_ACTION\|>", r"<\|END_ACTION\|>"),
    ),
    Syntax(
        "InternLM",
        "internlm",
        ("<|action_start|>",),
        _tagged_json(r"<\|action_start\|>\s*<\|plugin\|>", r"<\|action_end\|>"),
    ),
    Syntax(
        "LFM", "pythonic", ("<|tool_call_start|>", "<|python_start|>", "<|python_tag|>", "<function_calls>"), _pythonic
    ),
)
"""With tags that nobody writes by accident: believed wherever the reply ends with them."""

BARE = (
    Syntax("Llama", "llama3_json", ("{", "["), _tagged_json("", "")),
    Syntax("Phi", "phi4_mini_json", (PHI_OPENING,), _tagged_json("functools", "")),
    Syntax("Llama", "pythonic", ("[",), _pythonic),
    Syntax("JSON", "hermes", ("```", "~~~"), _fenced),
)
"""Without tags: believed only if they are the whole reply."""
