"""The table of syntaxes in which families of models write tool calls as text, and whether a text consists of nothing
but calls.

Every family of open models was trained on a syntax of its own. Here are those that at least three recordings show to
arrive as text: most servers read the others themselves. A text is read as calls only if it consists of nothing
else, and each of them names a tool that was offered.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crow.messages import ToolSpec
from crow.model.base import ModelEvent
from crow.model.text_call_readers import (
    NAME,
    Reader,
    TextCall,
    markup,
    named_json,
    read_fenced,
    read_gemma,
    read_harmony,
    read_python,
    tagged_json,
)

_BAR, _BLOCK = "\uff5c", "\u2581"
"""What DeepSeek's special tokens are made of."""

END_TOKENS = (
    *("<|im_end|>", "</s>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|return|>", "<|call|>", "<|endoftext|>"),
    *("<|end_of_text|>", "<|END_OF_TURN_TOKEN|>", f"<{_BAR}end{_BLOCK}of{_BLOCK}sentence{_BAR}>", "<end_of_turn>"),
    *("<eos>", "<|user|>", "<|observation|>", "<|end_of_role|>", "[/INST]", "<|END_RESPONSE|>", "<|eom|>", "<|eot|>"),
)
"""Special tokens that end a reply and that some servers forget to take out."""


class Syntax(NamedTuple):
    """How one family of models writes its calls."""

    name: str
    """For people."""
    flag: str
    """Which of vLLM's parsers reads it."""
    openings: tuple[str, ...]
    """What such calls begin with."""
    read: Reader | None
    """None for harmony, whose calls stand between what is said and thought: `read_harmony` gives all of it."""

    def advice(self, model: str) -> str:
        """Tells the person how the server would read the calls itself."""
        return (
            f"{model} wrote its tool calls as text, as {self.name} models do, and Crow read them. The server can do it "
            f"better: start llama.cpp with `--jinja`, vLLM with `--enable-auto-tool-choice --tool-call-parser "
            f"{self.flag}`. With Ollama, choose a model whose template has tools."
        )


class Recovered(NamedTuple):
    """Calls that a text was found to consist of."""

    calls: list[TextCall]
    syntax: Syntax
    before: list[ModelEvent] = []  # noqa: RUF012 -- never changed
    """What the same text says and thinks before them."""


def parse(text: str, tools: Sequence[ToolSpec], *, whole_reply: bool) -> Recovered | None:
    """The calls that a text consists of; None unless each names one of the tools. `whole_reply`: nothing was said
    before it, so that it may also be JSON or Python without any tags, or one fenced object."""
    offered = {tool.name: tool for tool in tools}
    if text.lstrip().startswith(HARMONY.openings):
        found = read_harmony(text.strip(), offered)
        return None if found is None else Recovered(found[0], HARMONY, found[1])
    text = without_end_tokens(text).strip()
    for syntax in (*TAGGED, *(BARE if whole_reply else ())):
        if syntax.read is not None and text.startswith(syntax.openings):
            calls = [_as_offered(call, offered) for call in syntax.read(text, offered) or []]
            if calls and all(call.name in offered for call in calls):
                return Recovered(calls, syntax)
    return None


def _as_offered(call: TextCall, offered: Mapping[str, ToolSpec]) -> TextCall:
    """With the tool's name as it is written."""
    name = next((name for name in offered if name.lower() == call.name.lower()), call.name)
    return call._replace(name=name)


def without_end_tokens(text: str) -> str:
    while (shorter := text.rstrip()).endswith(END_TOKENS):
        token = next(token for token in END_TOKENS if shorter.endswith(token))
        text = shorter.removesuffix(token)
    return text


HARMONY = Syntax("harmony", "openai", ("<|channel|>", "<|start|>assistant"), None)
"""Messages on several channels, of which some are thoughts and some are calls."""

_INVOKE = (
    rf'<invoke\s+name="(?P<name>{NAME})"\s*>',
    r'<parameter\s+name="(?P<key>[^"<>]{1,200})"[^<>]{0,200}>',
    r"</parameter>",
)
_DSML = f"{_BAR}DSML{_BAR}"
_DEEPSEEK = {
    part: f"<{_BAR}tool{_BLOCK}{part.replace('_', _BLOCK)}{_BAR}>"
    for part in ("calls_begin", "call_begin", "sep", "call_end", "calls_end")
}


def _token(part: str) -> str:
    """One of DeepSeek's tokens as a regular expression: some servers write them in ASCII."""
    return rf"<[|{_BAR}]tool[_{_BLOCK}]{part.replace('_', f'[_{_BLOCK}]')}[|{_BAR}]>"


