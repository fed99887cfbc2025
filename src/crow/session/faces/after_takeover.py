"""After a take-over: shows a client what it has missed of a session whose process ended, and nothing twice."""

from collections.abc import Sequence

import msgspec

from crow.events import BackgroundEnded, Event, Notice, SteeringLeftOver, TurnEnded, TurnStarted
from crow.session.faces.face import FaceSink
from crow.session.faces.feed import play
from crow.session.recovery import CUT_OFF, turn_number
from crow.session.replay import PastCall, replayed


class Seen(msgspec.Struct, frozen=True):
    """How much of a session a client was shown."""

    turn: str
    """The last turn that began."""
    ended: bool
    """The client knows how that turn ended, and so has seen all of it."""
    asked: bool = False
    """The turn was begun with a prompt of this client's, which is answered with an error if it was cut off."""


async def show_missed(sink: FaceSink, past: Sequence[Event], seen: Seen) -> Sequence[SteeringLeftOver]:
    """Shows what came after the turn that was seen last. Of a turn that was seen in part each call is shown again,
    which changes nothing where it was seen; text is not, as nobody knows how much of it was. Gives what that turn did
    not take in."""
    number = turn_number(seen.turn)
    later = next((at for at, event in enumerate(past) if _begins(event) > number), len(past))
    began = next((at for at in range(later - 1, -1, -1) if _begins(past[at]) == number), later)
    sink.remember(past[:later])
    left_over = [] if seen.ended else await _show_part(sink, past[began:later], tells_end=not seen.asked)
    ends = [event for event in past[began:later] if isinstance(event, BackgroundEnded)]
    await play(sink, [*ends, *past[later:]])
    return left_over


async def _show_part(sink: FaceSink, turn: Sequence[Event], *, tells_end: bool) -> list[SteeringLeftOver]:
    await sink.replay([item for item in replayed(turn) if isinstance(item, PastCall)], in_turn=True)
    left_over = [event for event in turn if isinstance(event, SteeringLeftOver)]
    for event in left_over:
        sink.take(event)
    ended = next((event for event in turn if isinstance(event, TurnEnded)), TurnEnded("", None, CUT_OFF))
    if ended.error and tells_end:
        sink.take(Notice("warning", ended.error))
    sink.take(ended)
    return left_over


def _begins(event: Event) -> int:
    """The number of the turn that begins with the event; -1 if none does."""
    return turn_number(event.turn_id) if isinstance(event, TurnStarted) else -1
