"""How long a model is to think: what is known of it, and what is sent."""

import json
from typing import Any

import pytest

from crow.config.settings import Limits, ModelSettings, ProviderSettings
from crow.messages import AssistantMessage, Message, Text, Thought, ToolCall, ToolMessage, UserMessage
from crow.model import catalog
from crow.model.base import ModelInfo, ModelRequest
from crow.model.wires.anthropic import DROPPED, encode
from tests.model.asking import HELLO, READ, ask_all, run
from tests.support.provider import Provider
from tests.support.provider_anthropic import seal

THINKING = ("thinking", "output_config", "reasoning_effort")


def levels(model: str, **settings: Any) -> tuple[str, ...]:
    provider = ProviderSettings("openai", base_url="http://127.0.0.1/v1", models={model: ModelSettings(**settings)})
    return catalog.describe(f"house/{model}", {"house": provider}).thought_levels


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("claude-3-5-sonnet-20241022", ""),
        ("claude-3-7-sonnet-20250219", "off low medium high"),
        ("claude-sonnet-4-20250514", "off low medium high"),
        ("claude-opus-4-1", "off low medium high"),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", "off low medium high"),
        ("claude-opus-4-6", "low medium high max"),
        ("claude-sonnet-5", "low medium high xhigh max"),
        ("gpt-4o", ""),
        ("gpt-5", "minimal low medium high"),
        ("gpt-5-mini", "minimal low medium high"),
        ("gpt-5-chat-latest", ""),
        ("gpt-5.1", "off low medium high"),
        ("gpt-5.1-codex", "low medium high"),
        ("gpt-5.6", "off low medium high xhigh max"),
        ("o4-mini", "low medium high"),
        ("openai/gpt-oss-120b", "low medium high"),
        ("gemini-2.0-flash", ""),
        ("gemini-flash-latest", "minimal low medium high"),
        ("qwen3-coder", ""),
    ],
)
def test_the_levels_of_well_known_models(model: str, known: str) -> None:
    assert levels(model) == tuple(known.split())


def test_the_configuration_knows_better() -> None:
    assert levels("qwen3-coder", thought_levels=["off", "high"]) == ("off", "high")
    assert levels("gpt-5", thought_levels=[]) == ()


def sent_to_openai(level: str) -> dict[str, Any]:
    with Provider() as provider:
        provider.openai.answer("Hi.")
        model = catalog.create("house/gpt-5.6", {"house": provider.openai.settings()}, Limits(), {})
        (outcome,) = run(ask_all(model, ModelRequest("", HELLO, thought_level=level)))
        assert outcome.error is None
        return {key: value for key, value in provider.openai.requests[0].body.items() if key in THINKING}


@pytest.mark.parametrize(
    ("level", "sent"),
    [
        ("", {}),
        ("off", {"reasoning_effort": "none"}),
        ("low", {"reasoning_effort": "low"}),
        ("xhigh", {"reasoning_effort": "xhigh"}),
    ],
)
def test_chat_completions_are_told_the_effort(level: str, sent: dict[str, Any]) -> None:
    assert sent_to_openai(level) == sent


def sent_to_anthropic(
    level: str, model: str = "claude-sonnet-4-5", messages: tuple[Message, ...] = HELLO, **settings: Any
) -> dict[str, Any]:
    with Provider() as provider:
        provider.anthropic.answer("Hi.")
        providers = {"house": provider.anthropic.settings(**{model: ModelSettings(**settings)})}
        adapter = catalog.create(f"house/{model}", providers, Limits(), {})
        (outcome,) = run(ask_all(adapter, ModelRequest("", messages, [READ], level)))
        assert outcome.error is None
        return {key: value for key, value in provider.anthropic.requests[0].body.items() if key in THINKING}


def budget(tokens: int) -> dict[str, Any]:
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}}


@pytest.mark.parametrize(
    ("level", "sent"),
    [("", {}), ("off", {}), ("low", budget(4_096)), ("medium", budget(12_000)), ("high", budget(24_000))],
)
def test_the_messages_api_is_given_a_budget(level: str, sent: dict[str, Any]) -> None:
    assert sent_to_anthropic(level) == sent


@pytest.mark.parametrize(("max_output", "sent"), [(8_000, budget(6_000)), (1_400, budget(1_050)), (1_200, {})])
def test_the_budget_leaves_room_for_an_answer(max_output: int, sent: dict[str, Any]) -> None:
    assert sent_to_anthropic("high", max_output=max_output) == sent


