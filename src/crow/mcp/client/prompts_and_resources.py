"""MCP servers' resources, which the tool `mcp_resources` lists and reads, and their prompts, which become commands:
`/mcp:server:prompt …`.
"""

import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import count
from typing import Annotated, Any

import msgspec
from mcp_types import METHOD_NOT_FOUND, GetPromptResult, Prompt, ResourceTemplate

from crow.actions import Deed
from crow.errors import CrowError
from crow.events import Journal, Sent, SentMedia, SentText
from crow.files.base import Workspace
from crow.mcp.client.configured import prompt_name, tool_name
from crow.mcp.client.connection import ServerConnection
from crow.mcp.client.elicitation import AskingCall
from crow.mcp.client.inventory import all_pages
from crow.mcp.client.server_errors import ServerFailed, gave_no
from crow.mcp.client.tool import resources_digest
from crow.mcp.results import LONGEST_TEXT, read_content, read_resource
from crow.messages import Image, ToolCall, ToolSpec, without_middle
from crow.results import DisplayBlock, ImageBlock, TextBlock, ToolKind, ToolResult
from crow.tools.arguments import ArgumentReader, ignored_arguments
from crow.tools.base import Action, BadArguments, Tool
from crow.visible import one_line
from mcp import Client, MCPError

NAME = "mcp_resources"
DESCRIPTION = (
    "List what MCP servers offer to read, or read one of these resources: give its `uri`, and its `server` if several "
    "servers have resources."
)
MOST_LISTED = 200
ON_READING = "read_resource"
"""Reading is judged like a tool of this name of the server's."""
LONGEST_HINT = 200
LONGEST_PROMPT = 100_000
"""Characters of one prompt, all its messages together."""


class ResourceArguments(msgspec.Struct, frozen=True):
    server: Annotated[str, msgspec.Meta(description="name of the server; default: all")] = ""
    uri: Annotated[str, msgspec.Meta(description="what to read; without it, resources are listed")] = ""


_reader = ArgumentReader(ResourceArguments)


class Resources(Tool):
    kind = ToolKind.READ

    def __init__(self, connections: Callable[[], Sequence[ServerConnection]]) -> None:
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
            raise BadArguments(f"No server with that name has resources. Available: {names}.")
        if not arguments.uri:
            return ListAction(chosen, call.id, unknown)
        if len(chosen) > 1:
            raise BadArguments(
                "More than one server has resources.", advice=f"Say which `server` to read from: {names}."
            )
        return ReadAction(chosen[0], arguments.uri, call.id, unknown)


class ListAction(Action):
    title = "List resources"
    deed = Deed(NAME, ToolKind.READ)

    def __init__(self, connections: Sequence[ServerConnection], call_id: str, unknown: tuple[str, ...]) -> None:
        self._connections = connections
        self._call_id = call_id
        self._unknown = unknown

    async def perform(self, journal: Journal) -> ToolResult:
        lines: list[str] = []
        for connection in self._connections:
            lines.append(f"{connection.shown_name}:")
            try:
                lines += await connection.ask(_listed, AskingCall(self._call_id, self.title, ToolKind.READ))
            except ServerFailed as failed:
                lines.append(f"- unavailable: {failed.for_model}")
        text = without_middle("\n".join([*lines, *ignored_arguments(self._unknown)]), LONGEST_TEXT)
        return ToolResult(ok=True, text=text, message="Listed", display=(TextBlock(text),))


class ReadAction(Action):
    def __init__(self, connection: ServerConnection, uri: str, call_id: str, unknown: tuple[str, ...]) -> None:
        name = connection.shown_name
        self.title = f"Read {one_line(uri, 200)} from {name}"
        digest = resources_digest(connection.server.settings)
        self.deed = Deed(tool_name(connection.known_as, ON_READING), ToolKind.READ, digest=digest)
        self.display: tuple[DisplayBlock, ...] = (
            TextBlock(f"server: {name} (from {connection.server.origin})\nresource: {one_line(uri, len(uri))}"),
        )
        self._connection = connection
        self._uri = uri
        self._call_id = call_id
        self._unknown = unknown

    async def perform(self, journal: Journal) -> ToolResult:
        try:
            asked_in = AskingCall(self._call_id, self.title, ToolKind.READ)
            found = await self._connection.ask(lambda client: client.read_resource(self._uri), asked_in)
        except ServerFailed as failed:
            return ToolResult.failed(gave_no("resource", self._connection.server, failed))
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


