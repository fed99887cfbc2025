"""What is sent to which vendor: thoughts, signatures, levels, limits and marks, and what a refusal changes."""

import json
from collections.abc import Container, Sequence
from typing import Any

import pytest

from crow.messages import (
    AssistantMessage,
    AssistantPart,
    Image,
    Message,
    ProviderData,
    Text,
    Thought,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from crow.model.base import ModelInfo, ModelRequest
from crow.model.endpoint import Endpoint
from crow.model.provider_errors import from_status
from crow.model.wires.chat_request import NO_SIGNATURE, encode
from crow.model.wires.dialects import dialect_of
from crow.model.wires.http_model import Learned
from crow.model.wires.openai import REFUSALS
from tests.model.asking import HELLO, READ

GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai"
OPENROUTER = "https://openrouter.ai/api/v1"
VERCEL = "https://ai-gateway.vercel.sh/v1"
DEEPSEEK = "https://api.deepseek.com/v1"
MOONSHOT = "https://api.moonshot.ai/v1"
ZAI = "https://api.z.ai/api/paas/v4"
GROQ = "https://api.groq.com/openai/v1"
CEREBRAS = "https://api.cerebras.ai/v1"
MISTRAL = "https://api.mistral.ai/v1"
XAI = "https://api.x.ai/v1"
OPENAI = "https://api.openai.com/v1"
ALIBABA = "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"
ANYBODY = "http://127.0.0.1:8080/v1"


def body(
    url: str,
    messages: Sequence[Message] = HELLO,
    *,
    model: str = "m",
    learned: Container[str] = (),
    images: bool = False,
    max_output: int | None = None,
    **request: Any,
) -> dict[str, Any]:
    info = ModelInfo("house", model, images=images, max_output=max_output)
    return json.loads(encode(info, ModelRequest("Be brief.", messages, **request), dialect_of(url), learned))


def reply(*parts: AssistantPart) -> list[Message]:
    """A turn with one round: what the model said in it, and a second prompt after it."""
    message = AssistantMessage(parts)
    results = [ToolMessage(call.id, "fine") for call in message.calls]
    return [*HELLO, message, *results, AssistantMessage((Text("Done."),)), UserMessage((Text("And now?"),))]


def sent_back(url: str, *parts: AssistantPart, **more: Any) -> dict[str, Any]:
    """The message that the reply became in the request of the next turn, but for what all of them have."""
    message = body(url, reply(*parts), **more)["messages"][2]
    return {key: value for key, value in message.items() if key not in ("role", "tool_calls")}


CALL = ToolCall("t1-c1", "read", '{"path":"a"}')


def thought(field: str, text: str = "Hm.", **more: Any) -> Thought:
    return Thought(text, "house", model="m", field=field, **more)


# --- thoughts


@pytest.mark.parametrize("url", [ANYBODY, XAI, ALIBABA, ZAI])
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_a_thought_goes_back_in_its_own_field_in_every_turn(url: str, field: str) -> None:
    message = sent_back(url, thought(field), Text("Look."), CALL)
    assert (message["content"], message[field]) == ("Look.", "Hm.")


def test_mistral_gets_its_thoughts_as_parts_of_the_content() -> None:
    assert sent_back(MISTRAL, thought("content"), Text("Look."), CALL) == {
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
            {"type": "text", "text": "Look."},
        ]
    }


@pytest.mark.parametrize(
    ("url", "field"),
    [(ANYBODY, "reasoning_content"), (DEEPSEEK, "reasoning_content"), (GROQ, "reasoning"), (CEREBRAS, "reasoning")],
)
def test_a_thought_of_an_older_history_goes_back_as_the_vendor_usually_sends_them(url: str, field: str) -> None:
    assert sent_back(url, Thought("Hm.", "house"), Text("Look."), CALL) == {"content": "Look.", field: "Hm."}


