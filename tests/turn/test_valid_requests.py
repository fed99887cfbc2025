"""Whatever happened, and wherever it was cut off: the strictest server of each wire takes the next request."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from crow.events import CallSettled, Event, ReplyEnded, SentText, TurnEnded, TurnStarted, UserSaid
from crow.messages import Message, StopReason, Text
from crow.model.base import ModelInfo, ModelRequest
from crow.model.wires import anthropic, chat_request, responses
from crow.model.wires.dialects import dialect_of
from crow.results import ToolResult
from crow.session.recovery import missing_ends
from crow.turn.history import History
from tests.model.asking import READ
from tests.support.provider_anthropic import seal
from tests.support.stories import SHAPES, VENDORS, Story
from tests.support.wire_rules import check_chat, check_messages, check_responses

Judge = Callable[[list[Message]], None]
ANY_ID = re.compile(r"\S+")


def request(messages: list[Message], level: str = "") -> ModelRequest:
    return ModelRequest("Be brief.", messages, [READ], level, "a-session")


def info(vendor: str) -> ModelInfo:
    known = VENDORS[vendor]
    return ModelInfo(known.provider, known.model, max_output=8_000, images=True)


def on_messages(vendor: str, level: str = "", *refused: str, sealed: bool = True) -> Judge:
    def judge(messages: list[Message]) -> None:
        body = anthropic.encode(info(vendor), request(messages, level), refused=refused)
        check_messages(json.loads(body), seal=seal if sealed else None)

    return judge


def on_chat(vendor: str, host: str, **rules: Any) -> Judge:
    def judge(messages: list[Message]) -> None:
        body = chat_request.encode(info(vendor), request(messages), dialect_of(f"https://{host}/v1"))
        check_chat(json.loads(body), **rules)

    return judge


def on_responses(messages: list[Message]) -> None:
    check_responses(json.loads(responses.encode(info("gpt"), request(messages), ())))


JUDGES: dict[str, Judge] = {
    "claude": on_messages("claude"),
    "older claude": on_messages("older claude", "high"),
    "copy of claude": on_messages("copy of claude", "", "missing thoughts", sealed=False),
    "chat": on_chat("chat", "127.0.0.1"),
    "deepseek": on_chat("chat", "api.deepseek.com"),
    "mistral": on_chat("mistral", "api.mistral.ai", bridged=True),
    "gateway": on_chat("gateway", "openrouter.ai", ids=ANY_ID),
    "gemini": on_chat("gemini", "generativelanguage.googleapis.com"),
    "gpt": on_responses,
}


def fold(happened: list[Event]) -> History:
    history = History()
    for event in happened:
        history.apply(event)
    return history


def cancelled(happened: list[Event]) -> list[Event]:
    """The ends as a turn gives them that the person stops: each call is settled, then the reply and the turn."""
    ends = missing_ends(happened)
    stopped = ToolResult.failed("Interrupted by the user before it was done.", "Interrupted")
    settled: list[Event] = [CallSettled(end.call_id, stopped) for end in ends if isinstance(end, CallSettled)]
    turns = [TurnEnded(end.turn_id, StopReason.CANCELLED) for end in ends if isinstance(end, TurnEnded)]
    return [*settled, *([ReplyEnded()] if turns else []), *turns]


PROMPT: list[Event] = [TurnStarted("t99"), UserSaid("t99-m1", (SentText("Go on."),), (Text("Go on."),))]


def sent_after(happened: list[Event]) -> Iterator[list[Message]]:
    """What would be sent if it were cut here: killed and loaded again, stopped by the person, or asked on the spot."""
    for ends in (missing_ends(happened), cancelled(happened)):
        yield fold([*happened, *ends, *PROMPT]).to_send()
    if on_the_spot := fold(happened).to_send():
        yield on_the_spot


def histories() -> Iterator[tuple[str, str]]:
    """Each shape with vendors whose thoughts differ; the one in which all of them answer needs no other."""
    for number, shape in enumerate(SHAPES):
        names = list(VENDORS) if shape != "switched" else ["claude"]
        yield from ((shape, name) for place, name in enumerate(names) if len(names) == 1 or (place + number) % 4 == 0)


def test_there_are_enough_of_them() -> None:
    assert len(list(histories())) >= 40


@pytest.mark.rule("R75")
@pytest.mark.parametrize(("shape", "vendor"), [*histories()])
def test_every_cut_of_every_history_is_taken_on_every_wire(shape: str, vendor: str) -> None:
    story = Story(VENDORS[vendor])
    SHAPES[shape](story)
    seen: set[tuple[Message, ...]] = set()
    for cut in range(1, len(story.events) + 1):
        for messages in sent_after(story.events[:cut]):
            if (key := tuple(messages)) in seen:
                continue
            seen.add(key)
            for name, judge in JUDGES.items():
                try:
                    judge(messages)
                except Exception as error:
                    error.add_note(f"{shape} of {vendor}, cut after {cut} ({story.events[cut - 1]}), sent to {name}")
                    raise
