"""The MCP servers of a session: which there are (editor's, user's, projects'), when they start, their prompts, and
questions to the person.

Prompts of the servers are commands of the session, and what they ask the person is brought to the person. The library
behind them is large. It is loaded by the first session that has servers, on a thread of its own.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from crow.actions import Filled, Form, Link, Person
from crow.config.settings import McpServerSettings
from crow.errors import CrowError
from crow.events import CommandInfo, Journal, Notice, Remark, Sent, TurnIds
from crow.mcp.client.configured import ConfiguredServer, Origin
from crow.session.commands import Command, CommandAnswer, CommandSource
from crow.tools.base import Tool
from crow.tools.task import SubagentTask
from crow.turn.subagent_journal import named
from crow.turn.waits import Wait
from crow.visible import one_line

if TYPE_CHECKING:
    from crow.mcp.client.hub import Hub, ServerStatus
    from crow.mcp.client.prompts_and_resources import ServerPrompt

logger = logging.getLogger(__name__)

PREFIX = "mcp:"
"""The prefix of every slash command that stands for a server's prompt."""

MOST_TOLD = 20
"""Declined questions that the person is told of."""
LONGEST_TOLD = 500


class ServerQuestions:
    """Brings servers' questions to the person: those of a call one at a time, like every other question of a turn.

    What is asked in a call of a subagent is asked about the subagent as a whole: the editor does not know its calls.
    What is asked outside any call may wait as long as the person likes, and holds up nothing else.
    """

    def __init__(
        self, person: Person, dialog: asyncio.Lock, journal: Journal, task_of: Callable[[str], SubagentTask | None]
    ) -> None:
        self._person = person
        self._dialog = dialog
        self._journal = journal
        self._task_of = task_of
        self._outside_calls = asyncio.Lock()
        self._told: set[str] = set()
        """Questions that were declined in the person's name, and told."""

    @property
    def can_visit(self) -> bool:
        return self._person.can_visit

    async def fill_in(self, form: Form) -> Filled:
        """As a form where the client has forms; else it is declined. Never as a permission, which some clients give by
        themselves."""
        if not form.call_id:
            async with self._outside_calls:
                return await self._person.fill_in(form) or self._declined(form)
        task = self._task_of(form.call_id)
        if task is not None:
            form = replace(form, call_id=task.call_id, text=named(task, form.text))
        async with self._dialog:
            return await self._person.fill_in(form) or self._declined(form)

    async def visit(self, link: Link) -> bool:
        if not link.call_id:
            return await self._person.visit(link)
        task = self._task_of(link.call_id)
        if task is not None:
            link = replace(link, call_id=task.call_id, text=named(task, link.text))
        async with self._dialog:
            return await self._person.visit(link)

    def visited(self, link_id: str) -> None:
        self._person.visited(link_id)

    def _declined(self, form: Form) -> Filled:
        """In the person's name, who would otherwise not know."""
        if form.text not in self._told and len(self._told) < MOST_TOLD:
            self._told.add(form.text)
            asked = one_line(form.text, LONGEST_TOLD)
            self._journal.append(
                Remark("warning", f"{asked} Your editor cannot show this question, so Crow declined it.")
            )
        return Filled("decline")


def configured_servers(
    editor: Mapping[str, McpServerSettings],
    config: Mapping[str, McpServerSettings],
    project: Mapping[str, McpServerSettings],
) -> dict[str, ConfiguredServer]:
    """All servers by name. The editor's list is authoritative for its names; a project replaces none of the user's."""
    configured: dict[str, ConfiguredServer] = {}
    for origin, servers in ((Origin.EDITOR, editor), (Origin.CONFIG, config), (Origin.PROJECT, project)):
        for name, settings in servers.items():
            configured.setdefault(name, ConfiguredServer(name, origin, settings))
    return configured


