"""The rules that requests are judged by in tests: what is right passes, and each fault is seen."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from crow.messages import AssistantMessage, Message, ProviderData, Text, Thought, ToolCall, ToolMessage, UserMessage
from crow.model.base import ModelInfo, ModelRequest
from crow.model.wires import anthropic, chat_request, responses
from crow.model.wires.dialects import Dialect
from tests.model.asking import READ
from tests.support.provider_anthropic import seal
from tests.support.stories import SEALED_ITEM
from tests.support.wire_rules import Refused, check_chat, check_messages, check_responses

Body = dict[str, Any]
Plant = Callable[[Body], object]

HISTORY: list[Message] = [
    UserMessage((Text("Read."),)),
    AssistantMessage(
        (
            Thought("Hm.", "house", seal("Hm."), model="m", kept=ProviderData("house", "m", SEALED_ITEM)),
            Text("Let me look."),
            ToolCall("c1", "read", "{}"),
            ToolCall("c2", "read", "{}"),
        )
    ),
    ToolMessage("c1", "x"),
    ToolMessage("c2", "y", ok=False),
    AssistantMessage((Text("Done."),)),
    UserMessage((Text("Thanks."),)),
]
REQUEST = ModelRequest("Be brief.", HISTORY, [READ])
INFO = ModelInfo("house", "m", max_output=8_000)

MESSAGES: Body = json.loads(anthropic.encode(INFO, REQUEST))
CHAT: Body = json.loads(chat_request.encode(INFO, REQUEST, Dialect()))
RESPONSES: Body = json.loads(responses.encode(INFO, REQUEST, ()))


def test_what_is_right_is_taken() -> None:
    check_messages(MESSAGES, seal=seal)
    check_chat(CHAT)
    check_responses(RESPONSES)
    assert [item.get("type") for item in RESPONSES["input"]][1:3] == ["reasoning", "message"]


def blocks(body: Body, place: int) -> list[Any]:
    return body["messages"][place]["content"]


MESSAGES_FAULTS: list[tuple[str, Plant]] = [
    ("final block", lambda b: blocks(b, 3).append({"type": "thinking", "thinking": "Hm.", "signature": seal("Hm.")})),
    ("final block", lambda b: b["messages"].insert(3, {"role": "assistant", "content": blocks(b, 1)[:1]}) or swap(b)),
    ("nothing may follow", lambda b: blocks(b, 1).append({"type": "text", "text": "Also."})),
    ("signature", lambda b: blocks(b, 1)[0].update(signature="broken")),
    ("signature", lambda b: blocks(b, 1)[0].pop("signature")),
    ("non-whitespace", lambda b: blocks(b, 3)[0].update(text=" \n")),
    ("content must not be empty", lambda b: b["messages"][3].update(content=[])),
    ("results", lambda b: blocks(b, 2).pop()),
    ("results", lambda b: blocks(b, 1).pop()),
    ("come first", lambda b: blocks(b, 2).insert(0, {"type": "text", "text": "Look:"})),
    ("prefill", lambda b: b["messages"].pop()),
    (
        "alternate",
        lambda b: b["messages"].insert(0, {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}),
    ),
    ("alternate", lambda b: b["messages"].append(b["messages"][-1])),
    ("unique", lambda b: blocks(b, 1)[3].update(id="c1") or blocks(b, 2)[1].update(tool_use_id="c1")),
    ("cannot be cached", lambda b: blocks(b, 1)[0].update(cache_control={})),
    ("maximum of 4", lambda b: [block.update(cache_control={}) for block in (*blocks(b, 1)[1:], *blocks(b, 2))]),
    ("input", lambda b: blocks(b, 1)[2].update(input="{}")),
    ("name", lambda b: blocks(b, 1)[2].update(name="files.read")),
    ("is_error", lambda b: blocks(b, 2)[1]["content"].append(picture())),
    ("Expected `thinking`", lambda b: b.update(thinking=budget(2_000)) or tool_round(b)),
    ("budget_tokens", lambda b: b.update(thinking=budget(8_000))),
    ("max_tokens", lambda b: b.pop("max_tokens")),
    ("tools", lambda b: b.update(tools=[])),
]


def swap(body: Body) -> None:
    """The text and calls of the first reply go, so that its thought is all there is of it."""
    del body["messages"][4:], body["messages"][1:3]


def tool_round(body: Body) -> None:
    """The last round is one without a thought."""
    del body["messages"][3:]
    del body["messages"][1]["content"][0]


def picture() -> Body:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "cGljdHVyZQ=="}}


def budget(tokens: int) -> Body:
    return {"type": "enabled", "budget_tokens": tokens}


CHAT_FAULTS: list[tuple[str, Plant]] = [
    ("calls without a result", lambda b: b["messages"].pop(3)),
    ("no open call", lambda b: b["messages"][2].pop("tool_calls")),
    ("no open call", lambda b: b["messages"][3].update(tool_call_id="123456789")),
    ("not unique", lambda b: b["messages"][2]["tool_calls"].append(b["messages"][2]["tool_calls"][0])),
    ("every provider", lambda b: b["messages"][2]["tool_calls"][0].update(id="call_1")),
    ("empty content", lambda b: b["messages"][5].update(content="")),
    ("empty content", lambda b: b["messages"][5].update(content=None)),
    ("empty", lambda b: b["messages"][5].update(content=[{"type": "text", "text": " "}])),
    ("ends in a thought", lambda b: b["messages"][5].update(content=[{"type": "thinking", "thinking": ["Hm."]}])),
    ("alternate", lambda b: b["messages"].pop(5) and b["messages"].append({"role": "user", "content": "Hm?"})),
    ("alternate", lambda b: b["messages"].insert(1, {"role": "assistant", "content": "Hi."})),
    ("alternate", lambda b: b["messages"].insert(5, {"role": "assistant", "content": "Hi."})),
    ("system message", lambda b: b["messages"].append({"role": "system", "content": "Be brief."})),
    ("last role", lambda b: b["messages"].pop()),
    ("JSON object", lambda b: b["messages"][2]["tool_calls"][0]["function"].update(arguments="{broken")),
    ("a text", lambda b: b["messages"][3].update(content="")),
    ("tool_calls is empty", lambda b: b["messages"][5].update(tool_calls=[])),
    ("reasoning_content", lambda b: b["messages"][5].update(reasoning_content="")),
]

RESPONSES_FAULTS: list[tuple[str, Plant]] = [
    ("required following item", lambda b: b["input"].insert(8, b["input"][1])),
    ("required following item", lambda b: b["input"].append(b["input"][1])),
    ("not sealed", lambda b: b["input"][1].pop("encrypted_content")),
    ("nothing is stored", lambda b: b["input"][1].update(id="rs_1")),
    ("No tool output", lambda b: b["input"].pop(5)),
    ("No tool call found", lambda b: b["input"].pop(3)),
    ("interleaved", lambda b: b["input"].insert(6, {**b["input"][3], "call_id": "c3"})),
    ("not unique", lambda b: b["input"].insert(4, b["input"][3])),
    ("empty text", lambda b: b["input"][7]["content"][0].update(text=" ")),
    ("empty text", lambda b: b["input"][5].update(output="")),
    ("nothing to answer", lambda b: b["input"].pop()),
    ("speaks first", lambda b: b["input"].insert(0, b["input"][2])),
    ("JSON object", lambda b: b["input"][3].update(arguments="")),
    ("store", lambda b: b.update(store=True)),
    ("strict", lambda b: b["tools"][0].update(strict=True)),
    ("max_output_tokens", lambda b: b.update(max_output_tokens=1)),
]


@pytest.mark.parametrize(("words", "plant"), MESSAGES_FAULTS)
def test_each_fault_of_a_messages_request_is_seen(words: str, plant: Plant) -> None:
    body = copy.deepcopy(MESSAGES)
    plant(body)
    with pytest.raises(Refused, match=words):
        check_messages(body, seal=seal)


@pytest.mark.parametrize(("words", "plant"), CHAT_FAULTS)
def test_each_fault_of_a_chat_request_is_seen(words: str, plant: Plant) -> None:
    body = copy.deepcopy(CHAT)
    plant(body)
    with pytest.raises(Refused, match=words):
        check_chat(body)


def test_a_prompt_after_results_is_seen_where_it_is_minded() -> None:
    body = copy.deepcopy(CHAT)
    del body["messages"][5]
    check_chat(body)
    with pytest.raises(Refused, match="after role 'tool'"):
        check_chat(body, bridged=True)


@pytest.mark.parametrize(("words", "plant"), RESPONSES_FAULTS)
def test_each_fault_of_a_responses_request_is_seen(words: str, plant: Plant) -> None:
    body = copy.deepcopy(RESPONSES)
    plant(body)
    with pytest.raises(Refused, match=words):
        check_responses(body)
