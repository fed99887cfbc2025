"""The MCP servers of a session: wanted from the start, started once the client knows of the session.

The library behind them is large. It is loaded by the first session that has servers, on a thread of its own.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from crow.actions import Filled, FillsForms, Form, Link, Question
from crow.config.settings import McpServerSettings
from crow.errors import CrowError
from crow.events import CallDescribed, CommandInfo, Notice, Sent
from crow.mcp.using.wanted import Wanted, all_wanted
from crow.results import ToolKind
from crow.session.commands import Command, Prompt
from crow.tools.base import Tool
from crow.tools.task import Errand
from crow.turn.conversation import Conversation, TurnIds
from crow.turn.subagent.naming import named
from crow.turn.waits import waiting
from crow.visible import one_line
from crow.workspace.processes import Keeper

if TYPE_CHECKING:
    from crow.mcp.using.hub import Hub, ServerStatus
    from crow.mcp.using.prompts import ServerPrompt

logger = logging.getLogger(__name__)


class Machine(msgspec.Struct, frozen=True):
    """What servers are started with."""

    keeper: Keeper
    environ: Mapping[str, str]
    home: str


class Servers:
    """`project` gives the servers of trusted projects, which may become more, or other ones, with any turn.

    `errand_of` says which subagent a call belongs to, if to one.
    """

    def __init__(
        self,
        conversation: Conversation,
        machine: Machine,
        editor: Mapping[str, McpServerSettings],
        config: Mapping[str, McpServerSettings],
        project: Callable[[], Mapping[str, McpServerSettings]],
        errand_of: Callable[[str], Errand | None],
    ) -> None:
        self._conversation = conversation
        self._machine = machine
        self._editor = editor
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

    async def close(self) -> None:
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.wait([self._loading])
        if self._hub is not None:
            await self._hub.close()

    def wanted(self) -> dict[str, Wanted]:
        return all_wanted(self._editor, self._config, self._project())

    async def _load(self) -> None:
        try:
            make = await asyncio.to_thread(_load_hub)
            self._hub = make(self._conversation, self._machine, self._asker)
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

    # --- their prompts, as commands

    def look(self) -> None:
        """They come and go by themselves."""

    def commands(self) -> Sequence[Command]:
        return [PromptCommand(prompt) for prompt in self._hub.prompts()] if self._hub is not None else []

    def find(self, name: str) -> Command | None:
        return next((command for command in self.commands() if command.info.name == name), None)

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
            known = ", ".join(f"`{wanted}`" for wanted in self.wanted()) or "none"
            raise CrowError(f"There is no MCP server of that name. There is: {known}.")


def _named(servers: Sequence[str]) -> str:
    names = ", ".join(one_line(name, 40) for name in servers[:5])
    return f"the MCP server{'s' if len(servers) > 1 else ''} {names}{' …' if len(servers) > 5 else ''}"


class PromptCommand:
    def __init__(self, prompt: "ServerPrompt") -> None:
        self.info = CommandInfo(prompt.name, prompt.description, prompt.hint)
        self._prompt = prompt

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Prompt:
        return Prompt((*await self._prompt.expand(arguments), *rest))


def _load_hub() -> "Callable[[Conversation, Machine, Asker], Hub]":
    """On a thread: importing takes about a second, in which the session goes on."""
    from crow.mcp.using.connection import Around
    from crow.mcp.using.hub import Hub
    from crow.mcp.using.library import silence_library

    silence_library()

    def make(conversation: Conversation, machine: Machine, asker: Asker) -> Hub:
        around = Around(
            keeper=machine.keeper,
            home=machine.home,
            roots=conversation.workspace.roots,
            environ=machine.environ,
            asker=asker,
            limits=lambda: conversation.limits,
            tell=conversation.journal.append,
        )
        return Hub(around, lambda: conversation.model.info.context_window)

    return make


class Asker:
    """Brings servers' questions to the person: one at a time within a turn, like every other question.

    What is asked in a call of a subagent is asked about the subagent as a whole: the editor does not know its calls.
    """

    def __init__(self, conversation: Conversation, errand_of: Callable[[str], Errand | None]) -> None:
        self._person = conversation.person
        self._dialog = conversation.dialog
        self._journal = conversation.journal
        self._errand_of = errand_of

    @property
    def can_visit(self) -> bool:
        return isinstance(self._person, FillsForms) and self._person.can_visit

    async def fill_in(self, form: Form) -> Filled:
        """As a form where the client has forms; a single choice also as a plain question; else it is declined."""
        errand = self._errand_of(form.call_id)
        if errand is not None:
            form = replace(form, call_id=errand.call_id, text=named(errand, form.text))
        async with self._dialog:
            filled = await self._person.fill_in(form) if isinstance(self._person, FillsForms) else None
            return filled or await self._as_question(form, errand)

    async def visit(self, link: Link) -> bool:
        if not isinstance(self._person, FillsForms):
            return False
        if not link.call_id:  # outside a call it may wait as long as it likes, and must not hold up the others
            return await self._person.visit(link)
        errand = self._errand_of(link.call_id)
        if errand is not None:
            link = replace(link, call_id=errand.call_id, text=named(errand, link.text))
        async with self._dialog:
            return await self._person.visit(link)

    def visited(self, link_id: str) -> None:
        if isinstance(self._person, FillsForms):
            self._person.visited(link_id)

    async def _as_question(self, form: Form, errand: Errand | None) -> Filled:
        fields = list(form.schema["properties"].items())
        if not form.call_id or len(fields) != 1:
            return Filled("decline")
        name, field = fields[0]
        values = _choices(field)
        if not values:
            return Filled("decline")
        kind, title = (form.kind, form.title) if errand is None else (ToolKind.OTHER, errand.title)
        try:
            answer = await self._person.ask(Question(form.call_id, form.text, tuple(values)))
        finally:  # a question is shown in the call's place: the call takes it back
            self._journal.append(CallDescribed(form.call_id, kind, title))
        if answer is not None and answer.cancelled:
            return Filled("cancel")
        return Filled("accept", {name: values[answer.text]}) if answer and answer.text in values else Filled("decline")


def _choices(field: Mapping[str, Any]) -> dict[str, Any]:
    """What can be answered, by what the person reads; empty if it is not one of a few values."""
    match field:
        case {"type": "boolean"}:
            return {"yes": True, "no": False}
        case {"type": "string", "oneOf": [*choices]}:
            titled = {choice.get("title") or choice["const"]: choice["const"] for choice in choices}
            return titled if len(titled) == len(choices) else {choice["const"]: choice["const"] for choice in choices}
        case {"type": "string", "enum": [*values]}:
            return {value: value for value in values}
        case _:
            return {}
