"""A session and its one running turn: starts, steers and cancels the turn, runs slash commands, and stores how the turn
ends.

A turn that runs can be waited for and cancelled, and its end is stored, however it comes.
"""

import asyncio
import contextlib
import importlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from crow.errors import CrowError, ModelRejected, StorageFailed, TurnCancelled, TurnRunning
from crow.events import (
    BackgroundEnded,
    CommandGiven,
    CommandsChanged,
    CrowSaid,
    Event,
    Notice,
    OptionChosen,
    Remark,
    Sent,
    SteeringLeftOver,
    SteeringReceived,
    TurnEnded,
    TurnIds,
    TurnStarted,
)
from crow.messages import StopReason
from crow.session.commands import Command, CommandPrompt, CommandReply, SlashCommands, blocks_after_command
from crow.session.faces.face import Face
from crow.session.faces.faces import Faces
from crow.session.journal import SessionJournal, Title
from crow.session.options import Options
from crow.session.recovery import last_turn_number
from crow.session.servers import Servers
from crow.tools.background import end_of, shown_at_end
from crow.tools.terminal import show_raw
from crow.turn.context import TurnContext
from crow.turn.steering import Steering, nothing_to_steer
from crow.workspace.base import TerminalExit
from crow.workspace.terminals import BackgroundCommand, Terminals

if TYPE_CHECKING:
    from crow.turn.loop import Outcome

logger = logging.getLogger(__name__)

COMMAND = "What is running is a command of Crow's own, which takes no messages."


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
        """`begun_at`: the name of the face from which its prompt came."""
        self._id = turn_id
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
            return TurnEnded(self._id, task.result())
        known = isinstance(error, CrowError)
        return TurnEnded(self._id, None, str(error) if known else f"an unforeseen {type(error).__name__}")

    def cancel(self) -> None:
        if not self.cancelling and self._work is not None:
            self._journal.hurry()
            self._work.cancel()
        self.cancelling = True

    async def steer(self, sent: Sequence[Sent], face: Face | None = None) -> str:
        """Puts a message into the turn. Its id, once it is stored; NothingToSteer if the turn does not take it."""
        await self.steering.decided()
        if self.cancelling or self.steering.is_closed:
            await self.ended()  # so that the message is welcome as a prompt once it is refused
        message = self.steering.accept(sent)
        if face is not None:
            face.known.messages.add(message.message_id)
        self._journal.append(SteeringReceived(message.message_id, message.sent))
        try:
            await self._stored_or_over()
        except (StorageFailed, asyncio.CancelledError):
            if self.steering.withdraw(message):
                raise
        return message.message_id

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
        return await self._answer(self, TurnIds(self._id))

    async def _fail(self, error: Exception) -> None:
        ended = TurnEnded(self._id, None, str(error), rejected=isinstance(error, ModelRejected))
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
        try:
            await self._journal.record(*self.left_over, TurnEnded(self._id, stop_reason))
        except StorageFailed as failed:
            if stop_reason is not StopReason.CANCELLED:
                raise
            self._journal.append(Notice("error", str(failed)))
        return stop_reason


class SessionParts(msgspec.Struct, frozen=True):
    """What a session is made of."""

    journal: SessionJournal
    terminals: Terminals
    options: Options
    commands: SlashCommands
    servers: Servers
    title: Title
    faces: Faces
    turn_context: Callable[[], TurnContext]
    """What a turn that begins now may know."""
    past: Sequence[Event] = ()
    """What happened in the session before it was opened."""


