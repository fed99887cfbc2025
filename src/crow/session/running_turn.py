"""The turn that runs in a session: starts, steers and cancels its work, waits for its end, and stores how it ended,
however that comes.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from crow.errors import CrowError, ModelRejected, StorageFailed
from crow.events import Event, Notice, Sent, SteeringLeftOver, SteeringReceived, TurnEnded, TurnIds
from crow.messages import StopReason
from crow.session.journal import SessionJournal
from crow.session.recovery import last_turn_number
from crow.turn.steering import Steered, Steering

logger = logging.getLogger(__name__)


class RunningTurn:
    """Cancelling its work is the one way to stop it; once asked for, `cancelled` is how it ends.

    The work is a task of its own and is cancelled once: what it does then, such as settling its calls, is never
    interrupted by another cancel. Nor is the end of the turn, which nobody can cancel: a cancel that comes while the
    end is being stored comes too late.
    """

    def __init__(
        self,
        turn_id: str,
        journal: SessionJournal,
        answer: Callable[["RunningTurn", TurnIds], Awaitable[StopReason]],
        *,
        begun_at: str = "",
    ) -> None:
        """`begun_at`: the name of the client that its prompt came from."""
        self.id = turn_id
        self._journal = journal
        self._answer = answer
        self.begun_at = begun_at
        self._task: asyncio.Task[StopReason] | None = None
        self._work: asyncio.Task[StopReason] | None = None
        """The work, from its first step on: a task that is cancelled before it would never run, and lose the prompt."""
        self.cancelling = False
        self.steering = Steering(turn_id)
        self.left_over: list[SteeringLeftOver] = []
        """The messages that were accepted into the turn and that the model did not get, once it is over."""
        self.left_open = ""
        """What it ended with, if it is for the person to go on and nobody cancelled it; see `Outcome`."""
        self.is_command = False
        """Crow has answered a command of its own, and the model nothing."""
        self._accepting = asyncio.Lock()
        """One message at a time, so that those that had to wait are not overtaken by the next one."""
        self._unacknowledged: set[asyncio.Future[None]] = set()
        """One for each message that was accepted and whose sender does not know it yet."""

    def start(
        self, after: "RunningTurn | None", when_over: Callable[[TurnEnded | None], None] = lambda _: None
    ) -> None:
        """`when_over` is told how the turn ended; None if nobody knows."""
        self._task = asyncio.get_running_loop().create_task(self._run(after))
        self._task.add_done_callback(lambda task: when_over(self._end_of(task)))

    def _end_of(self, task: "asyncio.Task[StopReason]") -> TurnEnded | None:
        if task.cancelled():
            return None
        if (error := task.exception()) is None:
            return TurnEnded(self.id, task.result())
        known = isinstance(error, CrowError)
        return TurnEnded(self.id, None, str(error) if known else f"an unforeseen {type(error).__name__}")

    def cancel(self) -> None:
        if not self.cancelling and self._work is not None:
            self._journal.hurry()
            self._work.cancel()
        self.cancelling = True

    async def steer(self, sent: Sequence[Sent], on_accepted: Callable[[str], object] = lambda _: None) -> str:
        """Puts a message into the turn. Its id, once it is stored; NothingToSteer if the turn does not take it."""
        async with self._accepting:
            message = await self._accept(sent)
        on_accepted(message.message_id)
        self._journal.append(SteeringReceived(message.message_id, message.sent))
        try:
            await self._stored_or_over()
        except (StorageFailed, asyncio.CancelledError):
            if self.steering.withdraw(message):
                raise
        return message.message_id

    async def _accept(self, sent: Sequence[Sent]) -> Steered:
        await self.steering.decided()
        if self.cancelling or self.steering.is_closed:
            await self.ended()  # so that the message is welcome as a prompt once it is refused
        return self.steering.accept(sent)

    async def _stored_or_over(self) -> None:
        """Waits until everything so far is stored, but no longer than for the turn's end, whatever its disk does: from
        then on it is known what became of a message."""
        stored = asyncio.ensure_future(self._journal.store_all())
        acknowledged: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        acknowledged.add_done_callback(self._unacknowledged.discard)
        self._unacknowledged.add(acknowledged)
        try:
            await asyncio.wait(filter(None, (stored, self._task)), return_when=asyncio.FIRST_COMPLETED)
            if stored.done():
                stored.result()
        finally:
            stored.cancel()
            acknowledged.set_result(None)

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
        if self._unacknowledged:  # a message is answered before the prompt that it was said into
            await asyncio.wait(self._unacknowledged)
        return self._task.result()

    async def _run(self, after: "RunningTurn | None") -> StopReason:
        if after is not None:
            await after.ended()
        if self.cancelling:
            self._journal.hurry()
        try:
            return await self._run_until_ended()
        finally:
            self._journal.take_time()

    async def _run_until_ended(self) -> StopReason:
        """Does the turn's work and records how it ended. What the work raised is raised, unless it was cancelled."""
        work = asyncio.get_running_loop().create_task(self._begin())
        await asyncio.wait([work])
        self.left_over = self.steering.close()
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
        return await self._answer(self, TurnIds(self.id))

    async def _fail(self, error: Exception) -> None:
        ended = TurnEnded(self.id, None, str(error), rejected=isinstance(error, ModelRejected))
        if isinstance(error, StorageFailed):  # the same wait once more would tell nothing new
            for event in (*self.left_over, ended):
                self._journal.append(event)
            return
        try:
            await self._journal.record(*self.left_over, ended)
        except StorageFailed as failed:
            logger.warning("the end of a failed turn is not stored: %s", failed)

    async def _end(self, stop_reason: StopReason) -> StopReason:
        """A turn whose end cannot be stored has failed, unless it was cancelled: that is the answer then."""
        if stop_reason is StopReason.CANCELLED:
            self.left_open = ""
        try:
            await self._journal.record(*self.left_over, TurnEnded(self.id, stop_reason))
        except StorageFailed as failed:
            if stop_reason is not StopReason.CANCELLED:
                raise
            self._journal.append(Notice("error", str(failed)))
        return stop_reason


class Turns:
    """Which turns a session has had, and which one runs. `past` is what happened before the session was opened."""

    def __init__(self, past: Sequence[Event] = ()) -> None:
        self._number = last_turn_number(past)
        self._last_begun = _turn_id(self._number)
        self._newest: RunningTurn | None = None
        self._begun: RunningTurn | None = None

    @property
    def last_begun(self) -> str:
        """The id of the last turn that began; one that no turn has if none did."""
        return self._last_begun

    @property
    def newest(self) -> RunningTurn | None:
        """The last turn, until it is over. It may still wait for the end of the one before it, which is cancelled."""
        return self._newest if self._newest is not None and not self._newest.over else None

    @property
    def begun(self) -> RunningTurn | None:
        """The turn that clients are told of: from when it has begun until how it ended is known."""
        return self._begun

    def next_id(self) -> str:
        self._number += 1
        return _turn_id(self._number)

    def add(self, turn: RunningTurn) -> None:
        self._newest = turn

    def began(self, turn: RunningTurn) -> None:
        self._begun = turn
        self._last_begun = turn.id

    def ended(self) -> None:
        self._begun = None


def _turn_id(number: int) -> str:
    return f"t{number}"
