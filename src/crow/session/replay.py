"""What a person sees of a session that was stored: each message, each call and each plan once, as it ended up.

A fold of the journal, like the model's history. It takes one look at each event, and its order is the order in which
things began.
"""

from collections.abc import Iterable, Iterator

import msgspec

from crow.events import (
    BackgroundEnded,
    CallDescribed,
    CallOpened,
    CallPreviewed,
    CallProgressed,
    CallRequested,
    CallSettled,
    CommandGiven,
    CompactionEnded,
    CrowSaid,
    Event,
    PlanChanged,
    Remark,
    Sent,
    TextDelta,
    ThoughtDelta,
    TurnEnded,
    TurnStarted,
    UserSaid,
)
from crow.messages import StopReason
from crow.results import DisplayBlock, Location, ToolKind, ToolResult


class PastPrompt(msgspec.Struct, frozen=True):
    message_id: str
    sent: tuple[Sent, ...]


class PastMessage(msgspec.Struct, frozen=True):
    message_id: str
    text: str


class PastThought(msgspec.Struct, frozen=True):
    message_id: str
    text: str


class PastCall(msgspec.Struct, frozen=True):
    call_id: str
    tool: str
    kind: ToolKind
    title: str
    locations: tuple[Location, ...]
    arguments: str | None
    """None if they never came to their end."""
    display: tuple[DisplayBlock, ...]
    """What it last showed before its end."""
    result: ToolResult | None
    quiet: bool = False
    """As in CallOpened: what it does shows itself."""


class PastRemark(msgspec.Struct, frozen=True):
    """What Crow itself had to say in a turn: a notice that belongs to it, or how the turn ended."""

    message_id: str
    text: str


PastItem = PastPrompt | PastMessage | PastThought | PastCall | PastRemark | PlanChanged | CompactionEnded


class _Texts:
    """A message or a thought while its pieces are gathered."""

    def __init__(self, message_id: str, *, thought: bool) -> None:
        self._message_id = message_id
        self._thought = thought
        self.pieces: list[str] = []

    def ended(self) -> PastItem:
        text = "".join(self.pieces)
        return PastThought(self._message_id, text) if self._thought else PastMessage(self._message_id, text)


class _Call:
    def __init__(self, opened: CallOpened) -> None:
        self._opened = opened
        self.kind = opened.kind
        self.title = opened.title
        self.locations: tuple[Location, ...] = ()
        self.display: tuple[DisplayBlock, ...] = ()
        self.arguments: str | None = None
        self.result: ToolResult | None = None

    def ended(self) -> PastItem:
        return PastCall(
            self._opened.call_id,
            self._opened.tool,
            self.kind,
            self.title,
            self.locations,
            self.arguments,
            self.display,
            self.result,
            self._opened.quiet,
        )


class _Fold:
    def __init__(self) -> None:
        self._items: list[PastItem | _Texts | _Call] = []
        self._texts: dict[str, _Texts] = {}
        self._calls: dict[str, _Call] = {}
        self._last_plan: PlanChanged | None = None
        self._remarks = 0
        self._told_why = False
        """A remark has said why the turn stops."""

    def items(self) -> Iterator[PastItem]:
        for item in self._items:
            if isinstance(item, PlanChanged):
                if item is self._last_plan:
                    yield item
            else:
                yield item.ended() if isinstance(item, _Texts | _Call) else item

    def apply(self, event: Event) -> None:
        match event:
            case TextDelta() | ThoughtDelta():
                self._grow(event)
            case UserSaid() | CommandGiven():
                self._items.append(PastPrompt(event.message_id, event.sent))
            case CrowSaid():
                self._items.append(PastMessage(event.message_id, event.text))
            case CompactionEnded():
                self._items.append(event)
            case Remark():
                self._told_why = self._told_why or event.why_stopped
                self._remark(event.text)
            case TurnStarted():
                self._told_why = False
            case TurnEnded():
                self._end(event)
            case PlanChanged():
                self._last_plan = event
                self._items.append(event)
            case CallOpened():
                call = self._calls[event.call_id] = _Call(event)
                self._items.append(call)
            case CallPreviewed() | CallRequested() | CallDescribed() | CallProgressed() | CallSettled() if (
                event.call_id in self._calls
            ):
                _change(self._calls[event.call_id], event)
            case BackgroundEnded() if event.call_id in self._calls:
                self._calls[event.call_id].result = event.result
            case _:
                pass  # not shown, or only for as long as it lasted

    def _remark(self, text: str) -> None:
        self._remarks += 1
        self._items.append(PastRemark(f"notice-past-{self._remarks}", text))

    def _end(self, event: TurnEnded) -> None:
        """How a turn ended, unless something has said why."""
        if event.stop_reason is None:
            self._remark(f"The turn failed: {event.error}")
        elif event.stop_reason is StopReason.MAX_TURN_REQUESTS:
            pass  # Crow's own limits: a remark names the limit, and the last words name a call that was repeated
        elif event.stop_reason.sentence and not self._told_why:
            self._remark(event.stop_reason.sentence)

    def _grow(self, event: TextDelta | ThoughtDelta) -> None:
        texts = self._texts.get(event.message_id)
        if texts is None:
            texts = _Texts(event.message_id, thought=isinstance(event, ThoughtDelta))
            self._texts[event.message_id] = texts
            self._items.append(texts)
        texts.pieces.append(event.text)


def _change(call: _Call, event: CallPreviewed | CallRequested | CallDescribed | CallProgressed | CallSettled) -> None:
    match event:
        case CallPreviewed():
            call.title = event.title or call.title
            call.locations = event.locations or call.locations
            call.display = event.display or call.display
        case CallRequested():
            call.arguments = event.used
        case CallDescribed():
            call.kind, call.title = event.kind, event.title
            call.locations = event.locations or call.locations
        case CallProgressed():
            call.display = event.display
        case CallSettled():
            call.result = event.result


def replayed(events: Iterable[Event]) -> Iterator[PastItem]:
    """What is to be shown, in the order in which it began. Waits and some notices were for their moment only."""
    fold = _Fold()
    for event in events:
        fold.apply(event)
    return fold.items()
