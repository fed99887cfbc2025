"""A reply as events for the journal, and what of it the history keeps for its provider."""

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, Sequence

import pytest
from msgspec.structs import replace

from crow import events
from crow.config.settings import Limits, ProviderSettings
from crow.events import TextDelta, TurnIds
from crow.messages import AssistantMessage, Message, ProviderData, StopReason, Text, Thought, ToolCall, UserMessage
from crow.model import base as model
from crow.model import catalog, scripted
from crow.model.base import ModelInfo, ModelRequest
from crow.model.wires import anthropic, chat_request, responses
from crow.model.wires.dialects import Dialect
from crow.tools.base import Toolbox
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


def replied(*stream: model.ModelEvent, info: ModelInfo = INFO) -> list[events.Event]:
    async def arriving() -> AsyncGenerator[model.ModelEvent]:
        for event in stream:
            yield event

    async def read() -> list[events.Event]:
        reply = Reply(TurnIds("t1"), info, Toolbox([]))
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


def written(wire: str, info: ModelInfo, messages: Sequence[Message]) -> str:
    request = ModelRequest("", [*messages, UserMessage((Text("Go on."),))])
    match wire:
        case "chat":
            return chat_request.encode(info, request, Dialect(), ()).decode()
        case "responses":
            return responses.encode(info, request, ()).decode()
        case _:
            return anthropic.encode(info, request).decode()


WIRES = {
    "chat": [model.Thinking("HM", "reasoning_content"), model.ThoughtData('{"reasoning_details":[{"data":"SEAL"}]}')],
    "responses": [model.ThoughtData('{"type":"reasoning","summary":[],"encrypted_content":"SEAL"}')],
    "anthropic": [model.Thinking("HM"), model.ThinkingSealed("SEAL"), model.ThinkingSealed("SEAL", redacted=True)],
}


@pytest.mark.parametrize("wire", WIRES)
def test_thoughts_go_back_to_the_model_and_the_address_they_came_from(wire):
    info = ModelInfo("vendor", "thinker", host="api.one.example")
    happened = replied(*WIRES[wire], model.Said("Hello."), info=info)
    messages = history(happened)
    assert "SEAL" in written(wire, info, messages)
    for other in (replace(info, host="api.two.example"), replace(info, model="writer"), replace(info, provider="else")):
        assert not re.search("SEAL|HM", written(wire, other, messages))
    # as in sessions from before the host was stored
    assert "SEAL" in written(wire, info, history([_without_host(event) for event in happened]))


def _without_host(event: events.Event) -> events.Event:
    match event:
        case events.ThoughtDelta() | events.ThoughtSealed():
            return replace(event, host="")
        case events.ProviderDataKept():
            return replace(event, kept=replace(event.kept, host=""))
        case _:
            return event


def test_the_host_of_a_provider_is_that_of_its_address():
    for url, host in {
        "https://name:word@API.one.example:8443/v1?key=x": "api.one.example:8443",
        "http://[::1]:9/v1": "[::1]:9",
        "": "api.openai.com",
    }.items():
        assert catalog.to_be_used("x/m", {"x": ProviderSettings(type="openai", base_url=url)}).host == host


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


def test_a_provider_that_always_pauses_is_not_asked_for_ever(tmp_path):
    async def talk() -> tuple[StopReason, int, list[str]]:
        with Provider() as provider:
            provider.anthropic.check = lambda request: None
            for _ in range(10):
                provider.anthropic.answer("Wait.", finish="pause_turn")
            talk = Talk(tmp_path, catalog.create("house/m", {"house": provider.anthropic.settings()}, Limits(), {}))
            reason = await talk.turn("Search.")
            await talk.model.close()
            return reason, len(provider.anthropic.requests), [remark.title for remark in talk.of(events.Remark)]

    reason, requests, remarks = asyncio.run(talk())
    assert (reason, requests) == (StopReason.END_TURN, 6)
    assert remarks == ["house/m paused its reply 6 times in a row, so the turn stopped."]


BLANKS = [
    " ",
    "\n\n \t",
    "\u00a0",
    "\u200b",
    "\u200b\u2060\ufeff",
    "\u2800",
    "\u3164",
    "\u00ad",
    "\U000e0041",
    "\u202e",
    "\x00",
]


@pytest.mark.parametrize("thought", ["", "Hm."], ids=["alone", "after a thought"])
def test_a_reply_of_which_nothing_can_be_seen_is_told_like_one_without_a_word(tmp_path, thought):
    async def talk() -> Talk:
        replies = [scripted.reply(*([scripted.Think(thought)] if thought else []), blank) for blank in BLANKS]
        talk = Talk(tmp_path, [*replies, scripted.reply("Hello.")])
        for _ in range(len(BLANKS) + 1):
            assert await talk.turn("Hi.") is StopReason.END_TURN
        return talk

    silent = "scripted/test ended its turn without a reply."
    talked = asyncio.run(talk())
    assert [remark.title for remark in talked.of(events.Remark)] == [silent] * len(BLANKS)
    # Nor is any of it sent back.
    said = [part.text for message in talked.history.messages() for part in message.parts if isinstance(part, Text)]  # type: ignore[union-attr]
    assert not set(BLANKS).intersection(said)
