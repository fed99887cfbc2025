"""The web tools of a session, where a redirect to another host is the policy's to judge."""

from collections.abc import Mapping
from typing import assert_never

from crow.actions import Deed
from crow.config.settings import WebSettings
from crow.policy.base import Allow, Ask, Deny, Policy
from crow.policy.modes import Answer
from crow.results import ToolKind
from crow.tools.base import Tool
from crow.tools.web_fetch import WebFetch
from crow.tools.web_search import WebSearch


def web_tools(settings: WebSettings, policy: Policy, environ: Mapping[str, str]) -> list[Tool]:
    def may_ask(host: str) -> Answer:
        verdict = policy.judge(Deed("web_fetch", ToolKind.FETCH, host=host))
        match verdict:
            case Allow():
                return "go"
            case Ask():
                return "ask"
            case Deny():
                return "refuse"
            case _:
                assert_never(verdict)

    return [WebFetch(settings, may_ask), WebSearch(settings, environ)]
