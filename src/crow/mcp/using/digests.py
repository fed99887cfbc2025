"""What a person's "always" is bound to: what a tool says of itself, and who says it.

Another program under the same name is another server, and a tool that is described otherwise is another tool.
"""

import hashlib
from typing import Any

import msgspec
from mcp_types import Tool as McpToolDefinition

from crow.config.settings import McpServerSettings
from crow.messages import ToolSpec


def tool_digest(definition: McpToolDefinition, spec: ToolSpec, server: McpServerSettings) -> str:
    """`spec` is what the model is told of the tool; of what only the person is told, the hints count."""
    hints = definition.annotations
    said = None if hints is None else (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint)
    return _digest(("tool", definition.name, spec.name, spec.description, spec.schema, said, _identity(server)))


def resources_digest(server: McpServerSettings) -> str:
    """Of everything that a server has to read."""
    return _digest(("resources", _identity(server)))


def _identity(server: McpServerSettings) -> tuple[Any, ...]:
    """Its variables and headers do not count: those are keys, which may be exchanged."""
    return server.command, server.args, server.url


def _digest(said: tuple[Any, ...]) -> str:
    return hashlib.sha256(msgspec.json.encode(said, order="sorted")).hexdigest()[:32]
