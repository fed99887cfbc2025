"""Every command that Crow brings itself, and those that are files, put together for a session."""

from crow.project.sources import Sources
from crow.session.archive import Archive
from crow.session.builtins.context import Clear, Compact, Context
from crow.session.builtins.export import Export
from crow.session.builtins.help import Help
from crow.session.builtins.init import Init
from crow.session.builtins.mcp import Mcp
from crow.session.builtins.options import Plan, mode_command, model_command
from crow.session.builtins.permissions import Permissions
from crow.session.builtins.rename import Rename
from crow.session.builtins.undo import Undo
from crow.session.commands import Command, Commands
from crow.session.file_commands import FileCommands
from crow.session.options import Options
from crow.session.servers import Servers
from crow.session.title import Title
from crow.session.trusting import Trusting
from crow.turn.conversation import Conversation


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
