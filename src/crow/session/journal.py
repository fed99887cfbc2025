"""A session's journal: each event goes to the store, the model's history and every sink, in that order; also gives the
session its title.

A session's title is written there too: the beginning of the first prompt that went to the model, until the person gives
another. No model is asked for it.
"""

import asyncio
import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from crow.errors import StoreSilent
from crow.events import (
    BackgroundEnded,
    CallProgressed,
    CallSettled,
    CommandsChanged,
    Event,
    Journal,
    OutputGrew,
    Sent,
    SentLink,
    SentMedia,
    SentResource,
    SentText,
    StillWaiting,
    TitleChanged,
    TurnEnded,
)
from crow.store.base import EventLog, Mark
from crow.turn.history import History
from crow.turn.waits import PATIENCE, Wait
from crow.visible import one_line

SHORTEST_PATIENCE = 1.0
"""Seconds. A disk that takes a moment is nothing to speak of, however impatient the person is."""


HURRY = 2.0
"""Seconds that whatever is still to be stored gets, all in all, once the person has ended the turn."""


class Sink(Protocol):
    """A subscriber to the events of a session. `has_room` is false while it cannot keep up."""

    @property
    def has_room(self) -> bool: ...

    def take(self, event: Event) -> None: ...

    async def room(self) -> None: ...


_PASSING = (CallProgressed, OutputGrew, CallSettled, BackgroundEnded, CommandsChanged)
MOST_KEPT = 64 * 1024
"""Characters of a command's raw output that are kept for whoever joins while it runs."""


class _WrittenSoFar:
    """The last of what a running command has written."""

    def __init__(self, begun: OutputGrew) -> None:
        self._begun = begun
        self._pieces: deque[str] = deque()
        self._size = 0
        self._is_cut = False

    def add(self, data: str) -> None:
        self._pieces.append(data)
        self._size += len(data)
        while self._size - len(self._pieces[0]) > MOST_KEPT:
            self._size -= len(self._pieces.popleft())
            self._is_cut = True

    def so_far(self, call_id: str) -> OutputGrew:
        cut = "[… what came before is not shown again …]\n" if self._is_cut else ""
        begun = self._begun
        written = cut + "".join(self._pieces)
        return OutputGrew(call_id, written, begun.cwd, anew=True, takes_input=begun.takes_input)


class PassingState:
    """The last of what passes without being stored, for whoever joins a session later: what open calls show, what
    commands that run have written, and the slash commands there are."""

    def __init__(self) -> None:
        self._progress: dict[str, CallProgressed] = {}
        self._written: dict[str, _WrittenSoFar] = {}
        self._commands: CommandsChanged | None = None

    def apply(self, event: Event) -> None:
        match event:
            case CallProgressed():
                self._progress[event.call_id] = event
            case OutputGrew():
                self._written.setdefault(event.call_id, _WrittenSoFar(event)).add(event.data)
            case CallSettled():
                self._progress.pop(event.call_id, None)
                if not event.result.background:
                    self._written.pop(event.call_id, None)
            case BackgroundEnded():
                self._written.pop(event.call_id, None)
            case CommandsChanged():
                self._commands = event
            case _:
                pass

    def events(self) -> list[Event]:
        """What a client that shows raw output takes first makes the rest superfluous; others take no notice of it."""
        written = [output.so_far(call_id) for call_id, output in self._written.items()]
        return [*written, *self._progress.values()]

    @property
    def commands(self) -> CommandsChanged | None:
        return self._commands


class _Entry:
    """An event that the sinks have not received yet: those that were subscribed when it was added."""

    __slots__ = ("event", "ready", "sinks")

    def __init__(self, event: Event, sinks: Sequence[Sink], *, ready: bool) -> None:
        self.event = event
        self.sinks = sinks
        self.ready = ready