@pytest.mark.parametrize(
    "foreign",
    [
        Thought("Hm.", "elsewhere", model="m", field="reasoning_content"),
        Thought("Hm.", "house", model="another", field="reasoning_content"),
        Thought("Hm.", "house", model="m", field="reasoning_content", signature="a seal of the messages API"),
        Thought("Hm.", "house", model="m", field="summary"),
    ],
)
def test_thoughts_of_others_stay_here(foreign: Thought) -> None:
    assert sent_back(ANYBODY, foreign, Text("Look."), CALL) == {"content": "Look."}


@pytest.mark.parametrize("url", [DEEPSEEK, MOONSHOT, "https://api.kimi.com/coding/v1", "https://api.xiaomimimo.com/v1"])
def test_who_insists_on_a_thought_beside_each_call_gets_a_blank_one(url: str) -> None:
    assert sent_back(url, CALL)["reasoning_content"] == " "
    assert sent_back(url, thought("reasoning_content"), CALL)["reasoning_content"] == "Hm."
    assert "reasoning_content" not in sent_back(url, Text("No call."))


def test_thoughts_between_tags_go_back_there_in_their_own_turn_only() -> None:
    tagged = AssistantMessage((thought("<think>"), Text("Look."), CALL))
    now = [*HELLO, tagged, ToolMessage("t1-c1", "fine")]
    assert body(ANYBODY, now)["messages"][2]["content"] == "<think>\nHm.\n</think>\n\nLook."
    assert sent_back(ANYBODY, *tagged.parts) == {"content": "Look."}


def test_a_message_with_calls_alone_has_no_content() -> None:
    assert sent_back(ANYBODY, CALL) == {"content": None}
    assert sent_back(MOONSHOT, CALL) == {"reasoning_content": " "}
    assert sent_back(ANYBODY, CALL, learned={"null content"}) == {}


# --- what is kept for a vendor

SIGNED = '{"google" :  {"thought_signature":"s\\u00e9+/="}}'


def kept(data: str, *, provider: str = "house", model: str = "m") -> ProviderData:
    return ProviderData(provider, model, data)


def sent_calls(url: str, *calls: ToolCall, **more: Any) -> list[dict[str, Any]]:
    return body(url, reply(*calls), **more)["messages"][2]["tool_calls"]


def test_a_signature_goes_back_byte_for_byte() -> None:
    call = ToolCall("t1-c1", "read", "{}", kept(f'{{"extra_content":{SIGNED}}}', model="gemini-flash-latest"))
    info = ModelInfo("house", "gemini-flash-latest")
    sent = encode(info, ModelRequest("", reply(call, CALL)), dialect_of(GEMINI))
    assert b'"extra_content":' + SIGNED.encode() in sent
    assert sent.count(b"extra_content") == 1  # the second of two calls that were made together has none


@pytest.mark.parametrize(
    ("model", "needed"),
    [("gemini-flash-latest", True), ("gemini-3.8-flash", True), ("gemini-2.5-pro", False), ("gemma-4", False)],
)
def test_a_call_of_another_model_has_the_word_for_no_signature(model: str, needed: bool) -> None:
    foreign = ToolCall("t1-c2", "read", "{}", kept(f'{{"extra_content":{SIGNED}}}', model="other"))
    first, second = sent_calls(GEMINI, CALL, foreign, model=model)
    assert first.get("extra_content") == ({"google": {"thought_signature": NO_SIGNATURE}} if needed else None)
    assert "extra_content" not in second


def test_no_other_vendor_gets_a_signature() -> None:
    foreign = ToolCall("t1-c2", "read", "{}", kept(f'{{"extra_content":{SIGNED}}}', provider="gemini"))
    assert all("extra_content" not in call for call in sent_calls(ANYBODY, CALL, foreign))


DETAILS = '[{"type":"reasoning.text","text":"Hm.","signature":"x","index":0}]'


def test_reasoning_details_go_back_unchanged_and_instead_of_their_text() -> None:
    sealed = thought("reasoning", kept=kept(f'{{"reasoning_details":{DETAILS}}}'))
    message = sent_back(OPENROUTER, sealed, Text("Look."), CALL)
    assert message == {"content": "Look.", "reasoning_details": json.loads(DETAILS)}
    assert sent_back(OPENROUTER, thought("reasoning"), CALL) == {"content": None, "reasoning": "Hm."}


