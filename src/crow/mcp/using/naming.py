"""The names that servers, their tools and prompts have for the model, in rules and in files."""

import hashlib
import re
from collections.abc import Collection, Iterable
from itertools import count

LONGEST = 64
LONGEST_SERVER = 40
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def plain(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name) or "_"


def server_names(servers: Iterable[str]) -> dict[str, str]:
    """By server. Of those whose names are the same after mending the first has the plain one, the others a hash."""
    names: dict[str, str] = {}
    for server in servers:
        name = server_name(server)
        if name in names.values():
            hashed = (_with_hash(name, f"{server}{'!' * number}") for number in count())
            name = next(other for other in hashed if other not in names.values())
        names[server] = name
    return names


def tool_name(server: str, tool: str, taken: Collection[str] = ()) -> str:
    """`mcp__server__tool`. One that is too long, or taken by another after mending, gets a short hash."""
    name = f"mcp__{server_name(server)}__{plain(tool)}"
    if len(name) <= LONGEST and name not in taken:
        return name
    digest = _hash(f"{server}\0{tool}")
    return f"{name[: LONGEST - 9]}_{digest}"


def server_name(server: str) -> str:
    """Neither has it `__` inside nor `_` at its end: a rule for `mcp__docs__*` is not about a server `docs__evil`."""
    name = re.sub("__+", "_", plain(server))
    if len(name) <= LONGEST_SERVER and not name.endswith("_"):
        return name
    return _with_hash(name, server)


def _with_hash(name: str, server: str) -> str:
    return f"{name[: LONGEST_SERVER - 9].rstrip('_')}_{_hash(server)}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def prompt_name(server: str, prompt: str) -> str:
    return f"mcp:{server_name(server)}:{plain(prompt)}"
