"""The accents in which servers speak chat completions."""

import json
from typing import Any

import pytest

from crow.config.settings import Limits, ModelSettings
from crow.errors import ModelRejected, ReplyBroken
from crow.messages import StopReason
from crow.model import catalog
from crow.model.base import CallBegan, CallGrew, Done, ModelRequest, Said, Thinking, Usage
from crow.model.scripted import Call, Think
from crow.model.wires.stream_parsing import read_usage
from tests.model.asking import HELLO, READ, Called, Outcome, ask, ask_all, events_of, run
from tests.support.provider import Provider
from tests.support.provider_dialect import event

DONE = Done(StopReason.END_TURN)
END = {"choices": [{"delta": {}, "finish_reason": "stop"}]}


def model_of(provider: Provider, **settings: Any) -> Any:
    providers = {"house": provider.openai.settings(m=ModelSettings(**settings))}
    return catalog.create("house/m", providers, Limits(), {})


def ask_for(*chunks: Any) -> Outcome:
    """What comes of exactly these chunks."""
    with Provider() as provider:
        provider.openai.send(*(event(chunk) for chunk in chunks), event("[DONE]"))
        return ask(model_of(provider))


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields}]}


def call(arguments: Any = None, **fields: Any) -> dict[str, Any]:
    function = {"name": fields.pop("name", None), "arguments": arguments}
    return {**fields, "function": {key: value for key, value in function.items() if value is not None}}


def test_text_thought_call_and_usage() -> None:
    with Provider() as provider:
        provider.openai.answer(
            Think("Hm, a file."),
            "Let me look.",
            Call("read", {"path": "a"}, pieces=3),
            usage={"input": 100, "cached": 60, "output": 7},
        )
        assert ask(model_of(provider), system="Be brief.", tools=[READ]).events == [
            Thinking("Hm, a file."),
            Said("Let me look."),
            Called("read", '{"path":"a"}'),
            Usage(input_tokens=100, output_tokens=7, cached_tokens=60),
            DONE,
        ]
        (request,) = provider.openai.requests
        assert request.path == "/v1/chat/completions"
        assert request.body["stream_options"] == {"include_usage": True}
        assert request.body["messages"][0] == {"role": "system", "content": "Be brief."}
        assert request.body["tools"][0]["function"]["parameters"] == READ.schema


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        ("stop", StopReason.END_TURN),
        ("STOP", StopReason.END_TURN),
        ("tool_calls", StopReason.END_TURN),
        ("function_call", StopReason.END_TURN),
        ("length", StopReason.MAX_TOKENS),
        ("content_filter", StopReason.REFUSAL),
    ],
)
def test_finish_reasons(finish: str, stop: StopReason) -> None:
    with Provider() as provider:
        provider.openai.answer("Hi", finish=finish)
        assert ask(model_of(provider)).events == [Said("Hi"), Done(stop)]


def test_a_refusal_is_shown_and_is_one() -> None:
    outcome = ask_for(delta(refusal="I would "), delta(refusal="rather not."), END)
    assert outcome.events == [Said("I would rather not."), Done(StopReason.REFUSAL)]


def test_nothing_in_a_chunk_has_to_be_there() -> None:
    odd = [
        {},
        {"choices": None},
        {"choices": []},
        {"choices": [{}]},
        {"choices": [{"delta": None}]},
        {"choices": [{"delta": {"content": None, "tool_calls": None, "role": None}, "finish_reason": None}]},
        {"error": None, "usage": None, "choices": [{"delta": {"content": "Hi", "new": {"field": 1}}}]},
        {"choices": [{"delta": {"tool_calls": []}}]},
        {"usage": {"prompt_tokens": "many"}, "choices": []},
    ]
    assert ask_for(*odd, END).events == [Said("Hi"), DONE]


def test_done_without_a_finish_reason_is_an_end() -> None:
    assert ask_for(delta(content="Hi")).events == [Said("Hi"), DONE]


def test_done_and_nothing_else_is_none() -> None:
    assert isinstance(ask_for().error, ReplyBroken)


def test_a_finish_reason_without_done_is_an_end() -> None:
    with Provider() as provider:
        provider.openai.send(event(delta(content="Hi")), event(END))
        assert ask(model_of(provider)).events == [Said("Hi"), DONE]


def test_counts_that_no_reply_takes_are_none() -> None:
    assert read_usage({"prompt_tokens": 10**15, "completion_tokens": 1e300}) is None
    assert read_usage({"prompt_tokens": 4_294_967_295, "completion_tokens": 3}) == Usage(output_tokens=3)


def test_usage_in_every_chunk_is_reported_once() -> None:
    chunks = [{**delta(content="a"), "usage": {"prompt_tokens": 5, "completion_tokens": n}} for n in (1, 2, 3)]
    assert ask_for(*chunks, END).events == [Said("aaa"), Usage(input_tokens=5, output_tokens=3), DONE]


def test_content_as_typed_parts() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    chunks = [delta(content=[thinking]), delta(content=[{"type": "text", "text": "Hi"}, {"type": "new"}])]
    assert ask_for(*chunks, END).events == [Thinking("Hm."), Said("Hi"), DONE]


READ_A, READ_B = Called("read", '{"path":"a"}'), Called("read", '{"path":"b"}')
HALF, REST_A, REST_B = '{"path":', '"a"}', '"b"}'


