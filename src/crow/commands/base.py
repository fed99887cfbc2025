"""The `Commands` and `Terminal` protocols: all that tools know of commands, with an editor or without."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

if TYPE_CHECKING:
    from crow.commands.kept_output import KeptOutput


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


class Terminal(Protocol):
    """A running command. Whoever opens one releases it, once, on every path; `Terminals` sees to that.

    Apart from `wait`, which its caller bounds, no method takes longer than seconds, whatever a command or a client
    does. Output, `kill` and `release` never fail: what went wrong is in the text, or in the log.
    """

    @property
    def client_id(self) -> str:
        """The id under which the client shows the terminal by itself; empty if we have to show the output."""
        ...

    @property
    def remark(self) -> str:
        """What the person should know of the way in which it was opened; mostly empty."""
        ...

    async def grew(self) -> None:
        """Returns when there is more output than at the last call, or the command has ended."""
        ...

    def glimpse(self) -> str:
        """The output as it is shown while it grows: whole while it is small, then the last of it. Cheap."""
        ...

    def raw_growth(self, *, last: bool = False) -> str:
        """What the command has written since the last call, as it wrote it: in order and bounded, with a line where
        something is left out; `last` if it has ended. Empty where the client shows the terminal by itself."""
        ...

    async def wait(self) -> TerminalExit: ...

    async def output(self, since: int = 0) -> TerminalOutput: ...

    async def kill(self) -> None:
        """Ends the command and everything it started; `output` still works afterwards."""
        ...

    async def release(self) -> None:
        """Ends what still runs and forgets the terminal. Twice is as good as once."""
        ...


@runtime_checkable
class OwnTerminal(Protocol):
    """A terminal in which Crow runs the command itself."""

    @property
    def kept(self) -> "KeptOutput":
        """All that the command has written, as it wrote it."""
        ...

    @property
    def takes_input(self) -> bool:
        """Whether the command runs, and can be typed into."""
        ...

    async def write_input(self, data: bytes) -> None:
        """Types into the command, as far as it reads, in the order of the calls. Raises WorkspaceError if it takes no
        input, or ends before it has read everything."""
        ...

    def resize(self, columns: int, rows: int) -> None:
        """Tells the command how much can be seen of its output at once."""
        ...


COLUMNS = "COLUMNS"
"""The variable that tells a command how wide its terminal is."""


TAKES_INPUT = "takes input"
"""Under this name whoever starts a command says that a person wants to type into it: `1`. No command gets it."""


class Commands(Protocol):
    async def open_terminal(self, command: str, *, cwd: str, environ: Mapping[str, str], output_limit: int) -> Terminal:
        """Starts a shell line. Raises WorkspaceError, with nothing left to release, if that fails.

        `environ` is laid over the environment that commands have anyway; COLUMNS in it is how wide the terminal is.
        With TAKES_INPUT in it, the command gets a terminal that can be typed into, if there is somebody who can type.
        `output_limit` is in bytes.
        """
        ...

    async def close(self) -> None:
        """Forgets what outlives the terminals, such as files with their output."""
        ...
