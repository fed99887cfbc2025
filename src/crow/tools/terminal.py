"""The tool `terminal`: runs a command line, watches its time limit, says how it ended, or leaves it running in the
background.

The tool does not know whether the terminal is the editor's or this machine's: only who shows the output differs, and a
terminal says that by itself.
What it leaves in the background is the business of `crow.tools.background`.
"""

import asyncio
import contextlib
import shlex
import time
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from crow.actions import Deed, PermissionAnswer
from crow.commands.base import CommandRequest, Terminal, TerminalExit, TerminalOutput
from crow.commands.terminals import Terminals
from crow.errors import StaleFile
from crow.events import CallProgressed, Journal, OutputGrew, Remark
from crow.files.base import Workspace
from crow.files.resolved_path import ResolvedPath
from crow.messages import ToolCall, ToolSpec
from crow.paths import LONGEST as LONGEST_PATH
from crow.paths import relative_to, shown
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
from crow.tools.arguments import ArgumentReader, ignored_arguments
from crow.tools.base import OF_A_SESSION, Action, Advice, BadArguments, Tool
from crow.visible import every_line, one_line

SHELL = "bash"
"""The language of a command line."""
OUTPUT_LIMIT = 30_000
"""Bytes of output for the model: half of them from the beginning, half from the end."""
LONGEST_TIMEOUT = 3600
LONGEST_COMMAND = 100_000
"""The system takes 128 KiB in one argument."""
FRAME = 0.05
"""Seconds between two updates of growing output."""
EARLY_END = 0.5
"""Seconds in which a command that was sent to the background has failed if it fails at once."""
PROMPTLY = 0.5
"""Seconds that a cancelled call waits for its command's end, which goes on without it if it takes longer."""

LAST_WORDS = 1.0
"""Seconds that a cancelled call waits for what its command has printed."""

STOPPED = "stopped by the user"
"""How a command ended that the person has stopped."""

NO_QUESTIONS = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
}
"""Nobody is there to press a key: pagers print, editors take what they are given, prompts are off."""

DESCRIPTION = (
    "Run a bash command line and get its output and exit code. Every call is a new shell. "
    "What it leaves running is ended with it: start servers and watchers with `background`. "
    "Nothing can be typed into it, so not for interactive programs."
)


class TerminalArguments(msgspec.Struct, frozen=True):
    command: Annotated[str, msgspec.Meta(min_length=1)]
    cwd: Annotated[str, msgspec.Meta(description="folder to run it in, if not the working directory")] = ""
    timeout: (
        Annotated[
            float, msgspec.Meta(gt=0, le=LONGEST_TIMEOUT * 1000, description=f"seconds, {LONGEST_TIMEOUT} at most")
        ]
        | None
    ) = None
    background: Annotated[bool, msgspec.Meta(description="let it run on, without a time-out; gives an id")] = False


_reader = ArgumentReader(TerminalArguments)


class RunCommand(Tool):
    kind = ToolKind.EXECUTE

    def __init__(self, terminals: Terminals, timeout: float, advice: Advice = OF_A_SESSION) -> None:
        self._description = f"{DESCRIPTION} {advice.run_no_files}"
        self._terminals = terminals
        self._timeout = timeout
        self.spec = self._make_spec()

    def _make_spec(self) -> ToolSpec:
        told = f"{self._description} It has {self._timeout:g} s unless you say otherwise."
        return ToolSpec("terminal", told, _reader.schema())

    def lower_timeout(self, timeout: float) -> None:
        """The seconds that a command has by default, if they are fewer than now."""
        self._timeout = min(self._timeout, timeout)
        self.spec = self._make_spec()

    def title(self, arguments: dict[str, Any]) -> str:
        command = arguments.get("command")
        return command_title(command) if isinstance(command, str) and command.strip() else "Run a command"

    def partial_display(self, arguments: dict[str, Any]) -> TextBlock | None:
        command = arguments.get("command")
        return TextBlock(command, language=SHELL) if isinstance(command, str) and command.strip() else None

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "CommandAction":
        arguments, unknown = _reader.read(call)
        _check(arguments.command)
        folder = await workspace.pin(await workspace.resolve(arguments.cwd or workspace.roots[0]))
        timeout, remark = _seconds(arguments.timeout or self._timeout)
        remarks = [*ignored_arguments(unknown), *([remark] if remark else [])]
        return CommandAction(self._terminals, call.id, arguments, folder, timeout, workspace, remarks)


