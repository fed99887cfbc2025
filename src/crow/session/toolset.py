"""Every tool that a session has from the beginning, put together."""

from crow.config.settings import WebSettings
from crow.policy.rules import RulePolicy
from crow.session.surroundings import Surroundings
from crow.session.web_tools import web_tools
from crow.tools.ask import Ask
from crow.tools.background import ReadCommand, StopCommand
from crow.tools.base import Tool
from crow.tools.edit import Edit
from crow.tools.find import Find
from crow.tools.plan import Plan
from crow.tools.read import Read
from crow.tools.search import Search
from crow.tools.seen import Seen
from crow.tools.terminal import RunCommand
from crow.tools.write import Write
from crow.workspace.terminals import Terminals


def session_tools(
    around: Surroundings, policy: RulePolicy, terminals: Terminals, run_command: RunCommand, web: WebSettings
) -> list[Tool]:
    return [
        *file_tools(),
        Find(),
        Search(policy.is_withheld),
        run_command,
        ReadCommand(terminals),
        StopCommand(terminals),
        Plan(),
        Ask(around.person),
        *web_tools(web, policy, around.environ),
    ]


def file_tools() -> list[Tool]:
    """Those that must know what their model has read; each subagent has its own."""
    seen = Seen()
    return [Read(seen), Write(seen), Edit(seen)]
