"""What a session is surrounded by."""

from collections.abc import Mapping

import msgspec

from crow.actions import Person
from crow.config.settings import McpServerSettings
from crow.session.journal import Sink
from crow.workspace.base import Commands, Workspace
from crow.workspace.processes import Keeper


class Surroundings(msgspec.Struct):
    """What a session works with, and through whom: the editor's, or this machine's where it offers none."""

    workspace: Workspace
    commands: Commands
    person: Person
    sink: Sink
    keeper: Keeper
    environ: Mapping[str, str]
    servers: Mapping[str, McpServerSettings]
    """The MCP servers that the editor hands over, by name."""
