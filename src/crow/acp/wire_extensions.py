"""The types of the requests and notifications that are Crow's own (`_crow/…`), with their fields.

What they are for is told in docs/extensions.md.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from crow.acp.wire import DiffLines, Wire

# --- the inbox


class InboxRequest(Wire, frozen=True):
    here: bool = False
    """Only the sessions of the process that is asked: what one Crow asks another."""


class InboxRow(Wire, frozen=True):
    session_id: str
    cwd: str
    state: Literal["running", "asks", "idle", "saved", "deleted"]
    since: str
    """When that state began."""
    title: str | None = None
    updated_at: str | None = None
    asks: int = 0
    """Questions that wait for an answer."""
    by: str | None = None
    """The name of the client in which the running turn was begun."""
    process: int | None = None
    """The one in which the session lives."""


class InboxRows(Wire, frozen=True):
    """The answer, and the notification: there, the rows that have changed."""

    sessions: list[InboxRow]


# --- searching in all sessions


class SearchRequest(Wire, frozen=True):
    query: str
    limit: Annotated[int, Meta(ge=1, le=1000)] = 50
    cursor: str | None = None


class SearchPart(Wire, frozen=True, omit_defaults=False):
    text: str
    hit: bool
    """It is what was looked for."""


class SearchMatch(Wire, frozen=True):
    session_id: str
    cwd: str
    where: Literal["title", "text"]
    parts: list[SearchPart]
    title: str | None = None
    updated_at: str | None = None


class SearchResponse(Wire, frozen=True):
    matches: list[SearchMatch]
    indexing: bool = False
    """Some sessions are not indexed yet: more may be found in a moment."""
    next_cursor: str | None = None
    unread: int | None = None
    sessions: int | None = None
    """While it is indexed: how many sessions still are to be, and how many there are."""


# --- the files of a session's folder


class FilesRequest(Wire, frozen=True):
    session_id: str
    query: Annotated[str, Meta(max_length=4096)]
    limit: Annotated[int, Meta(ge=1, le=1000)] = 50


class FoundFile(Wire, frozen=True, omit_defaults=False):
    path: str
    """Relative to the session's folder; that of a folder ends with a slash."""
    uri: str
    is_folder: bool


class FilesResponse(Wire, frozen=True):
    files: list[FoundFile]
    """The best matches first."""


# --- commands


class RunningCommandRequest(Wire, frozen=True):
    """Of `_crow/stop`: a command, by the call that started it."""

    session_id: str
    tool_call_id: str


class OpenInputRequest(Wire, frozen=True):
    session_id: str
    open: bool


class InputRequest(RunningCommandRequest, frozen=True):
    data: Annotated[str, Meta(max_length=64 * 1024)]


class InputSizeRequest(RunningCommandRequest, frozen=True):
    columns: Annotated[int, Meta(ge=1, le=1000)]
    rows: Annotated[int, Meta(ge=1, le=1000)]


class OutputRequest(Wire, frozen=True):
    session_id: str
    tool_call_id: str
    offset: Annotated[int, Meta(ge=0, lt=1 << 53)] = 0
    """In bytes."""
    limit: Annotated[int, Meta(ge=1, le=4 * 1024 * 1024)] = 256 * 1024


class OutputResponse(Wire, frozen=True, omit_defaults=False):
    data: str
    offset: int
    """Where the data begins: further on than was asked for, if that is not kept."""
    next: int
    """Where to go on."""
    total: int
    """Bytes that were written so far."""
    running: bool


# --- what a session has changed


class ChangesRequest(Wire, frozen=True):
    session_id: str
    path: str | None = None
    """One file, of which the changes themselves are wanted."""


class FileChange(Wire, frozen=True, omit_defaults=False):
    path: str
    kind: Literal["added", "modified", "deleted"]
    added: int
    removed: int
    """Lines."""
    turn: str
    """The last turn that changed it."""
    problem: str | UnsetType = UNSET
    """Why it cannot be compared now."""


class ChangedFiles(Wire, frozen=True):
    files: list[FileChange]


class DiffItem(Wire, frozen=True, omit_defaults=False):
    """Like a content item of the type `diff`; a text is null where there is no file."""

    path: str
    old_text: str | None
    new_text: str | None
    diff: DiffLines


class ChangedItems(Wire, frozen=True):
    items: list[DiffItem]


class UndoFile(Wire, frozen=True):
    path: str
    kind: Literal["modified", "deleted"]
    items: list[DiffItem]
    blocked: str | None = None
    """Why it would stay as it is."""


class UndoResponse(Wire, frozen=True):
    files: list[UndoFile]
    turn: str | None = None
    """The turn that would be taken back; left out if there is none."""
    prompt: str | None = None
    """The beginning of what the person said."""
    remarks: list[str] | None = None
    """What is not taken back, such as what commands did."""
