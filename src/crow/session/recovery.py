"""Recovery of a session that was cut off by a kill or a power cut: decides which calls were interrupted or not run, and
ends its turn.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from crow.events import (
    BackgroundEnded,
    CallOpened,
    CallSettled,
    CallStarted,
    CompactionEnded,
    CompactionStarted,
    Event,
    SteeringLeftOver,
    SteeringReceived,
    TurnEnded,
    TurnStarted,
    UserSaid,
)
from crow.results import HiddenOutput, TextBlock, ToolResult
from crow.store.base import EventLog
from crow.turn.steering import left_over
from crow.turn.subagent_steps import CutOff

STOPPED = "Crow was stopped before it ended."
CUT_OFF = f"The turn was cut off: {STOPPED}"
INTERRUPTED = ToolResult.failed(
    f"The call was interrupted: {STOPPED} What it had done by then is done.", f"Interrupted: {STOPPED}"
)
GONE = "no longer running"
NOT_BEGUN = ToolResult.failed(
    "The call was not run: Crow was stopped before it began. Nothing of it was done.",
    "Not run: Crow was stopped before it began.",
)


def missing_ends(events: Iterable[Event]) -> list[Event]:
    """The events that end what began and never ended: calls, a compaction, messages into the turn, the turn itself.
    Empty if nothing was cut off."""
    calls: dict[str, ToolResult] = {}
    compactions: dict[str, None] = {}
    background: dict[str, ToolResult] = {}
    turn = ""
    subagents, steering = CutOff(), _Steering()
    for event in events:
        subagents.apply(event)
        steering.apply(event)
        match event:
            case CallOpened():
                calls[event.call_id] = NOT_BEGUN
            case CallStarted() if event.call_id in calls:
                calls[event.call_id] = INTERRUPTED
            case CallSettled():
                calls.pop(event.call_id, None)
                if event.result.background:
                    background[event.call_id] = event.result
            case BackgroundEnded():
                background.pop(event.call_id, None)
            case CompactionStarted():
                compactions[event.compaction_id] = None
            case CompactionEnded():
                compactions.pop(event.compaction_id, None)
            case TurnStarted():
                turn = event.turn_id
            case TurnEnded():
                turn = ""
            case _:
                pass  # nothing is left open by it
    ends: list[Event] = [CallSettled(call_id, subagents.told(call_id, result)) for call_id, result in calls.items()]
    ends += [CompactionEnded(id, "failed", error=STOPPED) for id in compactions]
    ends += [left_over(message.message_id, message.sent) for message in steering.waiting.values()]
    ends += [TurnEnded(turn, None, CUT_OFF)] if turn else []
    ends += [BackgroundEnded(call_id, _no_longer_running(result)) for call_id, result in background.items()]
    return ends


class _Steering:
    """The messages that were accepted into the turn and that the model has not got, by id."""

    def __init__(self) -> None:
        self.waiting: dict[str, SteeringReceived] = {}

    def apply(self, event: Event) -> None:
        match event:
            case SteeringReceived():
                self.waiting[event.message_id] = event
            case UserSaid() | SteeringLeftOver():
                self.waiting.pop(event.message_id, None)
            case TurnEnded():
                self.waiting.clear()
            case _:
                pass


def _no_longer_running(result: ToolResult) -> ToolResult:
    """What a call shows of a command that it left running, and that has ended with the session or the machine."""
    printed = (block for block in result.display if isinstance(block, TextBlock | HiddenOutput))
    shown = tuple(replace(block, text=block.text.removesuffix(result.message) + GONE) for block in printed)
    return replace(result, message=GONE, brief=GONE, background="", display=shown)


def last_turn_number(events: Iterable[Event]) -> int:
    """The number of the last turn that began; 0 if none did."""
    return max((turn_number(event.turn_id) for event in events if isinstance(event, TurnStarted)), default=0)


def turn_number(turn_id: str) -> int:
    """The number in a turn's id; 0 if it is none of ours."""
    return int(turn_id[1:]) if turn_id[1:].isdecimal() else 0


async def recover(log: EventLog, past: list[Event]) -> list[Event]:
    """Stores the events that end what was cut off, and gives the past with them."""
    ends = missing_ends(past)
    for end in ends:
        log.add(end)
    if ends:
        await log.store_all()
    return [*past, *ends]
