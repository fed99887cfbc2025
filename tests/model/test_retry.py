import asyncio
from collections.abc import AsyncGenerator

import pytest

from crow.config.settings import Limits
from crow.errors import ModelUnavailable, ReplyBroken
from crow.messages import StopReason
from crow.model.base import Done, ModelEvent, ModelInfo, ModelRequest, Said, Waiting
from crow.model.scripted import Fail, ScriptedModel, reply
from crow.session.session_model import SessionModel
from tests.model.asking import HELLO, ask, run
from tests.support.models import session_model


def retrying(*replies: object, budget: float = 120, chance: float = 1.0) -> tuple[SessionModel, list[float]]:
    waits: list[float] = []

    async def pretend(seconds: float) -> None:
        waits.append(seconds)

    scripted = ScriptedModel([reply(event) for event in replies])  # type: ignore[arg-type]
    return session_model(scripted, Limits(retry_wait=budget), sleep=pretend, chance=lambda: chance), waits


def test_waits_double_and_jitter_only_shortens_them() -> None:
    calm, calm_waits = retrying(*[Fail(503)] * 50)
    hasty, hasty_waits = retrying(*[Fail(503)] * 50, chance=0.0)
    assert "Gave up after 10 attempts" in str(ask(calm).error)
    assert "Gave up after 14 attempts" in str(ask(hasty).error)
    assert calm_waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 28.5]
    assert hasty_waits[:4] == [0.25, 0.5, 1.0, 2.0]
    assert sum(hasty_waits) == 120


def test_what_rarely_mends_itself_gets_few_attempts() -> None:
    model, waits = retrying(*[Fail()] * 50)
    scripted = model._choice.create()  # pyright: ignore[reportPrivateUsage]
    assert isinstance(scripted, ScriptedModel)
    plain = scripted._error  # pyright: ignore[reportPrivateUsage]

    def lasting(event: Fail) -> Exception:
        error = plain(event)
        assert isinstance(error, ReplyBroken)
        error.is_lasting = True
        return error

    scripted._error = lasting  # type: ignore[method-assign]
    assert "Gave up after 5 attempts" in str(ask(model).error)
    assert waits == [0.5, 1.0, 2.0, 4.0]


def test_says_why_and_how_long_it_waits() -> None:
    model, _ = retrying(Fail(529, "busy"), "Hello")
    assert ask(model).events == [
        Waiting("scripted answered 529 (Overloaded): busy.", 0.5, attempt=2),
        Said("Hello"),
        Done(StopReason.END_TURN),
    ]


def test_waiting_has_a_budget() -> None:
    model, waits = retrying(*[Fail(503)] * 50, budget=2)
    assert "Gave up after 6 attempts" in str(ask(model).error)
    assert waits == [0.125, 0.25, 0.5, 1.0, 0.125]


def test_no_budget_means_no_second_attempt() -> None:
    model, waits = retrying(Fail(503), "Hello", budget=0)
    assert isinstance(ask(model).error, ModelUnavailable)
    assert waits == []


def test_what_was_shown_is_not_asked_for_again() -> None:
    model, waits = retrying(Fail(after_text="Half of a"), "Hello")
    outcome = ask(model)
    assert outcome.events == [Said("Half of a")]
    assert isinstance(outcome.error, ReplyBroken)
    assert waits == []


class Endless:
    """Never stops talking; knows whether it was told to."""

    info = ModelInfo("test", "endless")

    def __init__(self) -> None:
        self.closed = False

    async def reply(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        try:
            while True:
                yield Said("and ")
                await asyncio.sleep(0)
        finally:
            self.closed = True

    async def close(self) -> None:
        pass


def test_closing_the_reply_ends_the_request_at_once() -> None:
    async def leave_early() -> bool:
        endless = Endless()
        events = session_model(endless, Limits()).reply(ModelRequest("", HELLO))
        await anext(events)
        await events.aclose()
        return endless.closed

    assert run(leave_early())


def test_cancelling_while_it_waits_ends_it() -> None:
    async def cancel() -> None:
        model = session_model(ScriptedModel([reply(Fail(503, retry_after=100))]), Limits())

        async def consume() -> None:
            async for _ in model.reply(ModelRequest("", HELLO)):
                pass

        task = asyncio.create_task(consume())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(cancel())
