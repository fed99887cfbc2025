"""The MCP servers that a project's `.mcp.json` names, in the format that many agents share."""

import re
from collections.abc import Mapping
from shlex import quote

import msgspec

from crow.config.settings import McpServerSettings
from crow.errors import ConfigError
from crow.paths import shown

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class _Servers(msgspec.Struct, frozen=True):
    mcp_servers: dict[str, msgspec.Raw] = msgspec.field(default={}, name="mcpServers")


def servers_in(content: bytes, path: str, problems: list[str]) -> dict[str, McpServerSettings]:
    """Those that are right; the others join the problems. Keys of other agents are passed over."""
    try:
        found = msgspec.json.decode(content, type=_Servers).mcp_servers
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        problems.append(str(ConfigError(f"{shown(path)}: {error}.")))
        return {}
    servers: dict[str, McpServerSettings] = {}
    for name, fields in found.items():
        try:
            servers[name] = _server(fields)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            problems.append(f"{shown(path)}, server {name!r}: {str(error).rstrip('.')}. It is not used.")
    return servers


def _server(content: msgspec.Raw) -> McpServerSettings:
    fields = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
    known = {key: value for key, value in fields.items() if key in McpServerSettings.__struct_fields__}
    server = msgspec.json.decode(msgspec.json.encode(known), type=McpServerSettings)
    if bool(server.command) == bool(server.url):
        raise msgspec.ValidationError("expected either command or url")
    return server


class VariablesMissing(Exception):
    """`names` have neither a value nor a default."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(", ".join(names))


def expanded(server: McpServerSettings, environ: Mapping[str, str]) -> McpServerSettings:
    """With values in the place of `${VARIABLE}` and `${VARIABLE:-default}`. VariablesMissing if there is none."""
    missing: dict[str, None] = {}

    def value(match: re.Match[str]) -> str:
        name, default = match.groups()
        if default is None and name not in environ:
            missing[name] = None
        return environ.get(name, "") or default or ""

    def fill(text: str) -> str:
        return _VARIABLE.sub(value, text)

    filled = msgspec.structs.replace(
        server,
        command=fill(server.command),
        args=[fill(word) for word in server.args],
        env={name: fill(text) for name, text in server.env.items()},
        url=fill(server.url),
        headers={name: fill(text) for name, text in server.headers.items()},
    )
    if missing:
        raise VariablesMissing(list(missing))
    return filled


def shown_server(server: McpServerSettings) -> str:
    """The whole of what would be started or asked, as a shell would take it."""
    values = [f"{name}={quote(value)}" for name, value in server.env.items()]
    what = [quote(word) for word in (server.command, *server.args)] if server.command else [server.url]
    headers = [f"with {name}: {quote(value)}" for name, value in server.headers.items()]
    return " ".join((*values, *what, *headers))
