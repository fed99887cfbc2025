"""Slash commands: a prompt that begins with `/name` may be for Crow itself.

The built-in ones are put together in `crow.session.builtin_commands`; those that are files of the user's or of a
trusted project come from `crow.session.file_commands`.
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

from crow.events import CommandInfo, Sent, SentText
from crow.timeouts import timeout
from crow.turn.ids import TurnIds

SETTLED = 0.5
"""Seconds between a change and the look at it: seldom does one come alone."""
LOOK_EVERY = 10.0
"""Seconds between two looks where nobody tells of changes."""

_CALLED = re.compile(r"/([\w:-]+|mcp:\S+)(?:\s+(.*))?", re.DOTALL)


class Reply(msgspec.Struct, frozen=True):
    """Crow answers by itself, in Markdown."""

    text: str


class Prompt(msgspec.Struct, frozen=True):
    """The model is to answer, to this instead of what the person typed."""

    sent: tuple[Sent, ...]


class Command(Protocol):
    @property
    def info(self) -> CommandInfo: ...

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Reply | Prompt:
        """`arguments` is what follows the name; `rest` are the prompt's other blocks; `ids` are the turn's.

        The journal already has the turn's start and what the person typed. A CrowError is said to the person.
        """
        ...


class MoreCommands(Protocol):
    """Commands that come and go while the session lives, such as files and servers' prompts."""

    async def look(self) -> None:
        """Takes in what has changed since the last look: a few looks at files' dates if nothing has."""
        ...

    def watch(self, tell: Callable[[], None]) -> None:
        """From the next look on, `tell` is called when another one is worth it, until this is closed."""
        ...

    @property
    def is_watched(self) -> bool:
        """Whether every change is told. Else it has to be looked for."""
        ...

    def close(self) -> None: ...

    def commands(self) -> Sequence[Command]: ...

    def find(self, name: str) -> Command | None:
        """Also one that is not advertised, as the person has yet to trust the project that brings it."""
        ...


class Commands:
    """Those there are in a session, by name."""

    def __init__(self, built_in: Sequence[Command] = (), more: Sequence[MoreCommands] = ()) -> None:
        self._built_in = {command.info.name: command for command in built_in}
        self._more = tuple(more)
        self._told: tuple[CommandInfo, ...] = ()
        self._stale = asyncio.Event()

    def infos(self) -> tuple[CommandInfo, ...]:
        more = (command for source in self._more for command in source.commands())
        return tuple(command.info for command in (*self._built_in.values(), *more))

    async def changed(self) -> tuple[CommandInfo, ...] | None:
        """All commands, if they are no longer those that were given last: to be asked around each turn."""
        for source in self._more:
            await source.look()
        infos = self.infos()
        if infos == self._told:
            return None
        self._told = infos
        return infos

    def watch(self) -> None:
        for source in self._more:
            source.watch(self._stale.set)

    async def due(self) -> None:
        """Returns when it is time for another look, also between turns: something has changed, or may have."""
        is_watched = all(source.is_watched for source in self._more)
        with suppress(TimeoutError):
            async with timeout(None if is_watched else LOOK_EVERY):
                await self._stale.wait()
        await asyncio.sleep(SETTLED)
        self._stale.clear()

    def close(self) -> None:
        for source in self._more:
            source.close()

    def find(self, sent: Sequence[Sent]) -> tuple[Command, str] | None:
        """The command that a prompt is, and its arguments; None if it is for the model."""
        text = next((item.text for item in sent if isinstance(item, SentText)), "")
        called = _CALLED.fullmatch(text)
        if called is None:
            return None
        name, arguments = called[1], (called[2] or "").strip()
        command = self._built_in.get(name) or next(self._found(name), None)
        return (command, arguments) if command is not None else None

    def _found(self, name: str) -> Iterator[Command]:
        return (command for source in self._more if (command := source.find(name)) is not None)


def rest_of(sent: Sequence[Sent]) -> tuple[Sent, ...]:
    """What came with a command: every block but the text that names it."""
    named = next((index for index, item in enumerate(sent) if isinstance(item, SentText)), len(sent))
    return (*sent[:named], *sent[named + 1 :])
