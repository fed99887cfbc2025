"""The environment of a session: what it works with, and through whom."""

from collections.abc import Mapping

import msgspec

from crow.actions import Person
from crow.config.settings import McpServerSettings
from crow.session.journal import Sink
from crow.workspace.base import Commands, Workspace
from crow.workspace.processes import Keeper


class Environment(msgspec.Struct):
    """The editor's parts, or this machine's where the editor has none."""

    workspace: Workspace
    commands: Commands
    person: Person
    sink: Sink
    keeper: Keeper
    environ: Mapping[str, str]
    servers: Mapping[str, McpServerSettings]
    """The MCP servers that the editor hands over, by name."""
