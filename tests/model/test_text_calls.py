"""Calls that models write as text: which are read, which are left as text, however they arrive."""

import json
import random
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from crow.config.settings import Limits, ProviderSettings
from crow.messages import StopReason, ToolSpec
from crow.model.base import CallBegan, CallGrew, Done, ModelEvent, Said, Thinking, Usage
from crow.model.catalog import create
from crow.model.text_calls import TextCalls

TOOLS = [
    ToolSpec(
        "read",
        "",
        {"type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}},
    ),
    ToolSpec(
        "write", "", {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}}
    ),
    ToolSpec(
        "edit",
        "",
        {"type": "object", "properties": {"path": {"type": "string"}, "edits": {"type": "array"}}},
    ),
    ToolSpec("terminal", "", {"properties": {"command": {"type": "string"}, "background": {"type": "boolean"}}}),
]
READ = ("read", {"path": "a.py"})
BAR, BLOCK = "\uff5c", "\u2581"


def deepseek(text: str) -> str:
    """With the characters that its special tokens are made of."""
    return text.replace("<|", f"<{BAR}").replace("|>", f"{BAR}>").replace("_", BLOCK)


def followed(
    pieces: Iterable[str], stop: StopReason = StopReason.END_TURN, tools: Sequence[ToolSpec] = TOOLS
) -> tuple[str, list[tuple[str, Any]], str]:
    """What of a reply is text, which calls it has, and what it thinks."""
    reader = TextCalls(tools)
    events: list[ModelEvent] = []
    for event in (*map(Said, pieces), Usage(1, 1), Done(stop)):
        events += reader.take(event)
    names = {event.index: event.name for event in events if isinstance(event, CallBegan)}
    calls = [(names[event.index], json.loads(event.fragment)) for event in events if isinstance(event, CallGrew)]
    text = "".join(event.text for event in events if isinstance(event, Said))
    return text, calls, "".join(event.text for event in events if isinstance(event, Thinking))


