"""Which redirects are followed unasked: rules and modes hold for every host on the way, not just for the first."""

from collections.abc import Callable

import msgspec

from crow.config.settings import Decision
from crow.results import ToolResult
from crow.visible import one_line
from crow.web.urls import WebUrl

LONGEST_SHOWN = 120


class HostVerdict(msgspec.Struct, frozen=True):
    decision: Decision
    reason: str = ""
    """Why it is refused."""


JudgeHost = Callable[[str], HostVerdict]
"""May a page of this host be fetched: at once, if the person agrees, or not at all?"""


class Redirects:
    def __init__(self, judge_host: JudgeHost) -> None:
        self._judge_host = judge_host

    def may_follow(self, start: WebUrl, target: WebUrl) -> bool:
        """To the same site, and to hosts about which the person need not be asked; never from https to http."""
        if (start.scheme, target.scheme) == ("https", "http"):
            return False
        if start.host == target.host:
            return True
        decision = self._judge_host(target.host).decision
        return decision == "allow" or (decision == "ask" and _is_same_site(start, target))

    def not_followed(self, asked: WebUrl, target: WebUrl) -> ToolResult:
        """What is told of a page that redirects to where `may_follow` did not go."""
        verdict = self._judge_host(target.host)
        leads = f"{asked.text} redirects to {target.text}"
        if verdict.decision == "deny":
            return ToolResult.refused(f"{leads}, and that is not fetched: {verdict.reason}")
        if verdict.decision == "allow" or _is_same_site(asked, target):
            text = f"{leads}, which is not encrypted: it was not followed. Fetch that if it will do."
        else:
            text = f"{leads}, about which the user has not been asked. Fetch that instead."
        return ToolResult(ok=True, text=text, message=f"Redirects to {one_line(target.text, LONGEST_SHOWN)}")


def _is_same_site(one: WebUrl, other: WebUrl) -> bool:
    """With or without `www.` it is the same to people."""
    return one.host.removeprefix("www.") == other.host.removeprefix("www.")
