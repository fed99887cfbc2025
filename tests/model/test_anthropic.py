import json
from collections.abc import Container
from typing import Any

import pytest

from crow.config.settings import Limits, ModelSettings
from crow.errors import ModelRefusedKey
from crow.messages import AssistantMessage, Message, StopReason, Text, Thought, ToolCall, ToolMessage, UserMessage
from crow.model import catalog
from crow.model.base import Done, ModelInfo, ModelRequest, Said, Thinking, ThinkingSealed, Usage
from crow.model.scripted import Call, Think
from crow.model.wires.anthropic import encode
from tests.model.asking import HELLO, READ, Called, Outcome, ask, ask_all, run
from tests.support.provider import Provider
from tests.support.provider_anthropic import seal
from tests.support.provider_dialect import event

DONE = Done(StopReason.END_TURN)


def model_of(provider: Provider, name: str = "claude-sonnet-4-5", **settings: Any) -> Any:
    providers = {"house": provider.anthropic.settings(**{name: ModelSettings(**settings)})}
    return catalog.create(f"house/{name}", providers, Limits(), {})


def ask_for(*events: dict[str, Any]) -> Outcome:
    with Provider() as provider:
        provider.anthropic.send(*(event(data, data["type"]) for data in events))
        return ask(model_of(provider))


def test_text_thought_call_and_usage() -> None:
    with Provider(key="k") as provider:
        provider.anthropic.answer(
            Think("Hm, a file."),
            Think("", signature="opaque"),
            "Let me look.",
            Call("read", {"path": "a"}, pieces=3),
            usage={"input": 100, "cached": 60, "written": 30, "output": 7},
        )
        assert ask(model_of(provider), system="Be brief.", tools=[READ]).events == [
            Thinking("Hm, a file."),
            ThinkingSealed(seal("Hm, a file.")),
            ThinkingSealed("opaque", redacted=True),
            Said("Let me look."),
            Called("read", '{"path":"a"}'),
            Usage(input_tokens=100, output_tokens=7, cached_tokens=60, cache_written_tokens=30),
            DONE,
        ]
        (request,) = provider.anthropic.requests
        assert request.path == "/v1/messages"
        assert request.headers["anthropic-version"] == "2023-06-01"
        assert request.headers["x-api-key"] == "k"
        assert request.body["max_tokens"] == 64_000


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        ("end_turn", StopReason.END_TURN),
        ("stop_sequence", StopReason.END_TURN),
        ("tool_use", StopReason.END_TURN),
        ("max_tokens", StopReason.MAX_TOKENS),
        ("model_context_window_exceeded", StopReason.MAX_TOKENS),
        ("refusal", StopReason.REFUSAL),
    ],
)
def test_stop_reasons(finish: str, stop: StopReason) -> None:
    with Provider() as provider:
        provider.anthropic.answer("Hi", finish=finish)
        assert ask(model_of(provider)).events == [Said("Hi"), Done(stop)]


def test_a_pause_is_no_end() -> None:
    with Provider() as provider:
        provider.anthropic.answer("Hi", finish="pause_turn")
        assert ask(model_of(provider)).events == [Said("Hi"), Done(StopReason.END_TURN, paused=True)]


def test_the_reason_for_a_refusal_is_told() -> None:
    details = {"category": "cyber", "explanation": "It looks like an attack on a live system."}
    outcome = ask_for(
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "I"}},
        {"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": details}},
        {"type": "message_stop"},
    )
    said, notice, done = outcome.events
    assert (said, done) == (Said("I"), Done(StopReason.REFUSAL))
    assert notice.text == "house gave a reason for refusing: It looks like an attack on a live system."


def test_thoughts_are_counted_apart() -> None:
    details = {"output_tokens": 20, "output_tokens_details": {"thinking_tokens": 12}}
    outcome = ask_for(
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": details},
        {"type": "message_stop"},
    )
    assert outcome.events == [Said("Hi"), Usage(output_tokens=20, reasoning_tokens=12), DONE]


def test_markers_on_the_stable_prefix() -> None:
    with Provider() as provider:
        provider.anthropic.answer("Hi")
        history = [
            UserMessage((Text("Read a."),)),
            AssistantMessage((ToolCall("c1", "read", "{}"), ToolCall("c2", "read", "{}"))),
            ToolMessage("c1", "first"),
            ToolMessage("c2", "second"),
        ]
        assert ask(model_of(provider), history, system="Be brief.", tools=[READ, READ_TOO]).error is None
        body = provider.anthropic.requests[0].body
        marked = {"type": "ephemeral"}
        assert body["system"][-1]["cache_control"] == marked
        assert [tool.get("cache_control") for tool in body["tools"]] == [None, marked]
        blocks = [block for message in body["messages"] for block in message["content"]]
        assert [block.get("cache_control") for block in blocks] == [None, None, None, None, marked]


