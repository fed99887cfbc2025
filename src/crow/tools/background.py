"""The tools `terminal_read` and `terminal_stop`, for commands that `terminal` left running in the background."""

import contextlib
import time
from typing import Annotated, Any

import msgspec

from crow.actions import Deed
from crow.commands.base import TerminalExit, TerminalOutput
from crow.commands.terminal_text import last_part
from crow.commands.terminals import BackgroundCommand, Terminals
from crow.events import BackgroundEnded, Journal
from crow.files.base import Workspace
from crow.messages import ToolCall, ToolSpec
from crow.results import (
    CommandEnd,
    DisplayBlock,
    HiddenOutput,
    TerminalBlock,
    TextBlock,
    ToolKind,
    ToolResult,
)
from crow.timeouts import timeout
from crow.tools.arguments import ArgumentReader
from crow.tools.base import Action, Tool
from crow.tools.terminal import STOPPED, command_title, followed_by, how_it_ended, show_raw

LAST_WORDS = 2000
"""Bytes of its output that are told of a command that was stopped."""

LONGEST_WAIT = 60
POLL_INTERVAL = 1.0
"""Seconds between two looks while output is waited for, since an editor's terminal does not tell of it."""

READ_DESCRIPTION = "Read the output of a background command, and whether it still runs. Use `wait` instead of polling."
STOP_DESCRIPTION = "End a background command and everything it started."


class ReadArguments(msgspec.Struct, frozen=True):
    id: Annotated[str, msgspec.Meta(min_length=1)]
    offset: Annotated[int, msgspec.Meta(ge=0, description="from the last read: gives only what came after it")] = 0
    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT, description="seconds, for more output or the end")] = 0


class StopArguments(msgspec.Struct, frozen=True):
    id: Annotated[str, msgspec.Meta(min_length=1)]


_read_reader = ArgumentReader(ReadArguments)
_stop_reader = ArgumentReader(StopArguments)


def _about(verb: str, arguments: dict[str, Any], terminals: Terminals) -> str:
    id = str(arguments.get("id", ""))
    known = [command for command in terminals.background() if command.id == id]
    return f"{verb} {id}: {command_title(known[0].command)}" if known else f"{verb} a background command"


def end_of(command: BackgroundCommand) -> str:
    """A sentence about a command that has ended in the background."""
    how = STOPPED if command.is_stopped else how_it_ended(command.exit or TerminalExit())
    return f"The background command {command.id} ({command_title(command.command)}) has ended: {how}."


def shown_at_end(command: BackgroundCommand, ending: TerminalExit, *, stopped: bool = False) -> ToolResult:
    """What the call that started a command shows once it has ended. `stopped`: because it was to."""
    terminal, how = command.terminal, how_it_ended(ending, "exit")
    output = terminal.glimpse()
    seen = followed_by(output, f"{how} · {time.monotonic() - command.begun:.1f} s")
    shown: tuple[DisplayBlock, ...] = (TextBlock(seen),)
    if terminal.client_id:
        shown = (TerminalBlock(terminal.client_id), HiddenOutput(seen))
    return ToolResult(
        ok=stopped or ending.code == 0,
        text=output,
        message=how,
        display=shown,
        brief="stopped" if stopped else how,
        command=CommandEnd(len(output), ending.code, ending.signal),
    )


def end_for_model(command: BackgroundCommand) -> str:
    return f"[{end_of(command)} Its output is still there for terminal_read.]"


# --- terminal_read


class ReadCommand(Tool):
    """The tool `terminal_read`."""

    kind = ToolKind.READ

    def __init__(self, terminals: Terminals) -> None:
        self.spec = ToolSpec("terminal_read", READ_DESCRIPTION, _read_reader.schema())
        self._terminals = terminals

    def title(self, arguments: dict[str, Any]) -> str:
        return _about("Output of", arguments, self._terminals)

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "ReadCommandAction":
        arguments, _ = _read_reader.read(call)
        return ReadCommandAction(self._terminals.find(arguments.id), arguments.offset, arguments.wait)


class ReadCommandAction(Action):
    def __init__(self, command: BackgroundCommand, offset: int, wait: float) -> None:
        self._command = command
        self._offset = offset
        self._wait = wait
        self.title = f"Output of {command.id}: {command_title(command.command)}"
        self.deed = Deed("terminal_read", ToolKind.READ)

    async def perform(self, journal: Journal) -> ToolResult:
        terminal = self._command.terminal
        output = await self._output()
        ending = output.exit or self._command.exit
        state = _state(ending)
        if ending is not None:
            self._command.read_to_end = self._command.model_knows = True
        text = followed_by(output.text or "(nothing new)", f"[{state}; offset {output.end}]")
        # The person has the client's terminal before them, where there is one.
        display = () if terminal.client_id else (TextBlock(followed_by(output.text, state)),)
        return ToolResult(ok=True, text=text, message=state, display=display, still_running=ending is None, brief=state)

    async def _output(self) -> TerminalOutput:
        """At once if there is some, or the command has ended; otherwise as soon as one of the two is so."""
        terminal = self._command.terminal
        deadline = time.monotonic() + self._wait
        output = await terminal.output(self._offset)
        while not (output.text or output.exit or self._command.exit) and (left := deadline - time.monotonic()) > 0:
            with contextlib.suppress(TimeoutError):
                async with timeout(min(left, POLL_INTERVAL)):
                    await terminal.grew()
            output = await terminal.output(self._offset)
        return output


def _state(ending: TerminalExit | None) -> str:
    if ending is None:
        return "still running"
    left = f"; {ending.left_running} of its processes still running" if ending.left_running else ""
    return how_it_ended(ending) + left


# --- terminal_stop


class StopCommand(Tool):
    """The tool `terminal_stop`."""

    def __init__(self, terminals: Terminals) -> None:
        self.spec = ToolSpec("terminal_stop", STOP_DESCRIPTION, _stop_reader.schema())
        self._terminals = terminals

    def title(self, arguments: dict[str, Any]) -> str:
        return _about("Stop", arguments, self._terminals)

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "StopCommandAction":
        arguments, _ = _stop_reader.read(call)
        return StopCommandAction(self._terminals, self._terminals.find(arguments.id))


class StopCommandAction(Action):
    def __init__(self, terminals: Terminals, command: BackgroundCommand) -> None:
        self._terminals = terminals
        self._command = command
        self.title = f"Stop {command.id}: {command_title(command.command)}"
        self.deed = Deed("terminal_stop", ToolKind.OTHER)

    async def perform(self, journal: Journal) -> ToolResult:
        command = self._command
        output = await self._terminals.stop(command.id)
        ending = output.exit or TerminalExit()
        show_raw(command.terminal, command.call_id, journal, last=True)
        journal.append(BackgroundEnded(command.call_id, shown_at_end(command, ending, stopped=True), command.seconds))
        state = f"{command.id} has ended: {how_it_ended(ending)}"
        return ToolResult(ok=True, text=followed_by(last_part(output.text, LAST_WORDS), f"[{state}]"), message=state)
