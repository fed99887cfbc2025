"""A reply that breaks off in the middle: what had come stays, and the model is asked for the rest."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crow.config.settings import Limits
from crow.errors import ModelUnavailable, ReplyBroken
from crow.events import CallSettled, Remark, ReplyCut, Retrying, TextDelta
from crow.messages import Message, StopReason, Text, UserMessage
from crow.model import catalog
from crow.model.base import FEW_ATTEMPTS
from crow.model.scripted import Call, Fail, ScriptedModel, Think, reply
from crow.turn.history import CUT_OFF
from tests.support.models import session_model
from tests.support.provider import Cut, Provider
from tests.support.provider_dialect import Dialect
from tests.turn.talk import Talk

BRIEF = Limits(retry_wait=0.1)
KINDS = ("openai", "responses", "anthropic")


def play(
    folder: Path, kind: str, answers: Callable[[Dialect], object], *prompts: str, fails: str = ""
) -> tuple[Talk, list[Any]]:
    """The talk, and the bodies of what the provider was asked. `fails`: how the error reads that the turn ends with."""
    (folder / "a").write_text("line\n")

    async def talk() -> tuple[Talk, list[Any]]:
        with Provider() as provider:
            dialect: Dialect = getattr(provider, kind)
            answers(dialect)
            model = catalog.create("house/m", {"house": dialect.settings()}, BRIEF, {})
            talk = Talk(folder, session_model(model, BRIEF), limits=BRIEF)
            try:
                with pytest.raises(ModelUnavailable, match=fails) if fails else contextlib.nullcontext():
                    for prompt in prompts or ("Hi.",):
                        assert await talk.turn(prompt) is StopReason.END_TURN
            finally:
                await talk.model.close()
            return talk, [request.body for request in dialect.requests]

    return asyncio.run(talk())


PIECES = ("One ", "two ", "three ")


def said(talk: Talk) -> str:
    return "".join(event.text for event in talk.of(TextDelta))


@pytest.mark.parametrize("kind", KINDS)
def test_the_rest_of_a_reply_that_was_cut_is_asked_for(tmp_path, kind):
    def answers(dialect: Dialect) -> None:
        dialect.answer("Half of a", then=Cut())
        dialect.answer("n answer.")
        dialect.answer("Fine.")

    talk, bodies = play(tmp_path, kind, answers, "Hi.", "And now?")
    assert said(talk) == "Half of an answer.Fine."
    assert len(bodies) == 3
    [retrying] = talk.of(Retrying)
    assert "The reply was cut off: house closed the connection" in retrying.title
    assert "Trying again" in retrying.title
    first, asked, rest = talk.history.messages()[1:4]
    assert (words(first), words(rest)) == ("Half of a", "n answer.")
    assert asked == UserMessage((Text(CUT_OFF),))
    # What comes later does not change what the provider has read.
    items = [body.get("messages") or body["input"] for body in bodies]
    assert [_without_markers(item) for item in items[2][: len(items[1])]] == list(map(_without_markers, items[1]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_begins_anew_is_neither_shown_nor_kept_twice(tmp_path, kind):
    def answers(dialect: Dialect) -> None:
        dialect.answer("Half of a", then=Cut())
        dialect.answer("Half ", then=Cut())
        dialect.answer("Half of an ans", then=Cut())
        dialect.answer("Half of an answer.")

    talk, bodies = play(tmp_path, kind, answers, "Hi.")
    assert said(talk) == "Half of an answer."
    assert len({event.message_id for event in talk.of(TextDelta)}) == 1
    assert len(bodies) == 4
    pieces = [words(message) for message in talk.history.messages() if not isinstance(message, UserMessage)]
    assert pieces == ["Half of a", "n ans", "wer."]


def test_a_reply_that_is_all_said_again_is_no_silent_one(tmp_path):
    def answers(dialect: Dialect) -> None:
        dialect.answer("All of it.", then=Cut())
        dialect.answer("All of it.")

    talk, _ = play(tmp_path, KINDS[0], answers, "Hi.")
    assert said(talk) == "All of it."
    assert [remark.title for remark in talk.of(Remark)] == []


def test_what_only_begins_like_the_text_before_is_shown(tmp_path):
    def answers(dialect: Dialect) -> None:
        dialect.answer("Half of a", then=Cut())
        dialect.answer("Half of them went.")

    talk, _ = play(tmp_path, KINDS[0], answers, "Hi.")
    assert said(talk) == "Half of aHalf of them went."


def words(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))  # type: ignore[union-attr]


def _without_markers(item: Any) -> Any:
    if isinstance(item, dict):
        return {name: _without_markers(value) for name, value in item.items() if name != "cache_control"}
    return list(map(_without_markers, item)) if isinstance(item, list) else item


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_that_was_cut_is_not_run_and_can_be_made_again(tmp_path, kind):
    def answers(dialect: Dialect) -> None:
        dialect.answer("Let me look.", Call("read", raw='{"path": "a'), then=Cut())
        dialect.answer(Call("read", {"path": "a"}))
        dialect.answer("It has one line.")

    talk, _ = play(tmp_path, kind, answers)
    assert said(talk) == "Let me look.It has one line."
    assert [event.result.ok for event in talk.of(CallSettled)] == [False, True]


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_of_a_reply_that_was_cut_in_its_first_thought_nothing_is_kept(tmp_path, kind):
    def answers(dialect: Dialect) -> None:
        dialect.answer(Think("Hm"), then=Cut())
        dialect.answer("Hello.")

    talk, bodies = play(tmp_path, kind, answers)
    assert said(talk) == "Hello."
    assert bodies[0]["messages"] == bodies[1]["messages"]


@pytest.mark.parametrize("kind", KINDS)
def test_one_outage_has_one_budget_wherever_it_meets_the_replies(tmp_path, kind):
    """Cut again and again, and refused between: ever longer pauses, of which the sum is what the setting says."""

    def answers(dialect: Dialect) -> None:
        for piece in PIECES:
            dialect.answer(piece, then=Cut())
            dialect.fail(500, "oops")
        dialect.fail(500, "oops", times=100)

    talk, _ = play(tmp_path, kind, answers, fails=r"^Gave up after [0-9]+ attempts: house answered 500")
    assert sum(event.seconds for event in talk.of(Retrying)) == pytest.approx(BRIEF.retry_wait)
    assert len(talk.of(Retrying)) >= FEW_ATTEMPTS
    assert said(talk) == "".join(PIECES)


def test_a_reply_that_came_whole_ends_the_outage(tmp_path):
    def answers(dialect: Dialect) -> None:
        for number in range(20):
            dialect.answer(f"{number}", then=Cut())
            dialect.answer(Call("read", {"path": "a", "limit": number + 1}))
        dialect.answer("Done.")

    talk, _ = play(tmp_path, "openai", answers)
    assert {event.title[-12:] for event in talk.of(Retrying)} == {"(attempt 2)."}


def test_no_time_for_attempts_means_none(tmp_path):
    limits = Limits(retry_wait=0)
    script = ScriptedModel([reply(Fail(after_text="Half of a")), reply("Hello.")])
    talk = Talk(tmp_path, session_model(script, limits), limits=limits)
    with pytest.raises(ReplyBroken, match=r"^The reply was cut off"):
        asyncio.run(talk.turn("Hi."))
    assert said(talk) == "Half of a"


@pytest.mark.parametrize(
    "beginning",
    [pytest.param(Fail(after_text="Half"), id="a cut"), pytest.param(Fail(503, retry_after=10_000), id="a refusal")],
)
def test_a_cancel_ends_the_wait_at_once(tmp_path, beginning):
    async def cancel() -> Talk:
        script = ScriptedModel([reply(beginning), reply("Never.")])
        limits = Limits(retry_wait=16_000)
        talk = Talk(tmp_path, session_model(script, limits), limits=limits)
        turn = asyncio.create_task(talk.turn("Hi."))
        while not talk.of(Retrying) and not turn.done():  # noqa: ASYNC110 -- each step is one of the turn's
            await asyncio.sleep(0)
        turn.cancel()
        await asyncio.wait([turn])
        assert turn.cancelled()
        return talk

    talk = asyncio.run(cancel())
    assert not talk.of(ReplyCut)
    assert "Never." not in said(talk)
