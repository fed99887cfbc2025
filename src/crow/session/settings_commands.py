"""The slash commands about what the session may use: /mode, /model, /plan, /permissions, /mcp."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Literal

from crow.actions import Deed
from crow.errors import CrowError
from crow.events import Choice, CommandInfo, Sent, SentText, SessionOption, TurnIds
from crow.files.base import Workspace
from crow.messages import SERVER_TOOL
from crow.policy.base import KnownRule, Origin, Policy
from crow.results import ToolKind
from crow.session.commands import Command, CommandAnswer
from crow.session.options import Options
from crow.session.servers import Servers
from crow.visible import one_line, title_line

if TYPE_CHECKING:
    from crow.mcp.client.hub import ServerStatus

MOST_CHOICES = 60
"""Choices that are listed; some providers have hundreds of models."""

PERMISSIONS_USAGE = (
    "`/permissions revoke N` revokes a rule. `/permissions explain COMMAND` says what would happen to a command, "
    "`explain read PATH` and `explain write PATH` what would happen to a file."
)

MOST_TOOLS = 30
"""Tools of one server that are listed."""
NO_SERVERS = (
    "No MCP servers in this session. They come from your editor, from `[mcp_servers]` in your `config.toml`, or from a "
    "project that you trust."
)


class SettingsCommands:
    """The commands about what the session may use."""

    def __init__(self, options: Options, policy: Policy, workspace: Workspace, servers: Servers) -> None:
        self._options = options
        self._policy = policy
        self._workspace = workspace
        self._servers = servers

    def commands(self) -> list[Command]:
        return [
            Command(CommandInfo("plan", "Switch to plan mode: read and plan, change nothing", "[task]"), self._plan),
            Command(
                CommandInfo("mode", "Show or change what Crow may do without asking", "[mode]"),
                partial(self._choose, "mode"),
            ),
            Command(
                CommandInfo("model", "Show or change the model", "[provider/model]"), partial(self._choose, "model")
            ),
            Command(
                CommandInfo("permissions", "List, explain or revoke rules", "[revoke N | explain COMMAND]"),
                self._permissions,
            ),
            Command(
                CommandInfo("mcp", "Show the MCP servers, their tools and token cost", "[restart NAME]"), self._mcp
            ),
        ]

    # --- mode and model

    async def _plan(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandAnswer:
        await self._options.choose("mode", "plan")
        if not arguments and not rest:
            return "Mode: `plan`. Nothing is changed until you approve a plan or choose another mode."
        return (SentText(arguments), *rest) if arguments else tuple(rest)

    async def _choose(
        self, option_id: Literal["mode", "model"], arguments: str, rest: Sequence[Sent], ids: TurnIds
    ) -> CommandAnswer:
        """Lists the choices of an option, or makes one."""
        option = next((option for option in self._options.all() if option.id == option_id), None)
        if option is None:
            raise CrowError(f"This session has no {option_id} to choose.")
        if not arguments:
            return "\n".join(_listed_choices(option))
        if all(choice.value != arguments for choice in option.choices):
            known = ", ".join(f"`{choice.value}`" for choice in option.choices[:MOST_CHOICES])
            return f"Unknown {option_id} `{one_line(arguments)}`. Available: {known}."
        await self._options.choose(option_id, arguments)
        return f"{option_id.capitalize()}: `{arguments}`."

    # --- permissions

    async def _permissions(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandAnswer:
        verb, _, detail = arguments.partition(" ")
        detail = detail.strip()
        match verb:
            case "":
                return await self._policy.run_off_loop(self._rules)
            case "revoke" if detail:
                return await self._policy.run_off_loop(lambda: self._revoke(detail))
            case "explain" if detail:
                deed = await self._deed(detail)
                return await self._policy.run_off_loop(lambda: self._policy.explain(deed))
            case _:
                return PERMISSIONS_USAGE

    def _rules(self) -> str:
        rules = self._policy.rules()
        lines = [f"Mode: `{self._policy.mode}`. It decides where no rule does. Deny beats ask beats allow.\n"]
        lines += [f"{number}. {_rule_line(known)}" for number, known in enumerate(rules, 1)]
        lines += [] if rules else ["No rules."]
        return "\n".join([*lines, "", PERMISSIONS_USAGE])

    def _revoke(self, detail: str) -> str:
        rules = self._policy.rules()
        if not detail.isascii() or not detail.isdigit() or not 1 <= int(detail[:9]) <= len(rules):
            return f"Unknown rule {one_line(detail, 40)}. `/permissions` lists the rules with their numbers."
        known = rules[int(detail) - 1]
        if self._policy.revoke(known.rule):
            return f"Revoked: {_rule_line(known)}."
        where = "the project's `.crow/config.toml`" if known.origin is Origin.PROJECT else "your `config.toml`"
        return f"{_rule_line(known)} is set in {where}. Change it there."

    async def _deed(self, detail: str) -> Deed:
        verb, _, path = detail.partition(" ")
        match verb, path.strip():
            case "read", path if path:
                return Deed("read", ToolKind.READ, reads=((await self._workspace.resolve(path)).real,))
            case "write", path if path:
                return Deed("write", ToolKind.EDIT, writes=(await self._workspace.resolve(path)).judged)
            case _:
                return Deed("terminal", ToolKind.EXECUTE, command=detail, cwd=self._workspace.roots[0])

    # --- MCP servers

    async def _mcp(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandAnswer:
        verb, _, name = arguments.partition(" ")
        if verb == "restart" and name.strip():
            self._servers.restart(name.strip())
            return f"Restarting `{one_line(name.strip(), 100)}`."
        if arguments:
            return "`/mcp` shows the servers; `/mcp restart NAME` restarts one."
        return "\n".join(self._server_list())

    def _server_list(self) -> Iterator[str]:
        status = self._servers.status()
        if not status:
            yield "The MCP servers have not started yet." if self._servers.wanted() else NO_SERVERS
            return
        count = sum(len(server.tools) for server in status)
        tools = "1 tool" if count == 1 else f"{count} tools"
        if self._servers.defers:
            yield f"{tools} from MCP servers, which would add about {self._servers.cost:,} tokens to every request."
            yield "That is more than a tenth of the context window: the model searches for tools instead."
        else:
            yield f"{tools} from MCP servers, about {self._servers.cost:,} tokens in every request."
        for server in status:
            yield ""
            yield from _server_lines(server)


def _listed_choices(option: SessionOption) -> Iterator[str]:
    yield f"{option.id.capitalize()}: `{option.value}`. Available:\n"
    group = ""
    for choice in islice(option.choices, MOST_CHOICES):
        if choice.group != group:
            group = choice.group
            yield f"\n**{one_line(group)}**\n"
        yield _choice_line(choice, current=choice.value == option.value)
    if len(option.choices) > MOST_CHOICES:
        yield f"\nand {len(option.choices) - MOST_CHOICES} more."
    yield f"\nChange it with `/{option.id} {'NAME' if option.id == 'model' else 'MODE'}`."


def _choice_line(choice: Choice, *, current: bool) -> str:
    description = f": {one_line(choice.description)}" if choice.description else ""
    return f"- `{choice.value}`{' (current)' if current else ''}{description}"


def _rule_line(known: KnownRule) -> str:
    effect = ", without effect" if known.origin is Origin.PROJECT and known.rule.decision == "allow" else ""
    return one_line(str(known), 500) + effect


def _server_lines(server: "ServerStatus") -> Iterator[str]:
    cause = f": {one_line(server.cause, 500)}" if server.cause else ""
    title = f", and calls itself “{title_line(server.title, 100)}”" if server.title not in ("", server.name) else ""
    yield f"**{one_line(server.name, 100)}** (from {server.origin}{title}): {server.state}{cause}"
    if server.known_as != server.name:
        yield f"Its tools are `{SERVER_TOOL}{server.known_as}__…`, for the model and in rules."
    if server.tools or server.prompts or server.has_resources:
        yield ""
    for name, cost in server.tools[:MOST_TOOLS]:
        yield f"- `{name}`, {cost:,} tokens"
    if len(server.tools) > MOST_TOOLS:
        rest = server.tools[MOST_TOOLS:]
        yield f"- and {len(rest)} more, {sum(cost for _, cost in rest):,} tokens"
    if server.prompts:
        yield f"- prompts: {', '.join(f'`/{name}`' for name in server.prompts[:MOST_TOOLS])}"
    if server.has_resources:
        yield "- has resources"
