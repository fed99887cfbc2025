"""Folds a stored session into what a person is shown when it is loaded: each message, call and plan once, as it ended
up.

A fold of the journal, like the model's history. It takes one look at each event, and its order is the order in which
things began.
"""

from collections.abc import Iterable, Iterator

import msgspec

from crow import events
from crow.messages import StopReason
from crow.results import DisplayBlock, Location, ToolKind, ToolResult


class PastPrompt(msgspec.Struct, frozen=True):
    message_id: str
    sent: tuple[events.Sent, ...]


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
    """The JSON of the arguments; None if they never arrived whole."""
    display: tuple[DisplayBlock, ...]
    """The blocks that the call showed last before its end."""
    result: ToolResult | None
    """None if the call is still open: what was cut off has one."""
    quiet: bool = False
    """As in events.CallOpened: what it does shows itself."""
    is_started: bool = False
    """It is being performed, or was."""
    seconds: float | None = None
    """How long it was performed, if that is known."""


class PastRemark(msgspec.Struct, frozen=True):
    """What Crow itself had to say in a turn: a notice that belongs to it, or how the turn ended."""

    message_id: str
    text: str


PastItem = PastPrompt | PastMessage | PastThought | PastCall | PastRemark | events.PlanChanged | events.CompactionEnded


_CallEvent = (
    events.CallPreviewed
    | events.CallRequested
    | events.CallDescribed
    | events.CallStarted
    | events.CallProgressed
    | events.CallSettled
    | events.BackgroundEnded
)


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
    def __init__(self, opened: events.CallOpened) -> None:
        self._opened = opened
        self.kind = opened.kind
        self.title = opened.title
        self.locations: tuple[Location, ...] = ()
        self.display: tuple[DisplayBlock, ...] = ()
        self.arguments: str | None = None
        self.is_started = False
        self.result: ToolResult | None = None
        self.seconds: float | None = None

    def apply(self, event: _CallEvent) -> None:
        match event:
            case events.CallPreviewed():
                self.title = event.title or self.title
                self.locations = event.locations or self.locations
                self.display = event.display or self.display
            case events.CallRequested():
                self.arguments = event.used
            case events.CallDescribed():
                self.kind, self.title = event.kind, event.title
                self.locations = event.locations or self.locations
            case events.CallStarted():
                self.is_started = True
            case events.CallProgressed():
                self.display = event.display
            case events.CallSettled() | events.BackgroundEnded():
                self.result, self.seconds = event.result, event.seconds or self.seconds

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
            self.is_started,
            self.seconds,
        )


class _Fold:
    def __init__(self) -> None:
        self._items: list[PastItem | _Texts | _Call] = []
        self._texts: dict[str, _Texts] = {}
        self._calls: dict[str, _Call] = {}
        self._last_plan: events.PlanChanged | None = None
        self._remarks = 0
        self._told_why = False
        """A remark has said why the turn stops."""

    def items(self) -> Iterator[PastItem]:
        for item in self._items:
            if isinstance(item, events.PlanChanged):
                if item is self._last_plan:
                    yield item
            else:
                yield item.ended() if isinstance(item, _Texts | _Call) else item

    def apply(self, event: events.Event) -> None:
        match event:
            case events.TextDelta() | events.ThoughtDelta():
                self._grow(event)
            case events.UserSaid() | events.CommandGiven():
                self._items.append(PastPrompt(event.message_id, event.sent))
            case events.CrowSaid():
                self._items.append(PastMessage(event.message_id, event.text))
            case events.CompactionEnded():
                self._items.append(event)
            case events.Remark():
                self._told_why = self._told_why or event.why_stopped
                self._remark(event.text)
            case events.TurnStarted():
                self._told_why = False
            case events.TurnEnded():
                self._end(event)
            case events.PlanChanged():
                self._last_plan = event
                self._items.append(event)
            case events.CallOpened():
                call = self._calls[event.call_id] = _Call(event)
                self._items.append(call)
            case (
                events.CallPreviewed()
                | events.CallRequested()
                | events.CallDescribed()
                | events.CallStarted()
                | events.CallProgressed()
                | events.CallSettled()
                | events.BackgroundEnded()
            ):
                self._change(event)
            case _:
                pass  # not shown, or only for as long as it lasted

    def _change(self, event: _CallEvent) -> None:
        if (call := self._calls.get(event.call_id)) is not None:
            call.apply(event)

    def _remark(self, text: str) -> None:
        self._remarks += 1
        self._items.append(PastRemark(f"notice-past-{self._remarks}", text))

    def _end(self, event: events.TurnEnded) -> None:
        """How a turn ended, unless something has said why."""
        if event.stop_reason is None:
            self._remark(f"The turn failed: {event.error}")
        elif event.stop_reason is StopReason.MAX_TURN_REQUESTS:
            pass  # Crow's own limits: a remark names the limit, and the last words name a call that was repeated
        elif event.stop_reason.sentence and not self._told_why:
            self._remark(event.stop_reason.sentence)

    def _grow(self, event: events.TextDelta | events.ThoughtDelta) -> None:
        texts = self._texts.get(event.message_id)
        if texts is None:
            texts = _Texts(event.message_id, thought=isinstance(event, events.ThoughtDelta))
            self._texts[event.message_id] = texts
            self._items.append(texts)
        texts.pieces.append(event.text)


def replayed(past: Iterable[events.Event]) -> Iterator[PastItem]:
    """What is to be shown, in the order in which it began. Waits and some notices were for their moment only."""
    fold = _Fold()
    for event in past:
        fold.apply(event)
    return fold.items()
