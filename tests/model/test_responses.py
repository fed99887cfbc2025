"""The Responses API: what is sent, what its streams look like, and what goes back."""

import json
from typing import Any

import pytest

from crow.config.settings import Limits, ModelSettings
from crow.errors import ContextOverflow, ModelError, ModelRejected, ModelUnavailable, ReplyBroken
from crow.messages import (
    AssistantMessage,
    Audio,
    Image,
    Message,
    ProviderData,
    StopReason,
    Text,
    Thought,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from crow.model import catalog
from crow.model.base import (
    CallBegan,
    CallGrew,
    Done,
    ModelInfo,
    ModelRequest,
    Noticed,
    Said,
    TextData,
    Thinking,
    ThoughtData,
    Usage,
)
from crow.model.endpoint import Endpoint
from crow.model.provider_errors import from_status
from crow.model.scripted import Call, Think
from crow.model.wires.http_model import Learned
from crow.model.wires.responses import REFUSALS, encode
from crow.model.wires.responses_reply import FIELD
from tests.model.asking import HELLO, READ, Called, Outcome, ask, ask_all, events_of, run
from tests.support.provider import Provider
from tests.support.provider_dialect import event
from tests.support.provider_responses import sealed
from tests.support.wire_rules import check_responses

DONE = Done(StopReason.END_TURN)
COMPLETED = {"type": "response.completed", "response": {"status": "completed"}}
FINAL = TextData('{"phase":"final_answer"}')


def model_of(provider: Provider, name: str = "gpt-5.6", **settings: Any) -> Any:
    providers = {"house": provider.responses.settings(**{name: ModelSettings(**settings)})}
    return catalog.create(f"house/{name}", providers, Limits(), {})


def ask_for(*events: Any) -> Outcome:
    """What comes of exactly these events."""
    with Provider() as provider:
        provider.responses.send(*(event(one) for one in events))
        return ask(model_of(provider))


def kept(thought: str, text: str = "") -> str:
    summary = [{"type": "summary_text", "text": text or thought}] if thought else []
    return json.dumps(
        {"type": "reasoning", "summary": summary, "encrypted_content": sealed(thought)}, separators=(",", ":")
    )


def test_a_whole_exchange() -> None:
    with Provider() as provider:
        provider.responses.answer(
            Think("Hm, a file."),
            "Let me look.",
            Call("read", {"path": "a"}, pieces=3),
            usage={"input": 100, "cached": 60, "written": 20, "output": 70, "reasoning": 50},
        )
        request = ModelRequest("Be brief.", HELLO, [READ], "high", cache_key="session-1")
        (outcome,) = run(ask_all(model_of(provider, max_output=5), request))
        assert outcome.events == [
            Thinking("Hm, a file."),
            ThoughtData(kept("Hm, a file.")),
            Said("Let me look."),
            FINAL,
            Called("read", '{"path":"a"}'),
            Usage(input_tokens=100, output_tokens=70, cached_tokens=60, cache_written_tokens=20, reasoning_tokens=50),
            DONE,
        ]
        (sent,) = provider.responses.requests
        assert sent.path == "/v1/responses"
        assert sent.body == {
            "model": "gpt-5.6",
            "input": [{"role": "user", "content": [{"type": "input_text", "text": "Hello"}]}],
            "stream": True,
            "store": False,
            "instructions": "Be brief.",
            "tools": [
                {
                    "type": "function",
                    "name": "read",
                    "description": "Reads a file.",
                    "parameters": READ.schema,
                    "strict": False,
                }
            ],
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"effort": "high", "summary": "auto"},
            "max_output_tokens": 16,
            "prompt_cache_key": "session-1",
        }


# --- streams


def added(index: int | None, kind: str, **fields: Any) -> dict[str, Any]:
    place = {} if index is None else {"output_index": index}
    return {"type": "response.output_item.added", **place, "item": {"type": kind, **fields}}


