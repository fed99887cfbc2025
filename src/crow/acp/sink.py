"""Where a token becomes an update: sends a session's events to one client, and merges text that comes faster than a
screen can show it.

Text is sent at once at any pace up to what a screen can show; only deltas of a faster stream are joined and sent
together (`TextPace`). Anything else first sends the text that came before it.

A session that is loaded is shown through `replay`, each thing once and whole.
"""

import asyncio
from collections.abc import Iterable
from typing import TypeVar

from msgspec.structs import replace

from crow import events
from crow.acp import translate, translate_session, wire
from crow.acp.shown_calls import CallEvent, ShownCalls
from crow.events import milliseconds_now
from crow.live.face import ClientKnowledge
from crow.rpc.connection import Connection
from crow.session.replay import PastCall, PastItem, PastMessage, PastPrompt, PastRemark
from crow.store.base import SessionEntry
from crow.turn.spending import Spending

CHUNKS_PER_SECOND = 66.0
SAVED_CHUNKS = 6.6
"""What may be sent in a burst: the chunks of a tenth of a second. No second has more than the sum of the two."""

LONGEST_END = 100
"""Characters of a text in which its last line ends are looked for."""
_BLANKS = dict.fromkeys(map(ord, " \t\r"))
LONGEST_HOLD = 0.016
"""Seconds that a delta waits for the next one: as long as it takes to earn a chunk, which is a frame of a screen."""
BREATH = 32
"""Updates of a replay after which others get their turn."""

_Delta = events.TextDelta | events.ThoughtDelta
_Message = TypeVar("_Message", bound=_Delta | events.CrowSaid)