def _seconds(timeout: float) -> tuple[float, str]:
    """A time-out in seconds, and a line for the model if it was read as milliseconds: more seconds are not allowed."""
    if timeout <= LONGEST_TIMEOUT:
        return timeout, ""
    return timeout / 1000, f"(the timeout {timeout:g} was read as milliseconds: {timeout / 1000:g} s)"


def _check(command: str) -> None:
    if not command.strip():
        raise BadArguments("`command` is empty.")
    if "\0" in command:
        raise BadArguments("`command` contains a null character, which a command line cannot.")
    if len(command.encode("utf-8", "replace")) > LONGEST_COMMAND:
        raise BadArguments(
            f"`command` is longer than {LONGEST_COMMAND:,} bytes.", advice="Write it to a file and run the file."
        )


class CommandAction(Action):
    def __init__(
        self,
        terminals: Terminals,
        call_id: str,
        arguments: TerminalArguments,
        folder: ResolvedPath,
        timeout: float,
        workspace: Workspace,
        remarks: Sequence[str],
    ) -> None:
        self._terminals = terminals
        self._call_id = call_id
        self._command = arguments.command
        self._background = arguments.background
        self._folder = folder
        self._workspace = workspace
        self._timeout = timeout
        self._remarks = remarks
        self._takes_input = False
        self._broken_off: tuple[str, str] | None = None
        """The client's id of the terminal, and what was printed, when the command was ended before its time."""
        self.title = command_title(arguments.command)
        self.deed = Deed(
            "terminal", ToolKind.EXECUTE, command=arguments.command, cwd=folder.real, beside=terminals.running()
        )
        self.display: tuple[DisplayBlock, ...] = (TextBlock(every_line(arguments.command), language=SHELL),)
        root = workspace.roots[0]
        if folder.real != root:
            self.display += (TextBlock(f"in {one_line(relative_to(shown(folder.real), root), LONGEST_PATH)}"),)

    async def perform(self, journal: Journal) -> ToolResult:
        if self._background:
            self._terminals.need_room()
        begun = time.monotonic()
        await self._check_folder()
        request = CommandRequest(
            self._command, self._folder.real, OUTPUT_LIMIT, NO_QUESTIONS, takes_input=self._takes_input
        )
        terminal = await self._terminals.open(request, self._call_id)
        if terminal.remark:
            journal.append(Remark("warning", terminal.remark))
        try:
            ending = await self._watch(terminal, journal)
            if ending is None and self._background:
                return await self._leave_running(terminal, begun)
            if ending is None:
                await terminal.kill()
            output = await terminal.output()
            show_raw(terminal, self._call_id, journal, last=True)
            ended = Ended(
                _best_known(ending, output),
                time.monotonic() - begun,
                self._timeout if ending is None else None,
                means_no=ending is not None and answers_no(self._command, ending.code, output.text),
                is_stopped=self._terminals.was_stopped(self._call_id),
            )
            result = self._ended(terminal, output, ended, journal)
            self._terminals.release_soon(terminal)
        except BaseException:
            await self._break_off(terminal, journal)
            raise
        return result

    def agreed(self, answer: PermissionAnswer) -> None:
        self._takes_input = answer.opens_input

    async def _check_folder(self) -> None:
        """Another folder may have taken its name since the person agreed."""
        try:
            await self._workspace.stat(self._folder)
        except StaleFile as changed:
            raise StaleFile(f"{changed.message} The command was not started.") from None

    def interrupted(self, reason: str) -> ToolResult:
        """What the command had printed by then is worth as much as what a whole one prints."""
        if self._broken_off is None:
            return ToolResult.failed(reason)
        client_id, output = self._broken_off
        said = TextBlock(reason, prose=True)  # a block of its own: the command did not print it
        display: tuple[DisplayBlock, ...] = (TextBlock(output), said) if output else (said,)
        if client_id:
            display = (TerminalBlock(client_id), HiddenOutput(output), said)
        return ToolResult(
            ok=False,
            text=followed_by(output, f"[{reason}]"),
            message=reason,
            display=display,
            command=CommandEnd(len(output)),
        )

    async def _break_off(self, terminal: Terminal, journal: Journal) -> None:
        """Keeps what was printed so far, then ends the command. Neither is waited for longer than a moment."""
        try:
            self._broken_off = terminal.client_id, terminal.glimpse()  # for a client that does not answer in time
            with contextlib.suppress(TimeoutError):
                async with timeout(LAST_WORDS):
                    self._broken_off = terminal.client_id, (await terminal.output()).text
        finally:
            show_raw(terminal, self._call_id, journal, last=True)
            self._terminals.release_soon(terminal)
            await self._terminals.released(PROMPTLY)

    def _ended(self, terminal: Terminal, output: TerminalOutput, ended: "Ended", journal: Journal) -> ToolResult:
        result = self._result(
            terminal, output.text, ended.for_model(), ended.for_person(), ok=ended.well, brief=ended.for_title()
        )
        lines = output.lines if output.truncated else 0
        end = CommandEnd(len(output.text), ended.exit.code, ended.exit.signal, lines)
        result = msgspec.structs.replace(result, command=end)
        if not terminal.client_id or ended.timeout is None:
            return result
        # The one thing that its terminal does not show; said while the terminal is still there.
        shown = (TerminalBlock(terminal.client_id), TextBlock(result.message))
        journal.append(CallProgressed(self._call_id, shown))
        return msgspec.structs.replace(result, display=(*shown, HiddenOutput(output.text)))

    async def _watch(self, terminal: Terminal, journal: Journal) -> TerminalExit | None:
        """Shows the command until it has ended; None if time ran out first."""
        try:
            async with timeout(EARLY_END if self._background else self._timeout):
                if terminal.client_id:
                    journal.append(CallProgressed(self._call_id, (TerminalBlock(terminal.client_id),)))
                    return await terminal.wait()
                journal.append(OutputGrew(self._call_id, "", self._folder.real, takes_input=terminal.takes_input))
                return await self._show_growth(terminal, journal)
        except TimeoutError:
            return None

    async def _show_growth(self, terminal: Terminal, journal: Journal) -> TerminalExit:
        ended = asyncio.ensure_future(terminal.wait())
        last_shown = ""
        try:
            while not ended.done():
                await terminal.grew()
                seen = terminal.glimpse()
                if journal.has_room:  # a client that does not keep up misses a few, or gets the rest later
                    show_raw(terminal, self._call_id, journal)
                    if seen != last_shown:
                        journal.append(CallProgressed(self._call_id, (TextBlock(seen),)))
                        last_shown = seen
                await asyncio.wait([ended], timeout=FRAME)
            return ended.result()
        finally:
            ended.cancel()

    async def _leave_running(self, terminal: Terminal, begun: float) -> ToolResult:
        output = await terminal.output()
        id = self._terminals.keep(terminal, self._command, self._call_id, begun)
        how = f"[still running, in the background as {id}: see terminal_read and terminal_stop; offset {output.end}]"
        said = f"running in the background as {id}"
        result = self._result(terminal, output.text, how, said, ok=True, brief=said)
        return msgspec.structs.replace(result, background=id)

    def _result(
        self, terminal: Terminal, output: str, for_model: str, for_person: str, *, ok: bool, brief: str
    ) -> ToolResult:
        text = "\n".join([followed_by(output or "(no output)", for_model), *self._remarks])
        seen = followed_by(output, for_person)
        if terminal.client_id:
            display: tuple[DisplayBlock, ...] = (TerminalBlock(terminal.client_id), HiddenOutput(seen))
        else:
            display = (TextBlock(seen),)
        return ToolResult(ok=ok, text=text, message=for_person, display=display, brief=brief)