CALLS: dict[str, tuple[str, list[tuple[str, Any]]]] = {
    "Hermes": ('<tool_call>\n{"name": "read", "arguments": {"path": "a.py"}}\n</tool_call>', [READ]),
    "Hermes, two": (
        (
            '<tool_call>{"name": "read", "arguments": {"path": "a.py"}}</tool_call>\n'
            '<tool_call>{"name": "terminal", "arguments": {"command": "ls"}}</tool_call><|im_end|>'
        ),
        [READ, ("terminal", {"command": "ls"})],
    ),
    "Hermes, not closed": ('<tool_call>\n{"name": "read", "arguments": {"path": "a.py"}}', [READ]),
    "Hermes, double encoded": (
        '<tool_call>{"name": "read", "arguments": "{\\"path\\": \\"a.py\\"}"}</tool_call>',
        [READ],
    ),
    "a list in a tag": ('<tool_calls>[{"name": "read", "arguments": {"path": "a.py"}}]</tool_calls>', [READ]),
    "function_call": ('<function_call>{"name": "read", "arguments": {"path": "a.py"}}</function_call>', [READ]),
    "Qwen-Coder": (
        (
            "<tool_call>\n<function=read>\n<parameter=path>\na.py\n</parameter>\n<parameter=limit>\n5\n</parameter>\n"
            "</function>\n</tool_call>"
        ),
        [("read", {"path": "a.py", "limit": 5})],
    ),
    "Qwen-Coder, without its wrapper, with tags in a file": (
        (
            "<function=write>\n<parameter=path>\na.xml\n</parameter>\n<parameter=content>\n<parameter>\n  x\n"
            "</parameter>\n<done/>\n</parameter>\n</function>"
        ),
        [("write", {"path": "a.xml", "content": "<parameter>\n  x\n</parameter>\n<done/>"})],
    ),
    "Llama 3, JSON": ('{"name": "read", "parameters": {"path": "a.py"}}<|eot_id|>', [READ]),
    "Llama 3, two": (
        '{"name": "read", "parameters": {"path": "a.py"}}; {"name": "read", "parameters": {"path": "b.py"}}',
        [READ, ("read", {"path": "b.py"})],
    ),
    "Llama 3, python tag": ('<|python_tag|>{"name": "read", "parameters": {"path": "a.py"}}<|eom_id|>', [READ]),
    "Llama 3, function tag": ('<function=read>{"path": "a.py"}</function>', [READ]),
    "Llama 4, bare": (
        "[read(path='a.py'), terminal(command='ls', background=True)]",
        [READ, ("terminal", {"command": "ls", "background": True})],
    ),
    "Mistral": ('[TOOL_CALLS][{"name": "read", "arguments": {"path": "a.py"}}]</s>', [READ]),
    "Mistral, newer": (
        '[TOOL_CALLS]read[ARGS]{"path": "a.py"}[TOOL_CALLS]terminal[CALL_ID]k3[ARGS]{"command": "ls"}',
        [READ, ("terminal", {"command": "ls"})],
    ),
    "DeepSeek V3": (
        deepseek("<|tool_calls_begin|><|tool_call_begin|>function<|tool_sep|>read\n```json\n")
        + '{"path": "a.py"}'
        + deepseek("\n```<|tool_call_end|><|tool_calls_end|><|end_of_sentence|>"),
        [READ],
    ),
    "DeepSeek V3.1": (
        deepseek("<|tool_calls_begin|><|tool_call_begin|>read<|tool_sep|>")
        + '{"path": "a.py"}'
        + deepseek("<|tool_call_end|><|tool_call_begin|>terminal<|tool_sep|>")
        + '{"command": "ls"}'
        + deepseek("<|tool_call_end|><|tool_calls_end|>"),
        [READ, ("terminal", {"command": "ls"})],
    ),
    "DeepSeek V3.2": (
        (
            f'<{BAR}DSML{BAR}function_calls>\n<{BAR}DSML{BAR}invoke name="read">\n'
            f'<{BAR}DSML{BAR}parameter name="path" string="true">a.py</{BAR}DSML{BAR}parameter>\n'
            f"</{BAR}DSML{BAR}invoke>\n</{BAR}DSML{BAR}function_calls>"
        ),
        [READ],
    ),
    "Kimi": (
        (
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>"
            '{"path": "a.py"}'
            "<|tool_call_end|><|tool_calls_section_end|>"
        ),
        [READ],
    ),
    "GLM": (
        (
            "<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>a.py</arg_value>\n<arg_key>limit</arg_key>\n"
            "<arg_value>5</arg_value>\n</tool_call>"
        ),
        [("read", {"path": "a.py", "limit": 5})],
    ),
    "harmony": (
        '<|channel|>commentary to=functions.read <|constrain|>json<|message|>{"path": "a.py"}<|call|>',
        [READ],
    ),
    "MiniMax": (
        (
            '<minimax:tool_call>\n<invoke name="read">\n<parameter name="path">a.py</parameter>\n</invoke>\n'
            "</minimax:tool_call>"
        ),
        [READ],
    ),
    "invoke": (
        (
            '<function_calls>\n<invoke name="edit">\n<parameter name="path">a.py</parameter>\n'
            '<parameter name="edits">[{"old": "1", "new": "2"}]</parameter>\n</invoke>\n</function_calls>'
        ),
        [("edit", {"path": "a.py", "edits": [{"old": "1", "new": "2"}]})],
    ),
    "LFM": ('<|tool_call_start|>[read(path="a.py")]<|tool_call_end|>', [READ]),
    "xLAM": ('[{"name": "read", "arguments": {"path": "a.py"}}]', [READ]),
    "OpenAI's shape": ('{"type": "function", "function": {"name": "read", "arguments": {"path": "a.py"}}}', [READ]),
    "a fence that is the whole reply": ('```json\n{"name": "read", "arguments": {"path": "a.py"}}\n```', [READ]),
    "Hermes, a brace too few": ('<tool_call>\n{"name": "read", "arguments": {"path": "a.py"}\n</tool_call>', [READ]),
    "Hermes, a brace too many": ('<tool_call>\n{"name": "Read", "arguments": {"path": "a.py"}}}\n</tool_call>', [READ]),
    "Qwen-Coder, an argument not closed": ("<function=read>\n<parameter=path>\na.py\n</function>", [READ]),
    "GLM, a value that ends with a line end": (
        (
            "<tool_call>write\n<arg_key>path</arg_key>\n<arg_value>a.py</arg_value>\n<arg_key>content</arg_key>\n"
            "<arg_value>if a < b:\n    pass\n</arg_value>\n</tool_call>"
        ),
        [("write", {"path": "a.py", "content": "if a < b:\n    pass\n"})],
    ),
    "Gemma, a list": (
        ('<|tool_call>call:edit{edits:[{new:<|"|>2<|"|>,old:<|"|>1<|"|>}],path:<|"|>a<|"|>}<tool_call|>'),
        [("edit", {"edits": [{"new": "2", "old": "1"}], "path": "a"})],
    ),
    "Gemma, newer": ('<|tool_call>call:read{path:<|"|>a.py<|"|>}<tool_call|>', [READ]),
    "Llama 3, call": ('<|python_tag|>read.call(path="a.py")', [READ]),
    "DeepSeek in ASCII": (
        (
            '<|tool_calls_begin|><|tool_call_begin|>function<|tool_sep|>read\n```json\n{"path": "a.py"}\n```'
            "<|tool_call_end|><|tool_calls_end|>"
        ),
        [READ],
    ),
    "a list under a key": ('{"tool_calls": [{"name": "read", "arguments": {"path": "a.py"}}]}', [READ]),
    "a fence on one line": ('```json {"name": "read", "arguments": {"path": "a.py"}}```', [READ]),
    "a fence of another name": ('```tool_call\n{"name": "read", "parameters": {"path": "a.py"}}\n```', [READ]),
}

