"""Decides what a session gets of a client, from the capabilities that the client declared: files, terminals, MCP
servers, dialogs. No tool asks for an editor.

Nothing but the selection of an offered "allow" is a yes of the person's.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Any, Literal

import msgspec

from crow.acp import translate, wire
from crow.acp.connection import Connection, ConnectionLost
from crow.acp.jsonrpc import RpcError
from crow.acp.sink import UpdateSink
from crow.acp.terminal import ClientCommands
from crow.acp.terminal_check import CheckedCommands, TerminalCheck
from crow.acp.workspace import ClientWorkspace
from crow.actions import Answer, Filled, Form, Link, PermissionAnswer, PermissionQuestion, Person, Question
from crow.config.settings import McpServerSettings
from crow.session.faces.face import ClientKnowledge, Face
from crow.session.models import SessionSetup
from crow.timeouts import timeout
from crow.visible import one_line
from crow.workspace.base import Commands, Workspace
from crow.workspace.local import LocalWorkspace
from crow.workspace.processes import Keeper
from crow.workspace.terminal import LocalCommands, given_to_terminals, seen_by_commands
from crow.workspace.terminals import outputs_folder

LONGEST_NAME = 200
NAMELESS = "another client"
"""The name of a client that does not say its own."""


class SessionGround(msgspec.Struct, frozen=True):
    """What is the same for every client of a session, wherever it is connected from. Made beside the event loop: paths
    are looked at."""

    session_id: str
    workspace: Workspace
    """This machine's."""
    environ: Mapping[str, str]
    withheld: Sequence[str]
    """The variables of our environment that commands must not see."""
    commands: LocalCommands
    """The same."""
    uses_client_terminal: bool

    @property
    def roots(self) -> Sequence[str]:
        return self.workspace.roots

    @classmethod
    def of(
        cls, session_id: str, roots: Sequence[str], setup: SessionSetup, keeper: Keeper, environ: Mapping[str, str]
    ) -> "SessionGround":
        seen = seen_by_commands(environ, setup.key_variables)
        return cls(
            session_id,
            LocalWorkspace(roots),
            environ,
            [name for name in environ if name not in seen],
            LocalCommands(keeper, outputs_folder(session_id), seen),
            setup.settings.terminal.use_client,
        )


class Capabilities:
    """What one client can do. What it left out counts as not offered."""

    def __init__(self, connection: Connection, request: wire.InitializeRequest, home: str) -> None:
        self._connection = connection
        self._client = request.client_capabilities or wire.ClientCapabilities()
        self._has_choices = _says(request.meta, "choices")
        self._takes_state = _says(request.meta, "state")
        self._is_attended = not _says(request.meta, "unattended")
        self._name = _named(request.client_info or {}, "name")
        self._title = _named(request.client_info or {}, "title") or self._name or NAMELESS
        self._check = TerminalCheck(home, _name_and_version(request.client_info or {}))

    def sink(self, ground: SessionGround) -> UpdateSink:
        takes = self._client.session or wire.ClientSessionCapabilities()
        return UpdateSink(
            self._connection,
            ground.session_id,
            ClientKnowledge(self._title),
            takes_notices=takes.notices is not None,
            takes_compactions=takes.compaction is not None,
            takes_state=self._takes_state,
            shows_output_in=ground.roots[0] if _shows_raw_output(self._client.meta) else None,
        )

    def face(self, ground: SessionGround, sink: UpdateSink, files: Workspace | None) -> Face:
        """The view that this client has of a session, and what it offers to it."""
        shows = self._client.elicitation or wire.ElicitationCapabilities()
        person = ClientPerson(
            self._connection,
            ground.session_id,
            has_forms=shows.form is not None,
            has_links=shows.url is not None,
            has_choices=self._has_choices,
            client=self._name,
        )
        commands = self._commands(ground, sink.known)
        return Face(sink.known, sink, person, files, commands, is_attended=self._is_attended)

    def files(self, ground: SessionGround) -> Workspace | None:
        """The session's files as this client has them; None if it offers none. Made beside the event loop, as above."""
        files = self._client.fs or wire.FileSystemCapabilities()
        reads, writes = bool(files.read_text_file), bool(files.write_text_file)
        if not reads and not writes:
            return None
        return ClientWorkspace(ground.roots, self._connection, ground.session_id, reads=reads, writes=writes)

    def _commands(self, ground: SessionGround, known: ClientKnowledge) -> Commands | None:
        if not (self._client.terminal and ground.uses_client_terminal):
            return None
        client = ClientCommands(
            self._connection,
            ground.session_id,
            ground.withheld,
            given_to_terminals(ground.environ),
            ground.roots[0],
            ids=known.terminals,
        )
        return CheckedCommands(client, ground.commands, self._check)


def _says(meta: object, what: Literal["choices", "state", "unattended"]) -> bool:
    """Whether a client says of itself what only Crow's extensions of the protocol know."""
    said: object = meta.get("crow") if isinstance(meta, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] -- JSON
    return isinstance(said, dict) and said.get(what) is True  # pyright: ignore[reportUnknownMemberType] -- JSON


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