class Ended(msgspec.Struct, frozen=True):
    """How a command ended, in words."""

    exit: TerminalExit
    seconds: float
    timeout: float | None
    """The time-out that ended it, if one did."""
    means_no: bool = False
    """Its exit code is an answer, such as that of a search without a match."""
    is_stopped: bool = False
    """The person has stopped it."""

    @property
    def well(self) -> bool:
        return self.timeout is None and self.exit.signal is None and (self.exit.code == 0 or self.means_no)

    def for_model(self) -> str:
        left = self.exit.left_running
        processes = "process that it left running was" if left == 1 else f"{left} processes that it left running were"
        return f"[{self._words('exit code')}{f'; the {processes} ended' if left else ''}]"

    def for_person(self) -> str:
        duration = "" if self.timeout is not None else f" · {self.seconds:.1f} s"
        return self._words("exit") + duration

    def for_title(self) -> str:
        """Empty for a command that ended as it should: that is what its state says."""
        return "" if self.timeout is None and self.exit.code == 0 else self._words("exit")

    def _words(self, code: str) -> str:
        if self.is_stopped and self.exit.code != 0:
            return STOPPED
        return how_it_ended(self.exit, code) if self.timeout is None else f"timed out after {self.timeout:g} s"


def how_it_ended(ending: TerminalExit, code: str = "exit code") -> str:
    if ending.signal is not None:
        return f"killed by {one_line(ending.signal, 40)}"
    return "ended, exit status unknown" if ending.code is None else f"{code} {ending.code}"


