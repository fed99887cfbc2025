"""Encodes an event as a row of the store and decodes it again, in versions; and collects the rows that a session has
still to store.

Version 1 of a record is the event's JSON as `crow.events` defines it, with its long texts taken out (see
`crow.store.contents`). A field may be added to an event as long as it has a default: older records then read as before.
Whatever else changes the meaning of a record needs a new version.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, TypeVar, Union

import msgspec

from crow.config.settings import TOKENS
from crow.errors import BacklogLost, StorageFailed
from crow.events import (
    KINDS,
    CallPreviewed,
    CallRequested,
    CallSettled,
    CommandGiven,
    Event,
    SentText,
    SubagentDid,
    TextDelta,
    ThoughtDelta,
    TitleChanged,
    TurnEnded,
    TurnStarted,
    UsageReported,
    UserSaid,
    local_day,
)
from crow.store.base import RECORD_VERSION, Mark
from crow.store.contents import LONG, LONG_FORMER_TEXT, put_back, take_out
from crow.visible import one_line

STORED = tuple(kind for kind in KINDS if kind.stored)

FORMER_TEXT_TAG = "file_changing"
"""The former texts of changed files may be large and are wanted seldom: they have a table of their own."""

_TAGS: dict[type[Event], str] = {kind: str(kind.__struct_config__.tag) for kind in STORED}
_KNOWN = frozenset(_TAGS.values())
_ANY = Union[STORED]  # noqa: UP007 -- made of a tuple
Other = TypeVar("Other")
_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(_ANY)


class Row(msgspec.Struct, frozen=True):
    seq: int
    """Counts a session's records from 1."""
    version: int
    tag: str
    optional: bool
    time: int
    """Milliseconds since 1970."""
    body: str
    packed: bool = False
    """Whether long texts were taken out of the body, see `crow.store.contents`."""
    contents: Mapping[str, bytes] = {}
    """The pieces of those texts, by digest, if the row is still to be stored."""

    @property
    def size(self) -> int:
        return len(self.body) + sum(map(len, self.contents.values()))


def row_of(event: Event, seq: int, time: int) -> Row:
    contents: dict[str, bytes] = {}
    kind = type(event)
    body = _encode(take_out(msgspec.to_builtins(event), contents, _long_in(_TAGS[kind])))
    return Row(seq, RECORD_VERSION, _TAGS[kind], kind.optional, time, body, bool(contents), contents)


def events_of(rows: Iterable[Row], session_id: str, piece: Callable[[str], bytes]) -> list[Event]:
    """The events, with the pieces of a message joined. StorageFailed if one cannot be read that may not be left out.

    `piece` reads a piece of a long text.
    """
    return list(merged(_read(rows, session_id, piece)))


def _long_in(tag: str) -> int:
    return LONG_FORMER_TEXT if tag == FORMER_TEXT_TAG else LONG


def repacked(body: str, tag: str, contents: MutableMapping[str, bytes]) -> str:
    """The body of a record from which nothing was taken out yet, without its long texts. One that is damaged stays."""
    try:
        return _encode(take_out(_loaded(body), contents, _long_in(tag)))
    except (ValueError, RecursionError):
        contents.clear()
        return body


def merged(events: Iterable[Event | Other]) -> Iterator[Event | Other]:
    """Joins text that was said without anything between it."""
    texts: list[str] = []
    last: TextDelta | ThoughtDelta | None = None
    for event in events:
        if isinstance(event, TextDelta | ThoughtDelta):
            if last is not None and _continues(last, event):
                texts.append(event.text)
                continue
            if last is not None:
                yield _joined(last, texts)
            last, texts = event, [event.text]
            continue
        if last is not None:
            yield _joined(last, texts)
            last = None
        yield event
    if last is not None:
        yield _joined(last, texts)


def _continues(last: TextDelta | ThoughtDelta, event: TextDelta | ThoughtDelta) -> bool:
    if type(last) is not type(event) or last.message_id != event.message_id:
        return False
    return getattr(last, "origin", "") == getattr(event, "origin", "")


def _joined(first: TextDelta | ThoughtDelta, texts: list[str]) -> TextDelta | ThoughtDelta:
    return first if len(texts) == 1 else msgspec.structs.replace(first, text="".join(texts))


def _encode(record: object) -> str:
    try:
        return _encoder.encode(record).decode()
    except UnicodeEncodeError:
        # Half a surrogate pair, as in a file name that is no UTF-8: an escape sequence carries it, so that the same
        # file is found again.
        return json.dumps(record, ensure_ascii=True)


def _loaded(body: str) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return json.loads(body)


def _decode(row: Row, piece: Callable[[str], bytes]) -> Event:
    if row.packed:
        return msgspec.convert(put_back(_loaded(row.body), piece), type=_ANY)
    try:
        return _decoder.decode(row.body)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(row.body), type=_ANY)


def _read(rows: Iterable[Row], session_id: str, piece: Callable[[str], bytes]) -> Iterator[Event]:
    for row in rows:
        if row.version > RECORD_VERSION or row.tag not in _KNOWN:
            if row.optional:
                continue
            raise StorageFailed(
                f"Session {session_id} was continued by a newer version of Crow: "
                f'record {row.seq} ("{row.tag}", version {row.version}) is unknown here.',
                remedy="Open it with that version, or update Crow. Nothing was changed.",
            )
        try:
            yield _decode(row, piece)
        except (ValueError, RecursionError) as error:  # the errors of both JSON libraries are ValueErrors
            raise StorageFailed(
                f'Session {session_id} is damaged: record {row.seq} ("{row.tag}") cannot be read.',
                remedy="Nothing was changed, and other sessions are not affected. Restore a copy of the store, "
                "or start a new session.",
            ) from error


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
        """The key of the session's row."""
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

    def take(self, events: Iterable[Event | Mark], time: int) -> None:
        """What comes while nothing waits is always taken, however long it is: the disk has not refused anything."""
        refused = bool(self.rows)
        for event in merged(self._without_early_previews(events)):
            if isinstance(event, Mark):
                event.seq, event.previews = self._last_seq, tuple(self._previews.values())
                continue
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
                f"Part of session {session_id} was lost: too much happened while nothing could be saved.",
                remedy="Load the session again to continue from what was saved.",
            )

    def forget(self) -> None:
        """What waited is on disk now, or will never be."""
        self.rows = []
        self.packed = {}
        self.change = ListChange()
        self._size = 0

    def _without_early_previews(self, events: Iterable[Event | Mark]) -> Iterator[Event | Mark]:
        """Keeps only the last preview of a call, with the title and places of earlier ones, and without its display."""
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
