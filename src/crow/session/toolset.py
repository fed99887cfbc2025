"""The built-in tools that a session begins with, and those of them that each subagent gets for itself."""

from collections.abc import Mapping
from typing import assert_never

from crow.actions import Deed, Person
from crow.commands.terminals import Terminals
from crow.config.settings import WebSettings
from crow.policy.base import Allow, Deny, Policy
from crow.policy.base import Ask as AskVerdict
from crow.policy.rule_policy import RulePolicy
from crow.results import ToolKind
from crow.tools.ask import Ask, Plan
from crow.tools.background import ReadCommand, StopCommand
from crow.tools.base import Tool
from crow.tools.edit import Edit
from crow.tools.read import Read, ReadTracker
from crow.tools.search import Find, Search
from crow.tools.terminal import RunCommand
from crow.tools.web import HostVerdict, WebFetch, WebSearch
from crow.tools.write import Write


def session_tools(
    person: Person,
    environ: Mapping[str, str],
    policy: RulePolicy,
    terminals: Terminals,
    run_command: RunCommand,
    web: WebSettings,
) -> list[Tool]:
    return [
        *file_tools(),
        Find(),
        Search(policy.is_withheld),
        run_command,
        ReadCommand(terminals),
        StopCommand(terminals),
        Plan(),
        Ask(person),
        *web_tools(web, policy, environ),
    ]


def file_tools() -> list[Tool]:
    """The tools that must know what their model has read: the session has some, and so has each subagent."""
    seen = ReadTracker()
    return [Read(seen), Write(seen), Edit(seen)]


def web_tools(settings: WebSettings, policy: Policy, environ: Mapping[str, str]) -> list[Tool]:
    def judge_host(host: str) -> HostVerdict:
        verdict = policy.judge(Deed("web_fetch", ToolKind.FETCH, host=host), reread=False)
        match verdict:
            case Allow():
                return HostVerdict("allow")
            case AskVerdict():
                return HostVerdict("ask")
            case Deny(reason=reason):
                return HostVerdict("deny", reason)
            case _:
                assert_never(verdict)

    return [WebFetch(settings, judge_host), WebSearch(settings, environ)]
