"""The `Workspace`, `Commands` and `Terminal` protocols: all that tools know of files and commands, with an editor or
without.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import msgspec

from crow.workspace.resolved_path import ResolvedPath
from crow.workspace.text import Excerpt, LineRange

if TYPE_CHECKING:
    from crow.workspace.kept_output import KeptOutput


class FileInfo(msgspec.Struct, frozen=True):
    path: str
    """Absolute, symbolic links resolved."""
    kind: Literal["file", "folder", "other"]
    size: int


class Document(msgspec.Struct, frozen=True):
    """A text file as it was at one moment: the text the person has in front of them, and how it lies on disk."""

    path: str
    text: str
    """Every character, line ends as they are; without the byte order mark."""
    encoding: str = "utf-8"
    mark: bool = False
    """The file begins with a byte order mark."""
    unsaved: bool = False
    """The text is an editor's, and differs from what is on disk."""
    obstacle: str = ""
    """Why it could not be written now, in a sentence: known before anyone is asked for permission."""
    remarks: tuple[str, ...] = ()
    """After a write: what it did apart from writing the text, such as breaking a hard link."""

    def same_as(self, other: "Document") -> bool:
        """Whether both hold the same text in the same encoding: the same bytes, once they are saved."""
        return (self.text, self.encoding, self.mark) == (other.text, other.encoding, other.mark)


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


class Workspace(Protocol):
    """The session's files and commands. No method hangs, whatever the path turns out to be.

    Paths are those that `resolve` gave, which the person may have agreed to. A symbolic link that has appeared on one
    since is not followed, neither to read nor to write, and another folder is not taken for the one that was there.

    A path that cannot be used raises WorkspaceError with a sentence that says why. Which implementation a session
    gets, and which half of it falls back to this machine, is decided once, from what the client offers.
    """

    @property
    def roots(self) -> Sequence[str]:
        """The folders the session works in, the first being its working directory; symbolic links resolved."""
        ...

    async def resolve(self, path: str) -> ResolvedPath:
        """Where a path leads that may be relative or begin with `~`. Done once for each thing that is judged."""
        ...

    def contains(self, path: str) -> bool:
        """Whether a resolved path lies inside one of the roots."""
        ...

    async def pin(self, folder: ResolvedPath) -> ResolvedPath:
        """The path, held to the folder that it leads to now. Raises WorkspaceError if that is no folder.

        Whatever is done with it raises StaleFile if another folder has taken its name.
        """
        ...

    async def stat(self, path: ResolvedPath) -> FileInfo: ...

    async def read_bytes(self, path: ResolvedPath, limit: int) -> bytes:
        """At most `limit` bytes of what is on disk."""
        ...

    async def read_text(self, path: ResolvedPath) -> str:
        """The text as the person has it in front of them: the editor's unsaved buffer before the disk."""
        ...

    async def read_lines(self, path: ResolvedPath, wanted: LineRange) -> Excerpt:
        """Some lines of the text that `read_text` gives, without the cost of all of it."""
        ...

    def note_buffer(self, path: ResolvedPath) -> None:
        """The person has spoken of a file: an editor may have it open, whether the disk has it or not."""
        ...

    def known_buffers(self) -> Sequence[str]:
        """The files that an editor may have open, the last one first: they were read or written through it, or the
        person spoke of them."""
        ...

    async def unsaved_text(self, path: ResolvedPath) -> str | None:
        """The editor's text of a file; None if it is as on disk, or too large to be asked for.

        Raises ClientRefused if it will not show the file.
        """
        ...

    async def list_folder(self, path: ResolvedPath) -> list[str]:
        """The sorted names in a folder; those of folders end in `/`."""
        ...

    async def read_document(self, path: ResolvedPath) -> Document | None:
        """The text that a change is made from, as the person has it in front of them; None if there is no such file.

        Raises WorkspaceError where there is something else than a text file.
        """
        ...

    async def write_document(
        self, path: ResolvedPath, text: str, before: Document | None, *, like: Document | None = None
    ) -> Document:
        """Writes a text over the document that it was made from (None: the file must not exist yet).

        Looks once more, immediately before writing: if the file is no longer as `before` says, nothing is written and
        StaleFile is raised. Encoding, mark, mode and owner are kept; missing folders are made for a new file. All
        of the text is written or nothing. Gives what is there afterwards, since an editor may format what it saves.

        `like` is another document whose encoding and mark the text gets, to make the file what it once was.
        """
        ...

    async def remove(self, path: ResolvedPath, before: Document, folders: int = 0) -> None:
        """Takes the file away, under the same condition, and so many folders above it if nothing lies in them."""
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
