"""Putting a session together from what surrounds it and what the rooms below provide."""

import time
from collections.abc import Iterator, Sequence

from crow.config.amounts import amounts_of
from crow.config.settings import PermissionRule, WebSettings
from crow.config.variables import patience_in
from crow.events import Event, Notice, TurnStarted
from crow.policy.grants import Grants
from crow.policy.rules import RulePolicy
from crow.project.prompt import SystemPrompt
from crow.project.sources import Sources, skills_folder
from crow.session.builtin_commands import all_commands
from crow.session.environment import Environment
from crow.session.journal import SessionJournal
from crow.session.late_model import LateModel
from crow.session.models import SessionSetup
from crow.session.options import Options
from crow.session.persistence import Persistence
from crow.session.preparations import Preparations
from crow.session.servers import Servers
from crow.session.session import Session
from crow.session.title import Title
from crow.session.trusted import TrustedProjects
from crow.session.trusting import Trusting
from crow.tools.background import ends_to_tell
from crow.tools.base import Tool
from crow.tools.leave_plan import LeavePlan
from crow.tools.task import Task
from crow.tools.terminal import RunCommand
from crow.tools.toolbox import Toolbox
from crow.turn.conversation import Conversation
from crow.turn.spending import Purse
from crow.turn.subagent.subagents import Subagents
from crow.turn.waits import PATIENCE
from crow.workspace.terminal import seen_by_commands
from crow.workspace.terminals import Terminals, outputs_folder


class Beginnings:
    """What a session reads of its folders at its beginning, made beside the event loop: a file system may hang."""

    def __init__(self, id: str, setup: SessionSetup, roots: Sequence[str], home: str) -> None:
        self.policy = policy = _policy(id, setup, roots, home)
        self.sources = Sources(home, roots)
        self.prompt = SystemPrompt(
            roots, time.strftime("%Y-%m-%d"), policy.is_secret, home, skills=self.sources.skills_listing
        )
        self.prompt.instructions.look()
        self.warnings = [policy.warning] if policy.warning else []
        self.warnings += self.prompt.instructions.remarks()


def open_session(
    id: str, setup: SessionSetup, around: Environment, persistence: Persistence, home: str, read: Beginnings
) -> Session:
    settings = setup.settings
    patience = patience_in(around.environ, PATIENCE)
    journal = SessionJournal(persistence.log, patience)
    journal.remember(persistence.past)
    journal.subscribe(around.sink)
    policy, sources, prompt = read.policy, read.sources, read.prompt
    terminals = Terminals(around.commands)
    run_command = RunCommand(terminals, settings.terminal.timeout)
    purse = Purse(amounts_of(settings.budget), journal, around.person, day=persistence.archive.spent_today)
    purse.remember(persistence.past)
    conversation = Conversation(
        model=LateModel(setup.first),
        tools=Toolbox(_session_tools(around, policy, terminals, run_command, settings.web)),
        workspace=around.workspace,
        policy=policy,
        person=around.person,
        journal=journal,
        history=journal.history,
        limits=settings.limits,
        system_prompt=lambda: _system_prompt(conversation, prompt),
        cache_key=id,
        news=lambda: ends_to_tell(terminals),
        patience=patience,
        purse=purse,
    )
    options = Options(conversation, setup)
    purse.cheaper, conversation.choose_model = options.cheaper_model, options.choose_model
    seen = seen_by_commands(around.environ, setup.key_variables)
    projects = TrustedProjects(conversation, policy, options, run_command, seen)
    trusting = Trusting(sources, conversation, projects)
    subagents = Subagents(conversation, _file_tools)
    servers = Servers(conversation, around, home, settings.mcp_servers, lambda: projects.servers, subagents.task_of)
    # What works with the conversation and is also a part of it.
    conversation.prepare = Preparations(conversation, trusting, servers, prompt.instructions).make
    conversation.tools.more = servers
    conversation.tools.add(Task(subagents.subagent_for, lambda: policy.mode))
    conversation.tools.add(LeavePlan(lambda: policy.mode, lambda mode: options.choose("mode", mode)))
    title = Title(journal, persistence.past)
    commands = all_commands(conversation, options, sources, trusting, persistence.archive, servers, title)
    session = Session(id, conversation, journal, terminals, options, commands, servers, title, persistence.past)
    for notice in _begin(persistence.past, trusting, options, read.warnings):
        session.tell(notice)
    for doubt in purse.doubts(conversation.model.info):
        session.tell(Notice("warning", doubt))
    return session


def _session_tools(
    around: Environment, policy: RulePolicy, terminals: Terminals, run_command: RunCommand, web: WebSettings
) -> Iterator[Tool]:
    from crow.session.toolset import session_tools  # for the first request, not for the session's beginning

    yield from session_tools(around, policy, terminals, run_command, web)


def _file_tools() -> Sequence[Tool]:
    from crow.session.toolset import file_tools

    return file_tools()


def _system_prompt(conversation: Conversation, prompt: SystemPrompt) -> str:
    window = conversation.model.info.context_window
    return prompt.short_text(window) if window and conversation.has_small_window else prompt.text()


def _begin(past: Sequence[Event], trusting: Trusting, options: Options, warnings: Sequence[str]) -> list[Notice]:
    """Puts into effect what is trusted, then what was chosen in the session: it comes second because it wins.

    Gives what the person should know of it all.
    """
    notices = trusting.begin(new=not any(isinstance(event, TurnStarted) for event in past))
    notices += options.restore(past)
    return notices + [Notice("warning", warning) for warning in warnings]


def _policy(id: str, setup: SessionSetup, roots: Sequence[str], home: str) -> RulePolicy:
    readable = (outputs_folder(id), skills_folder(home))
    return RulePolicy(
        roots,
        [home],
        readable=[skills_folder(home)],
        mode=setup.mode,
        own_rules=[PermissionRule(tool="read", path=f"{folder}/**", decision="allow") for folder in readable],
        user_rules=setup.settings.permission.rules,
        grants=Grants(home, roots[0]),
    )
