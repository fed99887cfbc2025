"""A session: begins its turns one at a time, finds the slash commands, and tells what happens between turns.

The turn itself, and how it ends, is in `running_turn.py`.
"""

import asyncio
import contextlib
import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from crow.commands.base import TerminalExit
from crow.commands.terminals import BackgroundCommand, Terminals
from crow.errors import CrowError, StorageFailed, TurnCancelled, TurnRunning
from crow.events import (
    BackgroundEnded,
    CommandGiven,
    CrowSaid,
    Notice,
    OptionChosen,
    Remark,
    Sent,
    TurnEnded,
    TurnIds,
    TurnStarted,
)
from crow.messages import StopReason
from crow.session.commands import Command, SlashCommands, blocks_after_command
from crow.session.journal import SessionJournal, Title
from crow.session.options import Options
from crow.session.persistence import Archive
from crow.session.running_turn import RunningTurn, Turns
from crow.session.servers import Servers
from crow.tools.background import end_of, shown_at_end
from crow.tools.terminal import show_raw
from crow.turn.context import TurnContext
from crow.turn.steering import nothing_to_steer

if TYPE_CHECKING:
    from crow.turn.loop import Outcome

COMMAND = "A command is running. It does not accept messages."


class Audience(Protocol):
    """Whoever watches the session."""

    def tell_state(self, ended: TurnEnded | None = None, left_open: str = "") -> None:
        """What the session does has changed: if a turn has just ended, how it did and what it left open."""
        ...

    def changed(self) -> None:
        """What a list of sessions shows of this one has changed."""
        ...


