"""What a tool gives back: `text` for the model; `message` and `display` (text, image, diff, terminal) for the person;
and the kinds of tools.

The blocks say what is to be shown, not how: `crow.acp.translate` makes protocol content of them.
"""

import enum
from typing import Literal

import msgspec

from crow.messages import Image


class ToolKind(enum.StrEnum):
    READ = "read"
    EDIT = "edit"
    DELETE = "delete"
    MOVE = "move"
    SEARCH = "search"
    EXECUTE = "execute"
    THINK = "think"
    FETCH = "fetch"
    SWITCH_MODE = "switch_mode"
    OTHER = "other"


LOOKING = frozenset({ToolKind.READ, ToolKind.SEARCH, ToolKind.FETCH})
"""Kinds of tools that change nothing."""
CHANGING = frozenset({ToolKind.EDIT, ToolKind.DELETE, ToolKind.MOVE, ToolKind.EXECUTE})
"""Kinds of tools that change things. Of a kind in neither set, the tool itself has to be known."""
MAY_CHANGE = CHANGING | {ToolKind.OTHER}
"""Those, and the kind of which nothing is known."""


class Location(msgspec.Struct, frozen=True):
    path: str
    """Absolute."""
    line: int | None = None
    """Counted from 1."""


class TextBlock(msgspec.Struct, frozen=True, tag="text", tag_field="block"):
    text: str
    prose: bool = False
    """Markdown of the model's, to be shown as such; other text is shown letter by letter."""
    language: str = ""
    """What other text is written in, by a name or a file's suffix; empty if that is plain text."""


class ImageBlock(msgspec.Struct, frozen=True, tag="image", tag_field="block"):
    image: Image


class DiffBlock(msgspec.Struct, frozen=True, tag="diff", tag_field="block", omit_defaults=True):
    path: str
    operation: Literal["add", "delete", "modify"]
    old_text: str
    new_text: str
    old_line: int = 1
    """The line of the file that the old text begins with, counted from 1."""
    new_line: int = 1


class TerminalBlock(msgspec.Struct, frozen=True, tag="terminal", tag_field="block"):
    """A terminal that the client runs and shows by itself."""

    terminal_id: str


class HiddenOutput(msgspec.Struct, frozen=True, tag="hidden", tag_field="block"):
    """The person already sees the output elsewhere: nothing is added to the call."""

    text: str = ""
    """What they saw, for a replay: the terminal that showed it is gone by then."""


DisplayBlock = TextBlock | ImageBlock | DiffBlock | TerminalBlock | HiddenOutput


class CommandEnd(msgspec.Struct, frozen=True):
    """How a command ended, for programs; `ToolResult.text` begins with what it printed."""

    printed: int
    """Characters of the result's text that are the command's output."""
    code: int | None = None
    signal: str | None = None
    lines: int = 0
    """The lines that it has printed, where something of them was left out of the text and their number is known."""


class ToolResult(msgspec.Struct, frozen=True):
    ok: bool
    text: str
    """For the model."""
    message: str = ""
    """For the person: one line. Shown when there is nothing else to show."""
    display: tuple[DisplayBlock, ...] = ()
    images: tuple[Image, ...] = ()
    """For a model that sees."""
    says: str = ""
    """Said to the person as the end of the turn: it is theirs to go on."""
    still_running: bool = False
    """What it tells of goes on: asking again is waiting, not going round in circles."""
    brief: str = ""
    """What the title of the call says of it in the end, in a word or two: `+3 -1`, `exit 3`. Many clients show titles
    alone."""
    locations: tuple[Location, ...] = ()
    """The places that it found."""
    command: CommandEnd | None = None
    background: str = ""
    """The id of the command that it left running; see BackgroundEnded."""

    @classmethod
    def refused(cls, reason: str) -> "ToolResult":
        return cls(ok=False, text=f"Not done: {reason}", message=reason, brief="refused")

    @classmethod
    def failed(cls, text: str, message: str = "") -> "ToolResult":
        return cls(ok=False, text=text, message=message or text)
