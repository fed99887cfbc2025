"""Where a token becomes an update: when it is sent at once, and when it waits for company."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from crow.acp import wire
from crow.acp.sink import FRAME, UpdateSink
from crow.events import Event, Notice, TextDelta, ThoughtDelta, TurnEnded, TurnStarted
from crow.messages import StopReason


class Clock:
    """An event loop's clock, as far as the sink looks at it, that is moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._due: list[tuple[float, Any, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, action: Callable[[], None]) -> Any:
        class Handle:
            cancelled = False

            def cancel(self) -> None:
                self.cancelled = True

        handle = Handle()
        self._due.append((when, handle, action))
        return handle

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        due, self._due = [d for d in self._due if d[0] <= self.now], [d for d in self._due if d[0] > self.now]
        for _, handle, action in due:
            if not handle.cancelled:
                action()


class Wire:
    """A connection that keeps what it is given."""

    has_room = True

    def __init__(self) -> None:
        self.sent: list[str] = []

    def notify(self, method: str, params: wire.SessionNotification) -> None:
        match params.update:
            case wire.AgentMessageChunk(content=wire.TextContent(text=text)):
                self.sent.append(text)
            case wire.AgentThoughtChunk(content=wire.TextContent(text=text)):
                self.sent.append(f"({text})")
            case wire.Notice(title=title):
                self.sent.append(f"! {title}")


@pytest.fixture
def sink():
    async def make() -> UpdateSink:
        return UpdateSink(Wire(), "s", takes_notices=True)  # pyright: ignore[reportArgumentType]

    made = asyncio.run(make())
    made._loop = Clock()  # pyright: ignore[reportAttributeAccessIssue]
    return made


def feed(sink: UpdateSink, *steps: Event | float) -> list[str]:
    """Events, and seconds that pass between them; what was sent by the end."""
    for step in steps:
        if isinstance(step, float | int):
            sink._loop.pass_time(step)  # pyright: ignore[reportAttributeAccessIssue]
        else:
            sink.take(step)
    return sink._connection.sent  # pyright: ignore[reportAttributeAccessIssue]


def text(words: str, message: str = "m1") -> TextDelta:
    return TextDelta(message, words)


@pytest.mark.rule("R78")
def test_a_lone_delta_goes_out_at_once(sink):
    assert feed(sink, text("a")) == ["a"]


@pytest.mark.rule("R78")
def test_deltas_slower_than_a_screen_are_never_held_back(sink):
    assert feed(sink, text("a"), 0.02, text("b"), 0.016, text("c")) == ["a", "b", "c"]


@pytest.mark.rule("R78")
def test_faster_ones_join_the_next_chunk_which_comes_in_time(sink):
    assert feed(sink, text("a"), 0.001, text("b"), 0.001, text("c")) == ["a"]
    assert feed(sink, FRAME - 0.001) == ["a", "bc"]


@pytest.mark.rule("R78")
def test_a_steady_flood_gives_a_chunk_a_frame(sink):
    sent = feed(sink, *(step for number in range(1000) for step in (text(f"{number} "), 0.001)), FRAME)
    assert "".join(sent) == "".join(f"{number} " for number in range(1000))
    assert 55 <= len(sent) <= 65


@pytest.mark.rule("R78", "R80")
def test_another_message_first_sends_what_came_before_it(sink):
    assert feed(sink, text("a"), text("b"), ThoughtDelta("m2", "hm", "p"), FRAME) == ["a", "b", "(hm)"]


@pytest.mark.rule("R58", "R78")
def test_the_end_of_the_turn_sends_what_waits(sink):
    end = TurnEnded("t1", StopReason.END_TURN)
    assert feed(sink, TurnStarted("t1"), text("a"), text("b"), end) == ["a", "b"]
    assert feed(sink, 1.0) == ["a", "b"]


@pytest.mark.rule("R78", "R160")
def test_a_notice_keeps_its_place_in_the_text(sink):
    assert feed(sink, text("a"), text("b"), Notice("info", "wait"), text("c"), FRAME) == ["a", "b", "! wait", "c"]
