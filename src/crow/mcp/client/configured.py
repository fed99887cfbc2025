"""The MCP servers that a session is configured with: who configured each, and the names that servers and their tools
(`mcp__…`) get.

The only file of this folder that is loaded before a session has servers.
"""

import enum
import re
from collections.abc import Collection, Iterable
from itertools import count

import msgspec

from crow.config.hosts import SECRET_NAME
from crow.config.settings import McpServerSettings
from crow.messages import SERVER_TOOL
from crow.visible import one_line

LONGEST_TOOL_NAME = 64
LONGEST_SERVER_NAME = 40
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


class Origin(enum.StrEnum):
    """Who configured a server. The value is shown to the person."""

    EDITOR = "your editor"
    CONFIG = "your configuration"
    PROJECT = "the project"


class ConfiguredServer(msgspec.Struct, frozen=True):
    """A server that a session is to use, with the name that whoever configured it gave it."""

    name: str
    origin: Origin
    settings: McpServerSettings

    @property
    def shown_name(self) -> str:
        return shown_name(self.name)


def shown_name(server: str) -> str:
    """The name of a server as a person and the model read it."""
    return one_line(server, 100)


# --- the names of servers, tools and prompts for the model, in rules and in files


def _sanitised(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name) or "_"


def server_names(servers: Iterable[str]) -> dict[str, str]:
    """The names by server. Where two are the same once sanitised, the first has the plain one, the other a hash."""
    names: dict[str, str] = {}
    for server in servers:
        name = server_name(server)
        if name in names.values():
            hashed = (_with_hash(name, f"{server}{'!' * number}") for number in count())
            name = next(other for other in hashed if other not in names.values())
        names[server] = name
    return names


def tool_name(server: str, tool: str, taken: Collection[str] = ()) -> str:
    """`mcp__server__tool`. One that is too long, or that another tool has once sanitised, gets a short hash."""
    name = f"{SERVER_TOOL}{server_name(server)}__{_sanitised(tool)}"
    if len(name) <= LONGEST_TOOL_NAME and name not in taken:
        return name
    digest = _hash(f"{server}\0{tool}")
    return f"{name[: LONGEST_TOOL_NAME - 9]}_{digest}"


def server_name(server: str) -> str:
    """The server's part of tool names, without `__` inside and `_` at its end.

    A rule for `mcp__docs__*` must not cover a server `docs__evil`.
    """
    name = re.sub("__+", "_", _sanitised(server))
    if len(name) <= LONGEST_SERVER_NAME and not name.endswith("_"):
        return name
    return _with_hash(name, server)


def _with_hash(name: str, server: str) -> str:
    return f"{name[: LONGEST_SERVER_NAME - 9].rstrip('_')}_{_hash(server)}"


def _hash(text: str) -> str:
    import hashlib  # not before it is needed: few names have to be told apart by it

    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def prompt_name(server: str, prompt: str) -> str:
    return f"mcp:{server_name(server)}:{_sanitised(prompt)}"


# --- addresses, which may hold a key that nobody is told


def bare_address(url: str) -> str:
    """The address by which logins are stored: without user, password, query and fragment."""
    from urllib.parse import urlsplit  # for servers with an address, not for the session's beginning

    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def place_of_key(settings: McpServerSettings) -> str:
    """Where the configuration says how the server lets us in; empty if nowhere: then it may want a login."""
    if any(SECRET_NAME.search(name) for name in settings.headers):
        return "headers"
    from urllib.parse import parse_qsl, urlsplit

    try:
        parts = urlsplit(settings.url)
    except ValueError:
        return ""
    names = (name for name, _ in parse_qsl(parts.query, keep_blank_values=True))
    return "address" if "@" in parts.netloc or any(map(SECRET_NAME.search, names)) else ""
