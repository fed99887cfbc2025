"""How vendors' chat completions look on the wire, from recorded traffic, and what Crow makes of each.

A row is a vendor, the chunks it sends, and everything that comes of them: text, thoughts with the field they came in,
calls, what is kept to be given back, counts, cost, and the end.
"""

import json
from typing import Any, NamedTuple

import pytest

from crow.config.settings import Limits, ProviderSettings
from crow.errors import ReplyBroken
from crow.messages import StopReason
from crow.model import catalog
from crow.model.base import (
    CallBegan,
    CallData,
    CallGrew,
    Done,
    ModelEvent,
    ModelRequest,
    Noticed,
    Said,
    TextData,
    Thinking,
    ThoughtData,
    Usage,
)
from crow.model.wires.openai import LAST
from tests.model.asking import HELLO, run
from tests.support.provider import Provider
from tests.support.provider_dialect import event

DONE = Done(StopReason.END_TURN)


class Row(NamedTuple):
    vendor: str
    chunks: list[Any]
    events: list[ModelEvent]


def chunk(delta: Any = None, finish: Any = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **more}


def call(name: str | None = None, arguments: str = "", index: Any = 0, **more: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    return {"tool_calls": [{"index": index, "type": "function", "function": function, **more}]}


READ = [CallBegan(0, "read"), CallGrew(0, '{"path":"a"}')]
STOP = chunk(finish="stop")
CALLS = chunk(finish="tool_calls")

ROWS = [
    Row(
        "openai",
        [
            chunk({"role": "assistant", "content": "", "refusal": None}),
            chunk({"content": "Hi"}),
            STOP,
            {
                "choices": [],
                "usage": {
                    "prompt_tokens": 120,
                    "completion_tokens": 40,
                    "total_tokens": 160,
                    "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0, "cache_write_tokens": 7},
                    "completion_tokens_details": {"reasoning_tokens": 30, "accepted_prediction_tokens": 0},
                },
            },
        ],
        [Said("Hi"), Usage(120, 40, 64, 7, 30), DONE],
    ),
    Row(
        "deepseek",
        [
            chunk({"role": "assistant", "content": None, "reasoning_content": ""}),
            chunk({"content": None, "reasoning_content": "Hm."}),
            chunk({"content": "Look.", "reasoning_content": None}),
            chunk(call("read", "", id="call_00_x")),
            chunk(call(None, '{"path":"a"}')),
            chunk(
                finish="tool_calls",
                usage={
                    "prompt_tokens": 50,
                    "completion_tokens": 9,
                    "total_tokens": 59,
                    "prompt_cache_hit_tokens": 32,
                    "prompt_cache_miss_tokens": 18,
                    "completion_tokens_details": {"reasoning_tokens": 3},
                },
            ),
        ],
        [Thinking("Hm.", "reasoning_content"), Said("Look."), *READ, Usage(50, 9, 32, 0, 3), DONE],
    ),
    Row(
        "moonshot",
        [
            chunk({"role": "assistant", "reasoning_content": "Hm."}),
            chunk(call("read", '{"path":"a"}', id="read:0")),
            {
                "choices": [
                    {
                        "index": 0,
                        "delta": {},
                        "finish_reason": "tool_calls",
                        "usage": {"prompt_tokens": 8, "completion_tokens": 5, "total_tokens": 13, "cached_tokens": 4},
                    }
                ]
            },
        ],
        [Thinking("Hm.", "reasoning_content"), *READ, Usage(8, 5, 4), DONE],
    ),
    Row(
        "gemini",
        [
            chunk(
                {
                    "role": "assistant",
                    "tool_calls": [
                        {
                            "index": 0,
                            "id": "",
                            "type": "function",
                            "function": {"name": "read", "arguments": '{"path":"a"}'},
                            "extra_content": {"google": {"thought_signature": "Eq+/=="}},
                        },
                        {"index": 1, "id": "", "type": "function", "function": {"name": "now", "arguments": "{}"}},
                    ],
                }
            ),
            chunk(finish="stop", usage={"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 114}),
        ],
        [
            *READ,
            CallBegan(1, "now"),
            CallGrew(1, "{}"),
            CallData(0, '{"extra_content":{"google": {"thought_signature": "Eq+/=="}}}'),
            Usage(10, 104, reasoning_tokens=100),
            DONE,
        ],
    ),
    Row(
        "gemini 2.5, which signs the message",
        [
            chunk({"role": "assistant", "content": "Hi"}),
            chunk({"content": "", "extra_content": {"google": {"thought_signature": "Cl=="}}}, "stop"),
        ],
        [Said("Hi"), TextData('{"extra_content":{"google": {"thought_signature": "Cl=="}}}'), DONE],
    ),
    Row(
        "mistral",
        [
            chunk({"role": "assistant", "content": ""}),
            chunk({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]}),
            chunk({"content": [{"type": "text", "text": "Hi"}]}),
            chunk(
                finish="stop",
                usage={
                    "prompt_tokens": 10,
                    "completion_tokens": 5,
                    "total_tokens": 900,
                    "prompt_audio_seconds": 12,
                    "num_cached_tokens": 8,
                },
            ),
        ],
        [Thinking("Hm.", "content"), Said("Hi"), Usage(10, 5, 8), DONE],
    ),
    Row(
        "groq",
        [
            chunk({"role": "assistant", "content": ""}, x_groq={"id": "req_1"}),
            chunk({"reasoning": "Hm.", "channel": "analysis"}),
            chunk(call("read", '{"path":"a"}', id="fc_1")),
            chunk(finish="tool_calls", x_groq={"id": "req_1", "usage": {"prompt_tokens": 1}}),
            {"choices": [], "usage": {"queue_time": 0.1, "prompt_tokens": 7, "completion_tokens": 6, "total_time": 1}},
        ],
        [Thinking("Hm.", "reasoning"), *READ, Usage(7, 6), DONE],
    ),
    Row(
        "cerebras",
        [
            chunk({"role": "assistant", "reasoning": "Hm."}, system_fingerprint="fp", time_info={"total_time": 1}),
            chunk({"content": "Hi"}, "stop", usage={"prompt_tokens": 7, "completion_tokens": 6, "total_tokens": 13}),
        ],
        [Thinking("Hm.", "reasoning"), Said("Hi"), Usage(7, 6), DONE],
    ),
    Row(
        "xai",
        [
            chunk({"role": "assistant", "reasoning_content": "Hm."}),
            chunk({"content": "Hi"}),
            STOP,
            {
                "choices": [],
                "usage": {
                    "prompt_tokens": 20,
                    "completion_tokens": 5,
                    "total_tokens": 125,
                    "prompt_tokens_details": {"text_tokens": 20, "audio_tokens": 0, "cached_tokens": 16},
                    "completion_tokens_details": {"reasoning_tokens": 100},
                    "cost_in_usd_ticks": 12_500_000,
                },
            },
        ],
        [
            Thinking("Hm.", "reasoning_content"),
            Said("Hi"),
            Usage(20, 105, 16, 0, 100, cost=0.00125, currency="USD"),
            DONE,
        ],
    ),
    Row(
        "z.ai",
        [
            chunk({"role": "assistant", "reasoning_content": "Hm."}),
            chunk({"role": "assistant", "content": "Hi"}),
            chunk({"content": ""}, "model_context_window_exceeded", usage={"prompt_tokens": 9, "completion_tokens": 1}),
        ],
        [
            Thinking("Hm.", "reasoning_content"),
            Said("Hi"),
            Usage(9, 1),
            Done(StopReason.MAX_TOKENS),
        ],
    ),
    Row("z.ai, which will not say it", [chunk({"content": ""}, "sensitive")], [Done(StopReason.REFUSAL)]),
    Row(
        "openrouter",
        [
            ": OPENROUTER PROCESSING",
            chunk(
                {
                    "content": "",
                    "reasoning": "Hm, ",
                    "reasoning_details": [
                        {"type": "reasoning.text", "text": "Hm, ", "format": "anthropic-claude-v1", "index": 0}
                    ],
                }
            ),
            chunk(
                {
                    "content": "",
                    "reasoning": "a file.",
                    "reasoning_details": [
                        {"type": "reasoning.text", "text": "a file.", "format": "anthropic-claude-v1", "index": 0}
                    ],
                }
            ),
            chunk(
                {
                    "content": "",
                    "reasoning": None,
                    "reasoning_details": [
                        {"type": "reasoning.text", "signature": "EqQ=", "format": "anthropic-claude-v1", "index": 0},
                        {"type": "reasoning.encrypted", "data": "gAAA", "id": "tool_0_read", "index": 0},
                    ],
                }
            ),
            chunk(call("read", '{"path":"a"}', id="tool_0_read")),
            CALLS,
            {
                "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}],
                "usage": {
                    "prompt_tokens": 100,
                    "completion_tokens": 20,
                    "total_tokens": 120,
                    "cost": 0.0021,
                    "is_byok": False,
                    "prompt_tokens_details": {"cached_tokens": 80, "cache_write_tokens": 12},
                    "cost_details": {"upstream_inference_cost": None},
                    "completion_tokens_details": {"reasoning_tokens": 6},
                },
            },
        ],
        [
            Thinking("Hm, ", "reasoning"),
            Thinking("a file.", "reasoning"),
            *READ,
            ThoughtData(
                '{"reasoning_details":[{"type":"reasoning.text","text":"Hm, a file.","format":"anthropic-claude-v1",'
                '"index":0,"signature":"EqQ="},{"type":"reasoning.encrypted","data":"gAAA","id":"tool_0_read","index":0}]}'
            ),
            CallData(0, '{"id":"tool_0_read"}'),
            Usage(100, 20, 80, 12, 6, cost=0.0021, currency="USD"),
            DONE,
        ],
    ),
    Row(
        "openrouter, with a key of one's own elsewhere",
        [
            chunk({"content": "Hi"}, "stop"),
            {
                "choices": [],
                "usage": {
                    "prompt_tokens": 1,
                    "completion_tokens": 1,
                    "cost": 0.25,
                    "is_byok": True,
                    "cost_details": {"upstream_inference_cost": 0.5},
                },
            },
        ],
        [Said("Hi"), Usage(1, 1, cost=0.75, currency="USD"), DONE],
    ),
    Row(
        "snowflake, written in Go",
        [
            chunk(
                {
                    "content": "",
                    "refusal": "",
                    "function_call": {"name": "", "arguments": ""},
                    "reasoning_details": [{"type": "reasoning.summary", "summary": "Hm.", "index": 0}],
                },
                "",
                error={"message": "", "code": 0},
            ),
            chunk({"content": "Hi", "refusal": "", "function_call": {"name": "", "arguments": ""}}, ""),
            STOP,
        ],
        [
            Thinking("Hm.", "reasoning_details"),
            Said("Hi"),
            ThoughtData('{"reasoning_details":[{"type":"reasoning.summary","summary":"Hm.","index":0}]}'),
            DONE,
        ],
    ),
    Row(
        "vercel's gateway",
        [
            chunk({"content": "Hi"}, "stop"),
            {
                "choices": [],
                "usage": {
                    "prompt_tokens": 50,
                    "completion_tokens": 2,
                    "cost": "0.0005",
                    "cache_creation_input_tokens": 40,
                },
            },
        ],
        [Said("Hi"), Usage(50, 2, 0, 40, cost=0.0005, currency="USD"), DONE],
    ),
    Row(
        "perplexity",
        [
            {
                "choices": [
                    {
                        "index": 0,
                        "delta": {"role": "assistant", "content": text},
                        "message": {"role": "assistant", "content": so_far},
                        "finish_reason": finish,
                    }
                ],
                "usage": {"prompt_tokens": 3, "completion_tokens": 2, "cost": {"total_cost": 0.006}},
            }
            for text, so_far, finish in [("Hel", "Hel", None), ("lo", "Hello", None), ("", "Hello", "stop")]
        ],
        [Said("Hel"), Said("lo"), Usage(3, 2, cost=0.006, currency="USD"), DONE],
    ),
    Row(
        "perplexity, all at once",
        [
            {
                "object": "chat.completion",
                "choices": [
                    {
                        "index": 0,
                        "delta": {"role": "assistant", "content": ""},
                        "message": {"role": "assistant", "content": "Hello"},
                        "finish_reason": "stop",
                    }
                ],
            }
        ],
        [Said("Hello"), DONE],
    ),
    Row(
        "two choices, of which one was asked for",
        [
            {"choices": [{"index": 1, "delta": {"content": "B"}}, {"index": 0, "delta": {"content": "A"}}]},
            {"choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": "length"}]},
            {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}]},
        ],
        [Said("A"), Said("a"), DONE],
    ),
    Row(
        "values of odd types",
        [
            {"choices": {"index": "0", "delta": {"content": 4}}},
            {"choices": [{"index": 0.0, "delta": {"content": "2", "reasoning_content": False, "role": 1}}]},
            {"choices": [{"delta": {"content": {"type": "text", "text": "."}, "reasoning": ["H", {"text": "m."}]}}]},
            chunk({"tool_calls": {"index": "0", "id": 77, "function": {"name": "read", "arguments": {"path": "a"}}}}),
            {"choices": [{"delta": "nothing", "finish_reason": False}]},
            chunk(finish="stop", usage={"prompt_tokens": "12", "completion_tokens": 3.0, "total_tokens": None}),
        ],
        [Said("4"), Said("2"), Thinking("Hm.", "reasoning"), Said("."), *READ, Usage(12, 3), DONE],
    ),
    Row(
        "a reason to end that nobody knows",
        [chunk({"content": "Hi"}), chunk(finish="eternity")],
        [Said("Hi"), Noticed("house ended its reply for an unknown reason: eternity."), DONE],
    ),
]


