"""The MCP servers of a session: wanted from the start, started once the client knows of the session.

The library behind them is large. It is loaded by the first session that has servers, on a thread of its own.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from crow.config.settings import McpServerSettings
from crow.errors import CrowError
from crow.events import Notice
from crow.mcp.using.wanted import Wanted, all_wanted
from crow.session.server_prompts import ServerPrompts
from crow.session.server_questions import Asker
from crow.session.surroundings import Surroundings
from crow.tools.base import Tool
from crow.tools.task import Errand
from crow.turn.conversation import Conversation, TurnIds
from crow.turn.waits import waiting
from crow.visible import one_line

if TYPE_CHECKING:
    from crow.mcp.using.hub import Hub, ServerStatus

logger = logging.getLogger(__name__)


class Servers:
    """`project` gives the servers of trusted projects, which may become more, or other ones, with any turn.

    `errand_of` says which subagent a call belongs to, if to one.
    """

    def __init__(
        self,
        conversation: Conversation,
        around: Surroundings,
        home: str,
        config: Mapping[str, McpServerSettings],
        project: Callable[[], Mapping[str, McpServerSettings]],
        errand_of: Callable[[str], Errand | None],
    ) -> None:
        self._conversation = conversation
        self.prompts = ServerPrompts(lambda: self._hub.prompts() if self._hub is not None else (), self._prepare_turn)
        """As commands."""
        self._around = around
        self._home = home
        self._config = config
        self._project = project
        self._asker = Asker(conversation, errand_of)
        self._hub: Hub | None = None
        self._loading: asyncio.Task[None] | None = None

    # --- their life

    def start(self) -> None:
        """Starts what is wanted and not yet there. Returns at once."""
        wanted = self.wanted()
        if self._hub is not None:
            self._hub.use(wanted)
        elif wanted and self._loading is None:
            self._loading = asyncio.get_running_loop().create_task(self._load())

    async def prepare(self) -> None:
        """Before the model is asked: servers that are starting are waited for, each as long as its limit."""
        self.start()
        if self._loading is None:
            return
        with waiting(self._conversation, _named(list(self.wanted()))):
            await asyncio.shield(self._loading)
        if self._hub is not None and (names := self._hub.unsettled()):
            with waiting(self._conversation, _named(names)):
                await self._hub.settled()

    async def _prepare_turn(self, ids: TurnIds) -> None:
        if self._conversation.prepare is not None:
            await self._conversation.prepare(ids)

    async def close(self) -> None:
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.wait([self._loading])
        if self._hub is not None:
            await self._hub.close()

    def wanted(self) -> dict[str, Wanted]:
        return all_wanted(self._around.servers, self._config, self._project())

    async def _load(self) -> None:
        try:
            await asyncio.to_thread(_import_hub)
            self._hub = _make_hub(self._conversation, self._around, self._home, self._asker)
            self._hub.on_change = self.prompts.has_changed
        except Exception:
            logger.exception("the MCP library cannot be loaded")
            text = "MCP servers cannot be used: the library for them could not be loaded. The log has the details."
            self._conversation.journal.append(Notice("error", text))
            return
        self._hub.use(self.wanted())

    # --- their tools, for the toolbox

    def offered(self) -> Sequence[Tool]:
        return self._hub.offered() if self._hub is not None else ()

    def find_tool(self, name: str) -> Tool | None:
        return self._hub.find(name) if self._hub is not None else None

    # --- for the person

    def status(self) -> "list[ServerStatus]":
        return self._hub.status() if self._hub is not None else []

    @property
    def cost(self) -> int:
        return self._hub.cost if self._hub is not None else 0

    @property
    def defers(self) -> bool:
        """Whether the tools have to be looked for, as all of them would take too much of the window."""
        return self._hub is not None and self._hub.defers

    def restart(self, name: str) -> None:
        if self._hub is None or not self._hub.restart(name):
            known = ", ".join(f"`{wanted}`" for wanted in self.wanted())
            raise CrowError(
                f"There is no MCP server of that name. There is: {known}." if known else "There are no MCP servers."
            )


def _named(servers: Sequence[str]) -> str:
    names = ", ".join(one_line(name, 40) for name in servers[:5])
    return f"the MCP server{'s' if len(servers) > 1 else ''} {names}{' …' if len(servers) > 5 else ''}"


def _import_hub() -> None:
    """On a thread: it takes about a second, in which the session goes on."""
    import crow.mcp.using.hub as _  # noqa: F401 -- it is found loaded later
    from crow.mcp.using.library import silence_library

    silence_library()


def _make_hub(conversation: Conversation, around: Surroundings, home: str, asker: Asker) -> "Hub":
    from crow.mcp.using.connection import Around
    from crow.mcp.using.hub import Hub

    return Hub(
        Around(
            keeper=around.keeper,
            home=home,
            roots=conversation.workspace.roots,
            environ=around.environ,
            asker=asker,
            limits=lambda: conversation.limits,
            tell=conversation.journal.append,
        ),
        lambda: conversation.model.info.context_window,
    )
