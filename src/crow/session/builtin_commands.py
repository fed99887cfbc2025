"""Every command that Crow brings itself, and those that are files, put together for a session."""

from collections.abc import Sequence

from crow.events import CommandInfo, Sent
from crow.project.sources import Sources
from crow.session.commands import Command, Commands, MoreCommands, Reply
from crow.session.file_commands import FileCommands
from crow.session.options import Options
from crow.session.persistence import Archive
from crow.session.servers import Servers
from crow.session.session_commands import Clear, Compact, Context, Export, Init, Rename, Undo
from crow.session.settings_commands import Mcp, Permissions, Plan, mode_command, model_command
from crow.session.title import Title
from crow.session.trusting import Trusting
from crow.turn.conversation import Conversation
from crow.turn.ids import TurnIds
from crow.visible import one_line


def all_commands(
    conversation: Conversation,
    options: Options,
    sources: Sources,
    trusting: Trusting,
    archive: Archive,
    servers: Servers,
    title: Title,
) -> Commands:
    workspace = conversation.workspace
    built_in: list[Command] = [
        Init(),
        Compact(conversation),
        Clear(conversation),
        Plan(options),
        mode_command(options),
        model_command(options),
        Permissions(conversation.policy, workspace),
        Context(conversation),
        Mcp(servers),
        Export(archive, workspace.roots[0]),
        Rename(title),
        Undo(archive, conversation),
    ]
    taken = {Help.info.name, *(command.info.name for command in built_in)}
    from_files = FileCommands(sources, trusting, conversation.journal, taken)
    return Commands([Help(built_in, from_files, servers.prompts), *built_in], [from_files, servers.prompts])


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
