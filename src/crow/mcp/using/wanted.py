"""Which MCP servers a session is to use, and who wants them."""

import enum
from collections.abc import Mapping

import msgspec

from crow.config.settings import McpServerSettings
from crow.visible import one_line


class Origin(enum.StrEnum):
    """The value is how a person reads it."""

    EDITOR = "your editor"
    CONFIG = "your configuration"
    PROJECT = "the project"


class Wanted(msgspec.Struct, frozen=True):
    name: str
    origin: Origin
    settings: McpServerSettings

    @property
    def shown_name(self) -> str:
        return shown_name(self.name)


def shown_name(server: str) -> str:
    """As a person and the model read it."""
    return one_line(server, 100)


def all_wanted(
    editor: Mapping[str, McpServerSettings],
    config: Mapping[str, McpServerSettings],
    project: Mapping[str, McpServerSettings],
) -> dict[str, Wanted]:
    """By name. The editor's list is authoritative for its names; a project never takes the place of the user's own."""
    wanted: dict[str, Wanted] = {}
    for origin, servers in ((Origin.EDITOR, editor), (Origin.CONFIG, config), (Origin.PROJECT, project)):
        for name, settings in servers.items():
            wanted.setdefault(name, Wanted(name, origin, settings))
    return wanted
