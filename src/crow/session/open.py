"""Putting a session together from what surrounds it and what the rooms below provide."""

import os
import time
from collections.abc import Mapping, Sequence

import msgspec

from crow.actions import Person
from crow.config.settings import McpServerSettings, PermissionRule
from crow.events import Event, Notice, TurnStarted
from crow.paths import shown
from crow.policy.grants import Grants
from crow.policy.rules import RulePolicy
from crow.project.prompt import SystemPrompt
from crow.project.sources import Sources, skills_folder
from crow.session.archive import Archive
from crow.session.builtins.all import all_commands
from crow.session.journal import SessionJournal, Sink
from crow.session.models import LateModel, ModelChoice
from crow.session.options import Options
from crow.session.preparations import Preparations
from crow.session.servers import Machine, Servers
from crow.session.session import Session
from crow.session.trusting import Trusting
from crow.session.unstored import MemoryArchive, RecentChanges
from crow.session.web import web_tools
from crow.store.base import EventLog
from crow.tools.ask import Ask
from crow.tools.background import ReadCommand, StopCommand
from crow.tools.base import Tool
from crow.tools.edit import Edit
from crow.tools.find import Find
from crow.tools.leave_plan import LeavePlan
from crow.tools.plan import Plan
from crow.tools.read import Read
from crow.tools.search import Search
from crow.tools.seen import Seen
from crow.tools.task import Task
from crow.tools.terminal import RunCommand
from crow.tools.toolbox import Toolbox
from crow.tools.write import Write
from crow.turn.child import Children
from crow.turn.conversation import Conversation
from crow.turn.waits import patience_in
from crow.workspace.base import Commands, Workspace
from crow.workspace.outputs import outputs_folder
from crow.workspace.processes import Keeper
from crow.workspace.terminals import Terminals


class Surroundings(msgspec.Struct):
    """What a session works with, and through whom: the editor's, or this machine's where it offers none."""

    workspace: Workspace
    commands: Commands
    person: Person
    sink: Sink
    keeper: Keeper
    environ: Mapping[str, str]
    servers: Mapping[str, McpServerSettings] = {}
    """The MCP servers that the editor hands over, by name."""


def open_session(
    id: str,
    choice: ModelChoice,
    around: Surroundings,
    *,
    home: str,
    log: EventLog | None = None,
    archive: Archive | None = None,
    past: Sequence[Event] = (),
) -> Session:
    """`log` is where it is stored and `archive` how it is read again, `past` what happened in it so far."""
    recent = RecentChanges()
    patience = patience_in(os.environ)
    journal = SessionJournal(log or recent, patience)
    journal.remember(past)
    journal.subscribe(around.sink)
    policy = _policy(id, choice, around.workspace.roots, home)
    terminals = Terminals(around.commands)
    run_command = RunCommand(terminals, choice.setup.settings.terminal.timeout)
    sources = Sources(home, around.workspace.roots)
    prompt = SystemPrompt(
        around.workspace.roots, time.strftime("%Y-%m-%d"), policy.is_secret, skills=sources.skills_listing
    )
    conversation = Conversation(
        model=LateModel(choice),
        tools=Toolbox([*_tools(around, policy, terminals, run_command), *web_tools(choice.setup.settings.web, policy)]),
        workspace=around.workspace,
        policy=policy,
        person=around.person,
        journal=journal,
        history=journal.history,
        limits=choice.setup.settings.limits,
        system_prompt=prompt.text,
        patience=patience,
    )
    options = Options(conversation, journal, choice.setup)
    trusting = Trusting(sources, conversation, policy, options, run_command)
    settings = choice.setup.settings
    machine = Machine(around.keeper, around.environ, home)
    children = Children(conversation, lambda: _file_tools(Seen()))
    servers = Servers(
        conversation,
        machine,
        around.servers,
        settings.mcp_servers,
        lambda: trusting.servers,
        children.errand_of,
    )
    conversation.tools.more = servers
    conversation.prepare = Preparations(conversation, trusting, servers).make
    notices = _begin(past, trusting, options, policy, prompt)
    conversation.tools.add(Task(children.hire, lambda: policy.mode))
    conversation.tools.add(LeavePlan(lambda: policy.mode, lambda mode: options.choose("mode", mode)))
    commands = all_commands(
        conversation,
        journal,
        options,
        sources,
        trusting,
        archive or MemoryArchive(recent),
        servers,
    )
    session = Session(id, conversation, journal, terminals, options, commands, past, servers)
    for notice in notices:
        session.tell(notice)
    return session


def _begin(
    past: Sequence[Event], trusting: Trusting, options: Options, policy: RulePolicy, prompt: SystemPrompt
) -> list[Notice]:
    """Puts into effect what is trusted, then what was chosen in the session: it comes second because it wins.

    Gives what the person should know of it all.
    """
    notices = trusting.begin(new=not any(isinstance(event, TurnStarted) for event in past))
    notices += options.restore(past)
    if policy.warning:
        notices.append(Notice("warning", policy.warning))
    for path in prompt.instructions.astray():
        notices.append(Notice("warning", f"{shown(path)} leads out of the project or to a secret, and was not read."))
    return notices


def _policy(id: str, choice: ModelChoice, roots: Sequence[str], home: str) -> RulePolicy:
    readable = (outputs_folder(id), skills_folder(home))
    return RulePolicy(
        roots,
        [home],
        readable=[skills_folder(home)],
        mode=choice.setup.mode,
        own_rules=[PermissionRule(tool="read", path=f"{folder}/**", decision="allow") for folder in readable],
        user_rules=choice.setup.settings.permission.rules,
        grants=Grants(home, roots[0]),
    )


def _tools(around: Surroundings, policy: RulePolicy, terminals: Terminals, run_command: RunCommand) -> list[Tool]:
    return [
        *_file_tools(Seen()),
        Find(),
        Search(policy.is_secret),
        run_command,
        ReadCommand(terminals),
        StopCommand(terminals),
        Plan(),
        Ask(around.person),
    ]


def _file_tools(seen: Seen) -> list[Tool]:
    """Those that must know what their model has read; each subagent has its own."""
    return [Read(seen), Write(seen), Edit(seen)]
