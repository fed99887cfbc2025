"""What `crow mcp` refuses although its host allowed the call. Nobody can be asked here: what would ask is refused."""

import os
from collections.abc import Callable, Sequence

from crow.actions import Deed
from crow.config.settings import PermissionRule
from crow.paths import is_inside
from crow.policy.base import Allow, Ask, Deny, Origin, Scope
from crow.policy.rules import RulePolicy

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
