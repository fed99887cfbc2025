"""`CommandRequest`, `Commands` and `Terminal`: all that tools know of commands, with an editor or without."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import msgspec

from crow.errors import WorkspaceError

if TYPE_CHECKING:
    from crow.commands.terminal_buffer import KeptOutput


class CommandRequest(msgspec.Struct, frozen=True):
    """A shell line to be run, and where and how."""

    command: str
    cwd: str
    output_limit: int
    """Bytes of output for the model."""
    environ: Mapping[str, str] = {}
    """Variables that are laid over the environment that commands have anyway."""
    columns: int = 0
    """How wide its terminal is; 0 for the usual width."""
    takes_input: bool = False
    """Whether a person wants to type into it. It gets a terminal for that if there is somebody who can type."""


class TerminalExit(msgspec.Struct, frozen=True):
    """How a command ended. No code means that it was killed, never that it succeeded; neither code nor signal, that
    nobody could say how it ended.
    """

    code: int | None = None
    signal: str | None = None
    """The name of the signal, such as `SIGKILL`."""
    left_running: int = 0
    """Processes that it started and that outlived it. They go when the terminal is released."""


class TerminalOutput(msgspec.Struct, frozen=True):
    text: str
    """For reading: no escape sequences; of a line that was rewritten, its last state; no more than the limit that the
    terminal was opened with. Where something was left out, a line in it says so.
    """
    truncated: bool = False
    """Something was left out: the beginning, or the middle."""
    exit: TerminalExit | None = None
    """How the command ended; None while it runs."""
    end: int = 0
    """How far the output goes: given to `output` as `since`, it leads to what came later."""
    lines: int = 0
    """How many lines the command has printed in all; 0 if that is not known."""


class Terminal:
    """A running command. Whoever opens one releases it, once, on every path; `Terminals` sees to that.

    Apart from `wait`, which its caller bounds, no method takes longer than seconds, whatever a command or a client
    does. Output, `kill` and `release` never fail: what went wrong is in the text, or in the log.
    """

    client_id: str = ""
    """The id under which the client shows the terminal by itself; empty if we have to show the output."""
    remark: str = ""
    """What the person should know of the way in which it was opened; mostly empty."""

    @property
    def kept(self) -> "KeptOutput | None":
        """All that the command has written, as it wrote it; None if the client runs it."""
        return None

    @property
    def takes_input(self) -> bool:
        """Whether the command runs, and can be typed into."""
        return False

    async def write_input(self, data: bytes) -> None:
        """Types into the command, as far as it reads, in the order of the calls. Raises WorkspaceError if it takes no
        input, or ends before it has read everything."""
        raise WorkspaceError("The command takes no input.")

    def resize(self, columns: int, rows: int) -> None:
        """Tells the command how much can be seen of its output at once."""

    async def grew(self) -> None:
        """Returns when there is more output than at the last call, or the command has ended."""
        raise NotImplementedError

    def glimpse(self) -> str:
        """The output as it is shown while it grows: whole while it is small, then the last of it. Cheap."""
        raise NotImplementedError

    def raw_growth(self, *, last: bool = False) -> str:
        """What the command has written since the last call, as it wrote it: in order and bounded, with a line where
        something is left out; `last` if it has ended. Empty where the client shows the terminal by itself."""
        return ""

    async def wait(self) -> TerminalExit:
        raise NotImplementedError

    async def output(self, since: int = 0) -> TerminalOutput:
        raise NotImplementedError

    async def kill(self) -> None:
        """Ends the command and everything it started; `output` still works afterwards."""
        raise NotImplementedError

    async def release(self) -> None:
        """Ends what still runs and forgets the terminal. Twice is as good as once."""
        raise NotImplementedError


class Commands(Protocol):
    async def open_terminal(self, request: CommandRequest) -> Terminal:
        """Starts a shell line. Raises WorkspaceError, with nothing left to release, if that fails."""
        ...

    async def close(self) -> None:
        """Forgets what outlives the terminals, such as files with their output."""
        ...
