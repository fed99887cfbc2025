"""The model's history: whatever has happened so far, any provider would take it."""

import random

import msgspec
import pytest

from crow import events
from crow.events import (
    CallOpened,
    CallRequested,
    CallSettled,
    ReplyEnded,
    SentText,
    TextDelta,
    ThoughtDelta,
    ThoughtSealed,
    TurnEnded,
    TurnStarted,
    UserSaid,
)
from crow.messages import AssistantMessage, StopReason, Text, ToolCall, ToolMessage, UserMessage
from crow.results import ToolKind, ToolResult
from crow.turn.history import FAILED, INTERRUPTED, UNANSWERED, History
from crow.turn.message_building import UNFINISHED
from tests.support.histories import assert_valid


def history(*happened: events.Event) -> History:
    fold = History()
    for event in happened:
        fold.apply(event)
    return fold


def said(text: str) -> UserSaid:
    return UserSaid("m", (SentText(text),), (Text(text),))


def opened(id: str) -> CallOpened:
    return CallOpened(id, "read", ToolKind.READ, "Read")


class Chance:
    """A random but possible sequence of events: what a turn may append, in the order it may."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.number = 0

    def next(self, prefix: str) -> str:
        self.number += 1
        return f"{prefix}{self.number}"

    def session(self) -> list[events.Event]:
        return [event for _ in range(self.random.randint(1, 4)) for event in self.turn()]

    def turn(self) -> list[events.Event]:
        id = self.next("t")
        happened: list[events.Event] = [TurnStarted(id), said(f"prompt {id}")]
        for _ in range(self.random.randint(0, 3)):
            happened += self.reply()
        if self.random.random() < 0.3:
            happened = happened[: self.random.randint(2, len(happened))]
        reason = self.random.choice([*StopReason, None])
        return [*happened, TurnEnded(id, reason, "" if reason else "it failed")]

    def reply(self) -> list[events.Event]:
        happened: list[events.Event] = []
        calls: list[str] = []
        for _ in range(self.random.randint(0, 5)):
            match self.random.choice(["text", "thought", "sealed", "call", "notice"]):
                case "text":
                    happened += [TextDelta(self.next("m"), self.random.choice(["", "word "]))]
                case "thought":
                    happened += [ThoughtDelta(self.next("m"), self.random.choice(["", "hm "]), "p")]
                case "sealed":
                    happened += [ThoughtSealed(self.next("m"), "p", "seal", redacted=True)]
                case "call":
                    calls.append(self.next("c"))
                    happened += [opened(calls[-1]), events.ArgumentsGrew(calls[-1], "{}")]
                case "notice":
                    happened += [events.Notice("info", "by the way")]
        requested = calls if self.random.random() < 0.7 else []
        happened += [CallRequested(call, "read", "{}") for call in requested]
        self.random.shuffle(calls)
        happened += [CallSettled(call, ToolResult(ok=True, text=f"result of {call}")) for call in calls]
        return [*happened, ReplyEnded()]


@pytest.mark.rule("R75")
@pytest.mark.parametrize("seed", range(40))
def test_every_prefix_of_everything_that_can_happen_is_a_valid_history(seed):
    fold = History()
    for event in Chance(seed).session():
        fold.apply(event)
        assert_valid(msgspec.to_builtins(fold.messages()))


@pytest.mark.rule("R75")
def test_a_whole_round():
    fold = history(
        TurnStarted("t1"),
        said("read it"),
        TextDelta("m1", "Let me "),
        TextDelta("m1", "look."),
        opened("c1"),
        CallRequested("c1", "read", '{"path":"a"}'),
        CallSettled("c1", ToolResult(ok=True, text="1\tone")),
        ReplyEnded(),
        TextDelta("m2", "One."),
        ReplyEnded(),
        TurnEnded("t1", StopReason.END_TURN),
    )
    assert fold.messages() == [
        UserMessage((Text("read it"),)),
        AssistantMessage((Text("Let me look."), ToolCall("c1", "read", '{"path":"a"}'))),
        ToolMessage("c1", "1\tone"),
        AssistantMessage((Text("One."),)),
    ]


@pytest.mark.rule("R75")
def test_a_call_without_a_result_gets_one_and_a_half_arrived_call_is_none():
    fold = history(said("x"), opened("c1"), CallRequested("c1", "read", "{}"), opened("c2"))
    assert fold.messages()[1:] == [
        AssistantMessage((ToolCall("c1", "read", "{}"),)),
        ToolMessage("c1", UNFINISHED, ok=False),
    ]


@pytest.mark.rule("R75")
@pytest.mark.parametrize(
    ("reason", "reply", "remark"),
    [
        (StopReason.CANCELLED, True, INTERRUPTED),
        (StopReason.CANCELLED, False, UNANSWERED),
        (None, True, FAILED),
        (None, False, UNANSWERED),
    ],
)
def test_the_next_prompt_says_how_the_last_one_ended(reason, reply, remark):
    middle = [TextDelta("m", "Well"), ReplyEnded()] if reply else []
    fold = history(TurnStarted("t1"), said("one"), *middle, TurnEnded("t1", reason), TurnStarted("t2"), said("two"))
    last = fold.messages()[-1]
    assert isinstance(last, UserMessage)
    assert last.parts[-2:] == (Text(remark), Text("two"))


@pytest.mark.rule("R60")
def test_a_refused_turn_is_dropped_with_everything_in_it():
    first = [
        TurnStarted("t1"),
        said("one"),
        TextDelta("m1", "Fine."),
        ReplyEnded(),
        TurnEnded("t1", StopReason.END_TURN),
    ]
    refused = [
        TurnStarted("t2"),
        said("bad"),
        TextDelta("m2", "No."),
        ReplyEnded(),
        TurnEnded("t2", StopReason.REFUSAL),
    ]
    assert history(*first, *refused).messages() == history(*first).messages()
