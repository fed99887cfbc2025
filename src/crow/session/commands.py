"""Finds the slash command that a prompt means, and makes commands of the user's files and of those of trusted projects.
A prompt that begins with `/name` may be for Crow itself.

The built-in ones are put together in `crow.session.builtin_commands`. Those that are files, the user's own and those
of projects that they trust, are made here.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from crow.errors import FileSystemSilent
from crow.events import CommandInfo, CommandsChanged, Journal, Notice, Sent, SentText, TurnIds
from crow.paths import shown
from crow.project.folder_files import CustomCommand, PromptFiles, Skill
from crow.project.trusted_sources import Sources
from crow.session.trust import ProjectTrust
from crow.timeouts import timeout
from crow.visible import one_line

SETTLED = 0.5
"""Seconds between a change and the look at it: seldom does one come alone."""
POLL_INTERVAL = 10.0
"""Seconds between two looks where nobody tells of changes."""

_CALLED = re.compile(r"/([\w:-]+|mcp:\S+)(?:\s+(.*))?", re.DOTALL)


CommandAnswer = str | tuple[Sent, ...]
"""Crow's own answer, in Markdown; or what the model is to answer instead of what the person typed."""


class Command(NamedTuple):
    """A slash command. `run` gets what follows the name, the prompt's other blocks, and the ids of the turn.

    By then the journal has the turn's start and what the person typed. A CrowError is said to the person.
    """

    info: CommandInfo
    run: Callable[[str, Sequence[Sent], TurnIds], Awaitable[CommandAnswer]]


class CommandSource:
    """Commands that come and go while the session lives, such as files and servers' prompts."""

    is_watched = True
    """Whether every change is told. Else it has to be looked for."""

    async def refresh(self) -> None:
        """Takes in what has changed since the last look: a few looks at files' dates if nothing has."""

    def watch(self, tell: Callable[[], None]) -> None:
        """From the next look on, `tell` is called when another one is worth it, until this is closed."""

    def close(self) -> None:
        pass

    def commands(self) -> Sequence[Command]:
        return ()

    def untrusted(self) -> Sequence[str]:
        """The names of commands that are not advertised: the person has yet to trust the project that brings them."""
        return ()

    def find(self, name: str) -> Command | None:
        """Also one that is not advertised."""
        return next((command for command in self.commands() if command.info.name == name), None)


class SlashCommands:
    """Those there are in a session, by name."""

    def __init__(self, built_in: Sequence[Command] = (), more: Sequence[CommandSource] = ()) -> None:
        self._built_in = {command.info.name: command for command in built_in}
        self._more = tuple(more)
        self._told = CommandsChanged(())
        self._stale = asyncio.Event()

    def infos(self) -> tuple[CommandInfo, ...]:
        more = (command for source in self._more for command in source.commands())
        return tuple(command.info for command in (*self._built_in.values(), *more))

    async def changed(self) -> CommandsChanged | None:
        """All commands, if they are no longer those that were given last: to be asked around each turn."""
        for source in self._more:
            await source.refresh()
        told = CommandsChanged(self.infos(), tuple(name for source in self._more for name in source.untrusted()))
        if told == self._told:
            return None
        self._told = told
        return told

    def watch(self) -> None:
        for source in self._more:
            source.watch(self._stale.set)

    async def due(self) -> None:
        """Returns when it is time for another look, also between turns: something has changed, or may have."""
        is_watched = all(source.is_watched for source in self._more)
        with suppress(TimeoutError):
            async with timeout(None if is_watched else POLL_INTERVAL):
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


def blocks_after_command(sent: Sequence[Sent]) -> tuple[Sent, ...]:
    """What came with a command: every block but the text that names it."""
    named = next((index for index, item in enumerate(sent) if isinstance(item, SentText)), len(sent))
    return (*sent[:named], *sent[named + 1 :])


class FileCommands(CommandSource):
    """On a clash of names the user's own come before a project's, earlier roots before later, commands before skills.

    `taken` are the names of built-in commands, which no file can have.
    """

    def __init__(self, sources: Sources, trust: ProjectTrust, journal: Journal, taken: Collection[str]) -> None:
        self._sources = sources
        self._trust = trust
        self._journal = journal
        self._taken = frozenset(taken)
        self._refused: set[str] = set()
        """What was said of files that are not used: once is enough."""

    async def refresh(self) -> None:
        silent: list[str] = []
        try:
            await self._sources.refresh_in_thread()
        except FileSystemSilent as error:
            silent.append(f"{error.message} Commands, skills and settings stay as last read.")
        for text in (*self.unused(), *silent):
            if text not in self._refused:
                self._refused.add(text)
                self._journal.append(Notice("warning", text))

    def watch(self, tell: Callable[[], None]) -> None:
        self._sources.watch(tell)

    @property
    def is_watched(self) -> bool:
        return self._sources.is_watched

    def close(self) -> None:
        self._sources.close()

    def unused(self) -> list[str]:
        """The files that are there and make no command, each with why."""
        own = [f"Not used: {one_line(shown(what))}." for what in self._sources.unused()]
        taken = [file for file in _prompt_files(self._sources.prompt_files()) if file.name in self._taken]
        return own + [
            f"{one_line(shown(file.path))} is not used: /{file.name} is a built-in command. Rename the file."
            for file in taken
        ]

    def commands(self) -> Sequence[Command]:
        return [_command(file) for file in self._trusted().values()]

    def infos_of(self, kind: type[Skill] | type[CustomCommand]) -> list[CommandInfo]:
        return [_info(file) for file in self._trusted().values() if isinstance(file, kind)]

    def find(self, name: str) -> Command | None:
        if (file := self._trusted().get(name)) is not None:
            return _command(file)
        if (file := self._untrusted().get(name)) is not None:
            return Command(_info(file), partial(self._ask_for_trust, name))
        return None

    def untrusted(self) -> Sequence[str]:
        return list(self._untrusted())

    async def _ask_for_trust(self, name: str, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandAnswer:
        """Runs a command of a project that is not trusted yet: first the person is asked. After a no it is mere
        text."""
        await self._trust.prepare(ids)
        if (file := self._trusted().get(name)) is not None:
            return await _expand(file, arguments, rest, ids)
        return SentText(f"/{name} {arguments}".rstrip()), *rest

    def _trusted(self) -> dict[str, CustomCommand | Skill]:
        return self._known(self._sources.prompt_files())

    def _untrusted(self) -> dict[str, CustomCommand | Skill]:
        return self._known([offer.prompt_files for offer in self._sources.waiting()])

    def _known(self, folders: Sequence[PromptFiles]) -> dict[str, CustomCommand | Skill]:
        known: dict[str, CustomCommand | Skill] = {}
        for file in _prompt_files(folders):
            if file.name not in self._taken:
                known.setdefault(file.name, file)
        return known


def _command(file: CustomCommand | Skill) -> Command:
    return Command(_info(file), partial(_expand, file))


def _info(file: CustomCommand | Skill) -> CommandInfo:
    return CommandInfo(file.name, file.description, file.hint if isinstance(file, CustomCommand) else "[what to do]")


async def _expand(file: CustomCommand | Skill, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandAnswer:
    return SentText(file.expand(arguments)), *rest


def _prompt_files(folders: Sequence[PromptFiles]) -> list[CustomCommand | Skill]:
    return [file for folder in folders for file in (*folder.commands, *folder.skills)]
