"""Everything that can go wrong at a provider, through both adapters and the retry layer.

Each row: what the provider does, what comes of it, how many requests it took. An error is a class and words that
its text must have; events before it were shown and stay.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any, Literal

import pytest

from crow.config.settings import Limits
from crow.errors import ContextOverflow, ModelError, ModelRefusedKey, ModelRejected, ModelUnavailable, ReplyBroken
from crow.messages import StopReason
from crow.model.base import Done, Noticed, Said, Waiting
from crow.model.scripted import Call
from tests.model.asking import Called, ask_with_retries
from tests.support.ports import free_port
from tests.support.provider import Cut, Provider, Stall
from tests.support.provider_dialect import Dialect

DONE = Done(StopReason.END_TURN)
LIMITS = Limits(retry_wait=60, stream_idle=0.3)
HALF_JSON = b'data: {"type": "content_block_delta", "choices": [{"del'
JSON_ERROR = b'{"error": {"message": "slow down", "code": "rate_limit_exceeded"}}'
READ_A = Call("read", {"path": "a.py"}, pieces=4)
READ_B = Call("read", {"path": "b.py"}, pieces=6)


@dataclass(frozen=True)
class Fault:
    name: str
    provider_does: Callable[[Dialect], object]
    shown: tuple[Any, ...] = ()
    error: type[ModelError] | None = None
    words: tuple[str, ...] = ()
    requests: int = 1
    waits: tuple[float, ...] | None = None
    server: Literal["there", "gone", "untrusted"] = "there"
    kinds: tuple[str, ...] = ("openai", "anthropic")


def fails(status: int, message: str, error: type[ModelError], *words: str, requests: int = 1) -> Fault:
    return Fault(
        f"{status}",
        lambda p: p.fail(status, message, times=requests),
        error=error,
        words=(str(status), message, *words),
        requests=requests,
    )


def nothing(_: Dialect) -> None:
    pass


FAULTS = [
    # statuses that stay what they are
    fails(400, "no such parameter", ModelRejected, "would not help"),
    fails(401, "wrong key", ModelRefusedKey, "crow login", "providers.house.api_key"),
    fails(402, "pay first", ModelRejected, "credit"),
    fails(403, "not for you", ModelRefusedKey, "crow login"),
    fails(404, "no such model", ModelRejected, "base_url", "crow models"),
    fails(413, "too much", ContextOverflow, "/compact"),
    fails(418, "a teapot", ModelRejected),
    # statuses worth another try, for as long as the settings say: a minute here
    fails(408, "slow request", ModelUnavailable, "8 attempts", requests=8),
    fails(409, "conflict", ModelUnavailable, "8 attempts", requests=8),
    fails(425, "too early", ModelUnavailable, "8 attempts", requests=8),
    fails(429, "slow down", ModelUnavailable, "8 attempts", requests=8),
    fails(500, "oops", ModelUnavailable, "8 attempts", requests=8),
    fails(503, "restarting", ModelUnavailable, "8 attempts", requests=8),
    fails(529, "overloaded", ModelUnavailable, "8 attempts", requests=8),
    Fault("429 for an empty account", lambda p: p.fail(429, "You exceeded your current quota"), error=ModelRejected),
    Fault(
        "503, then well again",
        lambda p: (p.fail(503, "restarting", times=2), p.answer("Hello")),
        shown=(
            Waiting("house answered 503 (Service Unavailable): restarting.", 0.5, 2),
            Waiting("house answered 503 (Service Unavailable): restarting.", 1.0, 3),
            Said("Hello"),
            DONE,
        ),
        requests=3,
        waits=(0.5, 1.0),
    ),
    # Retry-After
    Fault(
        "429, Retry-After 7 s",
        lambda p: (p.fail(429, "slow down", retry_after=7), p.answer("Hello")),
        shown=(Waiting("house answered 429 (Too Many Requests): slow down.", 7.0, 2), Said("Hello"), DONE),
        requests=2,
        waits=(7.0,),
    ),
    Fault(
        "429, Retry-After longer than the budget",
        lambda p: p.fail(429, "slow down", retry_after=3600),
        error=ModelUnavailable,
        words=("429", "slow down", "wait 3600 s"),
        waits=(),
    ),
    Fault(
        "429, Retry-After twice, together longer than the budget",
        lambda p: p.fail(429, "slow down", retry_after=40, times=2),
        error=ModelUnavailable,
        words=("2 attempts", "asks to wait 40 s", "20 s that Crow waits"),
        requests=2,
        waits=(40.0,),
    ),
    Fault(
        "429, Retry-After as a date too far away",
        lambda p: p.fail(429, "slow down", retry_after=formatdate(time.time() + 900, usegmt=True)),
        error=ModelUnavailable,
        words=("429", "asks to wait"),
        waits=(),
    ),
    Fault(
        "429, Retry-After as a date just past",
        lambda p: (p.fail(429, "slow down", retry_after=formatdate(time.time() - 5, usegmt=True)), p.answer("Hello")),
        shown=(Waiting("house answered 429 (Too Many Requests): slow down.", 0.5, 2), Said("Hello"), DONE),
        requests=2,
    ),
    Fault(
        "429, Retry-After unreadable",
        lambda p: (p.fail(429, "slow down", retry_after="soon"), p.answer("Hello")),
        shown=(Waiting("house answered 429 (Too Many Requests): slow down.", 0.5, 2), Said("Hello"), DONE),
        requests=2,
    ),
    # connections
    Fault(
        "connection refused",
        nothing,
        error=ModelUnavailable,
        words=("refused the connection", "http://127.0.0.1:", "Is the server running", "5 attempts"),
        requests=0,
        waits=(0.5, 1.0, 2.0, 4.0),
        server="gone",
    ),
    Fault(
        "TLS failure",
        nothing,
        error=ModelRejected,
        words=("TLS", "certificate", "SSL_CERT_FILE"),
        requests=0,
        waits=(),
        server="untrusted",
    ),
    Fault(
        "hangs up without a word",
        lambda p: p.hang_up(8),
        error=ModelUnavailable,
        words=("closed", "8 attempts"),
        requests=8,
    ),
    Fault(
        "timeout: says nothing at all",
        lambda p: p.keep_silent(8),
        error=ModelUnavailable,
        words=("sent nothing for 0.3 s", "8 attempts"),
        requests=8,
    ),
    Fault(
        "idle stream before the first text",
        lambda p: (p.answer(then=Stall()), p.answer("Hello")),
        shown=(Waiting("house sent nothing for 0.3 s.", 0.5, 2), Said("Hello"), DONE),
        requests=2,
    ),
    Fault(
        "idle stream after the first text",
        lambda p: p.answer("Hello", then=Stall()),
        shown=(Said("Hello"),),
        error=ReplyBroken,
        words=("cut off", "sent nothing for 0.3 s"),
    ),
    Fault(
        "cut before the first text",
        lambda p: (p.answer(then=Cut()), p.answer("Hello")),
        shown=(Said("Hello"), DONE),
        requests=2,
    ),
    Fault(
        "cut after the first text",
        lambda p: p.answer("Hello", then=Cut()),
        shown=(Said("Hello"),),
        error=ReplyBroken,
        words=("closed the connection",),
    ),
    Fault(
        "cut in a tool call",
        lambda p: p.answer(Call("read", raw='{"path'), then=Cut()),
        shown=(Called("read", '{"path'),),
        error=ReplyBroken,
        words=("closed the connection",),
    ),
    # streams that are none
    Fault(
        "empty stream",
        lambda p: [p.send() for _ in range(5)],
        error=ReplyBroken,
        words=("empty reply", "5 attempts"),
        requests=5,
    ),
    Fault(
        "malformed SSE",
        lambda p: [p.send(b"<<< no events here >>>\n\n\n") for _ in range(5)],
        error=ReplyBroken,
        words=("empty reply", "5 attempts"),
        requests=5,
    ),
    Fault(
        "half a JSON",
        lambda p: [p.send(HALF_JSON) for _ in range(5)],
        error=ReplyBroken,
        words=("not part of a reply", "5 attempts"),
        requests=5,
    ),
    Fault(
        "half a JSON after the first text",
        lambda p: p.answer("Hello", then=HALF_JSON),
        shown=(Said("Hello"),),
        error=ReplyBroken,
        words=("not part of a reply",),
    ),
    Fault(
        "text and half a JSON in one packet",
        lambda p: p.send(b"".join((*p.opening(None), *p.spoken(("Hello",)), HALF_JSON))),
        shown=(Said("Hello"),),
        error=ReplyBroken,
        words=("not part of a reply",),
    ),
    Fault(
        "a clean end in the middle of the text",
        lambda p: p.answer("Hello", then=b": that was it\n\n"),
        shown=(Said("Hello"),),
        error=ReplyBroken,
        words=("an incomplete reply",),
    ),
    Fault(
        "a web page",
        lambda p: p.send(b"<html>Welcome!</html>", headers={"content-type": "text/html; charset=utf-8"}),
        error=ModelRejected,
        words=("web page", "base_url"),
    ),
    Fault(
        "200 with an error as JSON",
        lambda p: [p.send(JSON_ERROR, headers={"content-type": "application/json"}) for _ in range(8)],
        error=ModelUnavailable,
        words=("429", "slow down", "8 attempts"),
        requests=8,
    ),
    Fault(
        "an error inside the stream",
        lambda p: (p.send(*p.opening(None), _error(p, "overloaded_error")), p.answer("Hello")),
        shown=(Said("Hello"), DONE),
        requests=2,
    ),
    Fault(
        "an error inside the stream, after text",
        lambda p: p.answer("Hello", then=_error(p, "overloaded_error")),
        shown=(Said("Hello"),),
        error=ModelUnavailable,
        words=("cut off", "529", "too many of you"),
    ),
    Fault(
        "an error inside the stream that nobody knows",
        lambda p: p.answer("Hello", then=_error(p, "gremlins")),
        shown=(Said("Hello"),),
        error=ReplyBroken,
        words=("too many of you",),
    ),
    # replies that are whole, but odd
    Fault(
        "unknown finish reason of a reply that is whole",
        lambda p: p.answer("Hello", finish="mystery"),
        shown=(Said("Hello"), Noticed("house ended its reply for an unknown reason: mystery."), DONE),
    ),
    Fault(
        "unknown finish reason and nothing else",
        lambda p: [p.answer(finish="mystery") for _ in range(5)],
        error=ReplyBroken,
        words=("unknown", "'mystery'", "5 attempts"),
        requests=5,
    ),
    Fault(
        "a server that could not finish its reply",
        lambda p: (p.answer(finish="insufficient_system_resource"), p.answer("Hello")),
        shown=(Said("Hello"), DONE),
        requests=2,
        kinds=("openai",),
    ),
    Fault(
        "two calls interleaved by index",
        lambda p: p.answer(READ_A, READ_B, interleave=True),
        shown=(Called("read", '{"path":"a.py"}'), Called("read", '{"path":"b.py"}'), DONE),
    ),
    Fault(
        "duplicate call ids",
        lambda p: p.answer(READ_A, READ_B, call_ids=["same", "same"]),
        shown=(Called("read", '{"path":"a.py"}'), Called("read", '{"path":"b.py"}'), DONE),
    ),
    Fault(
        "arguments that are not JSON",
        lambda p: p.answer(Call("read", raw="{path: a.py")),
        shown=(Called("read", "{path: a.py"), DONE),
    ),
    Fault(
        "byte by byte",
        lambda p: p.answer("Grüße, 世界", READ_A, dribble=True),
        shown=(Said("Grüße, 世界"), Called("read", '{"path":"a.py"}'), DONE),
    ),
]


def _error(dialect: Dialect, kind: str) -> bytes:
    if dialect.type == "anthropic":
        return (
            b'event: error\ndata: {"type":"error","error":{"type":"%b","message":"too many of you"}}\n\n'
            % kind.encode()
        )
    return b'data: {"error":{"type":"%b","message":"too many of you"}}\n\n' % kind.encode()


@pytest.mark.parametrize(
    ("fault", "kind"),
    [pytest.param(fault, kind, id=f"{fault.name}-{kind}") for fault in FAULTS for kind in fault.kinds],
)
def test_fault(fault: Fault, kind: str) -> None:
    with Provider(key="sk-very-secret", tls=fault.server == "untrusted") as provider:
        dialect: Dialect = getattr(provider, kind)
        if fault.server == "gone":
            dialect.url = f"http://127.0.0.1:{free_port()}"
        fault.provider_does(dialect)
        outcome = ask_with_retries("house/model", {"house": dialect.settings()}, LIMITS)

        events = outcome.events
        if not any(isinstance(event, Waiting) for event in fault.shown):
            events = [event for event in events if not isinstance(event, Waiting)]
        assert events == list(fault.shown)
        assert type(outcome.error) is (fault.error or type(None))
        for word in fault.words:
            assert word in str(outcome.error)
        assert "sk-very-secret" not in str(outcome.error)
        assert len(dialect.requests) == fault.requests
        if fault.waits is not None:
            assert outcome.waits == list(fault.waits)