def done(index: int | None, kind: str, **fields: Any) -> dict[str, Any]:
    return {**added(index, kind, **fields), "type": "response.output_item.done"}


def text(delta: str, index: int = 0, kind: str = "output_text") -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "output_index": index, "content_index": 0, "delta": delta}


def summary(delta: str, part: int = 0, index: int = 0) -> dict[str, Any]:
    kind = "response.reasoning_summary_text.delta"
    return {"type": kind, "output_index": index, "summary_index": part, "delta": delta}


def arguments(delta: str, index: int | None = 0, **fields: Any) -> dict[str, Any]:
    place = {} if index is None else {"output_index": index}
    return {"type": "response.function_call_arguments.delta", **place, "delta": delta, **fields}


def message(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return done(0, "message", role="assistant", content=list(parts), **fields)


OUTPUT = {"type": "output_text", "text": "Hi"}


@pytest.mark.parametrize(
    ("events", "read"),
    [
        pytest.param([text("H"), text("i"), COMPLETED], [Said("Hi"), DONE], id="deltas alone"),
        pytest.param([message(OUTPUT), COMPLETED], [Said("Hi"), DONE], id="a message without deltas"),
        pytest.param(
            [added(0, "message"), text("Hi"), message(OUTPUT, phase="commentary"), COMPLETED],
            [Said("Hi"), TextData('{"phase":"commentary"}'), DONE],
            id="a phase",
        ),
        pytest.param(
            [text("One."), text("Two.", 1), COMPLETED], [Said("One.\n\nTwo."), DONE], id="two messages in a row"
        ),
        pytest.param(
            [text("I would rather not.", kind="refusal"), COMPLETED],
            [Said("I would rather not."), Done(StopReason.REFUSAL)],
            id="a refusal",
        ),
        pytest.param(
            [message({"type": "refusal", "refusal": "No."}), COMPLETED],
            [Said("No."), Done(StopReason.REFUSAL)],
            id="a refusal at once",
        ),
        pytest.param(
            [summary("**One**"), summary(" more"), summary("**Two**", 1), text("Hi", 1), COMPLETED],
            [Thinking("**One** more\n\n**Two**"), Said("Hi"), DONE],
            id="paragraphs of thought",
        ),
        pytest.param(
            [text("Hm.", kind="reasoning_text"), text("Hi", 1), COMPLETED],
            [Thinking("Hm."), Said("Hi"), DONE],
            id="thoughts of an open model",
        ),
        pytest.param(
            [
                added(0, "reasoning", id="rs_1", encrypted_content="early", summary=[]),
                done(0, "reasoning", id="rs_1", encrypted_content=sealed(""), summary=[]),
                text("Hi", 1),
                COMPLETED,
            ],
            [ThoughtData(kept("")), Said("Hi"), DONE],
            id="reasoning that is not shown",
        ),
        pytest.param(
            [
                done(0, "reasoning", encrypted_content="x", summary=[{"type": "summary_text", "text": "Hm."}]),
                done(1, "reasoning", summary=[], content=[{"type": "reasoning_text", "text": "So."}]),
                text("Hi", 2),
                COMPLETED,
            ],
            [
                Thinking("Hm."),
                ThoughtData(
                    '{"type":"reasoning","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"x"}'
                ),
                Thinking("So."),
                Said("Hi"),
                DONE,
            ],
            id="reasoning without deltas",
        ),
        pytest.param(
            [
                summary("Hm."),
                done(0, "reasoning", encrypted_content=None, summary=[{"type": "summary_text", "text": "Hm."}]),
                text("Hi", 1),
                {
                    "type": "response.completed",
                    "response": {"output": [json.loads(kept("Hm.")), message(OUTPUT)["item"]]},
                },
            ],
            [Thinking("Hm."), Said("Hi"), ThoughtData(kept("Hm.")), DONE],
            id="reasoning that is sealed at the end",
        ),
        pytest.param(
            [
                added(0, "function_call", id="fc_1", call_id="call_0", name="read", arguments=""),
                arguments('{"path":'),
                arguments('"a"}'),
                done(0, "function_call", id="fc_1", call_id="call_0", name="read", arguments='{"path":"a"}'),
                COMPLETED,
            ],
            [Called("read", '{"path":"a"}'), DONE],
            id="a call",
        ),
        pytest.param(
            [done(0, "function_call", call_id="c", name="read", arguments='{"path":"a"}'), COMPLETED],
            [Called("read", '{"path":"a"}'), DONE],
            id="a call at once",
        ),
        pytest.param(
            [
                added(0, "function_call", id="fc_1", name="read"),
                added(1, "function_call", id="fc_2", name="read"),
                arguments('{"path":"b"}', 1),
                arguments('{"path":"a"}', 0),
                COMPLETED,
            ],
            [Called("read", '{"path":"a"}'), Called("read", '{"path":"b"}'), DONE],
            id="calls side by side",
        ),
        pytest.param(
            [
                added(None, "function_call", id="fc_1", name="read"),
                arguments('{"path":"a"}', None, item_id="fc_1"),
                COMPLETED,
            ],
            [Called("read", '{"path":"a"}'), DONE],
            id="told apart by id",
        ),
        pytest.param(
            [{"type": "response.completed", "response": {"output": [message(OUTPUT)["item"]]}}],
            [Said("Hi"), DONE],
            id="all of it in the last event",
        ),
        pytest.param(
            [
                {},
                {"type": "response.queued"},
                {"type": "keepalive", "sequence_number": 3},
                {"type": "response.output_text.delta", "delta": None},
                {"type": "response.output_text.delta", "delta": {"text": "?"}},
                {"type": "response.output_item.added", "item": {"type": "web_search_call"}},
                {"type": "response.output_item.added", "item": "?"},
                {"type": "response.output_text.annotation.added", "annotation": {}},
                text("Hi"),
                {"type": "response.completed", "response": {"usage": {"input_tokens": "many"}}},
            ],
            [Said("Hi"), DONE],
            id="what is odd or new",
        ),
        pytest.param([text("Hi"), {"type": "response.completed"}], [Said("Hi"), DONE], id="an end without a response"),
        pytest.param(
            [
                text("Hi"),
                {
                    "type": "response.completed",
                    "response": {"usage": {"input_tokens": 9, "output_tokens": 1, "cost_in_usd_ticks": 25_000_000}},
                },
            ],
            [Said("Hi"), Usage(input_tokens=9, output_tokens=1, cost=0.0025, currency="USD"), DONE],
            id="a cost",
        ),
    ],
)
def test_streams(events: list[Any], read: list[Any]) -> None:
    outcome = ask_for(*events)
    assert (outcome.error, outcome.events) == (None, read)


@pytest.mark.parametrize(
    ("reason", "stop"),
    [("max_output_tokens", StopReason.MAX_TOKENS), ("content_filter", StopReason.REFUSAL)],
)
def test_a_reply_that_is_incomplete(reason: str, stop: StopReason) -> None:
    with Provider() as provider:
        provider.responses.answer("Hi", finish=f"incomplete {reason}")
        assert ask(model_of(provider)).events[-1] == Done(stop)


def test_a_reply_that_is_incomplete_for_an_unknown_reason_keeps_its_text() -> None:
    with Provider() as provider:
        provider.responses.answer("Hi", finish="incomplete solar_flare")
        assert ask(model_of(provider)).events == [
            Said("Hi"),
            FINAL,
            Noticed("house ended its reply for an unknown reason: solar_flare."),
            Done(StopReason.MAX_TOKENS),
        ]


def failed(code: str, said: str) -> dict[str, Any]:
    return {"type": "response.failed", "response": {"status": "failed", "error": {"code": code, "message": said}}}


@pytest.mark.parametrize(
    ("events", "error", "words"),
    [
        ([failed("server_error", "Oh dear.")], ModelUnavailable, "Oh dear"),
        ([failed("rate_limit_exceeded", "Slowly.")], ModelUnavailable, "Slowly"),
        ([failed("context_length_exceeded", "Your input exceeds the context window.")], ContextOverflow, "input"),
        ([{"type": "response.failed", "response": {"error": None}}], ReplyBroken, "no reason given"),
        ([{"type": "error", "error": {"type": "server_error", "message": "Gone."}}], ModelUnavailable, "Gone"),
        ([{"type": "error", "code": "server_error", "message": "Gone."}], ModelUnavailable, "Gone"),
        ([text("Hi")], ReplyBroken, "an incomplete reply"),
        ([COMPLETED], ReplyBroken, "an empty reply"),
        ([], ReplyBroken, "an empty reply"),
        ([added(0, "function_call", arguments="{}"), COMPLETED], ReplyBroken, "without a name"),
    ],
)
def test_failures(events: list[Any], error: type[ModelError], words: str) -> None:
    outcome = ask_for(*events)
    assert type(outcome.error) is error
    assert words in str(outcome.error)


def test_done_is_an_end_too() -> None:
    with Provider() as provider:
        provider.responses.send(event(text("Hi")), event("[DONE]"))
        assert ask(model_of(provider)).events == [Said("Hi"), DONE]


def test_a_reply_at_once() -> None:
    output = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
        message(OUTPUT)["item"],
        {"type": "function_call", "call_id": "c", "name": "read", "arguments": '{"path":"a"}'},
    ]
    whole = {"object": "response", "status": "completed", "output": output, "usage": {"input_tokens": 3}}
    with Provider() as provider:
        provider.responses.send(json.dumps(whole).encode(), headers={"content-type": "application/json"})
        assert ask(model_of(provider)).events == [
            Thinking("Hm."),
            Said("Hi"),
            Called("read", '{"path":"a"}'),
            Usage(input_tokens=3),
            DONE,
        ]


