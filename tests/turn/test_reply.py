"""A reply as events for the journal, and what of it the history keeps for its provider."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence

from crow import events
from crow.config.settings import Limits
from crow.events import TextDelta
from crow.messages import AssistantMessage, Message, ProviderData, StopReason, Text, Thought, ToolCall
from crow.model import base as model
from crow.model import catalog
from crow.model.base import ModelInfo
from crow.tools.toolbox import Toolbox
from crow.turn.conversation import TurnIds
from crow.turn.history import History
from crow.turn.reply import Reply
from crow.turn.waits import Wait
from tests.support.provider import Provider
from tests.turn.talk import Talk

INFO = ModelInfo("vendor", "thinker")


class NoWait(Wait):
    def __init__(self) -> None:
        pass

    def heard(self) -> None:
        pass


def replied(*stream: model.ModelEvent) -> list[events.Event]:
    async def arriving() -> AsyncGenerator[model.ModelEvent]:
        for event in stream:
            yield event

    async def read() -> list[events.Event]:
        reply = Reply(TurnIds("t1"), INFO, Toolbox([]))
        async with contextlib.aclosing(reply.read(arriving(), NoWait())) as happened:
            return [event async for event in happened]

    return asyncio.run(read())


def history(happened: Sequence[events.Event]) -> list[Message]:
    fold = History()
    for event in happened:
        fold.apply(event)
    return fold.messages()


def kept(data: str) -> ProviderData:
    return ProviderData("vendor", "thinker", data)


def test_what_a_provider_attaches_stays_with_its_part():
    happened = replied(
        model.Thinking("so", "reasoning"),
        model.ThoughtData("[1]"),
        model.Said("then"),
        model.TextData("[2]"),
        model.CallBegan(0, "read"),
        model.CallData(0, "[3]"),
    )
    call = events.CallRequested("t1-c1", "read", "{}")
    reply = history([*happened, call])[0]
    assert reply == AssistantMessage(
        (
            Thought("so", "vendor", model="thinker", field="reasoning", kept=kept("[1]")),
            Text("then", kept("[2]")),
            ToolCall("t1-c1", "read", "{}", kept("[3]")),
        )
    )


def test_sealed_thoughts_of_which_nothing_was_shown_are_thoughts_of_their_own():
    happened = replied(model.ThoughtData("[1]"), model.ThoughtData("[2]"), model.Said("done"))
    assert history(happened) == [
        AssistantMessage(
            (
                Thought("", "vendor", model="thinker", kept=kept("[1]")),
                Thought("", "vendor", model="thinker", kept=kept("[2]")),
                Text("done"),
            )
        )
    ]


def test_data_that_comes_after_the_text_belongs_to_the_thought_before_it():
    happened = replied(model.Thinking("so"), model.Said("done"), model.ThoughtData("[1]"))
    assert history(happened) == [
        AssistantMessage((Thought("so", "vendor", model="thinker", kept=kept("[1]")), Text("done")))
    ]


def test_the_cost_that_the_provider_tells_counts_and_what_it_notices_is_told():
    usage, remark = replied(
        model.Usage(10, 5, reasoning_tokens=3, cost=0.25, currency="USD"), model.Noticed("No pictures.")
    )
    assert usage == events.UsageReported(10, 5, cost=0.25, currency="USD", reasoning_tokens=3)
    assert remark == events.Remark("warning", "No pictures.")


def test_a_reply_that_its_provider_paused_is_sent_back_and_goes_on(tmp_path):
    async def talk() -> tuple[StopReason, list[list[str]], list[str]]:
        with Provider() as provider:
            provider.anthropic.answer("Let me look.", finish="pause_turn")
            provider.anthropic.check = lambda request: None
            provider.anthropic.answer("Found it.")
            talk = Talk(tmp_path, catalog.create("house/m", {"house": provider.anthropic.settings()}, Limits(), {}))
            reason = await talk.turn("Search.")
            await talk.model.close()
            bodies = [request.body["messages"] for request in provider.anthropic.requests]
            roles = [[message["role"] for message in messages] for messages in bodies]
            return reason, roles, [event.text for event in talk.of(TextDelta)]

    reason, roles, said = asyncio.run(talk())
    assert reason is StopReason.END_TURN
    assert roles == [["user"], ["user", "assistant"]]
    assert "".join(said) == "Let me look.Found it."