READ_TOO = type(READ)("read_too", READ.description, READ.schema)


def model_info(name: str = "claude-sonnet-5", **more: Any) -> ModelInfo:
    return ModelInfo("house", name, max_output=64_000, **more)


def sent(info: ModelInfo, request: ModelRequest, refused: Container[str] = ()) -> dict[str, Any]:
    """What is written for this request, in this process."""
    return json.loads(encode(info, request, refused=refused))


def rounds(count: int, calls: int = 1) -> list[Message]:
    """A prompt, and so many rounds of so many calls."""
    messages: list[Message] = [*HELLO]
    for number in range(count):
        ids = [f"c{number}-{call}" for call in range(calls)]
        messages.append(AssistantMessage(tuple(ToolCall(id, "read", "{}") for id in ids)))
        messages += [ToolMessage(id, "x") for id in ids]
    return messages


def marked(body: dict[str, Any]) -> list[int]:
    """The places of the markers among all blocks of the conversation."""
    blocks = [block for message in body["messages"] for block in message["content"]]
    return [place for place, block in enumerate(blocks) if "cache_control" in block]


@pytest.mark.parametrize(
    ("history", "markers"),
    [
        (rounds(0), [0]),
        (rounds(8), [16]),  # the last marker reaches as far back as there is anything
        (rounds(9), [0, 18]),
        (rounds(20), [22, 40]),
        (rounds(2, calls=30), [60, 120]),  # where the request before ended, which 20 blocks do not reach
        (rounds(1, calls=30), [0, 60]),
    ],
)
def test_a_fourth_marker_where_the_look_back_would_end_too_soon(history: list[Message], markers: list[int]) -> None:
    body = sent(model_info(), ModelRequest("Be brief.", history, [READ]))
    assert marked(body) == markers
    assert json.dumps(body).count("cache_control") == 2 + len(markers)


def test_no_marker_on_a_thought() -> None:
    history = rounds(10)
    thought = Thought("Hm.", "house", "sealed")
    history[3] = AssistantMessage((thought, ToolCall("c1-0", "read", "{}")))
    body = sent(model_info(), ModelRequest("", history, [READ]))
    blocks = [block for message in body["messages"] for block in message["content"]]
    assert blocks[3]["type"] == "thinking"
    assert marked(body) == [2, 21]


@pytest.mark.parametrize(("name", "eager"), [("claude-sonnet-5", True), ("kimi-k3", False)])
def test_arguments_are_streamed_as_they_are_written(name: str, *, eager: bool) -> None:
    request = ModelRequest("", HELLO, [READ])
    assert sent(model_info(name), request)["tools"][0].get("eager_input_streaming", False) == eager
    assert "eager_input_streaming" not in sent(model_info(name), request, {"eager_input_streaming"})["tools"][0]


def test_what_a_copy_of_the_api_refuses_is_left_out_from_then_on() -> None:
    with Provider() as provider:
        provider.anthropic.fail(400, "tools.0.custom.eager_input_streaming: Extra inputs are not permitted")
        provider.anthropic.fail(400, "thinking.adaptive.display: Extra inputs are not permitted")
        provider.anthropic.answer("Hi")
        provider.anthropic.answer("Hi")
        model = model_of(provider, "claude-sonnet-5")
        first, second = run(ask_all(model, *[ModelRequest("", HELLO, [READ])] * 2))
        assert first.events == second.events == [Said("Hi"), DONE]
        bodies = [request.body for request in provider.anthropic.requests]
        assert ["eager_input_streaming" in body["tools"][0] for body in bodies] == [True, False, False, False]
        assert ["display" in body["thinking"] for body in bodies] == [True, True, False, False]


def test_a_level_that_is_refused_is_left_out_and_told() -> None:
    with Provider() as provider:
        provider.anthropic.fail(400, "This model does not support effort level 'xhigh'. Supported levels: high, low.")
        provider.anthropic.answer("Hi")
        model = model_of(provider, "claude-sonnet-5", thought_levels=["low", "xhigh"])
        (outcome,) = run(ask_all(model, ModelRequest("", HELLO, thought_level="xhigh")))
        notice, *rest = outcome.events
        assert "xhigh" in notice.text
        assert rest == [Said("Hi"), DONE]
        assert "output_config" not in provider.anthropic.requests[1].body


# --- thoughts

CALLS = AssistantMessage((Thought("Hm.", "house", model="glm-5"), ToolCall("c1", "read", "{}")))


def test_a_copy_that_seals_nothing_gets_its_thoughts_back() -> None:
    history = (*HELLO, CALLS, ToolMessage("c1", "x"))
    assert [
        block["type"] for block in sent(model_info("glm-5"), ModelRequest("", history))["messages"][1]["content"]
    ] == [
        "thinking",
        "tool_use",
    ]
    for name in ("glm-4.6", "claude-sonnet-5"):
        body = sent(model_info(name), ModelRequest("", history))
        assert [block["type"] for block in body["messages"][1]["content"]] == ["tool_use"]


