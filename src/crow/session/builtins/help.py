"""/help: the commands there are, by where they come from."""

from collections.abc import Sequence

from crow.events import CommandInfo, Sent
from crow.session.commands import Command, MoreCommands, Reply
from crow.session.file_commands import FileCommands
from crow.turn.conversation import TurnIds
from crow.visible import one_line


class Help:
    info = CommandInfo("help", "Lists the commands there are")

    def __init__(self, built_in: Sequence[Command], from_files: FileCommands, of_servers: MoreCommands) -> None:
        self._built_in = (self, *built_in)
        self._from_files = from_files
        self._of_servers = of_servers

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Reply:
        groups = [
            ("Built in", [command.info for command in self._built_in]),
            ("Skills", self._from_files.skill_infos()),
            ("Commands from files", self._from_files.custom_infos()),
            ("Prompts of MCP servers", [command.info for command in self._of_servers.commands()]),
        ]
        sections = [_group(title, infos) for title, infos in groups if infos]
        if unused := self._from_files.unused():
            sections.append("**Files that are not used**\n\n" + "\n".join(f"- {text}" for text in unused))
        return Reply("\n\n".join(sections))


def _group(title: str, infos: Sequence[CommandInfo]) -> str:
    return f"**{title}**\n\n" + "\n".join(_line(info) for info in infos)


def _line(info: CommandInfo) -> str:
    return f"- `/{info.name}{' ' + info.hint if info.hint else ''}`: {one_line(info.description)}"
