"""Finds the slash command that a prompt means, and makes commands of the user's files and of those of trusted projects.
A prompt that begins with `/name` may be for Crow itself.

The built-in ones are put together in `crow.session.builtin_commands`. Those that are files, the user's own and those
of projects that they trust, are made here.
"""

import asyncio
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

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


class CommandReply(msgspec.Struct, frozen=True):
    """Crow answers by itself, in Markdown."""

    text: str


class CommandPrompt(msgspec.Struct, frozen=True):
    """The model is to answer, to this instead of what the person typed."""

    sent: tuple[Sent, ...]


class Command(Protocol):
    @property
    def info(self) -> CommandInfo: ...

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandReply | CommandPrompt:
        """`arguments` is what follows the name; `rest` are the prompt's other blocks; `ids` are the turn's.

        The journal already has the turn's start and what the person typed. A CrowError is said to the person.
        """
        ...


class CommandSource(Protocol):
    """Commands that come and go while the session lives, such as files and servers' prompts."""

    async def refresh(self) -> None:
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

    def untrusted(self) -> Sequence[str]:
        """The names of commands that are not advertised: the person has yet to trust the project that brings them."""
        ...

    def find(self, name: str) -> Command | None:
        """Also one that is not advertised."""
        ...


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


class FileCommand:
    def __init__(self, file: CustomCommand | Skill) -> None:
        hint = file.hint if isinstance(file, CustomCommand) else "[what to do]"
        self.info = CommandInfo(file.name, file.description, hint)
        self.file = file

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandPrompt:
        return CommandPrompt((SentText(self.file.expand(arguments)), *rest))


class UntrustedCommand:
    """A command of a project that is not trusted yet: first the person is asked. After a no it is mere text."""

    def __init__(self, command: FileCommand, commands: "FileCommands", trust: ProjectTrust) -> None:
        self.info = command.info
        self._commands = commands
        self._trust = trust

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandReply | CommandPrompt:
        await self._trust.prepare(ids)
        command = self._commands.trusted(self.info.name)
        if command is not None:
            return await command.run(arguments, rest, ids)
        return CommandPrompt((SentText(f"/{self.info.name} {arguments}".rstrip()), *rest))


class FileCommands:
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
            silent.append(f"{error.message} Commands, skills and settings are as they were when it last did.")
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
            f"{one_line(shown(file.path))} is not used: /{file.name} is a command of Crow's own. Give it another name."
            for file in taken
        ]

    def commands(self) -> Sequence[Command]:
        return list(self._known(self._sources.prompt_files()).values())

    def skill_infos(self) -> list[CommandInfo]:
        return self._infos(Skill)

    def custom_infos(self) -> list[CommandInfo]:
        return self._infos(CustomCommand)

    def find(self, name: str) -> Command | None:
        if (trusted := self.trusted(name)) is not None:
            return trusted
        waiting = self._waiting()
        return UntrustedCommand(waiting[name], self, self._trust) if name in waiting else None

    def untrusted(self) -> Sequence[str]:
        return list(self._waiting())

    def trusted(self, name: str) -> Command | None:
        return self._known(self._sources.prompt_files()).get(name)

    def _waiting(self) -> dict[str, FileCommand]:
        return self._known([offer.prompt_files for offer in self._sources.waiting()])

    def _infos(self, kind: type[Skill] | type[CustomCommand]) -> list[CommandInfo]:
        known = self._known(self._sources.prompt_files()).values()
        return [command.info for command in known if isinstance(command.file, kind)]

    def _known(self, folders: Sequence[PromptFiles]) -> dict[str, FileCommand]:
        known: dict[str, FileCommand] = {}
        for file in _prompt_files(folders):
            if file.name not in self._taken:
                known.setdefault(file.name, FileCommand(file))
        return known


def _prompt_files(folders: Sequence[PromptFiles]) -> list[CustomCommand | Skill]:
    return [file for folder in folders for file in (*folder.commands, *folder.skills)]