def test_halves_of_characters_are_joined() -> None:
    with Provider() as provider:
        deltas = [rb"\ud83d", rb"\ude00!"]
        events = [b'data: {"type":"response.output_text.delta","delta":"%b"}\n\n' % delta for delta in deltas]
        provider.responses.send(*events, event(COMPLETED))
        assert ask(model_of(provider)).events == [Said("😀!"), DONE]


def test_what_is_shown_of_thoughts_goes_back_on_no_other_wire() -> None:
    shown = AssistantMessage((Thought("**Looking**", "house", model="gpt-5.6", field=FIELD), *CALLS))
    with Provider() as provider:
        provider.openai.answer("Hi")
        model = catalog.create("house/gpt-5.6", {"house": provider.openai.settings()}, Limits(), {})
        assert ask(model, (ASKED, shown, *RESULTS)).error is None
        assert "**Looking**" not in json.dumps(provider.openai.requests[0].body)


def test_fragments_arrive_as_they_come() -> None:
    with Provider() as provider:
        calls = Call("read", raw="abcd", pieces=2), Call("read", raw="wxyz", pieces=2)
        provider.responses.answer(*calls, interleave=True)
        assert run(events_of(model_of(provider))) == [
            CallBegan(0, "read"),
            CallBegan(1, "read"),
            CallGrew(0, "ab"),
            CallGrew(1, "wx"),
            CallGrew(0, "cd"),
            CallGrew(1, "yz"),
            DONE,
        ]