def test_a_copy_that_misses_a_thought_is_given_one() -> None:
    with Provider() as provider:
        complaint = "The `content[].thinking` in the thinking mode must be passed back to the API."
        provider.anthropic.fail(400, complaint)
        provider.anthropic.check = lambda request: None
        provider.anthropic.answer("Hi")
        model = model_of(provider, "deepseek-v4")
        history = (*HELLO, AssistantMessage((ToolCall("c1", "read", "{}"),)), ToolMessage("c1", "x"))
        (outcome,) = run(ask_all(model, ModelRequest("", history)))
        assert outcome.events == [Said("Hi"), DONE]
        content = provider.anthropic.requests[1].body["messages"][1]["content"]
        assert [block["type"] for block in content] == ["thinking", "tool_use"]


def test_no_message_ends_in_a_thought_and_calls_come_last() -> None:
    sealed = Thought("Hm.", "house", "sealed")
    history = (
        *HELLO,
        AssistantMessage((sealed,)),
        *HELLO,
        AssistantMessage((Text("Well."), sealed)),
        *HELLO,
        AssistantMessage((sealed, ToolCall("c1", "read", "{}"), Text("Now."), sealed)),
        ToolMessage("c1", "x"),
    )
    messages = sent(model_info(), ModelRequest("", history))["messages"]
    spoken = [[block["type"] for block in message["content"]] for message in messages if message["role"] == "assistant"]
    assert spoken == [["text"], ["thinking", "text", "tool_use"]]


def test_unknown_events_blocks_and_deltas_pass() -> None:
    outcome = ask_for(
        {"type": "message_start", "message": {"usage": {"input_tokens": "many"}}},
        {"type": "weather"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use", "name": "x"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": "H"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta", "citation": {}}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "i"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": None},
        {"type": "message_stop"},
    )
    assert outcome.events == [Said("Hi"), DONE]


def test_a_call_whose_input_comes_at_once() -> None:
    block = {"type": "tool_use", "id": "1", "name": "read", "input": {"path": "a"}}
    outcome = ask_for(
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    )
    assert outcome.events == [Called("read", '{"path":"a"}'), DONE]


def test_a_whole_tool_round_keeps_the_seals() -> None:
    """The provider refuses a thought that is not exactly what it sealed."""
    with Provider() as provider:
        provider.anthropic.answer(Think("Hm, a file."), Think("", signature="opaque"), Call("read", {"path": "a"}))
        provider.anthropic.answer("It is empty.")
        model = model_of(provider)

        async def round_trip() -> list[Outcome]:
            first, *_ = await ask_all(NotClosed(model), ModelRequest("", HELLO, [READ]))
            thought, sealed, withheld, call, _ = first.events
            said = AssistantMessage(
                (
                    Thought(thought.text, "house", sealed.signature),
                    Thought("", "house", withheld.signature, redacted=True),
                    ToolCall("t1-c1", call.name, call.arguments),
                )
            )
            return await ask_all(model, ModelRequest("", [*HELLO, said, ToolMessage("t1-c1", "")], [READ]))

        (second,) = run(round_trip())
        assert second.error is None
        assert second.events == [Said("It is empty."), DONE]
        sent = provider.anthropic.requests[1].body["messages"][1]["content"]
        assert [block["type"] for block in sent] == ["thinking", "redacted_thinking", "tool_use"]


class NotClosed:
    """Keeps a model open for the next question."""

    def __init__(self, model: Any) -> None:
        self.info, self.reply = model.info, model.reply

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("base", ["", "/", "/v1", "/v1/messages"])
def test_base_url_with_and_without_version(base: str) -> None:
    with Provider() as provider:
        provider.anthropic.url = provider.url + base
        provider.anthropic.answer("Hi")
        assert ask(model_of(provider)).error is None


@pytest.mark.parametrize(
    ("name", "limit"),
    [("claude-3-5-haiku-latest", 8_192), ("claude-opus-4-1", 32_000), ("claude-opus-4-5", 64_000), ("glm-4.6", 8_192)],
)
def test_max_tokens_is_always_sent(name: str, limit: int) -> None:
    with Provider() as provider:
        provider.anthropic.answer("Hi")
        provider.anthropic.answer("Hi")
        ask(model_of(provider, name))
        ask(model_of(provider, name, max_output=77))
        assert [request.body["max_tokens"] for request in provider.anthropic.requests] == [limit, 77]


def test_a_wrong_key() -> None:
    with Provider(key="right") as provider:
        provider.anthropic.key = "wrong"
        model = model_of(provider)
        provider.anthropic.key = "right"
        assert isinstance(ask(model).error, ModelRefusedKey)
