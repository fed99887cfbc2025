"""What a tool knows of the files it works on."""

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec


class FileInfo(msgspec.Struct, frozen=True):
    path: str
    """Absolute, symbolic links resolved."""
    kind: Literal["file", "folder", "other"]
    size: int


class Workspace(Protocol):
    """The session's files. Paths are absolute; no method hangs, whatever the path turns out to be.

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
