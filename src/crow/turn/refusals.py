"""A request that is refused as invalid: sent again without what the provider may have choked on, so that no session
is ever stuck with a history that nobody takes.

First without thoughts and what else only their provider understands, then with the message that the refusal names as
plain text, then with all calls, results and attachments as plain text. What was accepted is an event of its own: from
then on, and after a reload, the history is sent that way.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from crow.errors import CallMalformed, ContextOverflow, ModelRejected
from crow.events import HistorySimplified, Journal, Remark
from crow.messages import AssistantMessage
from crow.model.base import Awaiting, ModelEvent, Noticed, Waiting
from crow.model.faults import NO_MONEY
from crow.turn.compaction import RoomKeeper
from crow.turn.history_messages import can_be_flattened, has_thoughts, whole_rounds
from crow.turn.requests import Requests

INVALID = (400, 422)


class RefusalRecovery:
    """For one turn."""

    def __init__(self, requests: Requests, journal: Journal, keeper: RoomKeeper) -> None:
        self._history = requests.history
        self._requests = requests
        self._journal = journal
        self._keeper = keeper
        self.without: HistorySimplified | None = None
        """How the next request differs from the history; None if it does not."""
        self._refusal: ModelRejected | None = None
        """The first one: what was done about it is of no interest if it did not help."""
        self._left_out = ""

    async def recover(self, refusal: ModelRejected) -> None:
        """Sees to it that the next request differs from the one that was refused. Raises the refusal if there is
        nothing left to be done about it."""
        if isinstance(refusal, ContextOverflow):
            await self._keeper.recover(refusal)
            self.without = self._refusal = None  # which were about the history as it was before that
            return
        first = self._refusal or refusal
        if isinstance(refusal, CallMalformed):  # which was about the reply, not about the history
            raise refusal
        if refusal.status not in INVALID or NO_MONEY.search(refusal.said) or self._history.is_replying:
            raise first
        step = self._next(refusal)
        if step is None:
            raise first
        self._refusal = first
        self.without, self._left_out = step

    def _next(self, refusal: ModelRejected) -> tuple[HistorySimplified, str] | None:
        history, before = self._history, self.without
        entries = history.entries()
        thoughts = any(map(has_thoughts, entries))
        if before is None and thoughts and history.refused_thoughts:  # again: so will it be with every other one
            name = self._requests.info.name
            return HistorySimplified(thoughts=True, model=name), f"{name} gets none of its thoughts back"
        if before is None and thoughts:
            return HistorySimplified(thoughts=True), "the model's earlier thoughts are no longer sent"
        groups = history.groups(before)
        named = [place for sent in refusal.positions if sent < len(groups) for place in groups[sent]]
        if (places := whole_rounds(entries, named)) and not (before and before.flattened):
            what = _what(isinstance(entries[places[0]], AssistantMessage))
            return HistorySimplified(thoughts=thoughts, flattened=places), what
        places = tuple(place for place, message in enumerate(entries) if can_be_flattened(message))
        if places and (before is None or before.flattened != places):
            what = "earlier tool calls, their results and attachments are sent as plain text"
            return HistorySimplified(thoughts=thoughts, flattened=places), what
        return None

    def watched(self, stream: AsyncGenerator[ModelEvent, None]) -> AsyncGenerator[ModelEvent, None]:
        """The stream itself, unless the person has to be told what its request left out."""
        return stream if self.without is None else self._told(self.without, stream)

    async def _told(
        self, without: HistorySimplified, stream: AsyncGenerator[ModelEvent, None]
    ) -> AsyncGenerator[ModelEvent, None]:
        async with aclosing(stream):
            async for event in stream:
                if self.without is not None and not isinstance(event, Waiting | Noticed | Awaiting):
                    self._accepted(without)
                yield event

    def _accepted(self, without: HistorySimplified) -> None:
        journal, refusal = self._journal, self._refusal
        journal.append(without)
        if refusal is not None:
            title = f"{refusal.provider} refused the conversation as it was: from now on {self._left_out}."
            journal.append(Remark("warning", title, refusal.message))
        self.without = self._refusal = None


def _what(is_round: bool) -> str:
    return f"{'a round of tool calls' if is_round else 'a message'} that it would not take is sent as plain text"
