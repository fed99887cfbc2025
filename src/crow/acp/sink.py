"""Where a token becomes an update: a session's events, sent to its client.

Text goes out at once if nothing was sent in the last 16 ms, which is what a screen can show; faster deltas are
joined and go out together at the end of that time. Anything else first sends the text that came before it.
"""

import asyncio

from crow import events
from crow.acp import translate, wire
from crow.acp.connection import Connection
from crow.results import DisplayBlock

FRAME = 0.016
"""Seconds between two chunks of a fast stream: about sixty a second."""
LONGEST_CHUNK = 1024 * 1024
"""Characters: some clients take no line over 10 MiB, and a character may need six bytes of it."""


class UpdateSink:
    def __init__(self, connection: Connection, session_id: str, *, takes_notices: bool) -> None:
        self._connection = connection
        self._session_id = session_id
        self._takes_notices = takes_notices
        self._in_turn = False
        self._held: list[events.Notice] = []
        self._notices = 0
        self._asked: dict[str, tuple[DisplayBlock, ...]] = {}
        self._loop = asyncio.get_running_loop()
        self._delta: events.TextDelta | events.ThoughtDelta | None = None
        self._texts: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._last_sent = 0.0

    @property
    def has_room(self) -> bool:
        return self._connection.has_room

    async def room(self) -> None:
        await self._connection.room()

    def take(self, event: events.Event) -> None:
        match event:
            case events.TextDelta() | events.ThoughtDelta():
                self._grow(event)
            case events.Notice():
                self._flush()
                self._tell(event)
            case events.TurnStarted():
                self._in_turn = True
                self._tell_held()
            case events.TurnEnded():
                self._flush()
                self._in_turn = False
            case events.PermissionAsked():
                self._flush()
                self._asked[event.call_id] = event.display
            case events.CallSettled():
                self._flush()
                self._send(self._settled(event))
            case _:
                self._flush()
                for update in translate.updates(event):
                    self._send(update)

    def _grow(self, event: events.TextDelta | events.ThoughtDelta) -> None:
        if self._delta is not None and self._delta.message_id != event.message_id:
            self._flush()
        self._delta = event
        self._texts.append(event.text)
        if self._timer is None:
            due = self._last_sent + FRAME
            if self._loop.time() >= due:
                self._flush()
            else:
                self._timer = self._loop.call_at(due, self._flush)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._delta is not None:
            delta, text = self._delta, "".join(self._texts)
            self._delta = None
            self._texts.clear()
            self._last_sent = self._loop.time()
            for start in range(0, len(text), LONGEST_CHUNK):
                self._send(translate.text_chunk(delta, text[start : start + LONGEST_CHUNK]))

    def _settled(self, event: events.CallSettled) -> wire.Update:
        """A large diff that was approved as it is has been sent with the question, and is not sent once more."""
        approved = self._asked.pop(event.call_id, ())
        known = bool(approved) and approved == event.result.display and translate.is_large(approved)
        return translate.settled(event, with_content=not known)

    def _tell(self, notice: events.Notice) -> None:
        """A client that knows no notices gets a message; but messages belong into turns, so it may have to wait."""
        if self._takes_notices:
            self._send(translate.notice(notice))
        elif self._in_turn:
            self._notices += 1
            self._send(translate.notice_as_message(notice, f"notice-{self._notices}"))
        else:
            self._held.append(notice)

    def _tell_held(self) -> None:
        held, self._held = self._held, []
        for notice in held:
            self._tell(notice)

    def _send(self, update: wire.Update) -> None:
        params = wire.SessionNotification(session_id=self._session_id, update=update)
        self._connection.notify("session/update", params)
