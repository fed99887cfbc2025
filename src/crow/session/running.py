"""A turn while it runs: it can be waited for and cancelled, and its end is stored, however it comes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from crow.errors import ModelRejected, StorageFailed
from crow.events import Notice, TurnEnded, TurnIds
from crow.messages import StopReason
from crow.session.journal import SessionJournal

logger = logging.getLogger(__name__)


class RunningTurn:
    """Cancelling its work is the one way to stop it; once asked for, `cancelled` is how it ends.

    The work is a task of its own and is cancelled once: what it does then, such as settling its calls, is never
    interrupted by another cancel. Nor is the end of the turn, which nobody can cancel: a cancel that comes while the
    end is being stored comes too late.
    """

    def __init__(
        self, turn_id: str, journal: SessionJournal, answer: Callable[["RunningTurn", TurnIds], Awaitable[StopReason]]
    ) -> None:
        self._id = turn_id
        self._journal = journal
        self._answer = answer
        self._task: asyncio.Task[StopReason] | None = None
        self._work: asyncio.Task[StopReason] | None = None
        """The work, from its first step on: a task that is cancelled before it would never run, and lose the prompt."""
        self.cancelling = False

    def start(self, after: "RunningTurn | None") -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(after))

    def cancel(self) -> None:
        if not self.cancelling and self._work is not None:
            self._journal.hurry()
            self._work.cancel()
        self.cancelling = True

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

    async def _run(self, after: "RunningTurn | None") -> StopReason:
        if after is not None:
            await after.ended()
        if self.cancelling:
            self._journal.hurry()
        try:
            return await self._whole()
        finally:
            self._journal.take_time()

    async def _whole(self) -> StopReason:
        work = asyncio.get_running_loop().create_task(self._begin())
        await asyncio.wait([work])
        try:
            stop_reason = work.result()
        except asyncio.CancelledError:
            stop_reason = StopReason.CANCELLED
        except Exception as error:
            if not self.cancelling:  # libraries raise all sorts of things when their work is aborted
                await self._fail(error)
                raise
            logger.info("a cancelled turn ended with %s", type(error).__name__)
            stop_reason = StopReason.CANCELLED
        return await self._end(StopReason.CANCELLED if self.cancelling else stop_reason)

    async def _begin(self) -> StopReason:
        self._work = asyncio.current_task()
        return await self._answer(self, TurnIds(self._id))

    async def _fail(self, error: Exception) -> None:
        ended = TurnEnded(self._id, None, str(error), rejected=isinstance(error, ModelRejected))
        if isinstance(error, StorageFailed):  # the same wait once more would tell nothing new
            self._journal.append(ended)
            return
        try:
            await self._journal.record(ended)
        except StorageFailed as failed:
            logger.warning("the end of a failed turn is not stored: %s", failed)

    async def _end(self, stop_reason: StopReason) -> StopReason:
        """A turn whose end cannot be stored has failed, unless it was cancelled: that is the answer then."""
        try:
            await self._journal.record(TurnEnded(self._id, stop_reason))
        except StorageFailed as failed:
            if stop_reason is not StopReason.CANCELLED:
                raise
            self._journal.append(Notice("error", str(failed)))
        return stop_reason