def test_a_gateway_gets_the_word_for_no_signature_among_the_details() -> None:
    messages = body(OPENROUTER, reply(CALL), model="google/gemini-3.8-flash")["messages"]
    (entry,) = messages[2]["reasoning_details"]
    assert entry == {
        "type": "reasoning.encrypted",
        "data": NO_SIGNATURE,
        "id": messages[2]["tool_calls"][0]["id"],
        "format": "google-gemini-v1",
    }
    assert "reasoning_details" not in sent_back(OPENROUTER, CALL, model="openai/gpt-5.6")


def test_a_call_that_details_name_has_the_id_that_they_name() -> None:
    call = ToolCall("t1-c1", "read", "{}", kept('{"id":"tool_0_read"}'))
    again = ToolCall("t1-c2", "read", "{}", kept('{"id":"tool_0_read"}'))
    messages = body(OPENROUTER, reply(call, again))["messages"]
    first, second = (one["id"] for one in messages[2]["tool_calls"])
    assert first == "tool_0_read"
    assert second != first  # a vendor that repeats its ids
    assert [message["tool_call_id"] for message in messages[3:5]] == [first, second]


@pytest.mark.parametrize("data", ["", "no JSON", "[1]", '{"phase":"commentary"}', '{"id": 5}'])
def test_what_another_wire_kept_is_not_sent(data: str) -> None:
    call = ToolCall("t1-c1", "read", "{}", kept(data))
    (sent,) = sent_calls(ANYBODY, call)
    assert set(sent) == {"id", "type", "function"}
    assert sent_back(ANYBODY, Text("Hi", kept(data)), thought("reasoning", kept=kept(data))) == {
        "content": "Hi",
        "reasoning": "Hm.",
    }


# --- levels


