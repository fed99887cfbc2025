"""Decides what a session gets of a client, from the capabilities that the client declared: files, terminals, MCP
servers, dialogs. No tool asks for an editor.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Any, Literal

from crow.acp import crow_meta, wire
from crow.acp.client_person import ClientPerson
from crow.acp.sink import UpdateSink
from crow.acp.terminal import ClientCommands
from crow.acp.terminal_check import CheckedCommands, TerminalCheck
from crow.acp.workspace import ClientWorkspace
from crow.commands.base import Commands
from crow.commands.terminal import given_to_terminals
from crow.config.settings import McpServerSettings
from crow.files.base import Workspace
from crow.live.face import ClientKnowledge, Face
from crow.live.session import LiveSession
from crow.rpc.connection import Connection
from crow.visible import one_line

LONGEST_NAME = 200
NAMELESS = "another client"
"""The name of a client that does not say its own."""


class Capabilities:
    """What one client can do. What it left out counts as not offered."""

    def __init__(self, connection: Connection, request: wire.InitializeRequest, home: str) -> None:
        self._connection = connection
        self._client = request.client_capabilities or wire.ClientCapabilities()
        self._facts = crow_meta.read(wire.ClientFacts, request.meta)
        self._name = _named(request.client_info or {}, "name")
        self._title = _named(request.client_info or {}, "title") or self._name or NAMELESS
        self._check = TerminalCheck(home, _name_and_version(request.client_info or {}))

    @property
    def follows_state(self) -> bool:
        """Whether the client is told of each change of a session's state."""
        return self._facts.state

    def files(self, session_id: str, roots: Sequence[str]) -> Workspace | None:
        """The session's files as this client has them; None if it offers none. Made beside the event loop."""
        files = self._client.fs or wire.FileSystemCapabilities()
        reads, writes = bool(files.read_text_file), bool(files.write_text_file)
        if not reads and not writes:
            return None
        return ClientWorkspace(roots, self._connection, session_id, reads=reads, writes=writes)

    def face(self, live: LiveSession, files: Workspace | None) -> Face:
        """The view that this client has of a session, and what it offers to it."""
        known = ClientKnowledge(self._title, can_type=self._facts.typing)
        return Face(
            known,
            self._sink(live, known),
            self._person(live.id),
            files,
            self._commands(live, known),
            is_attended=not self._facts.unattended,
            is_gone=lambda: self._connection.is_lost,
        )

    def _sink(self, live: LiveSession, known: ClientKnowledge) -> UpdateSink:
        takes = self._client.session or wire.ClientSessionCapabilities()
        return UpdateSink(
            self._connection,
            live.id,
            known,
            takes_notices=takes.notices is not None,
            takes_compactions=takes.compaction is not None,
            takes_state=self._facts.state,
            takes_changes=self._facts.changes,
            shows_output_in=live.roots[0] if _shows_raw_output(self._client.meta) else None,
        )

    def _person(self, session_id: str) -> ClientPerson:
        shows = self._client.elicitation or wire.ElicitationCapabilities()
        return ClientPerson(
            self._connection,
            session_id,
            has_forms=shows.form is not None,
            has_links=shows.url is not None,
            has_choices=self._facts.choices,
            takes_changes=self._facts.changes,
            sends_reasons=self._facts.reasons,
            can_type=self._facts.typing,
            client=self._name,
        )

    def _commands(self, live: LiveSession, known: ClientKnowledge) -> Commands | None:
        if not (self._client.terminal and live.uses_client_terminal):
            return None
        client = ClientCommands(
            self._connection,
            live.id,
            live.withheld,
            given_to_terminals(live.environ),
            live.roots[0],
            ids=known.terminals,
        )
        return CheckedCommands(client, live.commands, self._check)


def _shows_raw_output(meta: object) -> bool:
    match meta:
        case {"terminal_output": True}:
            return True
        case _:
            return False


def _name_and_version(client: Mapping[str, Any]) -> str:
    """Who the client says it is; empty unless it says both."""
    name, version = _named(client, "name"), _named(client, "version")
    return f"{name} {version}" if name and version else ""


def _named(client: Mapping[str, Any], key: str) -> str:
    value = client.get(key)
    return one_line(value, LONGEST_NAME) if isinstance(value, str) else ""


# --- MCP servers


def given_servers(given: Sequence[wire.McpServer]) -> tuple[dict[str, McpServerSettings], list[str]]:
    """The MCP servers by name, and what is wrong with those that cannot be used."""
    found: dict[str, McpServerSettings] = {}
    problems: list[str] = []
    for server in given:
        fault = _fault_of(server, found)
        if fault:
            problems.append(f"The MCP server `{one_line(server.name, 100)}` of your editor is not used: {fault}.")
            continue
        found[server.name] = McpServerSettings(
            command=server.command or "",
            args=server.args or [],
            env={variable.name: variable.value for variable in server.env or ()},
            url=server.url or "",
            type=_TRANSPORTS[server.type],
            headers={header.name: header.value for header in server.headers or ()},
        )
    return found, problems


_TRANSPORTS: dict[str | None, Literal["stdio", "http", "sse"]] = {
    None: "stdio",
    "stdio": "stdio",
    "http": "http",
    "sse": "sse",
}


def _fault_of(server: wire.McpServer, known: Container[str]) -> str:
    if not server.name:
        return "it has no name"
    if server.name in known:
        return "there are two of that name"
    if server.type not in _TRANSPORTS:
        return f"its type `{one_line(server.type or '', 40)}` is not supported"
    if _TRANSPORTS[server.type] == "stdio":
        return "" if server.command else "it has no command"
    return "" if server.url else "it has no address"
