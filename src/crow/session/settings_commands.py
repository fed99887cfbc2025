"""The slash commands about what the session may use: /mode, /model, /plan, /permissions, /mcp."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Literal

from crow.actions import Deed
from crow.errors import CrowError
from crow.events import Choice, CommandInfo, Sent, SentText, SessionOption, TurnIds
from crow.files.base import Workspace
from crow.messages import SERVER_TOOL
from crow.policy.base import KnownRule, Origin, Policy
from crow.results import ToolKind
from crow.session.commands import CommandPrompt, CommandReply
from crow.session.options import Options
from crow.session.servers import Servers
from crow.visible import one_line, title_line

if TYPE_CHECKING:
    from crow.mcp.client.hub import ServerStatus

MOST_CHOICES = 60
"""Choices that are listed; some providers have hundreds of models."""

PERMISSIONS_USAGE = (
    "`/permissions revoke N` takes a rule back. `/permissions explain COMMAND` says what would happen to a command; "
    "`explain read PATH` and `explain write PATH` say it of a file."
)

MOST_TOOLS = 30
"""Tools of one server that are listed."""
NO_SERVERS = (
    "There are no MCP servers in this session. Your editor can bring some, `[mcp_servers]` in your `config.toml`, "
    "or a project that you trust."
)


class Choose:
    """Lists the choices of an option, or makes one."""

    def __init__(self, options: Options, option: Literal["mode", "model"], info: CommandInfo) -> None:
        self.info = info
        self._options = options
        self._option = option

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandReply:
        option = self._now()
        if not arguments:
            return CommandReply("\n".join(_listed_choices(option)))
        if all(choice.value != arguments for choice in option.choices):
            known = ", ".join(f"`{choice.value}`" for choice in option.choices[:MOST_CHOICES])
            return CommandReply(f"There is no {self._option} `{one_line(arguments)}`. There is: {known}.")
        await self._options.choose(self._option, arguments)
        return CommandReply(f"The {self._option} is `{self._now().value}` now.")

    def _now(self) -> SessionOption:
        found = next((option for option in self._options.all() if option.id == self._option), None)
        if found is None:
            raise CrowError(f"In this session there is no {self._option} to choose.")
        return found


def mode_command(options: Options) -> Choose:
    return Choose(options, "mode", CommandInfo("mode", "Shows or changes what Crow may do without asking", "[mode]"))


def model_command(options: Options) -> Choose:
    return Choose(options, "model", CommandInfo("model", "Shows or changes the model", "[provider/model]"))


class Plan:
    info = CommandInfo("plan", "Changes to the mode plan: looks and plans, changes nothing", "[task]")

    def __init__(self, options: Options) -> None:
        self._options = options

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandReply | CommandPrompt:
        await self._options.choose("mode", "plan")
        if not arguments and not rest:
            return CommandReply(
                "The mode is `plan` now: nothing is changed until you agree to a plan or choose another mode."
            )
        return CommandPrompt((SentText(arguments), *rest) if arguments else tuple(rest))


def _listed_choices(option: SessionOption) -> Iterator[str]:
    yield f"The {option.id} is `{option.value}`. There is:\n"
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
    return f"- `{choice.value}`{' (now)' if current else ''}{description}"


class Permissions:
    info = CommandInfo(
        "permissions", "Lists, explains and takes back what may run without asking", "[revoke N | explain COMMAND]"
    )

    def __init__(self, policy: Policy, workspace: Workspace) -> None:
        self._policy = policy
        self._workspace = workspace

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandReply:
        verb, _, detail = arguments.partition(" ")
        detail = detail.strip()
        match verb:
            case "":
                return CommandReply(await self._policy.run_off_loop(self._list))
            case "revoke" if detail:
                return CommandReply(await self._policy.run_off_loop(lambda: self._revoke(detail)))
            case "explain" if detail:
                deed = await self._deed(detail)
                return CommandReply(await self._policy.run_off_loop(lambda: self._policy.explain(deed)))
            case _:
                return CommandReply(PERMISSIONS_USAGE)

    def _list(self) -> str:
        rules = self._policy.rules()
        lines = [f"The mode is `{self._policy.mode}`: it decides where no rule does. Deny beats ask beats allow.\n"]
        lines += [f"{number}. {_rule_line(known)}" for number, known in enumerate(rules, 1)]
        lines += [] if rules else ["There are no rules."]
        return "\n".join([*lines, "", PERMISSIONS_USAGE])

    def _revoke(self, detail: str) -> str:
        rules = self._policy.rules()
        if not detail.isascii() or not detail.isdigit() or not 1 <= int(detail[:9]) <= len(rules):
            return f"There is no rule {one_line(detail, 40)}. `/permissions` shows their numbers."
        known = rules[int(detail) - 1]
        if self._policy.revoke(known.rule):
            return f"Taken back: {_rule_line(known)}."
        where = "the project's `.crow/config.toml`" if known.origin is Origin.PROJECT else "your `config.toml`"
        return f"{_rule_line(known)} is written in {where}. Change it there."

    async def _deed(self, detail: str) -> Deed:
        verb, _, path = detail.partition(" ")
        match verb, path.strip():
            case "read", path if path:
                return Deed("read", ToolKind.READ, reads=((await self._workspace.resolve(path)).real,))
            case "write", path if path:
                return Deed("write", ToolKind.EDIT, writes=(await self._workspace.resolve(path)).judged)
            case _:
                return Deed("terminal", ToolKind.EXECUTE, command=detail, cwd=self._workspace.roots[0])


def _rule_line(known: KnownRule) -> str:
    effect = ", without effect" if known.origin is Origin.PROJECT and known.rule.decision == "allow" else ""
    return one_line(str(known), 500) + effect


class Mcp:
    info = CommandInfo("mcp", "Shows the MCP servers, their tools and what these cost", "[restart NAME]")

    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandReply:
        verb, _, name = arguments.partition(" ")
        if verb == "restart" and name.strip():
            self._servers.restart(name.strip())
            return CommandReply(f"`{one_line(name.strip(), 100)}` is being started again.")
        if arguments:
            return CommandReply("`/mcp` shows the servers; `/mcp restart NAME` starts one again.")
        return CommandReply("\n".join(self._lines()))

    def _lines(self) -> Iterator[str]:
        status = self._servers.status()
        if not status:
            yield "The MCP servers have not been started yet." if self._servers.wanted() else NO_SERVERS
            return
        count = sum(len(server.tools) for server in status)
        tools = "1 tool" if count == 1 else f"{count} tools"
        if self._servers.defers:
            yield f"{tools} of MCP servers, which would take about {self._servers.cost:,} tokens in every request."
            yield "That is more than a tenth of the model's window: it is told of a tool when it looks for one."
        else:
            yield f"{tools} of MCP servers, about {self._servers.cost:,} tokens in every request."
        for server in status:
            yield ""
            yield from _server_lines(server)


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
