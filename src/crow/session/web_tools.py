"""The web tools of a session, where a redirect to another host is the policy's to judge."""

from collections.abc import Mapping
from typing import assert_never

from crow.actions import Deed
from crow.config.settings import WebSettings
from crow.policy.base import Allow, Ask, Deny, Policy
from crow.results import ToolKind
from crow.tools.base import Tool
from crow.tools.web_fetch import WebFetch
from crow.tools.web_redirects import HostVerdict
from crow.tools.web_search import WebSearch


def web_tools(settings: WebSettings, policy: Policy, environ: Mapping[str, str]) -> list[Tool]:
    def judge_host(host: str) -> HostVerdict:
        verdict = policy.judge(Deed("web_fetch", ToolKind.FETCH, host=host), anew=False)
        match verdict:
            case Allow():
                return HostVerdict("go")
            case Ask():
                return HostVerdict("ask")
            case Deny(reason=reason):
                return HostVerdict("refuse", reason)
            case _:
                assert_never(verdict)

    return [WebFetch(settings, judge_host), WebSearch(settings, environ)]
