"""The MCP servers that a project's `.mcp.json` names, in the format that many agents share."""

from shlex import quote

import msgspec

from crow.config.settings import McpServerSettings
from crow.errors import ConfigError
from crow.paths import shown


class _Servers(msgspec.Struct, frozen=True):
    mcp_servers: dict[str, dict[str, msgspec.Raw]] = msgspec.field(default={}, name="mcpServers")


def servers_in(content: bytes, path: str) -> dict[str, McpServerSettings]:
    """ConfigError names the file and the server that is wrong. Keys of other agents are passed over."""
    try:
        found = msgspec.json.decode(content, type=_Servers)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ConfigError(f"{shown(path)}: {error}.") from None
    return {name: _server(f"{shown(path)}, server {name!r}", fields) for name, fields in found.mcp_servers.items()}


def _server(place: str, fields: dict[str, msgspec.Raw]) -> McpServerSettings:
    known = {key: value for key, value in fields.items() if key in McpServerSettings.__struct_fields__}
    try:
        server = msgspec.json.decode(msgspec.json.encode(known), type=McpServerSettings)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ConfigError(f"{place}: {error}.") from None
    if bool(server.command) == bool(server.url):
        raise ConfigError(f"{place}: expected either command or url.")
    return server


def shown_server(server: McpServerSettings) -> str:
    """The whole of what would be started or asked, as a shell would take it."""
    values = [f"{name}={quote(value)}" for name, value in server.env.items()]
    what = [quote(word) for word in (server.command, *server.args)] if server.command else [server.url]
    headers = [f"with {name}: {quote(value)}" for name, value in server.headers.items()]
    return " ".join((*values, *what, *headers))
