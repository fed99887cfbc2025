"""Text that arrives in pieces which are no text: an emoji in two halves, a tag in two deltas."""

import json
from typing import Any

import pytest

from crow.config.settings import Limits
from crow.messages import StopReason
from crow.model import catalog
from crow.model.base import Done, Said, Thinking, ThinkingSealed
from crow.model.wires.stream_parsing import TaggedThoughts
from tests.model.asking import Called, Outcome, ask
from tests.support.provider import Provider
from tests.support.provider_dialect import event

DONE = Done(StopReason.END_TURN)
END = {"choices": [{"delta": {}, "finish_reason": "stop"}]}


def ask_openai(*deltas: dict[str, Any]) -> Outcome:
    with Provider() as provider:
        chunks = [{"choices": [{"delta": delta}]} for delta in deltas]
        provider.openai.send(*(event(chunk) for chunk in (*chunks, END)), event("[DONE]"))
        return ask(catalog.create("house/m", {"house": provider.openai.settings()}, Limits(retry_wait=0), {}))


def ask_anthropic(*blocks: tuple[dict[str, Any], list[dict[str, Any]]]) -> Outcome:
    events: list[dict[str, Any]] = []
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.extend({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    events.append({"type": "message_stop"})
    with Provider() as provider:
        provider.anthropic.send(*(event(data, data["type"]) for data in events))
        return ask(catalog.create("house/m", {"house": provider.anthropic.settings()}, Limits(retry_wait=0), {}))


TORN = [
    (["a\ud83d", "\ude00b"], "a😀b"),
    (["\ud83d", "\ude00"], "😀"),
    (["a\ud83d\ude00", "b"], "a😀b"),
    (["a\ud83d", "", "\ude00b"], "a😀b"),
    (["a\ud83d", "b"], "a\ufffdb"),
    (["\ude00b"], "\ufffdb"),
    (["a\ud83d"], "a\ufffd"),
    (["\ud83dx\ude00", "y\ud83d", "\ude00\ud83d", "\ude00"], "\ufffdx\ufffdy😀😀"),
    (["plain", " \ud83d", "\ude00 ", "plain again"], "plain 😀 plain again"),
]


@pytest.mark.parametrize(("pieces", "text"), TORN)
def test_halves_of_an_emoji(pieces: list[str], text: str) -> None:
    assert "\\ud83d" in json.dumps(pieces) or "\\ude00" in json.dumps(pieces)
    assert ask_openai(*({"content": piece} for piece in pieces)).events == [Said(text), DONE]
    outcome = ask_openai(*({"reasoning": piece} for piece in pieces), {"content": "Hi"})
    assert outcome.events == [Thinking(text), Said("Hi"), DONE]
    outcome = ask_anthropic(({"type": "text", "text": ""}, [{"text": piece} for piece in pieces]))
    assert outcome.events == [Said(text), DONE]
    thinking = [{"thinking": piece} for piece in pieces]
    outcome = ask_anthropic(
        ({"type": "thinking", "thinking": ""}, [*thinking, {"signature": "sealed"}]),
        ({"type": "text", "text": ""}, [{"text": "Hi"}]),
    )
    assert outcome.events == [Thinking(text), ThinkingSealed("sealed"), Said("Hi"), DONE]


def test_halves_in_the_arguments_of_two_calls() -> None:
    def call(index: int, arguments: str, name: str | None = None) -> dict[str, Any]:
        return {"tool_calls": [{"index": index, "function": {"name": name, "arguments": arguments}}]}

    outcome = ask_openai(
        call(0, '{"a":"\ud83d', "one"), call(1, '{"b":"\ud83d', "two"), call(0, '\ude00"}'), call(1, '\ude00"}')
    )
    assert outcome.events == [Called("one", '{"a":"😀"}'), Called("two", '{"b":"😀"}'), DONE]
    block = {"type": "tool_use", "name": "one", "input": {}}
    pieces = [{"partial_json": '{"a":"\ud83d'}, {"partial_json": '\ude00"}'}]
    assert ask_anthropic((block, pieces)).events == [Called("one", '{"a":"😀"}'), DONE]


def test_a_half_before_something_else_is_a_lone_one() -> None:
    call = {"tool_calls": [{"index": 0, "function": {"name": "now\ud83d", "arguments": "{}"}}]}
    outcome = ask_openai({"content": "a\ud83d"}, call)
    assert outcome.events == [Said("a\ufffd"), Called("now\ufffd", "{}"), DONE]


# --- thoughts between tags, as local models write them

THOUGHTFUL = "<think>\nHm, 1 < 2.</thin\n</think>\n\nHello <think> there</think>"


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 1000])
def test_tags_around_thoughts(size: int) -> None:
    pieces = [THOUGHTFUL[start : start + size] for start in range(0, len(THOUGHTFUL), size)]
    outcome = ask_openai(*({"content": piece} for piece in pieces))
    assert outcome.events == [Thinking("Hm, 1 < 2.</thin\n"), Said("Hello <think> there</think>"), DONE]


@pytest.mark.parametrize(
    ("pieces", "events"),
    [
        (["\n <think>Hm.", "</think>"], [Thinking("Hm.")]),
        (["<think>\n\n</think>\n\n", "Hi"], [Said("Hi")]),
        (["<think>Hm. </th"], [Thinking("Hm. </th")]),
        (["<thi"], [Said("<thi")]),
        (["<thi", "s is no tag>"], [Said("<this is no tag>")]),
        (["  ", "\n", "Hi"], [Said("  \nHi")]),
        (["Hi <think>Hm.</think>"], [Said("Hi <think>Hm.</think>")]),
    ],
)
def test_tags_only_at_the_very_beginning(pieces: list[str], events: list[Any]) -> None:
    assert ask_openai(*({"content": piece} for piece in pieces)).events == [*events, DONE]


def test_tags_after_other_thoughts_are_text() -> None:
    outcome = ask_openai({"reasoning_content": "Hm."}, {"content": "<think>no</think>"})
    assert outcome.events == [Thinking("Hm."), Said("<think>no</think>"), DONE]


def test_a_call_ends_what_was_held_back() -> None:
    call = {"tool_calls": [{"index": 0, "function": {"name": "now", "arguments": "{}"}}]}
    assert ask_openai({"content": "<thi"}, call).events == [Said("<thi"), Called("now", "{}"), DONE]
    assert ask_openai({"content": "<think>Hm."}, call).events == [Thinking("Hm."), Called("now", "{}"), DONE]


def test_torn_halves_between_tags() -> None:
    outcome = ask_openai({"content": "<think>\ud83d"}, {"content": "\ude00</think>\ud83d"}, {"content": "\ude00"})
    assert outcome.events == [Thinking("😀"), Said("😀"), DONE]


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        *((f"<{name}>", f"</{name}>") for name in ("think", "thinking", "thought", "reasoning", "seed:think")),
        ("[THINK]", "[/THINK]"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
        ("\u25c1think\u25b7", "\u25c1/think\u25b7"),
    ],
)
def test_thoughts_in_every_usual_tag(opening, closing):
    text = f"{opening}\nHm.{closing}\n\nHello."
    assert ask_openai({"content": text}).events == [Thinking("Hm."), Said("Hello."), DONE]
    reader = TaggedThoughts()
    events = [event for piece in text for event in reader.take([Said(piece)])]
    assert "".join(event.text for event in events if isinstance(event, Thinking)) == "Hm."
    assert {event.field for event in events if isinstance(event, Thinking)} == {opening}