@pytest.mark.parametrize(
    "fragments",
    [
        pytest.param(
            [
                call(HALF, index=0, id="1", name="read"),
                call(REST_A, index=0, id="1", name="read"),
                call(HALF, index=1, id="2", name="read"),
                call(REST_B, index=1, id="2", name="read"),
            ],
            id="id and name in every fragment",
        ),
        pytest.param(
            [
                call(HALF, index=0, id="1"),
                call(HALF, index=1, id="2"),
                call(index=1, name="read"),
                call(REST_B, index=1),
                call(index=0, name="read"),
                call(REST_A, index=0),
            ],
            id="the name comes later",
        ),
        pytest.param(
            [call(HALF, id="1", name="read"), call(REST_A), call(HALF, id="2", name="read"), call(REST_B)],
            id="no index",
        ),
        pytest.param([call(HALF + REST_A, name="read"), call(HALF + REST_B, name="read")], id="neither index nor id"),
        pytest.param(
            [
                call(HALF, index=0, id="1", name="read"),
                call(REST_A, index=0),
                call(HALF, index=0, id="2", name="read"),
                call(REST_B, index=0),
            ],
            id="always index 0",
        ),
        pytest.param(
            [call({"path": "a"}, index=0, id="1", name="read"), call({"path": "b"}, index=1, id="2", name="read")],
            id="arguments as objects",
        ),
        pytest.param(
            [
                call(HALF + REST_A, index=3, id="1", name="read"),
                call(HALF + REST_B, index=7, id="2", name="read"),
            ],
            id="indices with gaps",
        ),
    ],
)
def test_two_calls_in_any_accent(fragments: list[Any]) -> None:
    outcome = ask_for(*(delta(tool_calls=[fragment]) for fragment in fragments), END)
    assert outcome.error is None
    assert sorted(outcome.events[:-1], key=lambda called: called.arguments) == [READ_A, READ_B]


def test_a_call_without_arguments_and_the_older_form() -> None:
    outcome = ask_for(delta(function_call={"name": "now"}), delta(function_call={"arguments": ""}), END)
    assert outcome.events == [Called("now", ""), DONE]


def test_a_call_that_never_gets_a_name_is_no_call() -> None:
    outcome = ask_for(delta(tool_calls=[call("{}", index=0, id="1")]), END)
    assert isinstance(outcome.error, ReplyBroken)
    assert "without a name" in str(outcome.error)


def test_a_call_cut_by_length_is_max_tokens() -> None:
    with Provider() as provider:
        provider.openai.answer(Call("write", raw='{"content": "and so'), finish="length")
        assert ask(model_of(provider)).events[-1] == Done(StopReason.MAX_TOKENS)


def test_fragments_arrive_as_they_come() -> None:
    with Provider() as provider:
        provider.openai.answer(Call("read", raw="abcd", pieces=2), Call("read", raw="wxyz", pieces=2), interleave=True)
        assert run(events_of(model_of(provider))) == [
            CallBegan(0, "read"),
            CallBegan(1, "read"),
            CallGrew(0, "ab"),
            CallGrew(1, "wx"),
            CallGrew(0, "cd"),
            CallGrew(1, "yz"),
            DONE,
        ]


def test_a_server_that_does_not_know_stream_options() -> None:
    with Provider() as provider:
        provider.openai.fail(400, "Unrecognized request argument supplied: stream_options")
        provider.openai.answer("Hi")
        provider.openai.answer("Hi again")
        first, second = run(ask_all(model_of(provider), *[ModelRequest("", HELLO)] * 2))
        assert (first.events, second.events) == ([Said("Hi"), DONE], [Said("Hi again"), DONE])
        assert ["stream_options" in request.body for request in provider.openai.requests] == [True, False, False]


def test_another_400_is_not_asked_again() -> None:
    with Provider() as provider:
        provider.openai.fail(400, "no")
        assert isinstance(ask(model_of(provider)).error, ModelRejected)
        assert len(provider.openai.requests) == 1


@pytest.mark.parametrize("base", ["", "/", "/v1", "/v1/", "/v1/chat/completions"])
def test_base_url_with_and_without_version(base: str) -> None:
    with Provider() as provider:
        provider.openai.url = provider.url + base
        provider.openai.answer("Hi")
        assert ask(model_of(provider)).error is None


def test_max_output_is_sent_when_configured() -> None:
    with Provider() as provider:
        provider.openai.answer("Hi")
        provider.openai.answer("Hi")
        ask(model_of(provider, max_output=500))
        ask(model_of(provider))
        assert [request.body.get("max_tokens") for request in provider.openai.requests] == [500, None]


def test_connection_is_used_again() -> None:
    with Provider() as provider:
        for _ in range(3):
            provider.openai.answer("Hi")
        run(ask_all(model_of(provider), *[ModelRequest("", HELLO)] * 3))
        assert provider.connections == 1


def test_a_gzipped_stream_is_read_too() -> None:
    import gzip

    with Provider() as provider:
        stream = b"".join((event(delta(content="Hi")), event(END), event("[DONE]")))
        provider.openai.send(gzip.compress(stream), headers={"content-encoding": "gzip"})
        assert ask(model_of(provider)).events == [Said("Hi"), DONE]


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    with Provider() as provider:
        deep = "[" * 100_000
        provider.openai.send(b'data: {"choices": [{"delta": {"content": ' + deep.encode() + b"\n\n")
        assert isinstance(ask(model_of(provider)).error, ReplyBroken)
        assert json.dumps(provider.openai.requests[0].body)
