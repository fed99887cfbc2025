"""Putting a session together from what surrounds it and what the rooms below provide."""

import os
import time
from collections.abc import Sequence

import msgspec

from crow.actions import Person
from crow.config.settings import PermissionRule
from crow.events import Event, Notice, TurnStarted
from crow.paths import shown
from crow.policy.base import Scope
from crow.policy.grants import Grants
from crow.policy.rules import RulePolicy
from crow.project.prompt import SystemPrompt
from crow.project.sources import Sources, skills_folder
from crow.session.archive import Archive, MemoryArchive
from crow.session.builtins.all import all_commands
from crow.session.journal import Record, SessionJournal, Sink
from crow.session.models import LateModel, ModelChoice
from crow.session.options import Options
from crow.session.session import Session
from crow.session.trusting import Trusting
from crow.session.undo import RecentChanges
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
from crow.tools.terminal import RunCommand
from crow.tools.toolbox import Toolbox
from crow.tools.write import Write
from crow.turn.conversation import Conversation
from crow.turn.waits import patience_in
from crow.workspace.base import Commands, Workspace
from crow.workspace.terminals import Terminals


class Surroundings(msgspec.Struct):
    """What a session works with, and through whom: the editor's, or this machine's where it offers none."""

    workspace: Workspace
    commands: Commands
    person: Person
    sink: Sink


def outputs_folder(session_id: str) -> str:
    """Where what a command printed is kept as long as the session lives: nobody else's to read."""
    folder = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 -- `tempfile` would cost a tenth of our start-up to import
    return os.path.join(folder, f"crow-{session_id}")


def open_session(
    id: str,
    choice: ModelChoice,
    around: Surroundings,
    *,
    home: str,
    record: Record | None = None,
    archive: Archive | None = None,
    past: Sequence[Event] = (),
) -> Session:
    """`record` is where it is kept and `archive` how it is read again, `past` what happened in it so far."""
    recent = RecentChanges()
    journal = SessionJournal(record or recent)
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
        tools=Toolbox(_tools(around, policy, terminals, run_command)),
        workspace=around.workspace,
        policy=policy,
        person=around.person,
        journal=journal,
        history=journal.history,
        limits=choice.setup.settings.limits,
        system_prompt=prompt.text,
        patience=patience_in(os.environ),
    )
    options = Options(conversation, journal, choice.setup)
    trusting = Trusting(sources, conversation, policy, options, run_command)
    conversation.prepare = trusting.prepare
    remarks = trusting.begin(new=not any(isinstance(event, TurnStarted) for event in past))
    remark = options.restore(past)
    conversation.tools.add(LeavePlan(lambda: policy.mode, lambda mode: options.choose("mode", mode)))
    commands = all_commands(
        conversation,
        journal,
        options,
        sources,
        trusting,
        archive or MemoryArchive(recent),
        list(choice.setup.settings.mcp_servers),
    )
    session = Session(id, conversation, journal, terminals, options, commands, past)
    for notice in (*remarks, *([remark] if remark is not None else ())):
        session.tell(notice)
    if policy.warning:
        session.tell(Notice("warning", policy.warning))
    prompt.text()
    for path in prompt.instructions.astray:
        session.tell(Notice("warning", f"{shown(path)} leads out of the project or to a secret, and was not read."))
    return session


def _policy(id: str, choice: ModelChoice, roots: Sequence[str], home: str) -> RulePolicy:
    policy = RulePolicy(
        roots,
        [home],
        readable=[skills_folder(home)],
        mode=choice.setup.mode,
        user_rules=choice.setup.settings.permission.rules,
        grants=Grants(home, roots[0]),
    )
    outputs = PermissionRule(tool="read", path=f"{outputs_folder(id)}/**", decision="allow")
    policy.remember(Scope("Read what commands printed", (outputs,)), "session")
    skills = PermissionRule(tool="read", path=f"{skills_folder(home)}/**", decision="allow")
    policy.remember(Scope("Read your skills", (skills,)), "session")
    return policy


def _tools(around: Surroundings, policy: RulePolicy, terminals: Terminals, run_command: RunCommand) -> list[Tool]:
    seen = Seen()
    return [
        Read(seen),
        Write(seen),
        Edit(seen),
        Find(),
        Search(policy.is_secret),
        run_command,
        ReadCommand(terminals),
        StopCommand(terminals),
        Plan(),
        Ask(around.person),
    ]
