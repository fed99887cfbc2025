"""The commands that are files: the user's own, and those of projects that they trust."""

from collections.abc import Callable, Collection, Sequence

from crow.errors import FileSystemSilent
from crow.events import CommandInfo, Journal, Notice, Sent, SentText
from crow.paths import shown
from crow.project.prompt_files import CustomCommand, PromptFiles, Skill
from crow.project.sources import Sources
from crow.session.commands import Command, Prompt, Reply
from crow.session.trusting import Trusting
from crow.turn.ids import TurnIds
from crow.visible import one_line


class FileCommand:
    def __init__(self, file: CustomCommand | Skill) -> None:
        hint = file.hint if isinstance(file, CustomCommand) else "[what to do]"
        self.info = CommandInfo(file.name, file.description, hint)
        self.file = file

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Prompt:
        expand = self.file.expanded if isinstance(self.file, CustomCommand) else self.file.called
        return Prompt((SentText(expand(arguments)), *rest))


class AfterTrust:
    """A command of a project that is not trusted yet: first the person is asked. After a no it is mere text."""

    def __init__(self, command: FileCommand, commands: "FileCommands", trusting: Trusting) -> None:
        self.info = command.info
        self._commands = commands
        self._trusting = trusting

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Reply | Prompt:
        await self._trusting.prepare(ids)
        command = self._commands.trusted(self.info.name)
        if command is not None:
            return await command.run(arguments, rest, ids)
        return Prompt((SentText(f"/{self.info.name} {arguments}".rstrip()), *rest))


class FileCommands:
    """On a clash of names the user's own come before a project's, earlier roots before later, commands before skills.

    `taken` are the names of built-in commands, which no file can have.
    """

    def __init__(self, sources: Sources, trusting: Trusting, journal: Journal, taken: Collection[str]) -> None:
        self._sources = sources
        self._trusting = trusting
        self._journal = journal
        self._taken = frozenset(taken)
        self._refused: set[str] = set()
        """What was said of files that are not used: once is enough."""

    async def look(self) -> None:
        silent: list[str] = []
        try:
            await self._sources.look_beside()
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
        taken = [file for file in _files(self._sources.prompt_files()) if file.name in self._taken]
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
        waiting = self._known([offer.prompt_files for offer in self._sources.waiting()])
        return AfterTrust(waiting[name], self, self._trusting) if name in waiting else None

    def trusted(self, name: str) -> Command | None:
        return self._known(self._sources.prompt_files()).get(name)

    def _infos(self, kind: type[Skill] | type[CustomCommand]) -> list[CommandInfo]:
        known = self._known(self._sources.prompt_files()).values()
        return [command.info for command in known if isinstance(command.file, kind)]

    def _known(self, folders: Sequence[PromptFiles]) -> dict[str, FileCommand]:
        known: dict[str, FileCommand] = {}
        for file in _files(folders):
            if file.name not in self._taken:
                known.setdefault(file.name, FileCommand(file))
        return known


def _files(folders: Sequence[PromptFiles]) -> list[CustomCommand | Skill]:
    return [file for folder in folders for file in (*folder.commands, *folder.skills)]