@pytest.mark.parametrize(
    ("url", "model", "level", "fields"),
    [
        (ANYBODY, "m", "off", {"reasoning_effort": "none"}),
        (ANYBODY, "m", "xhigh", {"reasoning_effort": "xhigh"}),
        (OPENROUTER, "openrouter/auto", "high", {"reasoning": {"effort": "high"}}),
        (OPENROUTER, "anthropic/claude-sonnet-5", "max", {"reasoning": {"effort": "xhigh"}}),
        (VERCEL, "anthropic/claude-sonnet-5", "off", {"reasoning": {"effort": "none"}}),
        (DEEPSEEK, "deepseek-flash", "off", {"thinking": {"type": "disabled"}}),
        (DEEPSEEK, "deepseek-flash", "low", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        (DEEPSEEK, "deepseek-flash", "max", {"thinking": {"type": "enabled"}, "reasoning_effort": "max"}),
        (DEEPSEEK, "deepseek-flash", "", {}),
        (MOONSHOT, "kimi-k2.7-code", "high", {"thinking": {"type": "enabled"}}),
        (MOONSHOT, "kimi-k3", "max", {"thinking": {"type": "enabled"}, "reasoning_effort": "max"}),
        (MOONSHOT, "kimi-k3", "off", {"thinking": {"type": "disabled"}}),
        (ZAI, "glm-5.3", "", {"thinking": {"type": "enabled", "clear_thinking": False}}),
        (ZAI, "glm-4.7", "high", {"thinking": {"type": "enabled", "clear_thinking": False}}),
        (
            ZAI,
            "glm-5.2",
            "max",
            {"thinking": {"type": "enabled", "clear_thinking": False}, "reasoning_effort": "max"},
        ),
        (ZAI, "glm-5.3", "off", {"thinking": {"type": "disabled"}}),
        (ALIBABA, "qwen3.8-max", "off", {"enable_thinking": False}),
        (ALIBABA, "qwen3.8-max", "high", {"enable_thinking": True}),
        (GROQ, "openai/gpt-oss-120b", "low", {"reasoning_effort": "low"}),
        (GROQ, "qwen/qwen3.8-27b", "high", {"reasoning_effort": "default"}),
        (MISTRAL, "mistral-medium-latest", "medium", {"reasoning_effort": "high"}),
        (MISTRAL, "mistral-medium-latest", "off", {"reasoning_effort": "none"}),
    ],
)
def test_how_a_vendor_is_told_how_long_to_think(url: str, model: str, level: str, fields: dict[str, Any]) -> None:
    names = ("reasoning_effort", "reasoning", "thinking", "enable_thinking")
    sent = body(url, model=model, thought_level=level)
    assert {name: sent[name] for name in names if name in sent} == fields


# --- limits and caches


@pytest.mark.parametrize(
    ("url", "learned", "field"),
    [
        (ANYBODY, (), "max_tokens"),
        (MISTRAL, (), "max_tokens"),
        (OPENAI, (), "max_completion_tokens"),
        ("https://me.openai.azure.com/openai/v1", (), "max_completion_tokens"),
        (OPENROUTER, (), "max_completion_tokens"),
        (ANYBODY, {"max_completion_tokens"}, "max_completion_tokens"),
        (OPENROUTER, {"max_tokens"}, "max_tokens"),
    ],
)
def test_the_name_of_the_limit(url: str, learned: Container[str], field: str) -> None:
    sent = body(url, learned=learned, max_output=500)
    assert [name for name in ("max_tokens", "max_completion_tokens") if name in sent] == [field]


@pytest.mark.parametrize(
    ("url", "takes_key"),
    [(OPENAI, True), (XAI, True), (MISTRAL, True), (CEREBRAS, True), (MOONSHOT, True), (GROQ, False), (ANYBODY, False)],
)
def test_who_is_given_a_key_for_its_cache(url: str, takes_key: bool) -> None:
    assert body(url, cache_key="s1").get("prompt_cache_key") == ("s1" if takes_key else None)
    assert "prompt_cache_key" not in body(url, cache_key="s1", learned={"prompt_cache_key"})
    assert "prompt_cache_key" not in body(url)


def marks(sent: dict[str, Any]) -> list[str]:
    """Where the marks are, in words."""
    found = [f"tool {tool['function']['name']}" for tool in sent["tools"] if "cache_control" in tool]
    for place, message in enumerate(sent["messages"]):
        parts = message["content"] if isinstance(message["content"], list) else []
        found += [f"{message['role']} {place}" for part in parts if "cache_control" in part]
    return found


ROUNDS: list[Message] = [
    *reply(Text("Look."), CALL)[:-1],
    UserMessage((Text("More."),)),
    AssistantMessage((ToolCall("t2-c1", "read", "{}"),)),
    ToolMessage("t2-c1", "text"),
]


@pytest.mark.parametrize("url", [OPENROUTER, VERCEL])
@pytest.mark.parametrize("model", ["anthropic/claude-sonnet-5", "google/gemini-3.8-flash", "qwen/qwen3.8-max"])
def test_what_gateways_cache_for_models_that_want_marks(url: str, model: str) -> None:
    sent = body(url, ROUNDS, model=model, tools=[READ])
    assert marks(sent) == ["tool read", "system 0", "user 5", "tool 7"]
    first = body(url, HELLO, model=model, tools=[READ])
    assert marks(first) == ["tool read", "system 0", "user 1"]
    (part,) = first["messages"][1]["content"]
    assert part == {"type": "text", "text": "Hello", "cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    ("url", "model", "learned"),
    [
        (OPENROUTER, "openai/gpt-5.6", ()),
        (OPENROUTER, "openrouter/auto", ()),
        (ANYBODY, "anthropic/claude-sonnet-5", ()),
        (OPENROUTER, "anthropic/claude-sonnet-5", {"cache_control"}),
    ],
)
def test_nobody_else_gets_marks(url: str, model: str, learned: Container[str]) -> None:
    assert marks(body(url, ROUNDS, model=model, tools=[READ], learned=learned)) == []


def test_text_is_one_string_wherever_there_is_nothing_else() -> None:
    texts = UserMessage((Text("One"), Text("Two")))
    picture = Image("aGk=", "image/png")
    assert body(ANYBODY, [texts])["messages"][1]["content"] == "One\n\nTwo"
    shown = body(ANYBODY, [UserMessage((*texts.parts, picture))], images=True)["messages"][1]["content"]
    assert [part["type"] for part in shown] == ["text", "text", "image_url"]
    left_out = body(ANYBODY, [UserMessage((*texts.parts, picture))], images=True, learned={"images"})
    assert left_out["messages"][1]["content"].startswith("One\n\nTwo\n\n[image left out")


# --- what servers refuse, in their own words


@pytest.mark.parametrize(
    ("status", "said", "learned"),
    [
        (400, "Unrecognized request argument supplied: stream_options", "stream_options"),
        (
            400,
            "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "max_completion_tokens",
        ),
        (422, "body.max_completion_tokens: Extra inputs are not permitted", "max_tokens"),
        (400, "property 'reasoning_content' is unsupported", "thoughts"),
        (
            400,
            (
                "'messages.2' : for 'role:assistant' the following must be satisfied[(property 'reasoning' "
                "is unsupported)]"
            ),
            "thoughts",
        ),
        (422, "body.messages.2.assistant.reasoning_content: Extra inputs are not permitted", "thoughts"),
        (
            400,
            "The `reasoning_content` in the thinking mode must be passed back to the API.",
            "missing thoughts",
        ),
        (
            400,
            "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
            "missing thoughts",
        ),
        (400, "Function call is missing a thought_signature in functionCall parts.", "signatures"),
        (
            400,
            (
                "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use "
                "function tools, use /v1/responses or set reasoning_effort to 'none'."
            ),
            "effort with tools",
        ),
        (
            400,
            "This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium.",
            "level xhigh",
        ),
        (
            400,
            "Unsupported value: 'reasoning_effort' does not support 'xhigh' with this model.",
            "level xhigh",
        ),
        (422, "body.prompt_cache_key: Extra inputs are not permitted", "prompt_cache_key"),
        (400, "unknown field `cache_control`", "cache_control"),
        (404, "No endpoints found that support image input", "images"),
        (400, "messages[1]: unknown variant `image_url`, expected `text`", "images"),
        (400, "Content blocks are expected to be either text or image_url type.", "images"),
        (500, "image input is not supported - hint: you may need to provide the mmproj", "images"),
        (400, "text content is empty", "null content"),
        (400, "temperature is too high", ""),
        (429, "stream_options", ""),
    ],
)
def test_what_a_refusal_teaches(status: int, said: str, learned: str) -> None:
    memory = Learned(Endpoint("house", f"http://127.0.0.1:1/{hash(said)}"), "m")
    error: Any = from_status("house", status, said)
    notice = memory.learn(error, REFUSALS, "xhigh")
    assert (notice is not None) == bool(learned)
    assert not learned or learned in memory
    if learned in ("images", "level xhigh", "effort with tools"):
        assert notice
        assert "house" in notice


@pytest.mark.parametrize(
    ("learned", "fields"),
    [
        ({"thoughts"}, {"content": None}),
        ({"missing thoughts"}, {"content": None, "reasoning_content": "Hm."}),
    ],
)
def test_what_learning_of_thoughts_changes(learned: Container[str], fields: dict[str, Any]) -> None:
    assert sent_back(ANYBODY, thought("reasoning"), CALL, learned=learned) == fields


def test_what_learning_of_levels_and_signatures_changes() -> None:
    assert "reasoning_effort" not in body(ANYBODY, thought_level="xhigh", learned={"level xhigh"})
    assert body(ANYBODY, thought_level="high", learned={"level xhigh"})["reasoning_effort"] == "high"
    assert body(ANYBODY, tools=[READ], learned={"effort with tools"})["reasoning_effort"] == "none"
    (call,) = sent_calls(ANYBODY, CALL, learned={"signatures"})
    assert call["extra_content"] == {"google": {"thought_signature": NO_SIGNATURE}}
    assert "reasoning_details" in sent_back(OPENROUTER, CALL, learned={"signatures"})