class Session:
    def __init__(self, id: str, parts: SessionParts) -> None:
        self.id = id
        self.options = parts.options
        self.faces = parts.faces
        self.left_open = ""
        """What the last turn ended with, if it is for the person to go on; see `Outcome`."""
        self._terminals = parts.terminals
        self._terminals.on_growth = self._background_grew
        self._terminals.on_end = self._background_ended
        self._ended: list[BackgroundCommand] = []
        """Commands in the background that ended during a turn: the person is told at its end."""
        self._journal = parts.journal
        self._commands = parts.commands
        self._servers = parts.servers
        self._title = parts.title
        self._turn_context = parts.turn_context
        self._turns = last_turn_number(parts.past)
        self._turn: RunningTurn | None = None
        self._remarks: list[Notice] | None = []
        """What there is to tell once the client knows of the session; None from then on."""
        self._looking: asyncio.Task[None] | None = None
        self._last_look: asyncio.Task[None] | None = None

    # --- its beginning

    def store_choices(self) -> None:
        """Of a new session: what it begins with is stored, whatever the configuration says when it is loaded."""
        for option in self.options.all():
            if option.id != "thought_level":
                self._journal.append(OptionChosen(option.id, option.value))

    def welcome(self, face: Face) -> None:
        """The client of a face knows of the session now: it is told what else there is to know."""
        if self._remarks is not None:
            self._begin(self._remarks)
        self.faces.welcome(face)

    def _begin(self, remarks: Sequence[Notice]) -> None:
        self._remarks = None
        for remark in remarks:
            self._journal.append(remark)
        self._commands.watch()
        self._looking = asyncio.get_running_loop().create_task(self._look_for_commands())
        self.options.look_for_models(self.until_idle)
        self._servers.start()
        self.options.warm_up()
        asyncio.get_running_loop().run_in_executor(None, _import_turn)

    def tell(self, notice: Notice) -> None:
        """Something the person should know, outside any turn."""
        if self._remarks is None:
            self._journal.append(notice)
        else:
            self._remarks.append(notice)

    # --- its turns

    def start_turn(self, sent: Sequence[Sent], face: Face | None = None) -> RunningTurn:
        """Begins a turn at once, so that a cancel that follows cannot come too early. Raises TurnRunning if one runs.

        A turn that is being cancelled is waited for: the person has already moved on to the next prompt.
        """
        before = self.check_accepts_turn(face)
        self._turns += 1
        turn_id = f"t{self._turns}"
        begun_at = self.faces.prompted(face, turn_id)
        self._turn = RunningTurn(
            turn_id, self._journal, lambda turn, ids: self._answer(turn, ids, sent), begun_at=begun_at
        )
        self._turn.start(before, self._turn_ended)
        return self._turn

    def _turn_ended(self, ended: TurnEnded | None) -> None:
        is_cancelled = ended is not None and ended.stop_reason is StopReason.CANCELLED
        self.faces.turn_ended(ended, "" if is_cancelled else self.left_open)

    def check_accepts_turn(self, face: Face | None) -> RunningTurn | None:
        """The turn that a new one has to wait for, if there is one. TurnRunning if a turn runs that nobody cancels."""
        before = self._turn if self._turn is not None and not self._turn.over else None
        if before is not None and not before.cancelling:
            raise TurnRunning(self._is_running(before, face), remedy="Wait for its end, or cancel it first.")
        return before

    def _is_running(self, turn: RunningTurn, face: Face | None) -> str:
        elsewhere = turn.begun_at if face is not None and turn.begun_at != face.name else ""
        return f"A turn is already running in this session{f', begun in {elsewhere}' if elsewhere else ''}."

    @property
    def last_turn(self) -> str:
        """The id of the last turn that began; one that no turn has if none did."""
        return f"t{self._turns}"

    async def steer(self, sent: Sequence[Sent], face: Face | None = None) -> str:
        """Puts a message into the running turn. Its id, once it is stored; NothingToSteer if no turn takes it.

        The model gets it as it is, also if it begins with a slash. All faces but the one that it came from are shown it
        where the model gets it.
        """
        if self._turn is None or self._turn.over:
            raise nothing_to_steer()
        return await self._turn.steer(sent, face)

    def cancel(self) -> None:
        """Ends the running turn, if there is one. Twice is as good as once."""
        if self._turn is not None and not self._turn.over:
            self._turn.cancel()

    async def stop_and_store(self) -> None:
        """Ends the running turn and stores everything that happened; StorageFailed if that cannot be done."""
        await self._stop()
        await self._journal.store_all()

    async def store_all(self) -> None:
        """Everything that has happened so far is stored when this returns; StorageFailed if it cannot be."""
        await self._journal.store_all()

    async def close(self) -> None:
        """Cancels the turn and lets go of everything; StorageFailed if something of it could not be stored."""
        await self._stop()
        for look in (self._looking, self._last_look):
            if look is not None:
                look.cancel()
        self._commands.close()
        *_, stored = await asyncio.gather(
            self._servers.close(),
            self._terminals.close(),
            self.options.close(),
            self._journal.release(),
            return_exceptions=True,
        )
        if isinstance(stored, BaseException):
            raise stored

    async def _stop(self) -> None:
        self.cancel()
        if self._turn is not None:
            await self._turn.ended()

    async def until_idle(self) -> None:
        """Waits for the end of the running turn, and of one that follows it at once."""
        while self._turn is not None and not self._turn.over:
            await self._turn.ended()

    async def _answer(self, turn: RunningTurn, ids: TurnIds, sent: Sequence[Sent]) -> StopReason:
        if not turn.cancelling:
            with contextlib.suppress(asyncio.CancelledError):  # the turn is skipped then: what was said stays said
                await self._tell_commands()
        found = self._commands.find(sent)
        self.left_open = ""
        if found is None:
            self._title.begin_with(sent)
            turn.steering.open()
        else:
            turn.steering.refuse(COMMAND)
        self._journal.append(TurnStarted(ids.turn_id))
        self.faces.turn_began(ids.turn_id, turn.begun_at)
        context = self._turn_context()

        context = replace(self._turn_context(), steering=turn.steering)
        context.purse.begin_turn(context.model.info)
        try:
            if found is not None:
                return await self._run_slash_command(turn, context, ids, sent, *found)
            from crow.turn.loop import run_turn, skip_turn

            return self._ended_with(await (skip_turn if turn.cancelling else run_turn)(context, ids, sent))
        finally:
            # Nobody waits for it: a cancelled turn ends at once, whatever its disk does.
            self._last_look = asyncio.get_running_loop().create_task(self._tell_commands())
            self._tell_ended()

    def _ended_with(self, outcome: "Outcome") -> StopReason:
        self.left_open = outcome.left_open
        return outcome.stop_reason

    def _background_grew(self, command: BackgroundCommand) -> None:
        if self._journal.has_room:  # else with what it prints next, or at its end
            show_raw(command.terminal, command.call_id, self._journal)

    def _background_ended(self, command: BackgroundCommand) -> None:
        ending = command.exit or TerminalExit()
        show_raw(command.terminal, command.call_id, self._journal, last=True)
        self._journal.append(BackgroundEnded(command.call_id, shown_at_end(command, ending)))
        self._ended.append(command)
        if self._turn is None or self._turn.over:
            self._tell_ended()

    def _tell_ended(self) -> None:
        """The person is told of the commands that have ended, unless they have seen it in a call."""
        ended, self._ended = self._ended, []
        for command in ended:
            if not command.read_to_end:
                self._journal.append(Remark("info", end_of(command)))

    async def _run_slash_command(
        self,
        turn: RunningTurn,
        context: TurnContext,
        ids: TurnIds,
        sent: Sequence[Sent],
        command: Command,
        arguments: str,
    ) -> StopReason:
        journal = self._journal
        await journal.record(CommandGiven(ids.message(), tuple(sent)))
        if turn.cancelling:
            return StopReason.CANCELLED
        try:
            answer = await command.run(arguments, blocks_after_command(sent), ids)
        except TurnCancelled:
            return StopReason.CANCELLED
        except StorageFailed:
            raise
        except CrowError as error:
            answer = CommandReply(str(error))
        if isinstance(answer, CommandPrompt):
            # What the person typed is in the journal already; this is what it stands for.
            self._title.begin_with(sent)
            turn.steering.open()
            from crow.turn.loop import run_turn

            return self._ended_with(await run_turn(context, ids, answer.sent, typed=False))
        journal.append(CrowSaid(ids.message(), answer.text))
        return StopReason.END_TURN

    async def _look_for_commands(self) -> None:
        """Also between turns: a command that was just written can be completed where the person types it."""
        while True:
            await self.until_idle()
            await self._tell_commands()
            await self._commands.due()

    async def _tell_commands(self) -> None:
        commands = await self._commands.changed()
        if commands is not None:
            self._journal.append(CommandsChanged(commands))


def _import_turn() -> None:
    """What the first turn needs and the session's beginning does not."""
    for module in ("crow.turn.loop", "crow.session.toolset", "crow.policy.deed_verdicts"):
        importlib.import_module(module)
