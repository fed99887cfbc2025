"""Where a token becomes an update: when it is sent at once, and when it waits for company."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from crow.acp import wire
from crow.acp.sink import CHUNKS_PER_SECOND, LONGEST_HOLD, TextPace, UpdateSink
from crow.events import CallOpened, CrowSaid, Event, Notice, TextDelta, ThoughtDelta, TurnEnded, TurnStarted
from crow.messages import StopReason
from crow.results import ToolKind
from tests.support.timers import timers_left

TICK = 0.001
"""How finely the tests' clock is moved."""


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
    clock = Clock()
    made._loop = clock  # pyright: ignore[reportAttributeAccessIssue]
    made._pace = TextPace(clock.now)
    return made


def feed(sink: UpdateSink, *steps: Event | float) -> list[str]:
    """Events, and seconds that pass between them; what was sent by the end."""
    for step in steps:
        if isinstance(step, float | int):
            sink._loop.pass_time(step)  # pyright: ignore[reportAttributeAccessIssue]
        else:
            sink.take(step)
    return sink._connection.sent  # pyright: ignore[reportAttributeAccessIssue]


@pytest.fixture
def busy_sink(sink):
    """A sink that has just sent all that it may send at once."""
    while sink._pace.may_send(sink._loop.time()):
        sink._pace.spend()
    return sink


def text(words: str, message: str = "m1") -> TextDelta:
    return TextDelta(message, words)


@pytest.mark.rule("R78")
def test_a_lone_delta_goes_out_at_once(sink):
    assert feed(sink, text("a")) == ["a"]


@pytest.mark.rule("R78")
def test_a_burst_is_sent_as_it_comes_until_its_budget_is_spent(sink):
    words = [text(f"{number} ") for number in range(10)]
    sent = [f"{number} " for number in range(6)]
    assert feed(sink, *words) == sent
    assert feed(sink, LONGEST_HOLD) == [*sent, "6 7 8 9 "]


@pytest.mark.rule("R78")
@pytest.mark.parametrize("milliseconds", [1, 3, 5, 8, 10, 12, 14, 15, 16, 20, 50])
def test_a_steady_stream_is_whole_in_time_and_bounded(sink, milliseconds):
    """Whatever its pace: nothing waits longer than a frame, and no second has more than 75 chunks."""
    sent_at = times_of(sink, count=400, every=milliseconds / 1000)
    delays = [sent - number * milliseconds / 1000 for number, sent in enumerate(sent_at)]
    chunks = sorted(set(sent_at))
    assert max(delays) <= LONGEST_HOLD + TICK + 1e-9
    assert max(sum(start <= chunk < start + 1 for chunk in chunks) for start in chunks) <= 75
    delayed = sum(delay > 1e-9 for delay in delays) / len(delays)
    if milliseconds >= 1000 / CHUNKS_PER_SECOND:
        assert delayed == 0
    if milliseconds >= 10:
        assert delayed < 0.4  # so the median is not delayed at all


def times_of(sink: UpdateSink, *, count: int, every: float) -> list[float]:
    """When each of so many numbered deltas was sent, from the first one on."""
    clock: Clock = sink._loop  # pyright: ignore[reportAssignmentType]
    start, times = clock.now, list[float]()
    ticks = round(every / TICK)
    for tick in range(count * ticks + 50):
        if tick % ticks == 0 and tick // ticks < count:
            sink.take(text(f"{tick // ticks} "))
        sent = "".join(sink._connection.sent).split()  # pyright: ignore[reportAttributeAccessIssue]
        times += [clock.now - start] * (len(sent) - len(times))
        clock.pass_time(TICK)
    assert "".join(sink._connection.sent) == "".join(f"{number} " for number in range(count))  # pyright: ignore[reportAttributeAccessIssue]
    return times


@pytest.mark.rule("R78", "R80")
def test_another_message_first_sends_what_came_before_it(busy_sink):
    assert feed(busy_sink, text("a"), text("b"), ThoughtDelta("m2", "hm", "p"), LONGEST_HOLD) == ["ab", "(hm)"]


@pytest.mark.rule("R58", "R78")
def test_the_end_of_the_turn_sends_what_waits(busy_sink):
    end = TurnEnded("t1", StopReason.END_TURN)
    assert feed(busy_sink, TurnStarted("t1"), text("a"), text("b"), end) == ["ab"]
    assert feed(busy_sink, 1.0) == ["ab"]


@pytest.mark.rule("R78", "R160")
def test_a_notice_keeps_its_place_in_the_text(busy_sink):
    assert feed(busy_sink, text("a"), text("b"), Notice("info", "wait"), text("c"), LONGEST_HOLD) == [
        "ab",
        "! wait",
        "c",
    ]


@pytest.mark.parametrize(
    ("pieces", "gap"),
    [
        (["I look."], "\n\n"),
        (["I look.\n"], "\n"),
        (["I look.", "\n"], "\n"),
        (["I look.\r\n"], "\n"),
        (["I look.\n  "], "\n"),
        (["I look.\n", "\n"], ""),
        (["I look.\n  \n"], ""),
        (["I look.\r\n\r\n"], ""),
        ([" \n"], "\n"),
    ],
)
def test_messages_have_a_blank_line_between_them(sink, pieces, gap):
    """Markdown joins lines that have none, and many clients join all text of a turn."""
    sink._takes_notices = False
    first = [text(piece) for piece in pieces]
    feed(sink, TurnStarted("t1"), *first)
    for event, said in (
        (text("Done.\n", "m2"), f"{gap}Done.\n"),
        (Notice("info", "Wait"), "\n> Wait\n\n"),
        (CrowSaid("m3", "Help\n"), "Help\n"),
        (Notice("info", "Ready"), "\n> Ready\n\n"),
    ):
        assert feed(sink, event, LONGEST_HOLD)[-1] == said
    assert feed(sink, TurnStarted("t2"), text("Next.", "m4"), LONGEST_HOLD)[-1] == "Next."


@pytest.mark.parametrize("held", [TextDelta("m2", "b"), CallOpened("c1", "read", ToolKind.READ, "Read")])
def test_a_sink_that_is_closed_sends_nothing_of_what_it_held_back(held):
    """Its client may be loading the session again: what came late would stand in what it is shown."""
    sent: list[list[str]] = []

    async def hold_and_close() -> None:
        sink = UpdateSink(Wire(), "s", takes_notices=True)  # pyright: ignore[reportArgumentType]
        while sink._pace.may_send(sink._loop.time()):
            sink._pace.spend()
        sink.take(held)
        sink.close()
        sink.take(TurnEnded("t1", StopReason.CANCELLED))
        sent.append(sink._connection.sent)  # pyright: ignore[reportAttributeAccessIssue]

    assert timers_left(hold_and_close) == []
    assert sent == [[]]