# --- requests

INFO = ModelInfo("house", "gpt-5.6", images=True)


def test_the_key_of_the_cache_has_a_limit() -> None:
    body = json.loads(encode(INFO, ModelRequest("", HELLO, cache_key="k" * 100), ()))
    assert body["prompt_cache_key"] == "k" * 64


def sent(*messages: Message, info: ModelInfo = INFO, level: str = "") -> dict[str, Any]:
    body = json.loads(encode(info, ModelRequest("", messages, thought_level=level), ()))
    check_responses(body, seal=sealed)
    return body


def thought(words: str, model: str = "gpt-5.6", provider: str = "house") -> Thought:
    return Thought(words, provider, model=model, kept=ProviderData(provider, model, kept(words)))


def said(words: str, phase: str = "", model: str = "gpt-5.6") -> Text:
    return Text(words, ProviderData("house", model, json.dumps({"phase": phase})) if phase else None)


ASKED = UserMessage((Text("Look."),))
CALLS = ToolCall("t1-c1", "read", '{"path": "a"}'), ToolCall("t1-c2", "read", "{broken")
RESULTS = ToolMessage("t1-c1", "text of a"), ToolMessage("t1-c2", " ", ok=False)


def test_reasoning_goes_back_with_what_followed_it() -> None:
    reply = AssistantMessage((thought("Hm."), said("I look.", "commentary"), thought("So."), *CALLS))
    answer = AssistantMessage((thought("There."), said("Done.", "final_answer")))
    assert sent(ASKED, reply, *RESULTS, answer, ASKED)["input"][1:-1] == [
        json.loads(kept("Hm.")),
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "I look."}],
            "phase": "commentary",
        },
        json.loads(kept("So.")),
        {"type": "function_call", "call_id": "t1-c1", "name": "read", "arguments": '{"path": "a"}'},
        {
            "type": "function_call",
            "call_id": "t1-c2",
            "name": "read",
            "arguments": '{"unreadable_arguments":"{broken"}',
        },
        {"type": "function_call_output", "call_id": "t1-c1", "output": "text of a"},
        {"type": "function_call_output", "call_id": "t1-c2", "output": "(no output)"},
        json.loads(kept("There.")),
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Done."}],
            "phase": "final_answer",
        },
    ]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param((thought("Hm."),), id="alone"),
        pytest.param((thought("Hm."), Text(" \n")), id="before blank text"),
        pytest.param((thought("Hm.", model="gpt-5.5"), Text("Hi")), id="of another model"),
        pytest.param((thought("Hm.", provider="elsewhere"), Text("Hi")), id="of another provider"),
        pytest.param((Thought("Hm.", "house", model="gpt-5.6"), Text("Hi")), id="without its seal"),
        pytest.param(
            (Thought("Hm.", "house", kept=ProviderData("house", "gpt-5.6", '{"type":"reasoning"}')), Text("Hi")),
            id="not encrypted",
        ),
        pytest.param(
            (Thought("Hm.", "house", kept=ProviderData("house", "gpt-5.6", '["of another wire"]')), Text("Hi")),
            id="of another wire",
        ),
    ],
)
def test_reasoning_that_does_not_go_back(parts: tuple[Any, ...]) -> None:
    items = sent(ASKED, AssistantMessage(parts), ASKED)["input"]
    assert not [item for item in items if item.get("type") == "reasoning"]


