"""`mcp_resources`: what servers have to read, listed and read."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec

from crow.actions import Deed
from crow.events import Journal
from crow.mcp.using.answering import AskedIn
from crow.mcp.using.connection import Connection
from crow.mcp.using.content import read_resource, shortened
from crow.mcp.using.failures import ServerFailed
from crow.mcp.using.naming import tool_name
from crow.messages import Image, ToolCall, ToolSpec
from crow.results import DisplayBlock, ImageBlock, Location, TextBlock, ToolKind, ToolResult
from crow.tools.base import ArgumentReader, BadArguments, ignored_arguments
from crow.visible import one_line
from crow.workspace.base import Workspace
from mcp import Client

NAME = "mcp_resources"
DESCRIPTION = (
    "List what MCP servers offer to read, or read one of these resources: give its `uri`, and its `server` if several "
    "servers have resources."
)
MOST_LISTED = 200
ON_READING = "read_resource"
"""Reading is judged like a tool of this name of the server's."""


class ResourceArguments(msgspec.Struct, frozen=True):
    server: Annotated[str, msgspec.Meta(description="name of the server; default: all")] = ""
    uri: Annotated[str, msgspec.Meta(description="what to read; without it, resources are listed")] = ""


_reader = ArgumentReader(ResourceArguments)


class Resources:
    kind = ToolKind.READ

    def __init__(self, connections: Callable[[], Sequence[Connection]]) -> None:
        """`connections` gives those that have resources."""
        self.spec = ToolSpec(NAME, DESCRIPTION, _reader.schema())
        self._connections = connections

    def title(self, arguments: dict[str, Any]) -> str:
        uri = arguments.get("uri")
        return f"Read {uri}" if isinstance(uri, str) and uri else "List resources"

    def growing(self, arguments: dict[str, Any]) -> str:
        return ""

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "ListAction | ReadAction":
        arguments, unknown = _reader.read(call)
        chosen = [one for one in self._connections() if not arguments.server or one.name == arguments.server]
        names = ", ".join(f"`{one.name}`" for one in self._connections())
        if not chosen:
            raise BadArguments(f"No such server has resources. These have: {names}.")
        if not arguments.uri:
            return ListAction(chosen, call.id, unknown)
        if len(chosen) > 1:
            raise BadArguments(f"Say which `server` to read from: {names}.")
        return ReadAction(chosen[0], arguments.uri, call.id, unknown)


class ListAction:
    title = "List resources"
    deed = Deed(NAME, ToolKind.READ)
    locations: tuple[Location, ...] = ()
    display: tuple[DisplayBlock, ...] = ()

    def __init__(self, connections: Sequence[Connection], call_id: str, unknown: tuple[str, ...]) -> None:
        self._connections = connections
        self._call_id = call_id
        self._unknown = unknown

    async def perform(self, journal: Journal) -> ToolResult:
        lines: list[str] = []
        for connection in self._connections:
            lines.append(f"{one_line(connection.name, 100)}:")
            try:
                lines += await connection.ask(_listed, AskedIn(self._call_id, self.title, ToolKind.READ))
            except ServerFailed as failed:
                lines.append(f"- not to be had: {failed.message}")
        text = shortened("\n".join([*lines, *ignored_arguments(self._unknown)]))
        return ToolResult(ok=True, text=text, message="Listed", display=(TextBlock(text),))


class ReadAction:
    locations: tuple[Location, ...] = ()

    def __init__(self, connection: Connection, uri: str, call_id: str, unknown: tuple[str, ...]) -> None:
        name = one_line(connection.name, 100)
        self.title = f"Read {one_line(uri, 200)} from {name}"
        self.deed = Deed(tool_name(connection.known_as, ON_READING), ToolKind.READ)
        self.display: tuple[DisplayBlock, ...] = (
            TextBlock(f"server: {name} (from {connection.wanted.origin})\nresource: {one_line(uri, len(uri))}"),
        )
        self._connection = connection
        self._uri = uri
        self._call_id = call_id
        self._unknown = unknown

    async def perform(self, journal: Journal) -> ToolResult:
        try:
            asked_in = AskedIn(self._call_id, self.title, ToolKind.READ)
            found = await self._connection.ask(lambda client: client.read_resource(self._uri), asked_in)
        except ServerFailed as failed:
            name = one_line(self._connection.name, 100)
            return ToolResult.failed(f"The MCP server `{name}` gave no resource: {failed.message.rstrip('.')}.")
        images: list[Image] = []
        texts = [text for content in found.contents for text in read_resource(content, images)]
        text = shortened("\n\n".join([*texts, *ignored_arguments(self._unknown)]))
        shown = (*((TextBlock(text),) if text else ()), *(ImageBlock(image) for image in images))
        return ToolResult(ok=True, text=text, message="Read", display=shown, images=tuple(images))


async def _listed(client: Client) -> list[str]:
    resources = (await client.list_resources()).resources
    templates = (await client.list_resource_templates()).resource_templates
    lines = [_line(resource.uri, resource.title or resource.name, resource.description) for resource in resources]
    lines += [_line(one.uri_template, one.title or one.name, one.description) for one in templates]
    more = [f"- and {len(lines) - MOST_LISTED} more"] if len(lines) > MOST_LISTED else []
    return [*lines[:MOST_LISTED], *more] or ["- nothing"]


def _line(uri: str, name: str, description: str | None) -> str:
    described = f": {one_line(description, 200)}" if description else ""
    return f"- {one_line(uri, 300)} ({one_line(name, 100)}){described}"
