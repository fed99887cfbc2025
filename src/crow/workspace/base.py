"""What a tool knows of the files and commands it works with. No tool asks whether there is an editor."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Literal, Protocol, Self

import msgspec


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


class TerminalExit(msgspec.Struct, frozen=True):
    """How a command ended. No code means that it was killed, never that it succeeded."""

    code: int | None = None
    signal: str | None = None


class TerminalOutput(msgspec.Struct, frozen=True):
    text: str
    truncated: bool = False
    """Something was left out: the beginning, or the middle."""
    exit: TerminalExit | None = None
    """None while it runs."""


class Terminal(Protocol):
    """A running command. Leaving the context always releases it, and ends what it started.

    No wait is without a bound: a client that never answers counts as a command that was killed.
    """

    @property
    def id(self) -> str: ...

    @property
    def client_id(self) -> str:
        """The id under which the client shows the terminal by itself; empty if we have to show the output."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def grew(self) -> None:
        """Returns when there is more output than at the last call, or the command has ended."""
        ...

    async def wait(self) -> TerminalExit: ...

    async def output(self) -> TerminalOutput: ...

    async def kill(self) -> None:
        """Ends the command and everything it started; `output` still works afterwards."""
        ...

    async def release(self) -> None: ...


class Workspace(Protocol):
    """The session's files and commands. Paths are absolute; no method hangs, whatever the path turns out to be.

    A path that cannot be used raises WorkspaceError with a sentence that says why. Which implementation a session
    gets, and which half of it falls back to this machine, is decided once, from what the client offers.
    """

    @property
    def roots(self) -> Sequence[str]:
        """The folders the session works in, the first being its working directory; symbolic links resolved."""
        ...

    def resolve(self, path: str) -> str:
        """An absolute path with symbolic links resolved, from one that may be relative or begin with `~`."""
        ...

    def contains(self, path: str) -> bool:
        """Whether a resolved path lies inside one of the roots."""
        ...

    async def stat(self, path: str) -> FileInfo: ...

    async def read_bytes(self, path: str, limit: int) -> bytes:
        """At most `limit` bytes of what is on disk."""
        ...

    async def read_text(self, path: str) -> str:
        """The text as the person has it in front of them: the editor's unsaved buffer before the disk."""
        ...

    async def list_folder(self, path: str) -> list[str]:
        """The sorted names in a folder; those of folders end in `/`."""
        ...


class Writable(Workspace, Protocol):
    async def read_document(self, path: str) -> Document: ...

    async def write_document(self, path: str, text: str, before: Document | None) -> Document:
        """Writes a text over the document that it was made from (None: the file must not exist yet).

        Looks once more, immediately before writing: if the file is no longer as `before` says, nothing is written
        and FileChanged is raised. Encoding, mark and mode are kept. Gives what is there afterwards, since an editor
        may format what it saves.
        """
        ...

    async def remove(self, path: str, before: Document) -> None: ...


class Commands(Protocol):
    async def open_terminal(
        self, command: str, *, cwd: str, environ: Mapping[str, str], output_limit: int
    ) -> Terminal: ...
