"""Opens the MCP library's client of one server: over a program's streams or over HTTP, and in which version of the
protocol.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Literal

import msgspec
from mcp.client import Transport
from mcp.client.session import MessageHandlerFnT
from mcp_types import METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION, Implementation

from crow import __version__
from crow.commands.processes import ForkServer
from crow.config.settings import Limits, McpServerSettings
from crow.events import Notice
from crow.mcp.client.elicitation import Asker, ServerRequestHandler
from crow.mcp.client.inventory import Inventory
from crow.mcp.client.login import with_stored_tokens
from crow.mcp.client.message_guard import MessageGuard
from crow.mcp.client.remote import Remote, is_authorised
from crow.mcp.client.server_errors import ServerFailed, first_of
from crow.mcp.client.stdio import StderrLog, Stdio, start_program
from mcp import Client, MCPError


class ConnectionContext(msgspec.Struct, frozen=True):
    """What every server of a session is given."""

    fork_server: ForkServer
    home: str
    roots: Sequence[str]
    environ: Mapping[str, str]
    asker: Asker
    limits: Callable[[], Limits]
    tell: Callable[[Notice], None]


class ConnectionEvents(msgspec.Struct, frozen=True):
    """What is called when something happens to an open connection."""

    message: MessageHandlerFnT
    """The server sent a notification."""
    lost: Callable[[ServerFailed], None]
    ending: Callable[[], None]
    """The server's program has closed its output."""
    unauthorised: Callable[[bool], None]


class ClientOpener:
    """Opens a client for each life of a server, and knows which version of the protocol it began with."""

    def __init__(
        self,
        settings: McpServerSettings,
        context: ConnectionContext,
        requests: ServerRequestHandler,
        inventory: Inventory,
        errors: StderrLog,
        events: ConnectionEvents,
    ) -> None:
        self._settings = settings
        self._context = context
        self._requests = requests
        self._inventory = inventory
        self._errors = errors
        self._events = events
        self._mode: Literal["legacy", "auto"] = "legacy"
        self._stdio: Stdio | None = None

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Client]:
        async with Client(
            self._transport(),
            mode=self._mode,
            elicitation_callback=self._requests.elicit,
            list_roots_callback=self._requests.roots,
            message_handler=self._events.message,
            client_info=Implementation(name="crow", title="Crow", version=__version__),
            cache=None,
        ) as client:
            yield client

    def _transport(self) -> Transport:
        settings = self._settings
        guard = MessageGuard(asyncio.get_running_loop().time, self._inventory.leave_out, self._inventory.is_read_slowly)
        if settings.url:
            auth = None if is_authorised(settings) else with_stored_tokens(self._context.home, settings.url)
            return Remote(settings, auth, guard, self._events.unauthorised, self._events.lost)
        context = self._context
        folder, environ = context.roots[0], context.environ
        self._stdio = Stdio(
            lambda: start_program(context.fork_server, settings, folder, environ),
            self._errors,
            guard,
            self._events.lost,
            self._events.ending,
        )
        return self._stdio

    def remark(self) -> str:
        """What may explain why it does not answer; empty for one over HTTP, which says nothing beside its messages."""
        return self._stdio.remark() if self._stdio is not None else ""

    def switch_to_newer_protocol(self, error: Exception) -> bool:
        """A server may speak only a version of the protocol that begins differently."""
        first = first_of(error)
        newer = isinstance(first, MCPError) and first.code in (UNSUPPORTED_PROTOCOL_VERSION, METHOD_NOT_FOUND)
        if not newer or self._mode == "auto":
            return False
        self._mode = "auto"
        return True