class UpdateSink:
    """`shows_output_in` is the session's folder for a client that shows the raw output of commands; None for others."""

    def __init__(
        self,
        connection: Connection,
        session_id: str,
        known: ClientKnowledge | None = None,
        *,
        takes_notices: bool,
        takes_compactions: bool = False,
        takes_state: bool = False,
        takes_changes: bool = False,
        shows_output_in: str | None = None,
    ) -> None:
        self._connection = connection
        self._session_id = session_id
        self.known = known or ClientKnowledge("")
        self._takes_state = takes_state
        self._takes_notices = takes_notices
        self._takes_compactions = takes_compactions
        self._mode = ""
        """The one that the client believes the session to be in."""
        self._spending = Spending()
        self._in_turn = False
        self._held: list[events.Notice] = []
        self._notices = 0
        self._paragraphs = Paragraphs()
        self._message_id = ""
        """The message whose text came last."""
        self._takes_changes = takes_changes
        self._calls = ShownCalls(
            self._send,
            self.known.terminals,
            shows_output_in,
            takes_changes=takes_changes,
            can_type=self.known.can_type,
        )
        self._plan: tuple[events.PlanEntry, ...] | None = None
        """The one that the client shows."""
        self._loop = asyncio.get_running_loop()
        self._delta: _Delta | None = None
        self._texts: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._pace = TextPace(self._loop.time())

    @property
    def has_room(self) -> bool:
        return self._connection.has_room

    @property
    def unsent(self) -> int:
        return self._connection.unsent

    async def room(self) -> None:
        await self._connection.room()

    def tell_at_once(self, notice: events.Notice) -> None:
        self._flush()
        in_turn, self._in_turn = self._in_turn, True
        self._send_notice(notice)
        self._in_turn = in_turn

    def close(self) -> None:
        self._delta = None
        if self._timer is not None:
            self._timer.cancel()
        self._calls.close()

    def take(self, event: events.Event) -> None:
        if isinstance(event, _Delta):
            self._calls.show_held()
            self._grow(self._as_paragraph(event))
            return
        self._flush()
        if isinstance(event, events.CrowSaid):
            event = self._as_paragraph(event)
            self._paragraphs.follow(event.text)
        if isinstance(event, events.ArgumentsGrew):
            return  # previews show what arrives
        if isinstance(event, CallEvent):
            self._calls.take(event)
            return
        if not isinstance(event, events.UsageReported):  # shown beside the text: it can overtake no call
            self._calls.show_held()
        self._send_event(event)

    def _as_paragraph(self, event: _Message) -> _Message:
        """Begins a new message with a paragraph of its own."""
        if event.message_id == self._message_id or isinstance(event, events.ThoughtDelta):
            return event
        self._message_id = event.message_id
        self._flush()
        return replace(event, text=f"{self._paragraphs.gap()}{event.text}")

    def _past_known_to_client(self, item: PastItem) -> PastItem:
        """A client that knows no compactions is told of one in words, as it was when it happened."""
        if isinstance(item, events.CompactionEnded) and not self._takes_compactions:
            return PastRemark(f"notice-past-{item.compaction_id}", translate.compaction_as_notice(item).text)
        return item

    def _past_as_paragraph(self, item: PastItem) -> PastItem:
        """Begins a replayed message with a paragraph of its own, as `_as_paragraph` does with live text."""
        if isinstance(item, PastPrompt):
            self._paragraphs.forget()
        if not isinstance(item, PastMessage | PastRemark) or not item.text:
            return item
        gap = self._paragraphs.gap()
        self._paragraphs.follow(item.text if isinstance(item, PastMessage) else "\n\n")
        return replace(item, text=f"{gap}{item.text}")

    def _send_event(self, event: events.Event) -> None:
        match event:
            case events.Notice():
                self._send_notice(event)
            case events.StillWaiting():
                self._send_wait(event)
            case events.TurnStarted():
                self._in_turn = True
                self._paragraphs.forget()
                self._send_held()
            case events.TurnEnded():
                self._in_turn = False
            case events.PlanChanged():
                self._send_plan(event)
            case events.CompactionStarted() | events.CompactionEnded():
                self._send_compaction(event)
            case events.UsageReported() | events.SubagentDid():
                self._count(event)
            case events.OptionsChanged():
                self._send_options(event.options)
            case events.TitleChanged():
                self._send(translate_session.title(event, milliseconds_now()))
            case events.CrowSaid() | events.CommandsChanged():
                self._send_all(translate.updates(event))
            case _:
                self._send_from_elsewhere(event)

    def _count(self, event: events.UsageReported | events.SubagentDid) -> None:
        if isinstance(event, events.UsageReported) or isinstance(event.what, events.UsageReported):
            self._spending.apply(event)
            self.send_usage()

    # --- a session that was there before

    def remember(self, past: Iterable[events.Event]) -> None:
        """What it has cost so far, and how full the model's window was."""
        for event in past:
            self._spending.apply(event)

    async def replay(self, items: Iterable[PastItem], *, in_turn: bool = False) -> None:
        """Shows what happened, at the client's pace. `in_turn`: a turn runs, whose open calls go on from there."""
        number = 0
        self._in_turn = in_turn
        for item in items:
            shown = self._past_as_paragraph(self._past_known_to_client(item))
            for update in translate_session.past_updates(shown, with_changes=self._takes_changes):
                self._send(self._calls.announced(update) if _goes_on(item) else update)
                number += 1
                if not self.has_room:
                    await self.room()
                elif number % BREATH == 0:  # a prompt alone may have any number of blocks
                    await asyncio.sleep(0)
            match item:
                case events.PlanChanged():
                    self._plan = item.entries
                case PastMessage():
                    self._message_id = item.message_id
                case PastCall():
                    self._calls.adopt(item)
                case _:
                    pass

    def send_title(self, entry: SessionEntry) -> None:
        """The title of a session that was loaded, once the client knows of it."""
        if entry.title:
            self._send(translate_session.stored_title(entry))

    def know(self, options: Iterable[events.SessionOption]) -> None:
        """An answer tells the client what is chosen: from then on it knows the mode."""
        modes = translate_session.modes(options)
        if modes is not None:
            self._mode = modes.current_mode_id

    def send_usage(self) -> None:
        """How full the window is, if that is known, and what the session has cost in the currency last used."""
        usage = self._spending.usage
        if usage is not None and usage.context_window is not None:
            self._send(translate.usage(usage, usage.context_window, self._spending.cost))

    # --- what happens at other faces

    def _send_from_elsewhere(self, event: events.Event) -> None:
        match event:
            case events.UserSaid() | events.CommandGiven():
                self._send_prompt(event)
            case events.PermissionAnswered():
                self._send_answer(event)
            case events.StateChanged():
                self._send_state(event)
            case _:
                pass  # another event says it, or it is only for the model or the store

    def _send_prompt(self, event: events.UserSaid | events.CommandGiven) -> None:
        """A client shows by itself what was typed there."""
        if event.message_id not in self.known.messages:
            self._send_all(translate_session.past_updates(PastPrompt(event.message_id, event.sent)))
            self._paragraphs.forget()

    def _send_answer(self, event: events.PermissionAnswered) -> None:
        """A question that was answered elsewhere has vanished here: the person is told where it was answered."""
        if event.by and event.by != self.known.name:
            self._calls.answered(event)
            what = self._calls.title_of(event.call_id)
            how = "Allowed" if event.allowed else "Rejected"
            self._send_notice(events.Notice("info", f"{how} in {event.by}{f': {what}' if what else '.'}"))

    def _send_state(self, event: events.StateChanged) -> None:
        if self._takes_state:
            self._connection.notify("_crow/state", translate_session.state(self._session_id, event))

    # --- how it is sent

    def _send_options(self, options: tuple[events.SessionOption, ...]) -> None:
        self._send(wire.ConfigOptionUpdate(config_options=translate_session.config_options(options)))
        modes = translate_session.modes(options)
        if modes is not None and modes.current_mode_id != self._mode:
            self._mode = modes.current_mode_id
            self._send(wire.CurrentModeUpdate(current_mode_id=self._mode))

    def _send_compaction(self, event: events.CompactionStarted | events.CompactionEnded) -> None:
        if self._takes_compactions:
            self._send(translate.compaction(event))
        else:
            self._send_notice(translate.compaction_as_notice(event))

    def _grow(self, event: _Delta) -> None:
        if self._delta is not None and self._delta.message_id != event.message_id:
            self._flush()
        self._delta = event
        self._texts.append(event.text)
        now = self._loop.time()
        if self._pace.may_send(now):
            self._flush()
        elif self._timer is None:
            self._timer = self._loop.call_at(now + LONGEST_HOLD, self._flush)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._delta is not None:
            delta, text = self._delta, "".join(self._texts)
            self._delta = None
            self._texts.clear()
            self._pace.spend()
            if isinstance(delta, events.TextDelta):
                self._paragraphs.follow(text)
            for piece in translate.pieces(text):
                self._send(translate.text_chunk(delta, piece))

    def _send_notice(self, notice: events.Notice) -> None:
        """A client that knows no notices gets a message; but messages belong into turns, so it may have to wait."""
        if self._takes_notices:
            self._send(translate.notice(notice))
        elif self._in_turn:
            self._notices += 1
            message = translate.notice_as_message(notice, f"notice-{self._notices}", self._paragraphs.gap())
            self._paragraphs.follow("\n\n")
            self._send(message)
        else:
            self._held.append(notice)

    def _send_wait(self, wait: events.StillWaiting) -> None:
        """As a notice, or in the call that waits, or not at all: as a message it would stay in the text for good."""
        if self._takes_notices:
            self._send(translate.wait(wait))
        else:
            self._calls.wait(wait)

    def _send_plan(self, plan: events.PlanChanged) -> None:
        if plan.entries != self._plan:
            self._plan = plan.entries
            self._send_all(translate.updates(plan))

    def _send_held(self) -> None:
        held, self._held = self._held, []
        for notice in held:
            self._send_notice(notice)

    def _send_all(self, updates: Iterable[wire.Update]) -> None:
        for update in updates:
            self._send(update)

    def _send(self, update: wire.Update) -> None:
        params = wire.SessionNotification(session_id=self._session_id, update=update)
        self._connection.notify("session/update", params)


