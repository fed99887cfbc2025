from typing import Any

import pytest

from crow.config.settings import Limits, ModelSettings
from crow.errors import ModelRefusedKey, ReplyBroken
from crow.messages import AssistantMessage, StopReason, Text, Thought, ToolCall, ToolMessage, UserMessage
from crow.model import catalog
from crow.model.base import Done, ModelRequest, Said, Thinking, ThinkingSealed, Usage
from crow.model.script import Call, Think
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
        return ask(model_of(provider).model)


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
        outcome = ask(model_of(provider))
        assert isinstance(outcome.error, ReplyBroken)
        assert "pause_turn" in str(outcome.error)


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