_FUNCTION = (rf"<function=(?P<name>{NAME})>", r"<parameter=(?P<key>[^<>]{1,200})>", r"</parameter>")

TAGGED = (
    Syntax(
        "Qwen-Coder",
        "qwen3_coder",
        ("<tool_call>", "<function="),
        markup(r"</?tool_call>", *_FUNCTION, r"</function>"),
    ),
    Syntax(
        "GLM",
        "glm45",
        ("<tool_call>",),
        markup(
            "",
            rf"<tool_call>\s*(?P<name>{NAME})\s*(?=<arg_key>|</tool_call>)",
            r"<arg_key>(?P<key>[^<]{1,200})</arg_key>\s*<arg_value>",
            r"</arg_value>",
            r"</tool_call>",
        ),
    ),
    Syntax(
        "Hermes",
        "hermes",
        ("<tool_call>", "<tool_calls>", "<function_call>", "<tools>"),
        tagged_json(r"<tool_calls?>|<function_call>|<tools>", r"</tool_calls?>|</function_call>|</tools>"),
    ),
    Syntax(
        "Llama",
        "llama3_json",
        ("<function=",),
        named_json(rf"<function=(?P<name>{NAME})>", r"</function>"),
    ),
    Syntax("Llama", "llama3_json", ("<|python_tag|>",), tagged_json(r"<\|python_tag\|>", "")),
    Syntax("Mistral", "mistral", ("[TOOL_CALLS]",), tagged_json(r"\[TOOL_CALLS\]", r"\[/TOOL_CALLS\]")),
    Syntax(
        "Mistral",
        "mistral",
        ("[TOOL_CALLS]",),
        named_json(
            r"\[TOOL_CALLS\]\s*(?P<name>[\w.-]{1,100})\s*(?:\[CALL_ID\]\s*\w*\s*)?(?:\[ARGS\])?", r"\[/TOOL_CALLS\]"
        ),
    ),
    Syntax(
        "DeepSeek",
        "deepseek_v3",
        ("<|tool_calls_begin|>", "<|tool_call_begin|>function", _DEEPSEEK["calls_begin"], _DEEPSEEK["call_begin"]),
        named_json(
            rf"(?:{_token('calls_begin')}\s*)?{_token('call_begin')}\s*(?:function{_token('sep')})?"
            rf"(?P<name>{NAME})(?:{_token('sep')})?\s*(?:```(?:json)?)?",
            rf"```|{_token('call_end')}|{_token('calls_end')}",
        ),
    ),
    Syntax(
        "DeepSeek",
        "deepseek_v32",
        (f"<{_DSML}",),
        markup(
            f"</?{_DSML}(?:function_calls|tool_calls)>",
            rf'<{_DSML}invoke\s+name="(?P<name>{NAME})"\s*>',
            rf'<{_DSML}parameter\s+name="(?P<key>[^"<>]{{1,200}})"[^<>]{{0,200}}>',
            f"</{_DSML}parameter>",
            f"</{_DSML}invoke>",
        ),
    ),
    Syntax(
        "Kimi",
        "kimi_k2",
        ("<|tool_calls_section_begin|>", "<|tool_call_begin|>"),
        named_json(
            rf"(?:<\|tool_calls_section_begin\|>\s*)?<\|tool_call_begin\|>\s*(?P<name>{NAME})\s*"
            r"<\|tool_call_argument_begin\|>",
            r"<\|tool_call_end\|>|<\|tool_calls_section_end\|>",
        ),
    ),
    Syntax("Gemma", "gemma4", ("<|tool_call>call:",), read_gemma),
    HARMONY,
    Syntax(
        "MiniMax",
        "minimax_m2",
        ("<minimax:tool_call>", "<function_calls>", "<invoke ", "<tool_calls>"),
        markup(r"</?(?:minimax:tool_call|function_calls|tool_calls)>", *_INVOKE, r"</invoke>"),
    ),
    Syntax(
        "LFM",
        "pythonic",
        ("<|tool_call_start|>", "<|python_tag|>"),
        read_python,
    ),
)
"""With tags that nobody writes by accident: believed wherever the reply ends with them."""

BARE = (
    Syntax("Llama", "llama3_json", ("{", "["), tagged_json("", "")),
    Syntax("Llama", "pythonic", ("[",), read_python),
    Syntax("JSON", "hermes", ("```", "~~~"), read_fenced),
)
"""Without tags: believed only if they are the whole reply."""
