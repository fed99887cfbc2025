"""What trusted projects bring, put into effect. It can make Crow more careful, never less."""

from collections.abc import Mapping, Sequence

from crow.config.settings import McpServerSettings, Mode
from crow.errors import ConfigError, OptionUnknown
from crow.events import Notice
from crow.paths import shown
from crow.policy.rules import RulePolicy
from crow.project.offer import ProjectOffer, VariablesMissing, expand_variables
from crow.project.project_config import is_looser
from crow.session.options import Options
from crow.tools.terminal import RunCommand
from crow.turn.requests import LiveSettings
from crow.turn.spending import Purse
from crow.visible import one_line


class TrustedProjects:
    """`environ` is what they may see of the environment: no keys of ours."""

    def __init__(
        self,
        live: LiveSettings,
        purse: Purse,
        policy: RulePolicy,
        options: Options,
        run_command: RunCommand,
        environ: Mapping[str, str],
    ) -> None:
        self.servers: dict[str, McpServerSettings] = {}
        """Their MCP servers, by name."""
        self._live = live
        self._purse = purse
        self._policy = policy
        self._options = options
        self._run_command = run_command
        self._environ = environ
        self._in_effect: dict[str, ProjectOffer] = {}
        """By root. It can only tighten, and so stays when a changed project is rejected."""

    def in_effect(self, root: str) -> ProjectOffer | None:
        return self._in_effect.get(root)

    def tighten(self, offer: ProjectOffer) -> list[Notice]:
        """Its rules and limits; what the person should know of them, and of its servers."""
        self._in_effect[offer.root] = offer
        config = offer.config
        self._policy.use_project_rules([rule for known in self._in_effect.values() for rule in known.config.rules])
        self._live.limits = config.lowered(self._live.limits)
        self._purse.lower(config.budgets)
        if config.terminal_timeout is not None:
            self._run_command.lower_timeout(config.terminal_timeout)
        _, missing = self._ready(offer)
        left_out = [f"Not used: {one_line(shown(f'{offer.root}/{what}'))}." for what in offer.left_out]
        remarks = [*offer.problems, *missing, *left_out, *_without_effect(offer, self._policy.mode)]
        return [Notice("warning", remark) for remark in remarks]

    def use_servers(self, offers: Sequence[ProjectOffer]) -> None:
        """Of these projects alone, which are trusted as they are now: a server tightens nothing."""
        ready = (self._ready(offer)[0] for offer in reversed(offers))
        self.servers = {name: server for servers in ready for name, server in servers.items()}

    def _ready(self, offer: ProjectOffer) -> tuple[dict[str, McpServerSettings], list[str]]:
        """Its servers as they can be started, and what stands in the way of the others."""
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
        """Of a session that is being opened: what was chosen in it is restored afterwards, and wins."""
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