BARE = {
    *("Llama 3, JSON", "Llama 3, two", "Llama 4, bare", "xLAM", "OpenAI's shape"),
    "a list under a key",
}
TAGGED = [name for name in CALLS if name not in BARE and not name.startswith("a fence")]


@pytest.mark.parametrize("syntax", CALLS)
def test_calls_are_read_however_they_arrive(syntax):
    text, calls = CALLS[syntax]
    assert followed([text]) == ("", calls, "")
    first = len(text) - len(text.lstrip("abcdefghijklmnopqrstuvwxyz"))  # a word comes in one piece
    assert followed([text[:first], *text[first:]]) == ("", calls, "")  # character by character
    chance = random.Random(syntax)
    for _ in range(20):
        cuts = sorted(chance.sample(range(first, len(text)), 5))
        assert followed([text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]) == ("", calls, "")


@pytest.mark.parametrize("syntax", TAGGED)
def test_calls_with_tags_may_follow_words(syntax):
    text, calls = CALLS[syntax]
    assert followed(["Let me ", "look.\n\n", text]) == ("Let me look.\n\n", calls, "")


TAG = '<tool_call>{"name": "read", "arguments": {"path": "a.py"}}</tool_call>'


@pytest.mark.parametrize(
    "before",
    [
        *(
            "",
            "I look\n",
            "I look. ",
            "I look! ",
            "Shall I? ",
            "I look\u2026 ",
            "I **look** ",
            "I look (twice) ",
            "I look: ",
        ),
        *("  ", "```\nx\n```\n\n", "<example>\n\n", f"`{TAG}` is how.\n\n", f"> {TAG}\n\n", f"```\n{TAG}\n```\n\n"),
    ],
)
def test_a_tag_counts_at_the_beginning_of_a_line_or_behind_a_sentence(before):
    """As docs/models.md says."""
    assert followed([before, TAG]) == (before, [READ], "")


@pytest.mark.parametrize(
    "before", ["I look ", "I look, ", "- ", "1. ", "I look.\n  ", "    ", "```\nx\n```\n", "(see\n"]
)
def test_behind_what_may_be_a_quotation_all_is_text(before):
    text = f"{before}{TAG}\n\n{TAG}"
    assert followed([text]) == (text, [], "")


@pytest.mark.parametrize("syntax", CALLS)
def test_what_is_quoted_or_cut_off_or_goes_on_is_text(syntax):
    text = CALLS[syntax][0]
    for quoted in (
        f"It looks like this:\n\n```\n{text}\n```\n",
        f"It looks like this:\n\n````xml\n```\n{text}\n```\n````",
        f"Before.\n\n> {text.replace(chr(10), chr(10) + '> ')}",
        f"Write `{text.replace('`', '')}`",
        f'Before "{text}"',
        f"Before:\n\n    {text}",
        f"Before. {text}\n\nThat is how it is written.",
    ):
        shown, calls, _ = followed(quoted)
        assert calls == []
        assert shown in (quoted, _without_end_tokens(quoted))
    assert followed(text, StopReason.MAX_TOKENS)[1] == []
    assert followed(text, tools=[ToolSpec("other", "", {})])[1] == []
    assert followed([text], tools=[]) == (text, [], "")


def _without_end_tokens(text: str) -> str:
    from crow.model.text_call_syntaxes import without_end_tokens

    return without_end_tokens(text)


@pytest.mark.parametrize("syntax", CALLS)
def test_a_call_that_was_cut_off_is_never_run_with_less_than_it_says(syntax):
    text, whole = CALLS[syntax]
    for length in range(1, len(text)):
        calls = followed([text[:length]])[1]
        assert calls == whole[: len(calls)]


