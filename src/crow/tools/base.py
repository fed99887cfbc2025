"""What a tool is. The few types here are all that a tool and its callers know of each other."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import msgspec

from crow.actions import Deed, PermissionAnswer
from crow.events import Event, Journal
from crow.messages import ToolCall, ToolSpec
from crow.results import DiffBlock, DisplayBlock, Location, TextBlock, ToolKind, ToolResult
from crow.workspace.base import Workspace
from crow.workspace.place import ResolvedPath

MOST_LOCATIONS = 5
"""Places that a search leads the person to, of those that it found."""


class Action(Protocol):
    """A prepared call: it can show itself to the policy and to the person, and then be performed.

    Nothing has happened yet. What `perform` does is what was shown.
    """

    @property
    def title(self) -> str: ...

    @property
    def deed(self) -> Deed: ...

    @property
    def locations(self) -> tuple[Location, ...]: ...

    @property
    def display(self) -> tuple[DisplayBlock, ...]:
        """What is shown before it is done, such as a diff."""
        ...

    async def perform(self, journal: Journal) -> ToolResult: ...


class Tool(Protocol):
    """Something the model may do.

    `prepare` only looks: it checks the arguments and computes what would be done. It raises BadArguments if they
    make no sense, and another CrowError if what they name cannot be used.
    """

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def kind(self) -> ToolKind: ...

    def title(self, arguments: dict[str, Any]) -> str:
        """One line for the person from what is known of the arguments so far: verb and target."""
        ...

    async def prepare(self, call: ToolCall, workspace: Workspace) -> Action: ...


@runtime_checkable
class ShowsPartialCall(Protocol):
    """A tool of whose arguments one is worth showing while it is being written, such as a file's content."""

    def partial_display(self, arguments: dict[str, Any]) -> "TextBlock | tuple[DiffBlock, ...] | None":
        """As much of it as has arrived, or as many changes, whose paths are as the model wrote them; None if there is
        nothing yet."""
        ...


@runtime_checkable
class AnnouncesItself(Protocol):
    """A tool that does nothing but show something: it is shown as soon as all of it has arrived, and not as a call."""

    @property
    def deed(self) -> Deed: ...

    def announce(self, call: ToolCall) -> Event | None:
        """What is to be told; None if the arguments make no sense."""
        ...


@runtime_checkable
class MaySpeakForItself(Protocol):
    """A tool of whose calls nothing needs to be shown where all that they do is said in the chat."""

    @property
    def is_said_in_chat(self) -> bool: ...


class PriorRead(msgspec.Struct, frozen=True):
    """What must be looked at before it can be said what would be done: judged and asked about like an action.

    Where nothing lies, there is nothing to be seen, and nobody has to be asked.
    """

    path: ResolvedPath
    title: str
    deed: Deed
    locations: tuple[Location, ...] = ()
    display: tuple[DisplayBlock, ...] = ()
    note: str = ""
    """What the model is told of how the path was read."""


@runtime_checkable
class ReadsFirst(Protocol):
    """A tool whose `prepare` answers from a file's content: whether a text is in it must not be told unasked."""

    async def look(self, call: ToolCall, workspace: Workspace) -> PriorRead | None:
        """None if the call changes nothing: it is then prepared as those of other tools are."""
        ...

    async def prepare_after(self, call: ToolCall, workspace: Workspace, look: PriorRead) -> Action:
        """The same as `prepare`, for the very path that was looked at and judged."""
        ...


@runtime_checkable
class HasTwoYeses(Protocol):
    """An action that the person can agree to in two ways, of which nothing is remembered: it has its own words."""

    @property
    def yes(self) -> str: ...

    @property
    def broader_yes(self) -> str: ...

    def agreed(self, answer: PermissionAnswer) -> None:
        """The person agreed; the choice `session` stands for the broader yes."""
        ...


@runtime_checkable
class Delegates(Protocol):
    """A tool whose calls others do, by calls of their own: whatever its kind, anything may have changed after one."""

    @property
    def workers(self) -> str:
        """Who does them. Neighbouring calls that are done by the same run at once."""
        ...


@runtime_checkable
class Interruptible(Protocol):
    """An action that can tell what it had done when it was ended before its time."""

    def interrupted(self, reason: str) -> ToolResult: ...


@runtime_checkable
class NamesItsWait(Protocol):
    """An action that says what is waited for while it is performed; of others, that is their title."""

    @property
    def waits_for(self) -> str | None:
        """The end of a sentence that begins with "Waiting for"; None if it is not to be named, or if it names its waits
        one by one by itself."""
        ...


@runtime_checkable
class FitsOutput(Protocol):
    """An action that cuts its output by itself, at a good place, and tells the model how to get the rest."""

    def fit(self, most: int) -> None:
        """Told before it is performed: the bytes that there is room for."""
        ...


@runtime_checkable
class StandsForSeveral(Protocol):
    """A tool that others have and that does what several of ours do: the arguments say which one is meant."""

    def meant(self, call: ToolCall) -> "tuple[Tool, ToolCall, str] | None":
        """The tool that does the same, its call, and what the model is told of it; None if there is none."""
        ...


class BadArguments(Exception):
    """The arguments do not fit the tool's schema; the message says how, and what would."""


def verb_and_path(verb: str, arguments: Mapping[str, Any]) -> str:
    """The title of a call about one file, as far as the arguments have arrived."""
    path = arguments.get("path")
    return f"{verb} {path}" if isinstance(path, str) and path else verb


class Advice(msgspec.Struct, frozen=True):
    """The defaults name a session's tools. Whoever offers the tools under other names has other words."""

    read_first: str = "Read it first."
    read_again: str = "Read it again."
    read_all: str = "Read the whole of it first, or change a part of it with `edit`."
    change_a_part: str = "Change it with `edit`."
    make_a_file: str = "To make a new file use `write`."
    look_for_it: str = "Look for it by its name with `find`."
    make_it_unique: str = "Add lines around it until it is unique, or set `all` to replace every one."
    go_on: str = "go on with offset {line}"
    fetch_no_files: str = "For files of the project use `read`."
    fetch_otherwise: str = "Download it with a command if it is needed."
    change_otherwise: str = "Do it by a command."
    run_no_files: str = "Not for reading, searching or changing files: there are tools for that."
    search_no_files: str = "Not for the project's own files: use `search` for these."


OF_A_SESSION = Advice()
