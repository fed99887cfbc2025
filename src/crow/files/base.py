"""The `Workspace` protocol: all that tools know of files, with an editor or without."""

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from crow.files.resolved_path import ResolvedPath
from crow.files.text import Excerpt, LineRange


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
