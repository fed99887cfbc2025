"""What the client offers, and what a session gets of it: decided once, so that no tool asks for an editor."""

from collections.abc import Mapping, Sequence
from typing import Any

from crow.acp import wire
from crow.acp.connection import Connection
from crow.acp.person import ClientPerson
from crow.acp.sink import UpdateSink
from crow.acp.terminal import ClientCommands
from crow.acp.terminal_check import CheckedCommands, TerminalCheck
from crow.acp.workspace import ClientWorkspace
from crow.config.settings import McpServerSettings
from crow.session.environment import Environment
from crow.session.models import SessionSetup
from crow.visible import one_line
from crow.workspace.base import Commands, Workspace
from crow.workspace.environment import given_to_terminals, seen_by_commands
from crow.workspace.local import LocalWorkspace
from crow.workspace.outputs import outputs_folder
from crow.workspace.processes import Keeper
from crow.workspace.terminal import LocalCommands

LONGEST_NAME = 200


class Offers:
    """One client's capabilities. What it left out counts as not offered."""

    def __init__(self, connection: Connection, request: wire.InitializeRequest, home: str) -> None:
        self._connection = connection
        self._client = request.client_capabilities or wire.ClientCapabilities()
        self._has_choices = _has_choices(request.meta)
        self._name = _named(request.client_info or {}, "name")
        self._check = TerminalCheck(home, _name_and_version(request.client_info or {}))

    def sink(self, session_id: str) -> UpdateSink:
        takes = self._client.session or wire.ClientSessionCapabilities()
        return UpdateSink(
            self._connection,
            session_id,
            takes_notices=takes.notices is not None,
            takes_compactions=takes.compaction is not None,
        )

    def surround(
        self,
        session_id: str,
        roots: Sequence[str],
        setup: SessionSetup,
        keeper: Keeper,
        environ: Mapping[str, str],
        sink: UpdateSink,
        servers: Mapping[str, McpServerSettings],
    ) -> Environment:
        shows = self._client.elicitation or wire.ElicitationCapabilities()
        return Environment(
            workspace=self._workspace(session_id, roots),
            commands=self._commands(session_id, roots, setup, keeper, environ),
            person=ClientPerson(
                self._connection,
                session_id,
                has_forms=shows.form is not None,
                has_links=shows.url is not None,
                has_choices=self._has_choices,
                client=self._name,
            ),
            sink=sink,
            keeper=keeper,
            environ=environ,
            servers=servers,
        )

    def _workspace(self, session_id: str, roots: Sequence[str]) -> Workspace:
        files = self._client.fs or wire.FileSystemCapabilities()
        reads, writes = bool(files.read_text_file), bool(files.write_text_file)
        if not reads and not writes:
            return LocalWorkspace(roots)
        return ClientWorkspace(roots, self._connection, session_id, reads=reads, writes=writes)

    def _commands(
        self,
        session_id: str,
        roots: Sequence[str],
        setup: SessionSetup,
        keeper: Keeper,
        environ: Mapping[str, str],
    ) -> Commands:
        seen = seen_by_commands(environ, setup.key_variables)
        local = LocalCommands(keeper, outputs_folder(session_id), seen)
        if not (self._client.terminal and setup.settings.terminal.use_client):
            return local
        withheld = [name for name in environ if name not in seen]
        client = ClientCommands(self._connection, session_id, withheld, given_to_terminals(environ), roots[0])
        return CheckedCommands(client, local, self._check)


def _has_choices(meta: object) -> bool:
    match meta:
        case {"crow": {"choices": True}}:
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
