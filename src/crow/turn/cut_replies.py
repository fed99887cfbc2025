"""Goes on after a reply that broke off in the middle: what had come of it stays, and the model is asked for the rest.

The same request sent again would show the person everything twice. So the beginning is a message of its own in the
history, and behind it the model is asked to go on. Calls whose arguments had begun to come are settled as not run.
"""

import asyncio

from crow.errors import ModelUnavailable, ReplyBroken
from crow.events import Journal, ReplyCut
from crow.model.base import Waiting
from crow.model.retries import ReplyRetries
from crow.turn.history import History
from crow.turn.reply import Reply, retry_notice


class CutReplies:
    """For one turn. `retries` are shared with the requests: an outage has one budget, whenever in a reply it comes."""

    def __init__(self, retry_wait: float, history: History, journal: Journal) -> None:
        self.retries = ReplyRetries(retry_wait)
        self._history = history
        self._journal = journal
        self._pause: Waiting | None = None
        self._has_news = False
        self.text_id = ""
        """The message that broke off: what comes next goes on with it."""
        self.text = ""
        """What it says so far."""

    def take(self, failure: ModelUnavailable | ReplyBroken, reply: Reply) -> None:
        """Lets the turn go on after this; raises the failure if nothing of the reply had come, as it was tried again by
        then, or if the time for attempts is up."""
        self._has_news = self._history.is_replying
        if not (self._has_news or reply.repeats):
            raise failure
        self._pause = Waiting(failure.message, *self.retries.pause_after(failure))
        self.text_id = reply.text_id
        self.text = reply.text if reply.text_id else ""

    def end(self) -> None:
        """A reply has come whole."""
        self.retries.reset()
        self.text_id = self.text = ""

    async def pause(self) -> None:
        """Waits, if a reply has just broken off."""
        if self._pause is None:
            return
        pause, self._pause = self._pause, None
        self._journal.append(retry_notice(pause))
        await asyncio.sleep(pause.seconds)
        if self._has_news:  # else it had only begun to say again what is there
            self._journal.append(ReplyCut())
