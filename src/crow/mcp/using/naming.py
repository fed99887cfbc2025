"""The names that servers' tools and prompts have for the model and the person."""

import hashlib
import re
from collections.abc import Collection

LONGEST = 64
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def plain(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name) or "_"


def tool_name(server: str, tool: str, taken: Collection[str] = ()) -> str:
    """`mcp__server__tool`. One that is too long, or taken by another after mending, gets a short hash."""
    name = f"mcp__{plain(server)}__{plain(tool)}"
    if len(name) <= LONGEST and name not in taken:
        return name
    digest = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{name[: LONGEST - 9]}_{digest}"


def prompt_name(server: str, prompt: str) -> str:
    return f"mcp:{plain(server)}:{plain(prompt)}"
