"""A request that is refused as invalid: what the next one leaves out, what the person is told, what is remembered."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crow.config.settings import Limits, ModelSettings
from crow.errors import ModelRejected
from crow.events import HistorySimplified, Remark
from crow.messages import AssistantMessage, Message, StopReason, Text, Thought, ToolCall, ToolMessage, UserMessage
from crow.model import catalog
from crow.model.base import ModelInfo, ModelRequest
from crow.model.scripted import Call, Think
from crow.model.wires.anthropic import encode
from crow.model.wires.http_model import messages_named
from crow.turn.history import History
from tests.model.asking import READ
from tests.support.provider import Provider
from tests.support.provider_dialect import Request
from tests.support.wire_rules import insist
from tests.turn.talk import Talk

Check = Callable[[list[dict[str, Any]]], None]


def blocks(messages: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    return [(place, block) for place, message in enumerate(messages) for block in message["content"]]


class House:
    """A talk with a server of the messages wire that refuses what `check` says, besides what it always refuses."""

    def __init__(self, provider: Provider, folder: Path, check: Check) -> None:
        self.dialect = provider.anthropic
        strict = self.dialect.check

        def both(request: Request) -> None:
            strict(request)
            check(request.body["messages"])

        self.dialect.check = both  # type: ignore[method-assign]
        providers = {"house": self.dialect.settings(m=ModelSettings(images=True))}
        self.talk = Talk(folder, catalog.create("house/m", providers, Limits(), {}))

    def round(self) -> None:
        self.dialect.answer(Think("Hm."), "Let me look.", Call("read", {"path": "a"}))
        self.dialect.answer("It is empty.")

    @property
    def sent(self) -> list[list[dict[str, Any]]]:
        return [request.body["messages"] for request in self.dialect.requests]

    def remembered(self) -> list[HistorySimplified]:
        return self.talk.of(HistorySimplified)

    def told(self) -> list[str]:
        return [remark.title for remark in self.talk.of(Remark)]


def play(folder: Path, check: Check, *prompts: str, rounds: int = 1) -> House:
    (folder / "a").write_text("")

    async def talk() -> House:
        with Provider() as provider:
            house = House(provider, folder, check)
            for _ in range(rounds):
                house.round()
            for _ in prompts[rounds:]:
                house.dialect.answer("Fine.")
            try:
                for prompt in prompts:
                    assert await house.talk.turn(prompt) is StopReason.END_TURN
            finally:
                await house.talk.model.close()
            return house

    return asyncio.run(talk())


def play_refused(folder: Path, check: Check, words: str) -> House:
    """A turn that ends with the provider's refusal, after a round at most."""
    (folder / "a").write_text("")

    async def talk() -> House:
        with Provider() as provider:
            house = House(provider, folder, check)
            house.round()
            with pytest.raises(ModelRejected, match=words):
                await house.talk.turn("one")
            await house.talk.model.close()
            return house

    return asyncio.run(talk())


def refuses(kind: str, words: str = "messages.{place}.content.0: Invalid block `{kind}`") -> Check:
    def check(messages: list[dict[str, Any]]) -> None:
        for place, block in blocks(messages):
            insist(block["type"] != kind, words.format(place=place, kind=kind))

    return check


def assert_reloads(house: House) -> None:
    again = History()
    for event in house.talk.events:
        again.apply(event)
    assert again.messages() == house.talk.history.messages()


def test_thoughts_that_a_provider_never_takes_back_are_left_out_and_stay_out(tmp_path: Path) -> None:
    house = play(tmp_path, refuses("thinking"), "one", "two", "three")
    # The second round of the first turn was refused once; nothing was after that.
    assert len(house.sent) == 2 + 1 + 2
    assert house.remembered() == [HistorySimplified(thoughts=True)]
    assert house.told() == [
        "house rejected the conversation as it was: from now on the model's earlier thoughts are no longer sent."
    ]
    assert_reloads(house)