def events_of(chunks: list[Any]) -> list[ModelEvent]:
    async def ask(model: Any) -> list[ModelEvent]:
        try:
            return [heard async for heard in model.reply(ModelRequest("", HELLO))]
        finally:
            await model.close()

    with Provider() as provider:
        whole = len(chunks) == 1 and chunks[0].get("object") == "chat.completion"
        if whole:
            provider.openai.send(json.dumps(chunks[0]).encode(), headers={"content-type": "application/json"})
        else:
            lines = [f"{one}\n\n".encode() if isinstance(one, str) else event(one) for one in chunks]
            provider.openai.send(*lines, event("[DONE]"))
        settings: ProviderSettings = provider.openai.settings()
        model: Any = catalog.create("house/m", {"house": settings}, Limits(), {})
        return run(ask(model))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.vendor)
def test_stream(row: Row) -> None:
    assert events_of(row.chunks) == row.events


@pytest.mark.parametrize(
    "reason", ["insufficient_system_resource", "network_error", "error", "x: MALFORMED_FUNCTION_CALL"]
)
def test_an_end_that_is_worth_another_attempt(reason: str) -> None:
    with pytest.raises(ReplyBroken, match="could not finish"):
        events_of([chunk({"content": "Half"}), chunk(finish=reason)])


@pytest.mark.parametrize("cost", [-1, float("nan"), "much", True, {"total": 1}, None])
def test_a_cost_that_is_none_is_not_told(cost: Any) -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "cost": cost}
    assert events_of([chunk({"content": "Hi"}, "stop", usage=usage)]) == [Said("Hi"), Usage(1, 1), DONE]


def test_a_call_that_groq_would_not_pass_on_ends_the_stream_as_a_call() -> None:
    error = {"message": "No.", "type": "invalid_request_error", "code": "tool_use_failed"}
    written = '{"name": "read", "arguments": {"file": "a"}}'
    assert events_of([chunk({"content": "Look."}), {"error": error | {"failed_generation": written}}]) == [
        Said("Look."),
        CallBegan(LAST, "read"),
        CallGrew(LAST, '{"file":"a"}'),
        DONE,
    ]