class Servers:
    """`wanted` gives the servers by name: with any turn, trusted projects may bring more of them, or other ones.

    `make_hub` is called once the library is loaded. `waiting` names a wait to the person.
    """

    def __init__(
        self,
        wanted: Callable[[], Mapping[str, ConfiguredServer]],
        make_hub: "Callable[[], Hub]",
        journal: Journal,
        waiting: Callable[[str], Wait],
    ) -> None:
        self.wanted = wanted
        self._make_hub = make_hub
        self._journal = journal
        self._waiting = waiting
        self._hub: Hub | None = None
        self._loading: asyncio.Task[None] | None = None
        self._prompts_changed: Callable[[], None] = lambda: None

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
        with self._waiting(_named(list(self.wanted()))):
            await asyncio.shield(self._loading)
        if self._hub is not None and (names := self._hub.unsettled()):
            with self._waiting(_named(names)):
                await self._hub.settled()

    async def close(self) -> None:
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.wait([self._loading])
        if self._hub is not None:
            await self._hub.close()

    async def _load(self) -> None:
        try:
            await asyncio.to_thread(_import_hub)
            self._hub = self._make_hub()
            self._hub.on_change = self._tell_prompts_changed
        except Exception:
            logger.exception("the MCP library cannot be loaded")
            text = "MCP servers are not available: their library failed to load. See the log."
            self._journal.append(Notice("error", text))
            return
        self._hub.use(self.wanted())

    # --- their tools, for the toolbox

    def offered(self) -> Sequence[Tool]:
        return self._hub.offered() if self._hub is not None else ()

    def find_tool(self, name: str) -> Tool | None:
        return self._hub.find(name) if self._hub is not None else None

    # --- their prompts, for the commands

    def prompts(self) -> "Sequence[ServerPrompt]":
        return self._hub.prompts() if self._hub is not None else ()

    def watch_prompts(self, tell: Callable[[], None]) -> None:
        """From now on `tell` is called when there may be other prompts than before."""
        self._prompts_changed = tell

    def _tell_prompts_changed(self) -> None:
        self._prompts_changed()

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
            name = one_line(name, 100)
            raise CrowError(f'Unknown MCP server "{name}". Available: {known}.' if known else "No MCP servers.")


def _named(servers: Sequence[str]) -> str:
    names = ", ".join(one_line(name, 40) for name in servers[:5])
    return f"the MCP server{'s' if len(servers) > 1 else ''} {names}{' …' if len(servers) > 5 else ''}"


def _import_hub() -> None:
    """On a thread: it takes about a second, in which the session goes on."""
    import crow.mcp.client.hub as _  # noqa: F401 -- it is found loaded later
    from crow.mcp.client.server_errors import silence_library

    silence_library()


class ServerPrompts(CommandSource):
    """The prompts of the servers, as commands. `prepare` waits for the servers, as before any prompt."""

    def __init__(self, servers: Servers, prepare: Callable[[TurnIds], Awaitable[None]]) -> None:
        self._servers = servers
        self._prepare = prepare

    def watch(self, tell: Callable[[], None]) -> None:
        self._servers.watch_prompts(tell)

    def close(self) -> None:
        self._servers.watch_prompts(lambda: None)

    def commands(self) -> Sequence[Command]:
        return [
            Command(CommandInfo(prompt.name, prompt.description, prompt.hint), partial(_expand, prompt))
            for prompt in self._servers.prompts()
        ]

    def find(self, name: str) -> Command | None:
        """Also one that is not there: its server may still be starting."""
        known = super().find(name)
        if known is None and name.startswith(PREFIX):
            return Command(CommandInfo(name, ""), partial(self._run_when_ready, name))
        return known

    async def _run_when_ready(self, name: str, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandAnswer:
        await self._prepare(ids)
        if (command := super().find(name)) is not None:
            return await command.run(arguments, rest, ids)
        return (
            f"Unknown prompt `/{one_line(name, 200)}`: nothing was sent to the model. "
            "`/mcp` shows the MCP servers, their state and their prompts."
        )


async def _expand(prompt: "ServerPrompt", arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandAnswer:
    return *await prompt.expand(arguments), *rest
