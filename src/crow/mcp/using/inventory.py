"""What a server has: listed when it has started, and again whenever it says that something changed."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from mcp.client.subscriptions import SubscriptionLost
from mcp_types import Prompt, Tool
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from crow.mcp.using.failures import as_failure, first_of
from crow.visible import one_line
from mcp import Client, MCPError

logger = logging.getLogger(__name__)

MOST_TOOLS = 2000
MOST_PAGES = 100
BETWEEN_LISTINGS = 0.2
"""Seconds: a server that announces changes all the time is asked this often."""
LISTEN_AGAIN = 30.0
"""Seconds until a server that no longer tells of its changes is asked to."""

T = TypeVar("T")


class Inventory:
    """`lost` is set when the server is gone; `warn` is told what of its things cannot be used."""

    def __init__(self, lost: asyncio.Event, warn: Callable[[str], None]) -> None:
        self.tools: list[Tool] = []
        self.prompts: list[Prompt] = []
        self.has_resources = False
        self._lost = lost
        self._warn = warn
        self._left_out: dict[str, str] = {}
        self._changed = asyncio.Event()

    def leave_out(self, tool: str, fault: str) -> None:
        self._left_out[tool] = fault

    def has_changed(self) -> None:
        self._changed.set()

    async def take(self, client: Client) -> None:
        """Asks the server for all of it."""
        has = client.server_capabilities
        self._left_out = {}
        tools = await _all_pages(client.list_tools, lambda page: page.tools) if has.tools is not None else []
        if len(tools) > MOST_TOOLS:
            self._warn(f"It lists more tools than can be used: the first {MOST_TOOLS:,} count.")
        self.tools = tools[:MOST_TOOLS]
        self.prompts = await self._list_prompts(client) if has.prompts is not None else []
        self.has_resources = has.resources is not None
        for name, fault in self._left_out.items():
            self._warn(f"Its tool {one_line(name, 100)} is left out: {fault}.")

    async def follow(self, client: Client, limit: Callable[[], float], on_change: Callable[[], None]) -> None:
        """Until the server is lost. `limit` is how many seconds a new listing may take."""
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
                await asyncio.sleep(BETWEEN_LISTINGS)
                self._changed.clear()
                async with asyncio.timeout(limit()):
                    await self.take(client)
                on_change()
        finally:
            lost.cancel()
            listening.cancel()
            await asyncio.gather(lost, listening, return_exceptions=True)

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

    async def _list_prompts(self, client: Client) -> list[Prompt]:
        try:
            return await _all_pages(client.list_prompts, lambda page: page.prompts)
        except Exception as error:
            if self._lost.is_set():
                raise
            logger.debug("the prompts of an MCP server cannot be listed: %s", type(first_of(error)).__name__)
            self._warn(f"Its prompts cannot be used: {as_failure(error).message}.")
            return []


async def _all_pages(listing: Callable[..., Awaitable[Any]], items: Callable[[Any], list[T]]) -> list[T]:
    found: list[T] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await listing(cursor=cursor)
        found += items(page)
        cursor = page.next_cursor
        if not cursor or len(found) > MOST_TOOLS:
            break
    return found