class SessionJournal:
    """Hands each event to the store, then keeps the model's history up to date, then tells every sink.

    An event that must be stored first holds back those that come after it, so that everyone learns of them in the
    order in which they are stored. The person is told of a wait for the store after `patience` seconds.

    An event goes to the sinks that are subscribed when it is added, whenever they are told of it: so a mark and a
    subscription that are made together are one place between what was and what comes.
    """

    def __init__(self, log: EventLog, patience: float = PATIENCE) -> None:
        self.history = History()
        self.passing = PassingState()
        self._log = log
        self._sinks: tuple[Sink, ...] = ()
        self._sinks_changed = asyncio.Event()
        self._undelivered: deque[_Entry] = deque()
        self._patience = max(patience, SHORTEST_PATIENCE)
        self._deadline: float | None = None

    def subscribe(self, sink: Sink) -> None:
        self._sinks = (*self._sinks, sink)
        self._sinks_changed.set()

    def unsubscribe(self, sink: Sink) -> None:
        """The sink is told of what was added until now, and of nothing that is added later."""
        self._sinks = tuple(other for other in self._sinks if other is not sink)
        self._sinks_changed.set()

    def mark(self) -> Mark:
        """The place after all that was added so far."""
        return self._log.mark()

    def remember(self, past: Iterable[Event]) -> None:
        """Applies stored events to the model's history, and tells no sink of them."""
        for event in past:
            self.history.apply(event)

    def append(self, event: Event) -> None:
        self._add(event)
        if self._undelivered and not isinstance(event, StillWaiting):  # which is of use now or never
            self._undelivered.append(_Entry(event, self._sinks, ready=True))
        else:
            self._tell(event, self._sinks)

    async def record(self, *events: Event) -> None:
        # Up to the wait this is one step: who is cancelled in it has recorded all of them.
        for event in events:
            self._add(event)
        stored = self._log.store_all(
            full=any(isinstance(event, TurnEnded) for event in events), within=self._time_left()
        )
        if stored.done() and not self._undelivered:
            for event in events:
                self._tell(event, self._sinks)
        else:
            entries = [_Entry(event, self._sinks, ready=False) for event in events]
            self._undelivered.extend(entries)
            # Whoever waits here may be cancelled; what is being stored is told of all the same, once it is.
            stored.add_done_callback(lambda _: self._tell_ready(entries))
        with Wait(self, "the session to be stored", "", self._patience):
            try:
                await asyncio.shield(stored)
            except StoreSilent:
                # Nobody waits for the disk any longer, so nothing is held back for it: the turn ends in order.
                self._tell_ready(list(self._undelivered))
                raise

    def _add(self, event: Event) -> None:
        """Who subscribes from now on is not told of the event: what passes is part of what was, as of this moment."""
        self._log.add(event)
        if isinstance(event, _PASSING):
            self.passing.apply(event)

    def hurry(self) -> None:
        """A cancelled turn ends within moments, whatever its disk does: what is not stored by then is stored later.

        Until `take_time`, `record` fails with StoreSilent when time is up."""
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + HURRY

    def take_time(self) -> None:
        self._deadline = None

    def _time_left(self) -> float | None:
        return None if self._deadline is None else max(0.0, self._deadline - asyncio.get_running_loop().time())

    async def store_all(self) -> None:
        """Waits until everything so far is stored; StorageFailed if it cannot be."""
        await asyncio.shield(self._log.store_all())

    async def release(self) -> None:
        """Stores what is left and gives the log back. StorageFailed if it cannot be stored."""
        await self._log.release()

    @property
    def has_room(self) -> bool:
        """One sink holds up everyone while it cannot keep up. Of several, the fastest sets the pace."""
        return not self._sinks or any(sink.has_room for sink in self._sinks)

    async def room(self) -> None:
        while not self.has_room:
            self._sinks_changed.clear()
            changed = asyncio.ensure_future(self._sinks_changed.wait())
            waits = [changed, *(asyncio.ensure_future(sink.room()) for sink in self._sinks)]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()

    def _tell_ready(self, entries: Sequence[_Entry]) -> None:
        for entry in entries:
            entry.ready = True
        while self._undelivered and self._undelivered[0].ready:
            entry = self._undelivered.popleft()
            self._tell(entry.event, entry.sinks)

    def _tell(self, event: Event, sinks: Sequence[Sink]) -> None:
        self.history.apply(event)
        for sink in sinks:
            sink.take(event)


LONGEST = 80
LONGEST_LINE = 300
"""Characters of a line that are looked at for marks of Markdown."""
LOOKED_AT = 20_000
"""Characters of a text in which its first line is looked for."""
_FENCED = re.compile(r"^(```|~~~).*?(^\1|\Z)", re.DOTALL | re.MULTILINE)
_LINE_MARK = re.compile(r"^(?:[>\s]*(?:#{1,6}|[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?|>+\s*)+")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_EMPHASIS = re.compile(r"(?<!\w)(\*{1,3}|~~)(?=\S)(.+?)(?<=\S)\1(?!\w)")
_CODE = re.compile(r"(`+) ?(.+?) ?\1")
_MARK = re.compile(r"^(```|~~~).*$", re.MULTILINE)


class Title:
    """The title of a session of which `past` is what happened before it was opened. Empty until there is one."""

    def __init__(self, journal: Journal, past: Sequence[Event]) -> None:
        self._journal = journal
        self.on_change: Callable[[], None] = lambda: None
        self.text = next((event.title for event in reversed(past) if isinstance(event, TitleChanged)), "")

    def begin_with(self, prompt: Sequence[Sent]) -> None:
        """Takes the title from the prompt, unless there is one."""
        if not self.text:
            self.text = title_of(prompt)
            self._journal.append(TitleChanged(self.text))
            self.on_change()

    async def change(self, wish: str) -> None:
        """Gives the session the title that the person wants, as a title can be shown."""
        self.text = title_of((SentText(wish),))
        self.on_change()
        await self._journal.record(TitleChanged(self.text))


def title_of(sent: Sequence[Sent]) -> str:
    """The first line of what was typed, cut between two words; else the name of what was attached. Never empty."""
    for block in sent:
        if isinstance(block, SentText) and (line := _plain(_FENCED.sub("", block.text[:LOOKED_AT]))):
            return one_line(_cut(line), LONGEST + 1)
    for block in sent:
        if name := _name(block):
            return one_line(_cut(name), LONGEST + 1)
    return "Untitled"


def _plain(text: str) -> str:
    """The first line that says something, without the marks of Markdown: no client renders a title."""
    for line in text.splitlines():
        plain = _LINE_MARK.sub("", " ".join(line.split())[:LONGEST_LINE])
        plain = _CODE.sub(r"\2", _EMPHASIS.sub(r"\2", _LINK.sub(r"\1", plain)))
        if any(map(str.isalnum, plain)):
            return plain.strip()
    return _first_line(text)


def _first_line(text: str) -> str:
    lines = (" ".join(line.split()) for line in text.splitlines())
    return next((line for line in lines if line), "")


def _cut(line: str) -> str:
    if len(line) <= LONGEST:
        return line
    whole_words = line[:LONGEST].rpartition(" ")[0]
    return (whole_words or line[: LONGEST - 1]) + "…"


def _name(block: Sent) -> str:
    match block:
        case SentLink():
            return _first_line(block.title or block.name) or _last_part(block.uri)
        case SentResource():
            return _last_part(block.uri)
        case SentMedia():
            return _last_part(block.uri) or block.kind.capitalize()
        case SentText():
            return _first_line(_MARK.sub("", block.text[:LOOKED_AT]))


def _last_part(uri: str) -> str:
    return _first_line(uri.rstrip("/").rpartition("/")[2])
