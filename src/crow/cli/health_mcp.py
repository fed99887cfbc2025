"""Checks of the MCP servers of the user's configuration, for `crow doctor` and `crow mcp list|test`: each is started,
asked for its tools, and ended."""

import asyncio
import os
import shlex
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from crow.actions import Filled, Form, Link
from crow.cli.failure import in_a_folder
from crow.cli.health import Check, failed, fine, warn
from crow.cli.render_text import counted
from crow.config.hosts import shown_address
from crow.config.settings import Limits, McpServerSettings, Settings
from crow.config.toml import toml_key
from crow.mcp.using.wanted import Origin, Wanted, shown_name
from crow.visible import one_line

if TYPE_CHECKING:
    from crow.mcp.using.hub import ServerStatus


def check_servers(settings: Settings, home: str, *, offline: bool) -> Iterable[Check]:
    """A broken server costs only its own tools; but whoever asks a doctor wants to know."""
    servers = settings.mcp_servers
    if offline:
        yield from (fine(f"the MCP server {shown_name(name)} (not started)") for name in servers)
        return
    for server in try_servers(servers, settings.limits, home):
        yield check_of(server, servers[server.name], home)


def check_of(server: "ServerStatus", settings: McpServerSettings, home: str) -> Check:
    name = f"the MCP server {shown_name(server.name)}"
    if server.state == "ready":
        return fine(f"{name} has {counted(len(server.tools), 'tool')}")
    cause = one_line(server.cause or server.state, 500)
    if server.wants_login:
        return warn(f"{name}: {cause}", "It can be used after that.")
    from crow.mcp.using.stderr_log import stderr_path

    place = "It is at" if settings.url else "It is started with"
    remedy = f"{server.remedy}\n" if server.remedy else ""
    printed = f"What it printed is in {stderr_path(home, server.known_as)}.\n" if server.has_printed else ""
    return failed(
        f"{name}: {cause}",
        f"{place} {shown_settings(settings)}\n{remedy}{printed}"
        f"Mend [mcp_servers.{toml_key(server.name)}] in the config, "
        f"then try it: crow mcp test {shlex.quote(server.name)}",
    )


def shown_settings(settings: McpServerSettings) -> str:
    """How a server is reached, without what may be secret in it."""
    if settings.url:
        return shown_address(settings.url)
    return one_line(shlex.join([settings.command, *settings.args]), 500)


def try_servers(servers: Mapping[str, McpServerSettings], limits: Limits, home: str) -> "list[ServerStatus]":
    """Starts all of them at once, waits until each is ready or has failed, and ends them."""
    return asyncio.run(_try(servers, limits, home)) if servers else []


async def _try(servers: Mapping[str, McpServerSettings], limits: Limits, home: str) -> "list[ServerStatus]":
    from crow.mcp.using.connection import Around
    from crow.mcp.using.hub import Hub
    from crow.mcp.using.library import silence_library
    from crow.workspace.processes import Keeper

    silence_library()
    keeper = Keeper()
    around = Around(
        keeper=keeper,
        home=home,
        roots=(os.getcwd() if in_a_folder() else home,),
        environ=os.environ,
        asker=_Nobody(),
        limits=lambda: limits,
        tell=lambda notice: None,
    )
    hub = Hub(around, lambda: None)
    try:
        hub.use({name: Wanted(name, Origin.CONFIG, settings) for name, settings in servers.items()})
        await hub.settled()
        return hub.status()
    finally:
        await hub.close()
        await keeper.close()


class _Nobody:
    """Nobody answers a server that is only tried."""

    can_visit = False

    async def fill_in(self, form: Form) -> Filled:
        return Filled("cancel")

    async def visit(self, link: Link) -> bool:
        return False

    def visited(self, link_id: str) -> None:
        pass
