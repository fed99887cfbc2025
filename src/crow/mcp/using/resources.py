"""`mcp_resources`: what servers have to read, listed and read."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import msgspec
from mcp_types import METHOD_NOT_FOUND, ResourceTemplate

from crow.actions import Deed
from crow.cutting import without_middle
from crow.events import Journal
from crow.mcp.using.answering import AskedIn
from crow.mcp.using.connection import Connection
from crow.mcp.using.content import LONGEST_TEXT, read_resource
from crow.mcp.using.digests import resources_digest
from crow.mcp.using.failures import ServerFailed
from crow.mcp.using.naming import tool_name
from crow.mcp.using.pages import all_pages
from crow.mcp.using.telling import gave_no
from crow.messages import Image, ToolCall, ToolSpec
from crow.results import DisplayBlock, ImageBlock, Location, TextBlock, ToolKind, ToolResult
from crow.tools.base import ArgumentReader, BadArguments, ignored_arguments
from crow.visible import one_line
from crow.workspace.base import Workspace
from mcp import Client, MCPError

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
            lines.append(f"{connection.shown_name}:")
            try:
                lines += await connection.ask(_listed, AskedIn(self._call_id, self.title, ToolKind.READ))
            except ServerFailed as failed:
                lines.append(f"- not to be had: {failed.for_model}")
        text = without_middle("\n".join([*lines, *ignored_arguments(self._unknown)]), LONGEST_TEXT)
        return ToolResult(ok=True, text=text, message="Listed", display=(TextBlock(text),))


class ReadAction:
    locations: tuple[Location, ...] = ()

    def __init__(self, connection: Connection, uri: str, call_id: str, unknown: tuple[str, ...]) -> None:
        name = connection.shown_name
        self.title = f"Read {one_line(uri, 200)} from {name}"
        digest = resources_digest(connection.wanted.settings)
        self.deed = Deed(tool_name(connection.known_as, ON_READING), ToolKind.READ, digest=digest)
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
            return ToolResult.failed(gave_no("resource", self._connection.wanted, failed))
        images: list[Image] = []
        texts = [text for content in found.contents for text in read_resource(content, images)]
        text = without_middle("\n\n".join([*texts, *ignored_arguments(self._unknown)]), LONGEST_TEXT)
        shown = (*((TextBlock(text),) if text else ()), *(ImageBlock(image) for image in images))
        return ToolResult(ok=True, text=text, message="Read", display=shown, images=tuple(images))


async def _listed(client: Client) -> list[str]:
    resources, more = await all_pages(client.list_resources, lambda page: page.resources, MOST_LISTED)
    lines = [_line(resource.uri, resource.title or resource.name, resource.description) for resource in resources]
    templates, more_templates = await _templates(client, MOST_LISTED - len(lines))
    lines += [_line(one.uri_template, one.title or one.name, one.description) for one in templates]
    return [*lines, *(["- and more"] if more or more_templates else [])] or ["- nothing"]


async def _templates(client: Client, most: int) -> tuple[list[ResourceTemplate], bool]:
    try:
        return await all_pages(client.list_resource_templates, lambda page: page.resource_templates, most)
    except MCPError as error:
        if error.code == METHOD_NOT_FOUND:  # it has resources all the same
            return [], False
        raise


def _line(uri: str, name: str, description: str | None) -> str:
    described = f": {one_line(description, 200)}" if description else ""
    return f"- {one_line(uri, 300)} ({one_line(name, 100)}){described}"
