"""What a client is shown that was attached to a process which ended: all that it missed, and nothing twice."""

import asyncio
from collections.abc import Iterable, Sequence

import pytest

from crow.events import (
    BackgroundEnded,
    CallOpened,
    CallRequested,
    CallSettled,
    Event,
    Notice,
    SentText,
    TextDelta,
    TurnEnded,
    TurnStarted,
    UserSaid,
)
from crow.messages import StopReason, Text
from crow.results import ToolKind, ToolResult
from crow.session.faces.after_takeover import Seen, show_missed
from crow.session.recovery import CUT_OFF, missing_ends
from crow.session.replay import PastCall, PastItem


def turn(number: int, *, cut_off: bool = False, background: str = "") -> list[Event]:
    id = f"t{number}"
    events: list[Event] = [
        TurnStarted(id),
        UserSaid(f"{id}-m1", (SentText("go"),), (Text("go"),)),
        TextDelta(f"{id}-m2", f"text of {id}"),
        CallOpened(f"{id}-c1", "terminal", ToolKind.EXECUTE, "Run"),
        CallRequested(f"{id}-c1", "terminal", "{}"),
    ]
    if cut_off:
        return [*events, *missing_ends(events)]
    settled = CallSettled(f"{id}-c1", ToolResult(True, "done", "done", background=background))
    return [*events, settled, TurnEnded(id, StopReason.END_TURN)]


class Sink:
    """Keeps what it is to show."""

    has_room = True
    unsent = 0

    def __init__(self) -> None:
        self.shown: list[Event | PastItem] = []
        self.remembered: list[Event] = []

    def remember(self, past: Iterable[Event]) -> None:
        self.remembered += past

    async def replay(self, items: Iterable[PastItem], *, in_turn: bool = False) -> None:
        assert in_turn
        self.shown += items

    def tell_at_once(self, notice: Event) -> None:
        self.shown.append(notice)

    def close(self) -> None:
        raise AssertionError("nobody leaves")

    def take(self, event: Event) -> None:
        self.shown.append(event)

    async def room(self) -> None:
        pass


def missed(past: Sequence[Event], seen: Seen) -> list[Event | PastItem]:
    sink = Sink()
    asyncio.run(show_missed(sink, past, seen))
    known = [*sink.remembered, *(event for event in sink.shown if not isinstance(event, PastCall | Notice | TurnEnded))]
    assert [event for event in known if isinstance(event, TextDelta)] == [
        event for event in past if isinstance(event, TextDelta)
    ], "each word counts once, seen or missed"
    return sink.shown


PAST = [*turn(1), *turn(2, cut_off=True), *turn(3)]


def test_a_turn_that_was_seen_to_its_end_is_not_shown_again():
    assert missed(PAST, Seen("t3", ended=True)) == []
    assert missed(PAST, Seen("t2", ended=True)) == turn(3)
    assert missed(PAST, Seen("t0", ended=True)) == PAST


def test_of_a_turn_that_was_cut_off_the_calls_are_shown_with_their_ends_and_no_text():
    call, notice, ended, *rest = missed(PAST, Seen("t2", ended=False))
    assert isinstance(call, PastCall)
    assert (call.call_id, call.result and call.result.ok) == ("t2-c1", False)
    assert notice == Notice("warning", CUT_OFF)
    assert isinstance(ended, TurnEnded)
    assert rest == turn(3), "what somebody else has begun since is shown whole"


def test_who_gets_an_error_for_the_turn_that_was_cut_off_is_told_of_it_there_alone():
    call, ended = missed(PAST[: -len(turn(3))], Seen("t2", ended=False, asked=True))
    assert isinstance(call, PastCall)
    assert isinstance(ended, TurnEnded)


def test_a_turn_whose_end_nobody_was_told_of_was_not_cut_off():
    call, ended = missed([*turn(1)], Seen("t1", ended=False))
    assert isinstance(call, PastCall)
    assert call.result is not None
    assert call.result.ok
    assert ended == TurnEnded("t1", StopReason.END_TURN)


def test_a_turn_of_which_nothing_was_stored_was_cut_off():
    notice, ended = missed(turn(1), Seen("t2", ended=False))
    assert notice == Notice("warning", CUT_OFF)
    assert isinstance(ended, TurnEnded)


@pytest.mark.parametrize("ended", [True, False])
def test_a_command_in_the_background_has_ended_with_its_process(ended):
    past = turn(1, background="b1")
    end = missing_ends(past)
    assert isinstance(end[0], BackgroundEnded)
    assert missed([*past, *end], Seen("t1", ended=ended))[-1] == end[0]
