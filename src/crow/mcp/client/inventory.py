"""Opens the library's client of an MCP server; lists its tools, prompts and resources, and again, with pauses, when it
says that they changed.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeVar

import msgspec
from mcp.client import Transport
from mcp.client.session import MessageHandlerFnT
from mcp.client.subscriptions import SubscriptionLost
from mcp_types import METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION, Implementation, Prompt, Tool
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from crow import __version__
from crow.commands.processes import ForkServer
from crow.config.settings import Limits, McpServerSettings
from crow.events import Notice
from crow.mcp.client.elicitation import Asker, ServerRequestHandler
from crow.mcp.client.login import with_stored_tokens
from crow.mcp.client.message_guard import MOST_LISTED, MessageGuard
from crow.mcp.client.remote import Remote, is_authorised
from crow.mcp.client.server_errors import ServerFailed, as_failure, first_of
from crow.mcp.client.stdio import StderrLog, Stdio, start_program
from crow.timeouts import timeout
from mcp import Client, MCPError

logger = logging.getLogger(__name__)
SHORTEST_PAUSE = 0.2
"""Seconds between a change and the listing: the next one may come at once."""
RESTLESS = 3.0
"""Seconds of a pause that says: this server announces changes over and over."""
LONGEST_PAUSE = 30.0
CALM = 20.0
"""Seconds without a change, after which all is as in the beginning."""
LISTEN_AGAIN = 30.0
"""Seconds until a server that no longer tells of its changes is asked to."""
MOST_PAGES = 100
T = TypeVar("T")


class Pauses:
    """The pauses between two listings: longer each time for a server that announces one change after the other."""

    def __init__(self) -> None:
        self._pause = 0.0
        self._listed = 0.0

    def next(self, now: float) -> float:
        """For a change that was announced now, or during the last listing or the pause before it."""
        is_calm = not self._pause or now - self._listed > CALM
        self._pause = SHORTEST_PAUSE if is_calm else min(LONGEST_PAUSE, self._pause * 2)
        return self._pause

    def has_listed(self, now: float) -> None:
        self._listed = now


class Inventory:
    """`lost` is set when the server is gone; `warn` is told what of its things cannot be used."""

    def __init__(self, lost: asyncio.Event, warn: Callable[[str], None]) -> None:
        self.tools: list[Tool] = []
        self.prompts: list[Prompt] = []
        self.has_resources = False
        self._lost = lost
        self._warn = warn
        self.left_out: dict[str, str] = {}
        """Tools of the last listing that cannot be used, and why."""
        self._changed = asyncio.Event()
        self._pauses = Pauses()
        self._warned: set[str] = set()

    def leave_out(self, tool: str, fault: str) -> None:
        self.left_out[tool] = fault

    def is_read_slowly(self) -> None:
        text = "It sends so many messages that Crow reads them slowly; its answers may be delayed."
        self._warn_once("flood", text)

    def has_changed(self) -> None:
        self._changed.set()

    async def take(self, client: Client) -> None:
        """Asks the server for its tools, prompts and resources."""
        has = client.server_capabilities
        self.left_out = {}
        self.tools = await self._list_tools(client) if has.tools is not None else []
        self.prompts = await self._list_prompts(client) if has.prompts is not None else []
        self.has_resources = has.resources is not None

    async def follow(self, client: Client, limit: Callable[[], float], on_change: Callable[[], None]) -> None:
        """Lists again after each announced change, until the server is lost. `limit`: the seconds for a listing."""
        lost = asyncio.create_task(self._lost.wait())
        listening = asyncio.create_task(self._listen(client))
        try:
            while True:
                changed = asyncio.create_task(self._changed.wait())
                try:
                    await asyncio.wait([lost, changed], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    changed.cancel()
                if lost.done():
                    return
                await self._pause(lost)
                if lost.done():
                    return
                self._changed.clear()
                async with timeout(limit()):
                    await self.take(client)
                self._pauses.has_listed(asyncio.get_running_loop().time())
                on_change()
        finally:
            lost.cancel()
            listening.cancel()
            await asyncio.gather(lost, listening, return_exceptions=True)

    async def _pause(self, lost: asyncio.Task[bool]) -> None:
        """A server that announces changes all the time is looked at less and less often."""
        pause = self._pauses.next(asyncio.get_running_loop().time())
        if pause > RESTLESS:
            text = "It keeps announcing changes to its lists, so Crow asks for them less and less often"
            self._warn_once("restless", f"{text}, eventually every {LONGEST_PAUSE:g} s.")
        await asyncio.wait([lost], timeout=pause)

    async def _listen(self, client: Client) -> None:
        """A server of the newer protocol tells of changes only while it is listened to."""
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        while True:
            try:
                async with client.listen(tools_list_changed=True, prompts_list_changed=True) as changes:
                    async for _ in changes:
                        self._changed.set()
            except MCPError:
                return  # it tells nobody
            except SubscriptionLost:
                pass
            await asyncio.sleep(LISTEN_AGAIN)
            self._changed.set()  # whatever was missed in the meantime

    async def _list_tools(self, client: Client) -> list[Tool]:
        tools, more = await all_pages(client.list_tools, lambda page: page.tools, MOST_LISTED)
        if more:
            self._warn_once("tools", f"It lists too many tools: only the first {len(tools):,} are used.")
        return tools

    async def _list_prompts(self, client: Client) -> list[Prompt]:
        try:
            prompts, _ = await all_pages(client.list_prompts, lambda page: page.prompts, MOST_LISTED)
        except Exception as error:
            if self._lost.is_set():
                raise
            logger.debug("the prompts of an MCP server cannot be listed: %s", type(first_of(error)).__name__)
            self._warn_once("prompts", f"Its prompts cannot be used: {as_failure(error).message}.")
            return []
        return prompts

    def _warn_once(self, matter: str, text: str) -> None:
        if matter not in self._warned:
            self._warned.add(matter)
            self._warn(text)


# --- lists that a server gives page by page


async def all_pages(
    listing: Callable[..., Awaitable[Any]], items: Callable[[Any], list[T]], most: int
) -> tuple[list[T], bool]:
    """The entries of all pages, up to the most that may be listed, and whether there are more."""
    found: list[T] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await listing(cursor=cursor)
        found += items(page)
        cursor = page.next_cursor
        if not cursor or len(found) > most:
            break
    return found[:most], len(found) > most or bool(cursor)


# --- the client of a server: over a program's streams or over HTTP, and in which version of the protocol


class ConnectionContext(msgspec.Struct, frozen=True):
    """What every server of a session is given."""

    fork_server: ForkServer
    home: str
    roots: Sequence[str]
    environ: Mapping[str, str]
    asker: Asker
    limits: Callable[[], Limits]
    tell: Callable[[Notice], None]


class ClientOpener:
    """Opens a client for each life of a server, and knows which version of the protocol it began with.

    `on_message` gets notifications; `on_end` is called with the reason for an end, `on_leave` when a program is being
    ended, and `on_unauthorised` with whether the server lets us in.
    """

    def __init__(
        self,
        settings: McpServerSettings,
        context: ConnectionContext,
        requests: ServerRequestHandler,
        inventory: Inventory,
        log: StderrLog,
        *,
        on_message: MessageHandlerFnT,
        on_end: Callable[[ServerFailed], None],
        on_leave: Callable[[], None],
        on_unauthorised: Callable[[bool], None],
    ) -> None:
        self._settings = settings
        self._context = context
        self._requests = requests
        self._inventory = inventory
        self._log = log
        self._on_message = on_message
        self._on_end = on_end
        self._on_leave = on_leave
        self._on_unauthorised = on_unauthorised
        self._mode: Literal["legacy", "auto"] = "legacy"
        self._stdio: Stdio | None = None

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Client]:
        async with Client(
            self._transport(),
            mode=self._mode,
            elicitation_callback=self._requests.elicit,
            list_roots_callback=self._requests.roots,
            message_handler=self._on_message,
            client_info=Implementation(name="crow", title="Crow", version=__version__),
            cache=None,
        ) as client:
            yield client

    def _transport(self) -> Transport:
        settings = self._settings
        guard = MessageGuard(asyncio.get_running_loop().time, self._inventory.leave_out, self._inventory.is_read_slowly)
        if settings.url:
            auth = None if is_authorised(settings) else with_stored_tokens(self._context.home, settings.url)
            return Remote(settings, auth, guard, self._on_unauthorised, self._on_end)
        context = self._context
        folder, environ = context.roots[0], context.environ
        self._stdio = Stdio(
            lambda: start_program(context.fork_server, settings, folder, environ),
            self._log,
            guard,
            self._on_end,
            self._on_leave,
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
