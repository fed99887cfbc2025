"""What one refusal teaches: the same request is sent again in another way, at once, and never again in the old one."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from crow.config.settings import Limits
from crow.errors import ModelRejected
from crow.messages import StopReason
from crow.model import catalog
from crow.model.base import Done, Model, ModelEvent, ModelRequest, Noticed, Said, Waiting
from crow.model.endpoint import Endpoint
from crow.model.provider_errors import from_status
from crow.model.scripted import Fail, ScriptedModel, reply
from crow.model.wires.http_model import Learned, RefusalPattern
from tests.model.asking import HELLO, ask, ask_all, run
from tests.support.models import session_model
from tests.support.provider import Provider
from tests.support.provider_dialect import event

DONE = Done(StopReason.END_TURN)
NO_USAGE = "Unrecognized request argument supplied: stream_options"


def refused(said: str, status: int = 400) -> ModelRejected:
    error = from_status("house", status, said)
    assert isinstance(error, ModelRejected)
    return error


TABLE = (
    RefusalPattern("first", "a word"),
    RefusalPattern("second", "A WORD"),
    RefusalPattern("level", "effort", "{provider} knows no {level} for {model}.", of_level=True),
    RefusalPattern("pictures", "image", statuses=(404,)),
)


def test_a_refusal_teaches_the_first_thing_that_is_not_known_yet() -> None:
    learned = Learned(Endpoint("house", "http://127.0.0.1:1/a"), "m")
    assert learned.learn(refused("This has a word too many."), TABLE) == ""
    assert "first" in learned
    assert "second" not in learned
    assert learned.learn(refused("a word"), TABLE) == ""
    assert "second" in learned
    assert learned.learn(refused("a word"), TABLE) is None


def test_what_is_learned_of_a_level_counts_for_that_level() -> None:
    learned = Learned(Endpoint("house", "http://127.0.0.1:1/b"), "m")
    assert learned.learn(refused("no such effort"), TABLE, "max") == "house knows no max for m."
    assert ("level max" in learned, "level high" in learned, "level" in learned) == (True, False, False)


@pytest.mark.parametrize(("status", "said"), [(400, "image"), (404, "a word"), (400, "prompt is too long: a word")])
def test_what_teaches_nothing(status: int, said: str) -> None:
    learned = Learned(Endpoint("house", "http://127.0.0.1:1/c"), "m")
    assert learned.learn(refused(said, status), TABLE) is None


def test_every_session_of_the_process_knows_it() -> None:
    place = Endpoint("house", "http://127.0.0.1:1/d")
    Learned(place, "m").learn(refused("a word"), TABLE)
    assert "first" in Learned(Endpoint("other name", place.url), "m")
    assert "first" not in Learned(place, "another")


def model_of(provider: Provider) -> Model:
    return catalog.create("house/m", {"house": provider.openai.settings()}, Limits(), {})


def asked_for_usage(provider: Provider) -> list[bool]:
    return ["stream_options" in request.body for request in provider.openai.requests]


def test_a_second_model_object_does_not_make_the_mistake_again() -> None:
    with Provider() as provider:
        provider.openai.fail(400, NO_USAGE)
        for _ in range(3):
            provider.openai.answer("Hi")
        first = run(ask_all(model_of(provider), *[ModelRequest("", HELLO)] * 2))
        second = run(ask_all(model_of(provider), ModelRequest("", HELLO)))
        assert [outcome.events for outcome in (*first, *second)] == [[Said("Hi"), DONE]] * 3
        assert asked_for_usage(provider) == [True, False, False, False]


def test_the_same_refusal_twice_is_told() -> None:
    with Provider() as provider:
        provider.openai.fail(400, NO_USAGE, times=2)
        assert isinstance(ask(model_of(provider)).error, ModelRejected)
        assert asked_for_usage(provider) == [True, False]


def test_nothing_is_sent_again_once_something_was_shown() -> None:
    with Provider() as provider:
        text: Any = {"choices": [{"index": 0, "delta": {"content": "Half"}}]}
        complaint = {"error": {"message": NO_USAGE, "type": "invalid_request_error"}}
        provider.openai.send(event(text), event(complaint))
        outcome = ask(model_of(provider))
        assert outcome.events == [Said("Half")]
        assert isinstance(outcome.error, ModelRejected)
        assert len(provider.openai.requests) == 1


def test_a_notice_is_no_part_of_a_reply_that_could_break_off() -> None:
    class Noticing(ScriptedModel):
        async def reply(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
            yield Noticed("Less than was asked for.")
            async for said in super().reply(request):
                yield said

    async def at_once(seconds: float) -> None:
        pass

    model = session_model(Noticing([reply(Fail(503)), reply("Hi")]), Limits(), sleep=at_once)
    assert [type(heard) for heard in ask(model).events] == [Noticed, Waiting, Noticed, Said, Done]
