"""Every command that Crow brings itself, and those that are files, put together for a session."""

from collections.abc import Sequence

from crow.project.sources import Sources
from crow.session.archive import Archive
from crow.session.builtins.choosing import Plan, mode_command, model_command
from crow.session.builtins.helping import Help, Init, Mcp
from crow.session.builtins.keeping import Export, Undo
from crow.session.builtins.permissions import Permissions
from crow.session.builtins.remembering import Clear, Compact, Context
from crow.session.commands import Command, Commands
from crow.session.journal import SessionJournal
from crow.session.options import Options
from crow.session.own_commands import OwnCommands
from crow.session.trusting import Trusting
from crow.turn.conversation import Conversation


def all_commands(
    conversation: Conversation,
    journal: SessionJournal,
    options: Options,
    sources: Sources,
    trusting: Trusting,
    archive: Archive,
    servers: Sequence[str],
) -> Commands:
    """`servers` are the names of the MCP servers that the user has configured."""
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
        Mcp(lambda: list(dict.fromkeys((*servers, *trusting.servers)))),
        Export(archive, journal, workspace.roots[0]),
        Undo(archive, journal, workspace),
    ]
    own = OwnCommands(sources, trusting, journal, {Help.info.name, *(command.info.name for command in built_in)})
    return Commands([Help(built_in, own), *built_in], own)