def test_the_phase_of_another_models_words_does_not_go_back() -> None:
    reply = AssistantMessage((said("Hi", "final_answer", model="gpt-5.3-codex"),))
    assert "phase" not in sent(ASKED, reply, ASKED)["input"][1]


def test_images_of_tools_are_in_their_result() -> None:
    picture = Image("AAAA", "image/png")
    shown = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    history = (ASKED, AssistantMessage(CALLS[:1]), ToolMessage("t1-c1", "a picture", images=(picture,)))
    assert sent(*history)["input"][-1]["output"] == [{"type": "input_text", "text": "a picture"}, shown]
    blind = ModelInfo("house", "gpt-5.6")
    (_, note) = sent(*history, info=blind)["input"][-1]["output"]
    assert note == {"type": "input_text", "text": "[image left out: this model does not take image/png]"}
    assert sent(UserMessage((picture, Audio("AAAA", "audio/wav"))))["input"][0]["content"] == [
        shown,
        {"type": "input_text", "text": "[audio left out: this model does not take audio/wav]"},
    ]


@pytest.mark.parametrize(
    ("model", "level", "reasoning"),
    [
        ("gpt-5.6", "", {"summary": "auto"}),
        ("gpt-5.6", "off", {"effort": "none", "summary": "auto"}),
        ("o4-mini", "low", {"effort": "low", "summary": "auto"}),
        ("our-deployment", "", {"summary": "auto"}),
        ("gpt-4.1", "", None),
        ("gpt-4o-2024-11-20", "", None),
    ],
)
def test_reasoning_is_asked_for_where_there_may_be_some(model: str, level: str, reasoning: Any) -> None:
    body = sent(ASKED, info=ModelInfo("house", model), level=level)
    assert body.get("reasoning") == reasoning
    assert ("include" in body) == (reasoning is not None)


