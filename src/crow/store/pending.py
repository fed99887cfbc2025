"""What a session has still to store: rows in order, and what they change in the list of sessions."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from crow.clock import local_day
from crow.config.settings import TOKENS
from crow.errors import BacklogLost
from crow.events import (
    CallPreviewed,
    CallRequested,
    CallSettled,
    CommandGiven,
    Event,
    SentText,
    SubagentDid,
    TitleChanged,
    TurnEnded,
    TurnStarted,
    UsageReported,
    UserSaid,
)
from crow.store.records import Row, merged, row_of
from crow.visible import one_line

LARGEST_BACKLOG = 64 * 1024 * 1024
"""Characters that may wait for a disk that takes nothing."""
LONGEST_COMMAND = 80


class ListChange(msgspec.Struct):
    """What the waiting rows change in the session's entry; None leaves a value as it is."""

    title: str | None = None
    command: str | None = None
    """What was typed for Crow itself: the title in lists of a session that has no other."""
    updated: int | None = None
    running: int | None = None
    """When the turn began; 0 when it ended."""
    listed: bool = False
    spent: dict[tuple[str, str], float] = {}
    """What the replies among them cost, by day and unit: see `crow.store.base.SessionStore.spent_on`."""


class Pending:
    """Belongs to the worker thread. Rows stay here until a commit that held them has succeeded."""

    def __init__(self, key: int, epoch: int, last_seq: int, *, largest: int = LARGEST_BACKLOG) -> None:
        self.key = key
        """Of the session's row."""
        self.epoch = epoch
        """How often the session had been taken over when it became ours: once more, and it is ours no longer."""
        self.rows: list[Row] = []
        self.packed: dict[str, bytes] = {}
        """Contents of the rows that were packed already, by digest, so that the next try need not do it again."""
        self.change = ListChange()
        self.overflowed = False
        """More could not be stored than fits here: what came after is gone, so nothing may follow it any more."""
        self.taken = False
        """The session has another owner: what waited was dropped, and nothing may be stored from here any more."""
        self._last_seq = last_seq
        self._largest = largest
        self._size = 0
        self._previews: dict[str, CallPreviewed] = {}

    def take(self, events: Iterable[Event], time: int) -> None:
        """What comes while nothing waits is always taken, however long it is: the disk has not refused anything."""
        refused = bool(self.rows)
        for event in merged(self._without_early_previews(events)):
            if self.overflowed:
                return
            row = row_of(event, self._last_seq + 1, time)
            if refused and self._size + row.size > self._largest:
                self.overflowed = True
                return
            self._last_seq += 1
            self._size += row.size
            self.rows.append(row)
            self._note(event, time)

    def contents(self) -> Mapping[str, bytes]:
        """The pieces of long texts that the rows need, by digest."""
        return {digest: piece for row in self.rows for digest, piece in row.contents.items()}

    def check_whole(self, session_id: str) -> None:
        if self.overflowed:
            raise BacklogLost(
                f"Not everything of the session {session_id} could be kept: "
                "too much happened while nothing could be stored.",
                remedy="Load the session again to go on from what is stored.",
            )

    def forget(self) -> None:
        """What waited is on disk now, or will never be."""
        self.rows = []
        self.packed = {}
        self.change = ListChange()
        self._size = 0

    def _without_early_previews(self, events: Iterable[Event]) -> Iterator[Event]:
        """Of a call's previews only the last is kept, with what those before it said, and not what it showed."""
        for event in events:
            match event:
                case CallPreviewed(call_id=call_id, title=title, locations=locations):
                    before = self._previews.get(call_id)
                    self._previews[call_id] = CallPreviewed(
                        call_id,
                        title or (before.title if before else ""),
                        locations or (before.locations if before else ()),
                    )
                    continue
                case CallRequested(call_id=call_id) | CallSettled(call_id=call_id):
                    preview = self._previews.pop(call_id, None)
                    if preview is not None:
                        yield preview
                case TurnEnded():
                    self._previews.clear()
                case _:
                    pass
            yield event

    def _note(self, event: Event, time: int) -> None:
        match event:
            case TurnStarted():
                self.change.running = self.change.updated = time
            case TurnEnded():
                self.change.running = 0
                self.change.updated = time
            case UserSaid() | CommandGiven():
                self.change.listed = True
                self.change.updated = time
                if isinstance(event, CommandGiven) and self.change.command is None:
                    self.change.command = _typed(event)
            case TitleChanged(title=title):
                self.change.title = title
            case UsageReported() | SubagentDid(what=UsageReported()):
                self._note_usage(event if isinstance(event, UsageReported) else event.what, time)
            case _:
                pass

    def _note_usage(self, usage: Event, time: int) -> None:
        if not isinstance(usage, UsageReported):
            return
        day = local_day(time)
        amounts = {TOKENS: float(usage.paid_tokens), usage.currency: usage.cost or 0.0}
        for unit, amount in amounts.items():
            if amount:
                self.change.spent[day, unit] = self.change.spent.get((day, unit), 0.0) + amount


def _typed(event: CommandGiven) -> str | None:
    """The beginning of a command's first line."""
    texts = (block.text.strip() for block in event.sent if isinstance(block, SentText))
    return next((one_line(text[:LONGEST_COMMAND].splitlines()[0]) for text in texts if text), None)