def _best_known(ending: TerminalExit | None, output: TerminalOutput) -> TerminalExit:
    """A client may fail to answer one of the two questions."""
    if ending is None or (ending.code is None and ending.signal is None):
        return output.exit or TerminalExit()
    return ending


def show_raw(terminal: Terminal, call_id: str, journal: Journal, *, last: bool = False) -> None:
    """Shows what the command has written since the last time, to clients that show it in a terminal."""
    if data := terminal.raw_growth(last=last):
        journal.append(OutputGrew(call_id, data))


# --- words


def command_title(command: str) -> str:
    """A command line as a title: on one line, as it is."""
    return one_line(command.strip())


def followed_by(output: str, line: str) -> str:
    """What a command printed, and a line of ours that begins on its own."""
    return output + ("" if output.endswith("\n") or not output else "\n") + line


# --- exit codes that are answers: `grep` says with 1 that nothing matched, `diff` that two files differ
#
# Only the last command of a line is looked at, since its exit code is the line's. What cannot be told for sure counts
# as a failure, as every code but 0 does by default.

NO = 1
"""The exit code that means no."""
LONGEST_LINE = 4000
"""Characters of a line that is worth looking at."""

_SEARCHES = frozenset({"grep", "egrep", "fgrep", "zgrep", "rgrep", "rg", "ag", "ack", "pgrep", "pidof"})
_COMPARISONS = frozenset({"diff", "cmp", "zdiff", "colordiff", "comm"})
_TESTS = frozenset({"test", "[", "[[", "which", "type", "hash", "expr"})
_ANSWERING = _SEARCHES | _COMPARISONS | _TESTS
_ANSWERING_GIT = frozenset({"grep", "diff", "merge-base", "check-ignore", "show-ref"})
_SEPARATORS = frozenset({";", "|", "|&", "&&", "||", "&", "(", ")", "{", "}", ";;"})
_CONDITIONS = frozenset({"&&", "||"})


def answers_no(command: str, code: int | None, output: str) -> bool:
    """Whether a line that ended with this code has given an answer, and not failed."""
    if code != NO or len(command) > LONGEST_LINE:
        return False
    words = _words(command)
    last = max((number for number, word in enumerate(words) if word in _SEPARATORS), default=-1)
    if not _is_answering(words[last + 1 :]):
        return False
    # With a condition before it, the code may be another command's: one that failed would have said so.
    return not output.strip() or not _CONDITIONS.intersection(words)


def _words(command: str) -> list[str]:
    """The words and operators of a line; nothing of one that cannot be read."""
    reader = shlex.shlex(command.strip().replace("\n", " ; "), posix=True, punctuation_chars="();|&")
    reader.whitespace_split = True
    reader.commenters = ""
    try:
        return list(reader)
    except ValueError:
        return []


def _is_answering(words: Sequence[str]) -> bool:
    names = [word for word in words if "=" not in word.split("/")[0] or word.startswith("-")]
    if not names:
        return False
    program, rest = names[0].rpartition("/")[2], names[1:]
    if program == "git":
        return next((word for word in rest if not word.startswith("-")), "") in _ANSWERING_GIT
    return program in _ANSWERING
