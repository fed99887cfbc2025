"""A session: one conversation, and at most one running turn."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from crow.errors import CrowError, ModelRejected, StorageFailed, TurnCancelled, TurnRunning
from crow.events import (
    CommandGiven,
    CommandsChanged,
    CrowSaid,
    Event,
    Notice,
    OptionChosen,
    Sent,
    TitleChanged,
    TurnEnded,
    TurnStarted,
)
from crow.messages import StopReason
from crow.session.commands import Command, Commands, Prompt, Reply, rest_of
from crow.session.journal import SessionJournal
from crow.session.mending import last_turn_number
from crow.session.options import Options
from crow.session.servers import Servers
from crow.session.title import title_of
from crow.turn.conversation import Conversation, TurnIds
from crow.turn.loop import run_turn, skip_turn
from crow.workspace.terminals import Terminals

logger = logging.getLogger(__name__)

LOOK_EVERY = 2.0
"""Seconds between two looks for new commands while nothing else happens: some dates of files."""


class Turn:
    """A running turn. Cancelling its task is the one way to stop it; once asked for, `cancelled` is how it ends."""

    def __init__(
        self, turn_id: str, journal: SessionJournal, answer: Callable[["Turn", TurnIds], Awaitable[StopReason]]
    ) -> None:
        self._id = turn_id
        self._journal = journal
        self._answer = answer
        self._task: asyncio.Task[StopReason] | None = None
        self._begun = False
        self.cancelling = False

    def start(self, after: "Turn | None") -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(after))

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

    async def _run(self, after: "Turn | None") -> StopReason:
        try:
            if after is not None:
                await after.ended()
            self._begun = True
            stop_reason = await self._answer(self, TurnIds(self._id))
        except asyncio.CancelledError:
            stop_reason = StopReason.CANCELLED
        except Exception as error:
            if not self.cancelling:  # libraries raise all sorts of things when their work is aborted
                await self._fail(error)
                raise
            logger.info("a cancelled turn ended with %s", type(error).__name__)
            stop_reason = StopReason.CANCELLED
        return await self._end(StopReason.CANCELLED if self.cancelling else stop_reason)

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


class Session:
    """`past` is what happened in it before it was opened."""

    def __init__(
        self,
        id: str,
        conversation: Conversation,
        journal: SessionJournal,
        terminals: Terminals,
        options: Options,
        commands: Commands,
        past: Sequence[Event] = (),
        servers: Servers | None = None,
    ) -> None:
        self.id = id
        self.options = options
        self._terminals = terminals
        self._conversation = conversation
        self._journal = journal
        self._commands = commands
        self._servers = servers
        self._turns = last_turn_number(past)
        self._turn: Turn | None = None
        self._titled = any(isinstance(event, TitleChanged) for event in past)
        self._remarks: list[Notice] | None = []
        """What there is to tell once the client knows of the session; None from then on."""
        self._next_look: asyncio.TimerHandle | None = None

    # --- its beginning

    def store_choices(self) -> None:
        """Of a new session: what it begins with is stored, whatever the configuration says when it is loaded."""
        for option in self.options.all():
            if option.id != "thought_level":
                self._journal.append(OptionChosen(option.id, option.value))

    def welcome(self) -> None:
        """The client knows of the session now: it is told what else there is to know."""
        remarks, self._remarks = self._remarks or [], None
        for remark in remarks:
            self._journal.append(remark)
        self._look_for_commands()
        self.options.look_for_models(self._at_rest)
        if self._servers is not None:
            self._servers.start()

    def tell(self, notice: Notice) -> None:
        """Something the person should know, outside any turn."""
        if self._remarks is None:
            self._journal.append(notice)
        else:
            self._remarks.append(notice)

    # --- its turns

    def start_turn(self, sent: Sequence[Sent]) -> Turn:
        """Begins a turn at once, so that a cancel that follows cannot come too early. Raises TurnRunning if one runs.

        A turn that is being cancelled is waited for: the person has already moved on to the next prompt.
        """
        before = self._turn if self._turn is not None and not self._turn.over else None
        if before is not None and not before.cancelling:
            raise TurnRunning(
                "A turn is already running in this session.", remedy="Wait for its end, or cancel it first."
            )
        self._turns += 1
        self._turn = Turn(f"t{self._turns}", self._journal, lambda turn, ids: self._answer(turn, ids, sent))
        self._turn.start(before)
        return self._turn

    def cancel(self) -> None:
        """Ends the running turn, if there is one. Twice is as good as once."""
        if self._turn is not None and not self._turn.over:
            self._turn.cancel()

    async def rest(self) -> None:
        """Ends the running turn and stores everything that happened; StorageFailed if that cannot be done."""
        self.cancel()
        if self._turn is not None:
            await self._turn.ended()
        await self._journal.store_all()

    async def store_all(self) -> None:
        """Everything that has happened so far is stored when this returns; StorageFailed if it cannot be."""
        await self._journal.store_all()

    async def close(self) -> None:
        """Cancels the turn and lets go of everything; StorageFailed if something of it could not be stored."""
        if self._next_look is not None:
            self._next_look.cancel()
        self.cancel()
        if self._turn is not None:
            await self._turn.ended()
        *_, stored = await asyncio.gather(
            *([self._servers.close()] if self._servers is not None else []),
            self._terminals.close(),
            self.options.close(),
            self._conversation.model.close(),
            self._journal.release(),
            return_exceptions=True,
        )
        if isinstance(stored, BaseException):
            raise stored

    async def _at_rest(self) -> None:
        while self._turn is not None and not self._turn.over:
            await self._turn.ended()

    async def _answer(self, turn: Turn, ids: TurnIds, sent: Sequence[Sent]) -> StopReason:
        self._tell_commands()
        found = self._commands.find(sent)
        if found is None:
            self._name(sent)
        self._journal.append(TurnStarted(ids.turn_id))
        try:
            if found is not None:
                return await self._obey(turn, ids, sent, *found)
            return await (skip_turn if turn.cancelling else run_turn)(self._conversation, ids, sent)
        finally:
            self._tell_commands()

    async def _obey(
        self, turn: Turn, ids: TurnIds, sent: Sequence[Sent], command: Command, arguments: str
    ) -> StopReason:
        journal = self._journal
        await journal.record(CommandGiven(ids.message(), tuple(sent)))
        if turn.cancelling:
            return StopReason.CANCELLED
        try:
            answer = await command.run(arguments, rest_of(sent), ids)
        except TurnCancelled:
            return StopReason.CANCELLED
        except StorageFailed:
            raise
        except CrowError as error:
            answer = Reply(str(error))
        if isinstance(answer, Prompt):
            # What the person typed is in the journal already; this is what it stands for.
            self._name(sent)
            return await run_turn(self._conversation, ids, answer.sent, typed=False)
        journal.append(CrowSaid(ids.message(), answer.text))
        return StopReason.END_TURN

    def _name(self, sent: Sequence[Sent]) -> None:
        if not self._titled:
            self._titled = True
            self._journal.append(TitleChanged(title_of(sent)))

    def _look_for_commands(self) -> None:
        """Also between turns: a command that was just written can be completed where the person types it."""
        self._next_look = asyncio.get_running_loop().call_later(LOOK_EVERY, self._look_for_commands)
        if self._turn is None or self._turn.over:
            self._tell_commands()

    def _tell_commands(self) -> None:
        commands = self._commands.changed()
        if commands is not None:
            self._journal.append(CommandsChanged(commands))