# --- prompts


class ServerPrompt:
    """`taken` are the names of other commands: this one gets a number if its own is among them."""

    def __init__(self, connection: ServerConnection, prompt: Prompt, taken: Collection[str] = ()) -> None:
        self.name = _distinct(prompt_name(connection.known_as, prompt.name), taken)
        said = prompt.description or prompt.title or prompt.name
        self.description = f"{one_line(said, 200)} ({one_line(connection.name, 60)})"
        arguments = (one.name if one.required else f"[{one.name}]" for one in prompt.arguments or ())
        self.hint = one_line(" ".join(arguments), LONGEST_HINT)
        self._connection = connection
        self._prompt = prompt

    async def expand(self, arguments: str) -> tuple[Sent, ...]:
        """What the server makes of it. CrowError says what is missing, or why there is no answer."""
        values = self._values(arguments)
        try:
            given = await self._connection.ask(
                lambda client: client.get_prompt(self._prompt.name, values), AskingCall()
            )
        except ServerFailed as failed:
            raise CrowError(gave_no("prompt", self._connection.server, failed)) from None
        return _as_sent(given)

    def _values(self, arguments: str) -> dict[str, str]:
        """`name=value` goes to that argument, other words to the arguments in their order; the last takes the rest."""
        names = [argument.name for argument in self._prompt.arguments or ()]
        values: dict[str, str] = {}
        plain: list[str] = []
        for word in _words(arguments):
            name, sign, value = word.partition("=")
            if sign and name in names:
                values[name] = value
            else:
                plain.append(word)
        open_names = [name for name in names if name not in values]
        for number, name in enumerate(open_names):
            if number < len(plain):
                is_last = number == len(open_names) - 1
                values[name] = " ".join(plain[number:]) if is_last else plain[number]
        required = [argument.name for argument in self._prompt.arguments or () if argument.required]
        if missing := [name for name in required if name not in values]:
            names = one_line(", ".join(missing), LONGEST_HINT)
            raise CrowError(f"`/{self.name}` needs: {names}.", remedy=f"Write `/{self.name} {self.hint}`.")
        return values


def prompts_of(connections: Iterable[ServerConnection]) -> dict[str, list[ServerPrompt]]:
    """By server. No two of them have the same name, whatever is not allowed in a name being replaced."""
    taken: set[str] = set()
    found: dict[str, list[ServerPrompt]] = {}
    for connection in connections:
        of_it = found.setdefault(connection.name, [])
        for prompt in connection.inventory.prompts:
            of_it.append(ServerPrompt(connection, prompt, taken))
            taken.add(of_it[-1].name)
    return found


def _distinct(name: str, taken: Collection[str]) -> str:
    if name not in taken:
        return name
    return next(other for number in count(2) if (other := f"{name}_{number}") not in taken)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # an apostrophe that is only an apostrophe
        return text.split()


def _as_sent(given: GetPromptResult) -> tuple[Sent, ...]:
    sent: list[Sent] = []
    room = LONGEST_PROMPT
    left_out = 0
    for message in given.messages:
        texts, images = read_content([message.content])
        spoken = "" if message.role == "user" else "You said earlier: "
        for text in texts:
            if room:
                sent.append(SentText(spoken + text[:room]))
            left_out += len(text[room:])
            room -= len(text[:room])
        sent += [SentMedia("image", image.data, image.mime_type) for image in images]
    if left_out:
        sent.append(SentText(f"(The prompt is cut here: {left_out:,} more characters.)"))
    if not sent:
        raise CrowError("The server's prompt is empty.")
    return tuple(sent)
