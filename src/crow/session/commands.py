"""Slash commands: a prompt that begins with `/name` may be for Crow itself."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from crow.events import CommandInfo, Sent


class Reply(msgspec.Struct, frozen=True):
    """Crow answers by itself, in Markdown."""

    text: str


class Prompt(msgspec.Struct, frozen=True):
    """The model is to answer, to this instead of what the person typed."""

    sent: tuple[Sent, ...]


class Command(Protocol):
    @property
    def info(self) -> CommandInfo: ...

    async def run(self, arguments: str, rest: Sequence[Sent]) -> Reply | Prompt:
        """`arguments` is what follows the name; `rest` are the prompt's other blocks."""
        ...


class Commands:
    """Those there are in a session, by name."""

    def __init__(self, commands: Sequence[Command] = ()) -> None:
        self._commands = {command.info.name: command for command in commands}

    def infos(self) -> tuple[CommandInfo, ...]:
        return tuple(command.info for command in self._commands.values())

    def find(self, sent: Sequence[Sent]) -> tuple[Command, str] | None:
        """The command that a prompt is, and its arguments; None if it is for the model."""
        return None
