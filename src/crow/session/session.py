"""A session: one conversation, and at most one running turn."""

import asyncio
import logging
from collections.abc import Sequence

from crow.errors import CrowError, ModelRejected, StorageFailed
from crow.events import Notice, Sent, TurnEnded
from crow.messages import StopReason
from crow.session.journal import SessionJournal
from crow.turn.conversation import Conversation, TurnIds
from crow.turn.loop import run_turn, skip_turn
from crow.workspace.terminals import Terminals

logger = logging.getLogger(__name__)


class Busy(CrowError):
    """A turn is running, and a session has only one at a time."""


class Turn:
    """A running turn. Cancelling its task is the one way to stop it; once asked for, `cancelled` is how it ends."""

    def __init__(self, conversation: Conversation, journal: SessionJournal, turn_id: str) -> None:
        self._conversation = conversation
        self._journal = journal
        self._id = turn_id
        self._task: asyncio.Task[StopReason] | None = None
        self._begun = False
        self.cancelling = False

    def start(self, sent: Sequence[Sent], after: "Turn | None") -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(sent, after))

    def cancel(self) -> None:
        self.cancelling = True
        if self._task is not None and self._begun:
            self._task.cancel()

    @property
    def over(self) -> bool:
        return self._task is not None and self._task.done()

    async def ended(self) -> None:
        """Waits for the end, however it comes; raises nothing of the turn's own."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def outcome(self) -> StopReason:
        """Why it stopped, or the error that stopped it. Giving up this wait does not stop the turn."""
        await self.ended()
        if self._task is None:
            raise RuntimeError("the turn was never started")
        return self._task.result()

    async def _run(self, sent: Sequence[Sent], after: "Turn | None") -> StopReason:
        try:
            if after is not None:
                await after.ended()
            self._begun = True
            turn = skip_turn if self.cancelling else run_turn
            stop_reason = await turn(self._conversation, TurnIds(self._id), sent)
        except asyncio.CancelledError:
            stop_reason = StopReason.CANCELLED
        except Exception as error:
            if not self.cancelling:  # libraries raise all sorts of things when their work is aborted
                rejected = isinstance(error, ModelRejected)
                await self._end(TurnEnded(self._id, None, str(error), rejected=rejected))
                raise
            logger.info("a cancelled turn ended with %s", type(error).__name__)
            stop_reason = StopReason.CANCELLED
        if self.cancelling:
            stop_reason = StopReason.CANCELLED
        await self._end(TurnEnded(self._id, stop_reason))
        return stop_reason

    async def _end(self, ended: TurnEnded) -> None:
        """The turn is over all the same if that cannot be stored; the person is told why."""
        try:
            await self._journal.record(ended)
        except StorageFailed as failed:
            self._journal.append(Notice("error", str(failed)))


class Session:
    def __init__(self, id: str, conversation: Conversation, journal: SessionJournal, terminals: Terminals) -> None:
        self.id = id
        self._terminals = terminals
        self._conversation = conversation
        self._journal = journal
        self._turns = 0
        self._turn: Turn | None = None

    def start_turn(self, sent: Sequence[Sent]) -> Turn:
        """Begins a turn at once, so that a cancel that follows cannot come too early. Raises Busy if one runs.

        A turn that is being cancelled is waited for: the person has already moved on to the next prompt.
        """
        before = self._turn if self._turn is not None and not self._turn.over else None
        if before is not None and not before.cancelling:
            raise Busy("A turn is already running in this session.", remedy="Wait for its end, or cancel it first.")
        self._turns += 1
        self._turn = Turn(self._conversation, self._journal, f"t{self._turns}")
        self._turn.start(sent, before)
        return self._turn

    def cancel(self) -> None:
        """Ends the running turn, if there is one. Twice is as good as once."""
        if self._turn is not None and not self._turn.over:
            self._turn.cancel()

    def tell(self, notice: Notice) -> None:
        """Something the person should know, outside any turn."""
        self._journal.append(notice)

    async def close(self) -> None:
        """Cancels the turn and lets go of everything."""
        self.cancel()
        if self._turn is not None:
            await self._turn.ended()
        await asyncio.gather(self._terminals.close(), self._conversation.model.close())