class Session:
    """`turn_context` gives what a turn that begins now may know."""

    def __init__(
        self,
        id: str,
        *,
        journal: SessionJournal,
        archive: Archive,
        turns: Turns,
        turn_context: Callable[[], TurnContext],
        commands: SlashCommands,
        options: Options,
        servers: Servers,
        terminals: Terminals,
        title: Title,
        audience: Audience,
    ) -> None:
        self.id = id
        self.options = options
        self.archive = archive
        self.terminals = terminals
        self.terminals.on_growth = self._background_grew
        self.terminals.on_end = self._background_ended
        self._ended: list[BackgroundCommand] = []
        """Commands in the background that ended during a turn: the person is told at its end."""
        self.journal = journal
        self._commands = commands
        self._servers = servers
        self._title = title
        self._audience = audience
        self._title.on_change = audience.changed
        self._turn_context = turn_context
        self.turns = turns
        self._remarks: list[Notice] | None = []
        """What there is to tell once the client knows of the session; None from then on."""
        self._looking: asyncio.Task[None] | None = None
        self._last_look: asyncio.Task[None] | None = None

    # --- its beginning

    def store_choices(self) -> None:
        """Of a new session: what it begins with is stored, whatever the configuration says when it is loaded."""
        for option in self.options.all():
            if option.id != "thought_level":
                self.journal.append(OptionChosen(option.id, option.value))

    def begin(self) -> None:
        """Somebody knows of the session now: it is told what else there is to know. Once."""
        if self._remarks is None:
            return
        remarks, self._remarks = self._remarks, None
        for remark in remarks:
            self.journal.append(remark)
        self._commands.watch()
        self._looking = asyncio.get_running_loop().create_task(self._look_for_commands())
        self.options.look_for_models(self.until_idle)
        self._servers.start()
        self.options.warm_up()
        asyncio.get_running_loop().run_in_executor(None, _import_turn)

    def tell(self, notice: Notice) -> None:
        """Something the person should know, outside any turn."""
        if self._remarks is None:
            self.journal.append(notice)
        else:
            self._remarks.append(notice)

    # --- its turns

    def start_turn(self, sent: Sequence[Sent], begun_at: str = "") -> RunningTurn:
        """Begins a turn at once, so that a cancel that follows cannot come too early. Raises TurnRunning if one runs.
        `begun_at` is the name of the client that its prompt came from.

        A turn that is being cancelled is waited for: the person has already moved on to the next prompt.
        """
        before = self.check_accepts_turn(begun_at)
        turn_id = self.turns.next_id()
        turn = RunningTurn(turn_id, self.journal, lambda turn, ids: self._answer(turn, ids, sent), begun_at=begun_at)
        self.turns.add(turn)
        turn.start(before, lambda ended: self._turn_ended(turn, ended))
        return turn

    def _turn_ended(self, turn: RunningTurn, ended: TurnEnded | None) -> None:
        self.turns.ended()
        self._audience.tell_state(ended, turn.left_open)

    def check_accepts_turn(self, client: str) -> RunningTurn | None:
        """The turn that a new one of a client has to wait for, if there is one. TurnRunning if a turn runs that nobody
        cancels."""
        before = self.turns.newest
        if before is not None and not before.cancelling:
            elsewhere = f", begun in {before.begun_at}" if before.begun_at not in ("", client) else ""
            said = f"A turn is already running in this session{elsewhere}."
            raise TurnRunning(said, remedy="Wait until it ends, or cancel it.")
        return before

    @property
    def title(self) -> str:
        """Empty until there is one."""
        return self._title.text

    async def steer(self, sent: Sequence[Sent], on_accepted: Callable[[str], object] = lambda _: None) -> str:
        """Puts a message into the running turn. Its id, once it is stored; NothingToSteer if no turn takes it.

        The model gets it as it is, also if it begins with a slash. `on_accepted` is given its id before anybody is
        shown it.
        """
        turn = self.turns.newest
        if turn is None:
            raise nothing_to_steer()
        return await turn.steer(sent, on_accepted)

    def cancel(self) -> None:
        """Ends the running turn, if there is one. Twice is as good as once."""
        if (turn := self.turns.newest) is not None:
            turn.cancel()

    async def stop_and_store(self) -> None:
        """Ends the running turn and stores everything that happened; StorageFailed if that cannot be done."""
        await self._stop()
        await self.journal.store_all()

    async def store_all(self) -> None:
        """Everything that has happened so far is stored when this returns; StorageFailed if it cannot be."""
        await self.journal.store_all()

    async def close(self) -> None:
        """Cancels the turn and lets go of everything; StorageFailed if something of it could not be stored."""
        await self._stop()
        for look in (self._looking, self._last_look):
            if look is not None:
                look.cancel()
        self._commands.close()
        *_, stored = await asyncio.gather(
            self._servers.close(),
            self.terminals.close(),
            self.options.close(),
            self.journal.release(),
            return_exceptions=True,
        )
        if isinstance(stored, BaseException):
            raise stored

    async def _stop(self) -> None:
        self.cancel()
        if (turn := self.turns.newest) is not None:
            await turn.ended()

    async def until_idle(self) -> None:
        """Waits for the end of the running turn, and of one that follows it at once."""
        while (turn := self.turns.newest) is not None:
            await turn.ended()

    async def _answer(self, turn: RunningTurn, ids: TurnIds, sent: Sequence[Sent]) -> StopReason:
        if not turn.cancelling:
            with contextlib.suppress(asyncio.CancelledError):  # the turn is skipped then: what was said stays said
                await self._tell_commands()
        found = self._commands.find(sent)
        if found is None:
            self._title.begin_with(sent)
            turn.steering.open()
        else:
            turn.steering.refuse(COMMAND)
        self.journal.append(TurnStarted(ids.turn_id))
        self.turns.began(turn)
        self._audience.tell_state()
        context = replace(self._turn_context(), steering=turn.steering)
        context.budgets.begin_turn(context.model.info)
        try:
            if found is not None:
                return await self._run_slash_command(turn, context, ids, sent, *found)
            from crow.turn.loop import run_turn, skip_turn

            return _ended_with(turn, await (skip_turn if turn.cancelling else run_turn)(context, ids, sent))
        finally:
            # Nobody waits for it: a cancelled turn ends at once, whatever its disk does.
            self._last_look = asyncio.get_running_loop().create_task(self._tell_commands())
            self._tell_ended()

    def _background_grew(self, command: BackgroundCommand) -> None:
        if self.journal.has_room:  # else with what it prints next, or at its end
            show_raw(command.terminal, command.call_id, self.journal)

    def _background_ended(self, command: BackgroundCommand) -> None:
        ending = command.exit or TerminalExit()
        show_raw(command.terminal, command.call_id, self.journal, last=True)
        shown = shown_at_end(command, ending, stopped=command.is_stopped)
        self.journal.append(BackgroundEnded(command.call_id, shown, command.seconds))
        self._ended.append(command)
        if self.turns.newest is None:
            self._tell_ended()

    def _tell_ended(self) -> None:
        """The person is told of the commands that have ended, unless they have seen it in a call."""
        ended, self._ended = self._ended, []
        for command in ended:
            if not command.read_to_end:
                self.journal.append(Remark("info", end_of(command)))

    async def _run_slash_command(
        self,
        turn: RunningTurn,
        context: TurnContext,
        ids: TurnIds,
        sent: Sequence[Sent],
        command: Command,
        arguments: str,
    ) -> StopReason:
        journal = self.journal
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
            answer = str(error)
        if not isinstance(answer, str):
            # What the person typed is in the journal already; this is what it stands for.
            self._title.begin_with(sent)
            turn.steering.open()
            from crow.turn.loop import run_turn

            return _ended_with(turn, await run_turn(context, ids, answer, typed=False))
        turn.is_command = True
        journal.append(CrowSaid(ids.message(), answer))
        return StopReason.END_TURN

    async def _look_for_commands(self) -> None:
        """Also between turns: a command that was just written can be completed where the person types it."""
        while True:
            await self.until_idle()
            await self._tell_commands()
            await self._commands.due()

    async def _tell_commands(self) -> None:
        changed = await self._commands.changed()
        if changed is not None:
            self.journal.append(changed)


def _ended_with(turn: RunningTurn, outcome: "Outcome") -> StopReason:
    turn.left_open = outcome.left_open
    return outcome.stop_reason


def _import_turn() -> None:
    """What the first turn needs and the session's beginning does not."""
    for module in ("crow.turn.loop", "crow.session.toolset", "crow.policy.deed_verdicts"):
        importlib.import_module(module)
