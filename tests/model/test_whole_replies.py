"""Servers that answer a request for a stream with one whole object, with a page, or with something else."""

import json
from typing import Any

import pytest

from crow.config.settings import Limits
from crow.errors import ModelRejected, ModelUnavailable, ReplyBroken
from crow.messages import StopReason
from crow.model.base import Done, Said, Thinking, ThinkingSealed, Usage
from tests.model.asking import Called, Outcome, ask_with_retries
from tests.support.provider import Cut, Provider
from tests.support.provider_dialect import Step, event

DONE = Done(StopReason.END_TURN)

COMPLETION: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "reasoning_content": "Hm.",
                "content": "Let me look.",
                "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}},
                    {"id": "2", "type": "function", "function": {"name": "read", "arguments": '{"path":"b"}'}},
                ],
            },
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {"prompt_tokens": 5, "completion_tokens": 7},
}
COMPLETION_EVENTS = [
    Thinking("Hm."),
    Said("Let me look."),
    Called("read", '{"path":"a"}'),
    Called("read", '{"path":"b"}'),
    Usage(input_tokens=5, output_tokens=7),
    DONE,
]

MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "sealed"},
        {"type": "redacted_thinking", "data": "opaque"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "1", "name": "read", "input": {"path": "a"}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 5, "output_tokens": 7},
}
MESSAGE_EVENTS = [
    Thinking("Hm."),
    ThinkingSealed("sealed"),
    ThinkingSealed("opaque", redacted=True),
    Said("Let me look."),
    Called("read", '{"path":"a"}'),
    Usage(input_tokens=5, output_tokens=7),
    DONE,
]


def ask_for(kind: str, *steps: Step, content_type: str, times: int = 1, requests: int = 1) -> Outcome:
    with Provider() as provider:
        dialect = getattr(provider, kind)
        for _ in range(times):
            dialect.send(*steps, headers={"content-type": content_type} if content_type else {})
        outcome = ask_with_retries("house/m", {"house": dialect.settings()}, Limits())
        assert len(dialect.requests) == requests
        return outcome


KINDS = ["application/json", "application/json; charset=utf-8", "text/plain", "application/x-ndjson", ""]


@pytest.mark.parametrize("content_type", KINDS)
@pytest.mark.parametrize("indent", [None, 2])
def test_a_whole_completion(content_type: str, indent: int | None) -> None:
    body = json.dumps(COMPLETION, indent=indent).encode()
    outcome = ask_for("openai", b"\r\n", body[:50], body[50:] + b"\n", content_type=content_type)
    assert (outcome.error, outcome.events) == (None, COMPLETION_EVENTS)


@pytest.mark.parametrize("content_type", KINDS)
def test_a_whole_message(content_type: str) -> None:
    body = json.dumps(MESSAGE).encode()
    outcome = ask_for("anthropic", body[:50], body[50:], content_type=content_type)
    assert (outcome.error, outcome.events) == (None, MESSAGE_EVENTS)


def test_a_whole_reply_as_the_only_event() -> None:
    outcome = ask_for("openai", event(COMPLETION), event("[DONE]"), content_type="")
    assert (outcome.error, outcome.events) == (None, COMPLETION_EVENTS)
    outcome = ask_for("anthropic", event(MESSAGE), content_type="")
    assert (outcome.error, outcome.events) == (None, MESSAGE_EVENTS)


def test_without_a_finish_reason_it_is_whole_all_the_same() -> None:
    body = json.dumps({"choices": [{"message": {"content": "Hi"}}]}).encode()
    assert ask_for("openai", body, content_type="application/json").events == [Said("Hi"), DONE]


def test_chunks_as_lines() -> None:
    lines: list[Any] = [{"choices": [{"delta": {"content": word}}]} for word in ("Hel", "lo")]
    lines.append({"choices": [{"delta": {}, "finish_reason": "length"}]})
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    outcome = ask_for("openai", body, content_type="application/x-ndjson")
    assert outcome.events == [Said("Hello"), Done(StopReason.MAX_TOKENS)]