SHOWN = {"type": "adaptive", "display": "summarized"}


@pytest.mark.parametrize(
    ("model", "level", "sent"),
    [
        ("claude-sonnet-5", "", {"thinking": SHOWN}),
        ("claude-sonnet-5", "high", {"thinking": SHOWN, "output_config": {"effort": "high"}}),
        ("claude-sonnet-5", "off", {"thinking": {"type": "disabled"}}),
        ("claude-opus-4-7", "", {"thinking": SHOWN}),
        ("claude-opus-4-8-20260528", "xhigh", {"thinking": SHOWN, "output_config": {"effort": "xhigh"}}),
        ("claude-opus-5-5", "low", {"thinking": SHOWN | DROPPED, "output_config": {"effort": "low"}}),
        ("claude-opus-4-6", "", {}),
        ("claude-sonnet-4-6", "max", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}}),
        ("claude-opus-4-6", "off", {}),
        ("claude-haiku-4-5-20251001", "", {}),
        ("claude-opus-4-20250514", "low", budget(4_096)),
        ("claude-3-7-sonnet-20250219", "low", budget(4_096)),
        ("kimi-k3", "", {}),
    ],
)
def test_each_model_of_the_messages_api_is_told_in_its_own_way(model: str, level: str, sent: dict[str, Any]) -> None:
    info = ModelInfo("house", model, max_output=64_000)
    body = json.loads(encode(info, ModelRequest("", HELLO, thought_level=level)))
    assert {key: value for key, value in body.items() if key in THINKING} == sent


@pytest.mark.parametrize(
    ("model", "beta"),
    [
        ("claude-haiku-4-5", "interleaved-thinking-2025-05-14"),
        ("claude-opus-4-1-20250805", "interleaved-thinking-2025-05-14"),
        ("claude-3-7-sonnet-20250219", None),
        ("claude-opus-4-6", None),
        ("claude-sonnet-5", "thinking-binding-controls-2026-08-01"),
        ("glm-4.5", None),
    ],
)
def test_models_with_budgets_may_think_between_their_tool_rounds(model: str, beta: str | None) -> None:
    with Provider() as provider:
        provider.anthropic.answer("Hi.")
        run(ask_all(catalog.create(f"house/{model}", {"house": provider.anthropic.settings()}, Limits(), {}), ASKED))
        assert provider.anthropic.requests[0].headers.get("anthropic-beta") == beta


ASKED = ModelRequest("", HELLO)
CALL = ToolCall("t1-c1", "read", '{"path":"a"}')
RESULT = ToolMessage("t1-c1", "text")
THOUGHT = Thought("Hm.", "house", seal("Hm."))


@pytest.mark.parametrize(
    ("after", "thinks"),
    [
        ((AssistantMessage((THOUGHT, CALL)), RESULT), True),
        ((AssistantMessage((CALL,)), RESULT), False),
        ((AssistantMessage((Thought("Hm.", "elsewhere", "sealed"), CALL)), RESULT), False),
        ((AssistantMessage((CALL,)), RESULT, AssistantMessage((Text("There."),)), *HELLO), True),
        (
            (
                AssistantMessage((THOUGHT, CALL)),
                RESULT,
                AssistantMessage((ToolCall("t1-c2", "read", "{}"),)),
                ToolMessage("t1-c2", "more"),
            ),
            True,
        ),
    ],
)
def test_a_model_in_its_tool_rounds_thinks_only_if_it_began_so(after: tuple[Message, ...], *, thinks: bool) -> None:
    assert sent_to_anthropic("low", messages=(*HELLO, *after)) == (budget(4_096) if thinks else {})


def test_the_thoughts_of_a_tool_round_go_back_first_in_their_message() -> None:
    with Provider() as provider:
        provider.anthropic.answer("Hi.")
        adapter = catalog.create("house/claude-opus-4-1", {"house": provider.anthropic.settings()}, Limits(), {})
        messages = (UserMessage((Text("Look."),)), AssistantMessage((THOUGHT, Text("I look."), CALL)), RESULT)
        run(ask_all(adapter, ModelRequest("", messages, [READ], "high")))
        answer = provider.anthropic.requests[0].body["messages"][1]["content"]
        assert [block["type"] for block in answer] == ["thinking", "text", "tool_use"]
        assert answer[0] == {"type": "thinking", "thinking": "Hm.", "signature": seal("Hm.")}
