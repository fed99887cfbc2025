"""Asks the person whether a project is trusted, and puts its commands, servers, rules, mode and model into effect after
a yes. A project's commands, skills, servers and settings have no effect before.

The person is asked in the first turn in a project that brings any of them and is not trusted as it is, and asked again
when it changes. What they said yes to can make Crow more careful, never less.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from crow.actions import PermissionAnswer, PermissionQuestion, Person
from crow.config.settings import McpServerSettings, Mode
from crow.errors import ConfigError, FileSystemSilent, OptionUnknown
from crow.events import Journal, Notice, TurnIds
from crow.paths import shown
from crow.policy.rule_policy import RulePolicy
from crow.project.needs_trust import ProjectOffer, VariablesMissing, expand_variables, is_looser, trust_display
from crow.project.trusted_sources import Sources
from crow.results import ToolKind, ToolResult
from crow.session.options import Options
from crow.tools.terminal import RunCommand
from crow.turn.call import Call, ask_person
from crow.turn.requests import LiveSettings
from crow.turn.spending import Budgets
from crow.visible import one_line

TITLE = "Trust what this project provides?"
WHY = (
    "The project provides commands, skills, servers or settings for Crow. Until you trust them, none of them is used. "
    "You will be asked again when they change."
)
THIS_SESSION = "Trust for this session only"
ALWAYS = "Trust until it changes"
UNANSWERED = "Not answered: nothing from the project is used."
REJECTED = "Not trusted: nothing from the project is used in this session."


class TrustedProjects:
    """What trusted projects bring, put into effect. `environ` is what projects may see of the environment:
    no keys of ours."""

    def __init__(
        self,
        live: LiveSettings,
        budgets: Budgets,
        policy: RulePolicy,
        options: Options,
        run_command: RunCommand,
        environ: Mapping[str, str],
    ) -> None:
        self.servers: dict[str, McpServerSettings] = {}
        """The MCP servers of trusted projects, by name."""
        self._live = live
        self._budgets = budgets
        self._policy = policy
        self._options = options
        self._run_command = run_command
        self._environ = environ
        self._in_effect: dict[str, ProjectOffer] = {}
        """The offers in effect, by root. An offer can only tighten, and so stays when a changed project is rejected."""

    def in_effect(self, root: str) -> ProjectOffer | None:
        return self._in_effect.get(root)

    def tighten(self, offer: ProjectOffer) -> list[Notice]:
        """Puts the rules and limits of a project into effect. Gives what the person should know of them, and of its
        servers."""
        self._in_effect[offer.root] = offer
        config = offer.config
        self._policy.use_project_rules([rule for known in self._in_effect.values() for rule in known.config.rules])
        self._live.limits = config.lowered(self._live.limits)
        self._budgets.lower(config.budgets)
        if config.terminal_timeout is not None:
            self._run_command.lower_timeout(config.terminal_timeout)
        _, missing = self._ready(offer)
        left_out = [f"Not used: {one_line(shown(f'{offer.root}/{what}'))}." for what in offer.left_out]
        remarks = [*offer.problems, *missing, *left_out, *_without_effect(offer, self._policy.mode)]
        return [Notice("warning", remark) for remark in remarks]

    def use_servers(self, offers: Sequence[ProjectOffer]) -> None:
        """Uses the servers of these projects, which are trusted as they are now, and no others: a server tightens
        nothing."""
        ready = (self._ready(offer)[0] for offer in reversed(offers))
        self.servers = {name: server for servers in ready for name, server in servers.items()}

    def _ready(self, offer: ProjectOffer) -> tuple[dict[str, McpServerSettings], list[str]]:
        """The servers of a project as they can be started, and what stands in the way of the others."""
        servers: dict[str, McpServerSettings] = {}
        missing: list[str] = []
        for name, server in offer.servers.items():
            try:
                servers[name] = expand_variables(server, self._environ) if name in offer.with_variables else server
            except VariablesMissing as variables:
                missing.append(
                    f"The MCP server `{one_line(name, 100)}` (from the project) is not started: `.mcp.json` names "
                    f"variables for it that are not set, or hold keys of Crow's own: {variables}."
                )
        return servers, missing

    def begin_in_mode(self, offer: ProjectOffer) -> None:
        """Sets the mode of a session that is being opened: what was chosen in it is restored afterwards, and wins."""
        if offer.config.mode is not None and not is_looser(offer.config.mode, self._policy.mode):
            self._policy.mode = offer.config.mode

    async def choose_mode(self, offer: ProjectOffer) -> None:
        mode = offer.config.mode
        if mode is not None and mode != self._policy.mode and not is_looser(mode, self._policy.mode):
            await self._options.choose("mode", mode)

    async def choose_model(self, offer: ProjectOffer) -> list[Notice]:
        if not offer.config.model:
            return []
        try:
            await self._options.choose("model", offer.config.model)
        except (OptionUnknown, ConfigError) as error:
            return [Notice("warning", f"The project wants another model. {error}")]
        return []


def _without_effect(offer: ProjectOffer, mode: Mode) -> list[str]:
    """What a project says in vain, named so that nobody relies on it."""
    config = offer.config
    remarks: list[str] = []
    if config.passed_over:
        remarks.append(f"passed over, as only your own configuration can set it: {', '.join(config.passed_over)}.")
    if allowing := sum(rule.decision == "allow" for rule in config.rules):
        remarks.append(f"rules that allow have no effect, as a project's can only tighten ({allowing} of them).")
    if config.mode is not None and is_looser(config.mode, mode):
        remarks.append(f"the mode {config.mode} is less careful than yours, which stays: {mode}.")
    path = shown(f"{offer.root}/.crow/config.toml")
    return [f"{path}: {remark}" for remark in remarks]


class ProjectTrust:
    """Asks the person about what projects bring, and has it put into effect."""

    def __init__(
        self, sources: Sources, projects: TrustedProjects, journal: Journal, person: Person, dialog: asyncio.Lock
    ) -> None:
        self._sources = sources
        self._journal = journal
        self._person = person
        self._dialog = dialog
        self._projects = projects
        self._unchosen: list[ProjectOffer] = []
        """Projects whose model is to be chosen in the first turn."""
        self._new = False

    def begin(self, *, new: bool) -> list[Notice]:
        """Puts into effect what the person trusts already; what they should know of it.

        In a session that is not new, what was chosen in it wins: its options are restored afterwards.
        """
        self._new = new
        notices = [Notice("warning", self._sources.warning)] if self._sources.warning else []
        trusted = self._sources.trusted()
        self._projects.use_servers(trusted)
        for offer in trusted:
            notices += self._projects.tighten(offer)
            self._projects.begin_in_mode(offer)
            if new:
                self._unchosen.append(offer)
        return notices

    async def prepare(self, ids: TurnIds) -> None:
        """At the beginning of each turn: whatever waits to be trusted is asked about, all of it at once."""
        with suppress(FileSystemSilent):  # said when the turn began; nothing has changed, as far as is known
            await self._sources.refresh_in_thread()
        if untrusted := self._sources.waiting():
            await self._ask(untrusted, ids)
        trusted = self._sources.trusted()
        self._projects.use_servers(trusted)
        for offer in trusted:
            before = self._projects.in_effect(offer.root)
            if before != offer:
                self._tell(self._projects.tighten(offer))
                if self._new and (before is None or before.config != offer.config):
                    await self._projects.choose_mode(offer)
                    self._unchosen.append(offer)
        while self._unchosen:
            self._tell(await self._projects.choose_model(self._unchosen.pop(0)))

    async def _ask(self, untrusted: Sequence[ProjectOffer], ids: TurnIds) -> None:
        """Asks as a call of Crow's own. Nothing has to be recorded as begun: nothing of the project is used yet."""
        call_id = ids.call()
        display = tuple(block for offer in untrusted for block in trust_display(offer))
        question = PermissionQuestion(
            call_id, ToolKind.OTHER, TITLE, WHY, display=display, project_scope=ALWAYS, yes=THIS_SESSION
        )
        async with Call(call_id, self._journal, unfinished=ToolResult.refused(UNANSWERED)) as call:
            call.open("trust", ToolKind.OTHER, TITLE)
            async with self._dialog:
                answer = await ask_person(self._journal, self._person, question)
            await call.settle(await self._answered(untrusted, answer))

    async def _answered(self, untrusted: Sequence[ProjectOffer], answer: PermissionAnswer) -> ToolResult:
        if not answer.allowed:
            for offer in untrusted:
                self._sources.reject(offer)
            return ToolResult.refused(REJECTED)
        remember = answer.choice == "project"
        for offer in untrusted:
            if warning := await self._sources.accept(offer, remember=remember):
                self._journal.append(Notice("warning", warning))
        return ToolResult(ok=True, text="", message="Trusted until it changes." if remember else "Trusted.")

    def _tell(self, notices: Sequence[Notice]) -> None:
        for notice in notices:
            self._journal.append(notice)
