"""Events of a stream with values of other types than they should have: the reply is not lost for them."""

from typing import Any

import pytest

from crow.config.settings import Limits
from crow.messages import StopReason
from crow.model import catalog
from crow.model.base import Done, Said
from tests.model.asking import Called, Outcome, ask
from tests.support.provider import Provider
from tests.support.provider_dialect import event

DONE = Done(StopReason.END_TURN)
STRAY: list[Any] = [[1], 5, '"text"', None, {"type": 5}, {"type": None}]


def ask_wire(wire: str, *events: Any) -> Outcome:
    with Provider() as provider:
        dialect = getattr(provider, wire)
        dialect.send(*(event(one) for one in events))
        return ask(catalog.create("house/m", {"house": dialect.settings()}, Limits(retry_wait=0), {}))


def chunk(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}]}


CHAT_END = ({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}, "[DONE]")
COMPLETED = {"type": "response.completed", "response": {"status": "completed"}}


def test_stray_events_are_skipped_on_every_wire() -> None:
    assert ask_wire("openai", *STRAY, {"choices": {}}, {"choices": "x"}, chunk(content="ok"), *CHAT_END).events == [
        Said("ok"),
        DONE,
    ]
    odd = {"type": "response.output_text.delta", "output_index": "0", "delta": "ok", "item_id": 5}
    assert ask_wire("responses", *STRAY, odd, COMPLETED).events == [Said("ok"), DONE]
    outcome = ask_wire(
        "anthropic",
        *STRAY,
        {"type": "content_block_start", "index": "0", "content_block": {"type": "text", "text": "o", "input": 5}},
        {"type": "content_block_delta", "index": [], "delta": {"text": "k", "thinking": 7}},
        {"type": "content_block_delta", "index": 0, "delta": 3},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    )
    assert outcome.events == [Said("ok"), DONE]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (["a", {"text": "b"}, 3], "ab3"),
        ([{"type": "text", "text": "a"}], "a"),
        ([{"type": "picture", "text": "a"}, "b"], "b"),
    ],
)
def test_parts_of_text_without_a_type(content: list[Any], text: str) -> None:
    assert ask_wire("openai", chunk(content=content), *CHAT_END).events == [Said(text), DONE]


@pytest.mark.parametrize("empty", [{}, [{}], [{"index": None, "id": "", "function": None}]])
def test_an_empty_object_is_no_call(empty: Any) -> None:
    assert ask_wire("openai", chunk(content="ok"), chunk(tool_calls=empty), *CHAT_END).events == [Said("ok"), DONE]


@pytest.mark.parametrize("deltas", [['{"path":"wr'], ['{"path"'], ['{"path":', '.txt"}'], []])
def test_whole_arguments_win_over_lost_pieces(deltas: list[str]) -> None:
    call = {"type": "function_call", "id": "f", "call_id": "c", "name": "read"}
    outcome = ask_wire(
        "responses",
        {"type": "response.output_item.added", "output_index": 0, "item": {**call, "arguments": ""}},
        *({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": piece} for piece in deltas),
        {"type": "response.output_item.done", "output_index": 0, "item": {**call, "arguments": '{"path":"a.txt"}'}},
        COMPLETED,
    )
    assert outcome.events == [Called("read", '{"path":"a.txt"}'), DONE]
