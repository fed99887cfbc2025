"""Every command that Crow brings itself, and those that are files, put together for a session."""

from collections.abc import Sequence

import msgspec

from crow.events import CommandInfo, Sent
from crow.policy.base import Policy
from crow.project.sources import Sources
from crow.session.commands import Command, Commands, MoreCommands, Reply
from crow.session.file_commands import FileCommands
from crow.session.options import Options
from crow.session.persistence import Archive
from crow.session.servers import ServerPrompts, Servers
from crow.session.session_commands import Clear, Compact, Context, Export, Init, Rename, Undo
from crow.session.settings_commands import Mcp, Permissions, Plan, mode_command, model_command
from crow.session.title import Title
from crow.session.trusting import Trusting
from crow.turn.budget import ContextWindow
from crow.turn.compaction import Waiting
from crow.turn.ids import TurnIds
from crow.visible import one_line
from crow.workspace.base import Workspace


class CommandParts(msgspec.Struct, frozen=True):
    """The parts of a session that its commands work with."""

    window: ContextWindow
    waiting: Waiting
    workspace: Workspace
    policy: Policy
    options: Options
    archive: Archive
    servers: Servers
    title: Title
    prompts: ServerPrompts
    sources: Sources
    trusting: Trusting


def all_commands(parts: CommandParts) -> Commands:
    options, archive, window, workspace = parts.options, parts.archive, parts.window, parts.workspace
    built_in: list[Command] = [
        Init(),
        Compact(window, parts.waiting),
        Clear(window),
        Plan(options),
        mode_command(options),
        model_command(options),
        Permissions(parts.policy, workspace),
        Context(window),
        Mcp(parts.servers),
        Export(archive, workspace.roots[0]),
        Rename(parts.title),
        Undo(archive, window, workspace),
    ]
    taken = {Help.info.name, *(command.info.name for command in built_in)}
    from_files = FileCommands(parts.sources, parts.trusting, window.journal, taken)
    return Commands([Help(built_in, from_files, parts.prompts), *built_in], [from_files, parts.prompts])


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