@pytest.mark.parametrize("content_type", ["text/plain", "text/html", "application/json", "application/octet-stream"])
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_stream_under_a_false_name(kind: str, content_type: str) -> None:
    with Provider() as provider:
        dialect = getattr(provider, kind)
        steps = b"".join((*dialect.opening(None), *dialect.spoken(("Hello",)), *dialect.closing("", None)))
        steps = steps.replace(b'""', b'"stop"' if kind == "openai" else b'"end_turn"')
    outcome = ask_for(kind, steps, content_type=content_type)
    assert outcome.error is None
    assert outcome.events[-1] == DONE


both = pytest.mark.parametrize("kind", ["openai", "anthropic"])


@both
@pytest.mark.parametrize("content_type", ["application/json", "text/plain", ""])
@pytest.mark.parametrize("body", [{"error": {"message": "slow down", "code": "rate_limit_exceeded"}}])
def test_an_error_stays_one(kind: str, content_type: str, body: Any) -> None:
    for shape in (body, [body]):
        outcome = ask_for(kind, json.dumps(shape).encode(), content_type=content_type, times=10, requests=10)
        assert isinstance(outcome.error, ModelUnavailable)
        assert "slow down" in str(outcome.error)


@both
def test_an_error_that_asking_again_will_not_mend(kind: str) -> None:
    body = b'{"error": {"message": "no such model", "code": 404}}'
    outcome = ask_for(kind, body, content_type="application/json")
    assert isinstance(outcome.error, ModelRejected)
    assert "no such model" in str(outcome.error)


@both
@pytest.mark.parametrize("content_type", ["text/html; charset=utf-8", "text/plain", "application/json", ""])
@pytest.mark.parametrize("page", [b"\n<!DOCTYPE html><title>Welcome</title>", b"<html><body>Hello</body></html>"])
def test_a_page_is_asked_for_once(kind: str, content_type: str, page: bytes) -> None:
    outcome = ask_for(kind, page, content_type=content_type)
    assert type(outcome.error) is ModelRejected
    assert "web page" in str(outcome.error)


@both
@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b'{"status": "ok"}', "application/json"),
        (b"Ollama is running", "text/plain; charset=utf-8"),
        (b'"pong"', "application/json"),
        (b"true", "application/json"),
    ],
)
def test_something_else_is_asked_for_once(kind: str, body: bytes, content_type: str) -> None:
    outcome = ask_for(kind, body, content_type=content_type)
    assert type(outcome.error) is ModelRejected
    assert body.decode().replace(" ", "") in str(outcome.error).replace(" ", "")
    assert "base_url" in str(outcome.error)


@both
def test_half_a_reply_is_worth_another_try(kind: str) -> None:
    body = json.dumps(COMPLETION if kind == "openai" else MESSAGE).encode()[:-9]
    outcome = ask_for(kind, body, content_type="application/json", times=5, requests=5)
    assert isinstance(outcome.error, ReplyBroken)
    outcome = ask_for(kind, body, Cut(), content_type="application/json", times=10, requests=10)
    assert "closed the connection" in str(outcome.error)


def test_errors_as_older_llama_servers_send_them() -> None:
    start = event({"choices": [{"delta": {"content": "Hello"}}]})
    line = b'error: {"code": 500, "message": "the slot is gone", "type": "server_error"}\n\n'
    outcome = ask_for("openai", start, line, content_type="")
    assert outcome.events == [Said("Hello")]
    assert "the slot is gone" in str(outcome.error)
    line = b'error: {"error": {"code": 400, "message": "too many tokens", "type": "invalid_request_error"}}\n\n'
    outcome = ask_for("openai", line, content_type="")
    assert isinstance(outcome.error, ModelRejected)
    assert "too many tokens" in str(outcome.error)