def test_a_model_whose_thoughts_are_refused_twice_gets_none_back(tmp_path: Path) -> None:
    house = play(tmp_path, refuses("thinking"), "one", "two", "three", rounds=3)
    assert house.remembered() == [HistorySimplified(thoughts=True), HistorySimplified(thoughts=True, model="house/m")]
    assert len(house.sent) == 3 * 2 + 2
    assert "house/m gets none of its thoughts back" in house.told()[1]
    assert_reloads(house)


def test_a_round_that_a_refusal_names_is_sent_as_text(tmp_path: Path) -> None:
    house = play(tmp_path, refuses("tool_use"), "one", "two")
    assert house.remembered() == [HistorySimplified(thoughts=True, flattened=(1, 2))]
    assert_reloads(house)
    last = house.sent[-1]
    assert [block["type"] for _, block in blocks(last)] == ["text"] * len(blocks(last))
    assert "Let me look." in str(last)
    assert "Crow called `read`" in str(last)


def test_everything_is_sent_as_text_where_nothing_is_named(tmp_path: Path) -> None:
    house = play(tmp_path, refuses("tool_result", "I do not know what a {kind} is."), "one", "two")
    assert house.remembered() == [HistorySimplified(thoughts=True, flattened=(1, 2))]
    assert "plain text" in house.told()[0]


def test_what_did_not_help_is_neither_told_nor_remembered(tmp_path: Path) -> None:
    def check(messages: list[dict[str, Any]]) -> None:
        insist(len(messages) == 1, "messages.1: it is Monday")

    house = play_refused(tmp_path, check, "it is Monday")
    assert house.remembered() == []
    assert house.told() == []
    assert len(house.sent) == 1 + 3  # as it was, without thoughts, and with the round as text
    assert any(isinstance(part, Thought) for message in house.talk.history.messages() for part in parts(message))


def parts(message: Message) -> tuple[Any, ...]:
    return message.parts if isinstance(message, AssistantMessage) else ()


@pytest.mark.parametrize("words", ["no such parameter: tools", "messages.0: too boring"])
def test_a_refusal_that_nothing_can_be_done_about_is_told_at_once(tmp_path: Path, words: str) -> None:
    house = play_refused(tmp_path, lambda _: insist(False, words), words)
    assert len(house.sent) == 1


def test_an_empty_account_is_no_fault_of_the_history(tmp_path: Path) -> None:
    def check(messages: list[dict[str, Any]]) -> None:
        insist(len(messages) == 1, "Your credit balance is too low to access the API.")

    assert len(play_refused(tmp_path, check, "credit balance").sent) == 2


# --- which message is meant

HISTORY: list[Message] = [
    UserMessage((Text("one"),)),
    AssistantMessage((ToolCall("c1", "read", "{}"), ToolCall("c2", "read", "{}"))),
    ToolMessage("c1", "x"),
    ToolMessage("c2", "y"),
    AssistantMessage((Text("Done."),)),
    UserMessage((Text("two"),)),
]


@pytest.mark.parametrize(
    ("said", "on_messages", "on_chat"),
    [
        ("messages.0: no", (0,), ()),
        ("messages.1.content.0.type: no", (1,), (0,)),
        ("messages.2: `tool_use` ids were found", (2, 3), (1,)),
        ("Invalid parameter: messages[3] has a role that", (4,), (2,)),
        ("reasoning_content is missing in assistant tool call message at index 4", (5,), (3,)),
        ("input[5]: no", (), (4,)),
        ("'messages.[6].content' is wrong", (), (5,)),
        ("messages.99: no", (), ()),
        ("max_tokens: 99 is too much", (), ()),
    ],
)
def test_the_message_that_is_named_is_found(said: str, on_messages: tuple[int, ...], on_chat: tuple[int, ...]) -> None:
    request = ModelRequest("Be brief.", HISTORY, [READ])
    assert messages_named(said, request, lambda request: encode(ModelInfo("house", "m"), request)) == on_messages
    assert messages_named(said, request, _chat) == on_chat


def _chat(request: ModelRequest) -> bytes:
    """As on a wire with the system prompt as the first message, and each message by itself."""
    return json.dumps({"messages": [None, *(None for _ in request.messages)]}).encode()