@pytest.mark.parametrize(
    "text",
    [
        'Action: read\nAction Input: {"path": "a.py"}',  # prose, and nobody's tags
        '{"name": "Crow", "version": 1}',  # an answer in JSON
        '{"name": "unknown_tool", "arguments": {}}',
        '```json\n{"name": "read", "arguments": {"path": "a.py"}}\n```\n\n```json\n{"name": "read"}\n```',
        '{"name": "terminal"}',
        '{"name": "read", "arguments": {"path": "a.py"}, "result": "two lines"}',
        '{"name": "terminal", "description": "x", "parameters": {"type": "object", "properties": {"command": {}}}}',
        '```json\n{"name": "terminal", "parameters": {"type": "object", "properties": {}}}\n```',
        *(
            before + '<tool_call>\n{"name": "terminal", "arguments": {"command": "ls"}}\n</tool_call>'
            for before in (
                *("> It said\n", ">\n> x\n", 'It would answer: "Sure! ', 'It prints "foo ', "It said: \u2018ok ", "# "),
                *("// ", "+", "-", "prompt = ", "a.py:12: ", "| Hermes | ", "(like this: ", "<example>\n", "<!-- "),
                *("prompt: |\n  ", 'It said: "I will.\n', "It begins with `start\n"),
            )
        ),
        (
            '<|channel|>commentary to=functions.read<|message|>{"path": "a.py"}<|call|><|start|>assistant'
            "<|channel|>final<|message|>It has five lines."
        ),
        '```json\n[{"name": "read", "arguments": {"path": "a.py"}}]\n```',  # a fence counts with one object
        'Here it is:\n```json\n{"name": "read", "arguments": {"path": "a.py"}}\n```',
        "```python\nread(path='a.py')\n```",
        "[see](https://example.com) and [ ] a box",
        "[a, b, c]",
        "a < b and b > c, i < 3",
        "<div>not a call</div>",
        "The tag <tool_call> begins a call, and its arguments are written as JSON behind it. " + "x" * 300,
        "if a <",
        "[TOOL_CALLS",
        "<tool_call>read</tool_call> is what GLM writes",
    ],
)
def test_other_texts_stay_as_they_are(text):
    assert followed([text]) == (text, [], "")
    assert followed(text) == (text, [], "")


@pytest.mark.parametrize("token", ["<|im_end|>", "</s>", "<|eot_id|>\n", "<end_of_turn>", "<|return|></s>"])
def test_tokens_that_end_a_reply_are_taken_out_at_its_end_alone(token):
    assert followed(f"All done.{token}")[0] == "All done."
    assert followed(f"It ends with `{token.strip()}`.")[0] == f"It ends with `{token.strip()}`."
    assert followed(f"A {token.strip()} in the middle.")[0] == f"A {token.strip()} in the middle."


def test_harmony_with_thoughts_and_words():
    text = (
        "<|channel|>analysis<|message|>I should look.<|end|><|start|>assistant<|channel|>commentary<|message|>Looking."
        '<|end|><|start|>assistant<|channel|>commentary to=functions.read<|message|>{"path": "a.py"}<|call|>'
    )
    assert followed(text) == ("Looking.", [READ], "I should look.")
    assert followed("<|channel|>final<|message|>Hello.<|return|>") == ("Hello.", [], "")


def test_a_letter_is_shown_at_once_though_a_word_of_some_syntax_begins_with_it():
    for letter in "acfr":
        assert TextCalls(TOOLS).take(Said(letter)) == [Said(letter)]


def test_a_reply_with_real_calls_has_no_others():
    reader = TextCalls(TOOLS)
    text = CALLS["Hermes"][0]
    events = [
        shown
        for event in (Said(text), CallBegan(0, "read"), CallGrew(0, "{}"), Done(StopReason.END_TURN))
        for shown in reader.take(event)
    ]
    assert events == [Said(text), CallBegan(0, "read"), CallGrew(0, "{}"), Done(StopReason.END_TURN)]


def test_hostile_texts_cost_no_more_than_their_length():
    """Each would take minutes if it were looked at again and again."""
    for piece in ("`<tool_call>` ", "</s> x ", "</s>", "<tool_call>`", "<"):
        text = piece * (1_000_000 // len(piece)) + "end"
        assert followed([text]) == (text, [], "")
    content = "x" * 2_000_000
    text = f'<tool_call>{{"name": "write", "arguments": {{"path": "a", "content": "{content}"}}}}</tool_call>'
    pieces = [text[start : start + 20] for start in range(0, len(text), 20)]
    assert followed(pieces) == ("", [("write", {"path": "a", "content": content})], "")


@pytest.mark.parametrize(
    ("address", "is_read"),
    [
        ("", False),
        ("https://x.openai.azure.com", False),
        ("https://openrouter.ai/api/v1", False),
        ("https://api.deepseek.com", False),
        ("http://127.0.0.1:8080/v1", True),
        ("https://models.example.com/v1", True),
    ],
)
def test_nothing_is_read_where_a_vendor_makes_the_calls(address: str, is_read: bool):
    providers = {"p": ProviderSettings(type="openai", base_url=address, api_key="k")}
    assert create("p/m", providers, Limits(), {}).info.calls_as_text == is_read
