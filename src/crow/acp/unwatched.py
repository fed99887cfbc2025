"""Sessions that no client watches: in most processes they end with their last client; in `crow web` they go on, and end
when they have been idle for long.
"""

import asyncio
from collections.abc import Awaitable, Callable

from crow.config.settings import FacesSettings
from crow.session.session import Session

IDLE_LIFETIME = 15 * 60.0
"""Seconds for which a session is kept that nobody watches and in which nothing happens."""


class Unwatched:
    """`close` ends a session, unless somebody watches it after all."""

    def __init__(self, close: Callable[[Session], Awaitable[None]], *, go_on: bool) -> None:
        self.go_on = go_on
        """Whether sessions go on without a client."""
        self._close = close
        self._closing: set[asyncio.Future[None]] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        """By session id: when it is looked at next. One for each session, however often its last client leaves it."""

    def keeps(self, session: Session, *, is_closed: bool) -> bool:
        """Whether a session lives on that its last client has left. `is_closed`: the client closed it, which does not
        end what is at work in it."""
        if not self.go_on or (is_closed and not session.is_at_work):
            return False
        self._look_later(session)
        return True

    def question_timeout(self, settings: FacesSettings) -> float:
        """Seconds for which a question of a session waits for somebody to come."""
        return settings.questions * 60.0 if self.go_on else 0.0

    def _look_later(self, session: Session) -> None:
        if (timer := self._timers.pop(session.id, None)) is not None:
            timer.cancel()
        self._timers[session.id] = asyncio.get_running_loop().call_later(IDLE_LIFETIME, self._look_at, session)

    def _look_at(self, session: Session) -> None:
        del self._timers[session.id]
        if session.faces.present:
            return  # whoever leaves it as the last one has it looked at again
        if session.is_at_work:
            self._look_later(session)
            return
        closing = asyncio.ensure_future(self._close(session))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