# --- refusals

REFUSED_SUMMARY = "Your organization must be verified to generate reasoning summaries. Please go to: https://…"
REFUSED_LEVEL = "Unsupported value: 'xhigh' is not supported with the 'gpt-5.6' model. Supported values are: 'low'."


@pytest.mark.parametrize(
    ("said_by_provider", "notice", "field", "left"),
    [
        (
            REFUSED_SUMMARY,
            "house hides the thoughts of gpt-5.6 until your OpenAI organization is verified.",
            "reasoning",
            {"effort": "xhigh"},
        ),
        (
            REFUSED_LEVEL,
            "house does not support the thought level xhigh for gpt-5.6: it is left out.",
            "reasoning",
            {"summary": "auto"},
        ),
        ("Unsupported parameter: 'reasoning.summary' is not supported.", "", "reasoning", {"effort": "xhigh"}),
        ("Encrypted content is not supported with this model.", "", "include", None),
        ("Unknown parameter: 'prompt_cache_key'.", "", "prompt_cache_key", None),
        ("Unknown parameter: 'reasoning'.", "", "reasoning", None),
    ],
)
def test_what_a_refusal_teaches(said_by_provider: str, notice: str, field: str, left: Any) -> None:
    with Provider() as provider:
        provider.responses.fail(400, said_by_provider)
        provider.responses.answer("Hi")
        provider.responses.answer("Hi")
        request = ModelRequest("", HELLO, thought_level="xhigh", cache_key="s")
        first, second = run(ask_all(model_of(provider), request, request))
        assert first.events == [*([Noticed(notice)] if notice else []), Said("Hi"), FINAL, DONE]
        assert second.events == [Said("Hi"), FINAL, DONE]
        assert field in provider.responses.requests[0].body
        assert [one.body.get(field) for one in provider.responses.requests[1:]] == [left, left]


def test_where_nothing_is_streamed_replies_are_taken_whole() -> None:
    learned = Learned(Endpoint("house", "http://127.0.0.1:1/whole"), "gpt-5")
    error = from_status("house", 400, "Your organization must be verified to stream this model.")
    assert isinstance(error, ModelRejected)
    assert learned.learn(error, REFUSALS) == (
        "house does not stream replies from gpt-5 until your OpenAI organization is verified."
    )
    assert json.loads(encode(INFO, ModelRequest("", HELLO), learned))["stream"] is False


def test_reasoning_that_is_refused_is_left_out() -> None:
    history = (ASKED, AssistantMessage((thought("Hm."), *CALLS)), *RESULTS)
    with Provider() as provider:
        provider.responses.fail(400, "The encrypted content gAAA... could not be verified.")
        provider.responses.answer("Hi")
        outcome = ask(model_of(provider), history)
        assert outcome.events[0] == Noticed(
            "house rejected the earlier thoughts of gpt-5.6: they are left out from now on."
        )
        assert outcome.error is None
        kinds = [[item.get("type") for item in one.body["input"]] for one in provider.responses.requests]
        assert ["reasoning" in these for these in kinds] == [True, False]
        assert provider.responses.requests[1].body["include"]  # what comes from now on can be verified


def test_another_refusal_is_told() -> None:
    with Provider() as provider:
        provider.responses.fail(400, "Invalid schema for function 'read'.")
        assert isinstance(ask(model_of(provider)).error, ModelRejected)
        assert len(provider.responses.requests) == 1
