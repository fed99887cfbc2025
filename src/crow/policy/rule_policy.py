"""The policy of a session (`RulePolicy`): the rules and the person's answers that it goes by; and what `crow mcp`
refuses, where nobody can be asked.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from crow.actions import Deed
from crow.config.settings import PermissionRule
from crow.disk import Disk
from crow.errors import ConfigError
from crow.paths import is_inside, shown
from crow.policy.base import GRANTED, Allow, Ask, Deny, KnownRule, Mode, Origin, Scope, Verdict, Where
from crow.policy.grants import Grants, is_superseded
from crow.policy.paths import what_secret_in

if TYPE_CHECKING:  # what judges is imported for the first call, not for the session's beginning
    from crow.policy.deed_verdicts import Situation
    from crow.policy.rule_matching import ReadyRule, RuleBook

T = TypeVar("T")


class RulePolicy:
    """`roots` are the workspace's folders, links resolved; `private` are folders that are secret and protected as a
    whole, Crow's own home among them; reading what lies in `readable` shows no secret all the same. `own_rules` are
    Crow's: like the modes, they are neither listed nor taken back. Without `grants`, what is allowed for the project
    lasts as long as the session.
    """

    def __init__(
        self,
        roots: Sequence[str],
        private: Sequence[str] = (),
        *,
        readable: Sequence[str] = (),
        mode: Mode = "ask",
        own_rules: Sequence[PermissionRule] = (),
        user_rules: Sequence[PermissionRule] = (),
        project_rules: Sequence[PermissionRule] = (),
        grants: Grants | None = None,
    ) -> None:
        self.mode: Mode = mode
        self._roots = tuple(roots)
        self._identities = tuple(map(_identity, roots))
        """Which folders the roots were at the beginning: another one may have taken the name of one since."""
        self._private = tuple({*private, *(os.path.realpath(folder) for folder in private)})
        self._readable = tuple(os.path.realpath(folder) for folder in readable)
        self._own = [KnownRule(rule, Origin.BUILT_IN) for rule in own_rules]
        self._of_user = [KnownRule(rule, Origin.USER) for rule in user_rules]
        self._of_project: list[KnownRule] = []
        self.programs: Callable[[], Mapping[str, str]] = dict[str, str]
        """Files of the workspace that servers of the session run, with why they are protected. Looks at the disk."""
        self.use_project_rules(project_rules)
        self._granted: list[KnownRule] = []
        self._grants = grants
        self._disk = Disk(roots[0] if roots else "/")
        # Each of these with the rules that it was made of, as one value: several threads judge at a time.
        self._book: tuple[list[KnownRule], RuleBook | None] = ([], None)
        self._kept_by: tuple[list[KnownRule], list[ReadyRule]] = ([], [])

    @property
    def warning(self) -> str:
        """What the person should know about the grants of this project; empty if all is well."""
        if self._grants is None:
            return ""
        self._grants.rules()  # only reading the file shows what is wrong with it
        return self._grants.warning

    def judge(self, deed: Deed, *, reread: bool = True) -> Verdict:
        from crow.policy.deed_verdicts import strictest_verdict

        return strictest_verdict(self._verdicts(deed, self._situation(reread=reread)))

    async def run_off_loop(self, work: Callable[[], T]) -> T:
        return await self._disk.run(work)

    def explain(self, deed: Deed) -> str:
        from crow.policy.deed_verdicts import explained

        situation = self._situation()
        return explained(deed, self._verdicts(deed, situation), situation.mode)

    def _verdicts(self, deed: Deed, situation: "Situation") -> list[Verdict]:
        """What the person allowed was allowed in the folders that they knew: in another one it does not count."""
        from crow.policy.deed_verdicts import verdicts
        from crow.policy.rule_matching import RuleBook

        found = verdicts(deed, situation)
        is_granted = any(isinstance(verdict, Allow) and verdict.origin in GRANTED for verdict in found)
        if not is_granted or not (deed.command or deed.reads or deed.writes):
            return found
        now = zip(self._roots, self._identities, strict=True)
        other = next((root for root, identity in now if _identity(root) != identity), None)
        if other is None:
            return found
        lasting = RuleBook([*self._own, *self._of_user, *self._of_project], self._roots)
        situation = msgspec.structs.replace(situation, book=lasting)
        reason = f"{shown(other)} has been replaced by another folder since the session was opened."
        return [
            Ask(verdict.rule, f"{reason} {verdict.reason}".rstrip(), verdict.origin)
            if isinstance(verdict, Ask)
            else verdict
            for verdict in verdicts(deed, situation)
        ]

    def is_secret(self, path: str) -> bool:
        return bool(what_secret_in(path, self._private, self._readable))

    def is_withheld(self, path: str) -> bool:
        """Whether a search of the folders above may not show what a resolved path holds: a secret, or what a rule
        forbids or wants to be asked about. It may be called from any thread."""
        return self.is_secret(path) or any(
            ready.glob is not None and ready.glob.matches(path) for ready in self._keeping()
        )

    def _keeping(self) -> "list[ReadyRule]":
        """The rules about paths that tighten reading. No answer of the person is among them: those can only allow."""
        from crow.policy.rule_matching import RuleBook

        rules = [known for known in (*self._own, *self._of_user, *self._of_project) if known.rule.decision != "allow"]
        if rules != self._kept_by[0]:
            ready = RuleBook(rules, self._roots).rules
            self._kept_by = rules, [rule for rule in ready if rule.is_for("search") or rule.is_for("read")]
        return self._kept_by[1]

    def remember(self, scope: Scope, where: Where) -> str:
        warning = ""
        if where == "project" and self._grants is not None:
            try:
                self._grants.add(scope.rules)
            except ConfigError as error:
                warning = f"Remembered for this session only: {error}"
            else:
                return ""
        origin = Origin.SESSION_GRANT if where == "session" or warning else Origin.PROJECT_GRANT
        kept = [known for known in self._granted if not is_superseded(known.rule, scope.rules)]
        self._granted = [*kept, *(KnownRule(rule, origin) for rule in scope.rules)]
        return warning

    def use_project_rules(self, rules: Sequence[PermissionRule]) -> None:
        """Those that the project brings, instead of any before: they can only tighten."""
        self._of_project = [KnownRule(rule, Origin.PROJECT) for rule in rules]

    def rules(self, *, reread: bool = True) -> list[KnownRule]:
        in_project = self._grants.rules(reread=reread) if self._grants is not None else ()
        configured = (*self._of_user, *self._of_project)
        return [*configured, *self._granted, *(KnownRule(rule, Origin.PROJECT_GRANT) for rule in in_project)]

    def revoke(self, rule: PermissionRule) -> bool:
        kept = [known for known in self._granted if known.rule != rule]
        forgotten = len(kept) < len(self._granted)
        self._granted = kept
        if self._grants is not None and self._grants.remove(rule):
            forgotten = True
        return forgotten

    def _situation(self, *, reread: bool = True) -> "Situation":
        from crow.policy.deed_verdicts import Situation
        from crow.policy.rule_matching import RuleBook

        rules = [*self._own, *self.rules(reread=reread)]
        made_of, book = self._book
        if book is None or rules != made_of:
            book = RuleBook(rules, self._roots)
            self._book = rules, book
        return Situation(book, self.mode, self._roots, self._private, self._readable, self.programs)


def _identity(folder: str) -> tuple[int, int] | None:
    """None if nothing lies there."""
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_dev, status.st_ino


# --- where nobody can be asked: what `crow mcp` refuses although its host allowed the call

REMEDY = "The person can do it, or start the server with `crow mcp --allow-protected`."


def judge_in(
    roots: Sequence[str], outputs: str, *, home: str, rules: Sequence[PermissionRule], allow_protected: bool
) -> Callable[[Deed], str]:
    """Why a deed in these folders is refused; empty if it may be done.

    Reading and writing there, commands and the web go, as in the mode `auto`: the host asks its user. Secrets and
    protected paths are refused unless the person who started the server opened them; CROW_HOME always; and what the
    user's own rules forbid, or want to be asked about. `outputs` is where commands leave what they printed.
    """
    policy = RulePolicy(roots, [home], mode="auto", user_rules=rules)
    if outputs:
        rule = PermissionRule(tool="read", path=f"{outputs}/**", decision="allow")
        policy.remember(Scope("Read what commands printed", (rule,)), "session")

    def is_opened(deed: Deed) -> bool:
        paths = (*deed.reads, *deed.writes)
        inside = all(any(is_inside(path, root) for root in roots) for path in paths)
        of_crow = any(is_inside(path, folder) for path in paths for folder in (home, os.path.realpath(home)))
        return allow_protected and inside and not of_crow

    def judge(deed: Deed) -> str:
        match policy.judge(deed):
            case Allow():
                return ""
            case Deny(reason=reason):
                return reason
            case Ask(reason=reason, origin=Origin.BUILT_IN):
                return "" if is_opened(deed) else f"{reason} {REMEDY}"
            case Ask(reason=reason):
                return f"{reason} Nobody can be asked here."

    return judge