# --- asking the person

_CHOICES: dict[str, Literal["once", "session", "project", "reject"]] = {
    "once": "once",
    "session": "session",
    "project": "project",
    "reject": "reject",
}
"""By the ids that `translate.permission_request` gives its options: an id is text from outside, a choice is ours."""


FOR_A_REASON = 120.0
"""Seconds that the person has to say why they rejected something, before the turn goes on without it."""
LONGEST_REASON = 4000
WITHOUT_OUR_LABELS = ("codecompanion",)
"""Clients, by the beginning of their names, that show words of their own for each kind of option: two options of one
kind look the same there."""


class ClientPerson(Person):
    """`client` is the name of the program that asks them; empty if it does not say it. With `has_choices` it shows
    forms that are one choice among words, whatever other forms it does not show."""

    def __init__(
        self,
        connection: Connection,
        session_id: str,
        *,
        has_forms: bool,
        has_links: bool = False,
        has_choices: bool = False,
        client: str = "",
    ) -> None:
        self._has_forms = has_forms
        self._has_choices = has_choices or has_forms
        self._has_links = has_links
        self._shows_labels = not client.casefold().startswith(WITHOUT_OUR_LABELS)
        self._connection = connection
        self._session_id = session_id

    @property
    def has_dialogs(self) -> bool:
        return self._has_forms

    @property
    def can_visit(self) -> bool:
        return self._has_links

    async def permit(self, question: PermissionQuestion) -> PermissionAnswer:
        request = translate.permission_request(self._session_id, question, one_of_each_kind=not self._shows_labels)
        try:
            response = await self._connection.request(
                "session/request_permission", request, wire.RequestPermissionResponse
            )
        except RpcError as error:
            return _unclear(f"the editor could not ask for permission ({one_line(error.message)}).")
        except ConnectionLost:
            return _unclear("the editor is gone, so that nobody could be asked.")
        return _answer(response.outcome, request.options)

    async def ask(self, question: Question) -> Answer | None:
        """By a form where the client has forms, else not at all: then the question goes into the chat.

        Never as a permission to be given: a client that approves everything would answer in the person's name.
        """
        return await self._ask(question) if self.has_dialogs else None

    async def choose(self, question: Question) -> Answer | None:
        return await self._ask(question) if self._has_choices else None

    async def _ask(self, question: Question) -> Answer | None:
        form = translate.question_as_form(self._session_id, question)
        try:
            return _filled_in(await self._connection.request("elicitation/create", form, wire.FormResponse))
        except (RpcError, ConnectionLost):
            return None

    async def explain(self, question: PermissionQuestion) -> str:
        """The turn does not wait for ever for an explanation."""
        if not (self.has_dialogs and question.takes_reason):
            return ""
        form = translate.reason_form(self._session_id, question)
        try:
            async with timeout(FOR_A_REASON):
                response = await self._connection.request("elicitation/create", form, wire.FormResponse)
        except (RpcError, ConnectionLost, TimeoutError):
            return ""
        reason = (response.content or {}).get("reason") if response.action == "accept" else ""
        return reason.strip()[:LONGEST_REASON] if isinstance(reason, str) else ""

    async def fill_in(self, form: Form) -> Filled | None:
        if not self.has_dialogs:
            return None
        request = translate.form_request(self._session_id, form)
        try:
            response = await self._connection.request("elicitation/create", request, wire.FormResponse)
        except (RpcError, ConnectionLost):
            return None
        match response.action:
            case "accept":
                return Filled("accept", response.content or {})
            case "cancel":
                return Filled("cancel")
            case _:
                return Filled("decline")

    async def visit(self, link: Link) -> bool:
        if not self.can_visit:
            return False
        request = translate.link_request(self._session_id, link)
        try:
            response = await self._connection.request("elicitation/create", request, wire.FormResponse)
        except (RpcError, ConnectionLost):
            return False
        return response.action == "accept"

    def visited(self, link_id: str) -> None:
        if self.can_visit:
            self._connection.notify("elicitation/complete", wire.LinkDone(elicitation_id=link_id))


def _filled_in(form: wire.FormResponse) -> Answer:
    answer = (form.content or {}).get("answer")
    text = answer if form.action == "accept" and isinstance(answer, str) else ""
    return Answer(text, dismissed=form.action == "cancel")


def _unclear(reason: str) -> PermissionAnswer:
    return PermissionAnswer("reject", reason, is_clear=False)


def _answer(outcome: wire.PermissionOutcome, options: list[wire.PermissionOption]) -> PermissionAnswer:
    if outcome.outcome == "cancelled":
        return PermissionAnswer("cancelled", is_clear=False)
    offered = {option.option_id for option in options}
    if outcome.outcome == "selected" and outcome.option_id in offered:
        return PermissionAnswer(_CHOICES[outcome.option_id])
    return _unclear("the editor's answer was not one of the options, so it counts as a no.")
