"""`crow mcp login NAME`: logs in to a server that Crow uses, with the browser of whoever sits at this terminal.

`crow mcp logout NAME` forgets it again.
"""

import os

from crow.config.home import home
from crow.config.hosts import shown_address
from crow.config.load import load_settings
from crow.config.settings import McpServerSettings
from crow.errors import CrowError


def log_out(name: str) -> int:
    from crow.mcp.using.failures import ServerFailed
    from crow.mcp.using.tokens import Tokens

    folder = home(os.environ)
    url, name = _server(name, folder).url, _shown(name)
    try:
        was_there = Tokens(folder, url).delete()
    except ServerFailed as failed:
        raise CrowError(f"Not logged out of {name}: {failed.message}.") from None
    if was_there:
        print(f"Logged out of {name}: its tokens and Crow's registration there are deleted from this machine.")
    else:
        print(f"There was no login to {name} on this machine.")
    return 0


def log_in(name: str) -> int:
    """A name of `[mcp_servers]`, or the address of a server that an editor or a project brings."""
    import asyncio
    import logging

    from crow.mcp.using import login
    from crow.mcp.using.failures import ServerFailed

    logging.disable()  # the library would log what is nobody else's business
    folder = home(os.environ)
    settings, name = _server(name, folder), _shown(name)

    async def show(url: str) -> None:
        print(f"Open this page in a browser on this machine, and log in:\n\n{url}\n", flush=True)

    try:
        asyncio.run(login.log_in(settings, folder, show))
    except ServerFailed as failed:
        raise CrowError(f"Not logged in to {name}: {failed.message.rstrip('.')}.") from None
    print(f"Logged in to {name}.")
    return 0


def _shown(name: str) -> str:
    """An address may hold a key."""
    return shown_address(name) if _is_address(name) else name


def _is_address(name: str) -> bool:
    return name.startswith(("http://", "https://"))


def _server(name: str, folder: str) -> McpServerSettings:
    if _is_address(name):
        return McpServerSettings(url=name)
    servers = load_settings(folder).mcp_servers
    if name not in servers:
        known = ", ".join(server for server, one in servers.items() if one.url) or "none"
        raise CrowError(
            f"There is no MCP server {name} in your config.toml (with an address: {known}).",
            remedy="Give the name of one, or its address.",
        )
    if not servers[name].url:
        raise CrowError(f"The MCP server {name} is a program on this machine: it has no login.")
    return servers[name]