def _goes_on(item: PastItem) -> bool:
    """Whether it is a call that is open, or that has left a command running."""
    return isinstance(item, PastCall) and (item.result is None or bool(item.result.background))


class TextPace:
    """A token bucket: a budget of chunks that refills evenly.

    A delta that finds the budget spent waits for the next delta instead of the moment when a chunk is earned: so a
    stream that is a little too fast has some of its deltas joined in pairs and all others sent without delay, where
    even spacing would delay each of them.
    """

    def __init__(self, now: float) -> None:
        self._saved = SAVED_CHUNKS
        self._counted_at = now

    def may_send(self, now: float) -> bool:
        self._saved = min(SAVED_CHUNKS, self._saved + (now - self._counted_at) * CHUNKS_PER_SECOND)
        self._counted_at = now
        return self._saved >= 1

    def spend(self) -> None:
        self._saved = max(0.0, self._saved - 1)


class Paragraphs:
    """What keeps the messages of a turn apart: many clients join all its text, whichever message it is of, and Markdown
    joins lines that have no blank one between them."""

    def __init__(self) -> None:
        self._end = ""
        """The last line ends of the turn's text so far, and what stands before them."""

    def forget(self) -> None:
        self._end = ""

    def follow(self, text: str) -> None:
        """`text` is what came of it."""
        end = text[-LONGEST_END:].translate(_BLANKS)
        self._end = (self._end + end)[-2:]

    def gap(self) -> str:
        """What stands before the next message."""
        if not self._end:
            return ""
        return "\n" * (2 - (len(self._end) - len(self._end.rstrip("\n"))))
