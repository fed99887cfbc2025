"""Trust: a project's commands, skills, servers and settings have no effect before the person has said yes to them.

They are asked in the first turn in a project that brings any of these and is not trusted as it is, and asked again
when it changes. What is trusted can make Crow more careful, never less.
"""

from collections.abc import Sequence

from crow.actions import PermissionAnswer, PermissionQuestion
from crow.config.settings import McpServerSettings, Mode
from crow.errors import ConfigError, OptionUnknown, TurnCancelled
from crow.events import CallOpened, CallSettled, Notice, PermissionAnswered, PermissionAsked
from crow.paths import shown
from crow.policy.rules import RulePolicy
from crow.project.offer import ProjectOffer
from crow.project.project_config import is_looser
from crow.project.question import shown_to_person
from crow.project.sources import Sources
from crow.results import ToolKind, ToolResult
from crow.session.options import Options
from crow.tools.terminal import RunCommand
from crow.turn.conversation import Conversation, TurnIds
from crow.turn.waits import waiting
from crow.visible import one_line

TITLE = "Trust what this project brings?"
WHY = (
    "The project brings commands, skills, servers or settings for Crow. Until you trust them, none of them is used. "
    "You will be asked again when they change."
)
THIS_SESSION = "Trust for this session only"
ALWAYS = "Trust until it changes"
UNANSWERED = "Not answered: nothing that the project brings is used."
REJECTED = "Not trusted: nothing that the project brings is used in this session."


class Trusting:
    def __init__(
        self,
        sources: Sources,
        conversation: Conversation,
        policy: RulePolicy,
        options: Options,
        run_command: RunCommand,
    ) -> None:
        self.servers: dict[str, McpServerSettings] = {}
        """The MCP servers of trusted projects, by name."""
        self._sources = sources
        self._conversation = conversation
        self._policy = policy
        self._options = options
        self._run_command = run_command
        self._in_effect: dict[str, ProjectOffer] = {}
        """What was put into effect, by root: it can only tighten, and so stays when a changed project is rejected."""
        self._unchosen: list[ProjectOffer] = []
        """Projects whose model is to be chosen in the first turn."""
        self._new = False

    def begin(self, *, new: bool) -> list[Notice]:
        """Puts into effect what the person trusts already; what they should know of it.

        In a session that is not new, what was chosen in it wins: its options are restored afterwards.
        """
        self._new = new
        notices = [Notice("warning", self._sources.warning)] if self._sources.warning else []
        for offer in self._sources.trusted():
            notices += self._tighten(offer)
            if offer.config.mode and not is_looser(offer.config.mode, self._policy.mode):
                self._policy.mode = offer.config.mode
            if new:
                self._unchosen.append(offer)
        return notices

    async def prepare(self, ids: TurnIds) -> None:
        """At the beginning of each turn: whatever waits to be trusted is asked about, all of it at once."""
        self._sources.look()
        if untrusted := self._sources.waiting():
            await self._ask(untrusted, ids)
        for offer in self._sources.trusted():
            before = self._in_effect.get(offer.root)
            if before != offer:
                self._tell(self._tighten(offer))
                if self._new and (before is None or before.config != offer.config):
                    await self._choose_mode(offer)
                    self._unchosen.append(offer)
        while self._unchosen:
            await self._choose_model(self._unchosen.pop(0))

    async def _ask(self, untrusted: Sequence[ProjectOffer], ids: TurnIds) -> None:
        journal, call_id = self._conversation.journal, ids.call()
        display = tuple(block for offer in untrusted for block in shown_to_person(offer))
        question = PermissionQuestion(
            call_id, ToolKind.OTHER, TITLE, WHY, display=display, project_scope=ALWAYS, yes=THIS_SESSION
        )
        result = ToolResult.refused(UNANSWERED)
        journal.append(CallOpened(call_id, "trust", ToolKind.OTHER, TITLE, own=True))
        try:
            async with self._conversation.dialog:
                journal.append(PermissionAsked(call_id, WHY, display))
                with waiting(self._conversation, "your answer", call_id):
                    answer = await self._conversation.person.permit(question)
            await journal.record(PermissionAnswered(call_id, answer.allowed, answer.choice))
            result = self._answered(untrusted, answer)
        finally:
            journal.append(CallSettled(call_id, result))

    def _answered(self, untrusted: Sequence[ProjectOffer], answer: PermissionAnswer) -> ToolResult:
        if answer.choice == "cancelled":
            raise TurnCancelled
        if not answer.allowed:
            for offer in untrusted:
                self._sources.reject(offer)
            return ToolResult.refused(REJECTED)
        remember = answer.choice == "project"
        for offer in untrusted:
            if warning := self._sources.accept(offer, remember=remember):
                self._conversation.journal.append(Notice("warning", warning))
        return ToolResult(ok=True, text="", message="Trusted until it changes." if remember else "Trusted.")

    # --- what trust puts into effect

    def _tighten(self, offer: ProjectOffer) -> list[Notice]:
        self._in_effect[offer.root] = offer
        config = offer.config
        self._policy.use_project_rules([rule for known in self._in_effect.values() for rule in known.config.rules])
        self._conversation.limits = config.lowered(self._conversation.limits)
        if config.terminal_timeout is not None:
            self._run_command.lower_timeout(config.terminal_timeout)
        self.servers = {
            name: server for known in reversed(self._in_effect.values()) for name, server in known.servers.items()
        }
        left_out = [f"Not used: {one_line(shown(f'{offer.root}/{what}'))}." for what in offer.left_out]
        remarks = [*offer.problems, *left_out, *_without_effect(offer, self._policy.mode)]
        return [Notice("warning", remark) for remark in remarks]

    async def _choose_mode(self, offer: ProjectOffer) -> None:
        mode, now = offer.config.mode, self._policy.mode
        if mode is not None and mode != now and not is_looser(mode, now):
            await self._options.choose("mode", mode)

    async def _choose_model(self, offer: ProjectOffer) -> None:
        model = offer.config.model
        if not model:
            return
        try:
            await self._options.choose("model", model)
        except (OptionUnknown, ConfigError) as error:
            self._tell([Notice("warning", f"The project wants another model. {error}")])

    def _tell(self, notices: Sequence[Notice]) -> None:
        for notice in notices:
            self._conversation.journal.append(notice)


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
