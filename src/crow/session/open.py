"""Putting a session together from what surrounds it and what the rooms below provide."""

import os
import time
from collections.abc import Sequence

import msgspec

from crow.actions import Person
from crow.config.settings import PermissionRule
from crow.events import Notice
from crow.paths import shown
from crow.policy.base import Scope
from crow.policy.grants import Grants
from crow.policy.rules import RulePolicy
from crow.project.prompt import SystemPrompt
from crow.session.journal import SessionJournal, Sink
from crow.session.models import LateModel, ModelChoice
from crow.session.session import Session
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
from crow.tools.toolbox import Toolbox
from crow.tools.write import Write
from crow.turn.conversation import Conversation
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


def open_session(id: str, choice: ModelChoice, around: Surroundings, *, home: str) -> Session:
    journal = SessionJournal()
    journal.subscribe(around.sink)
    policy = _policy(id, choice, around.workspace.roots, home)
    terminals = Terminals(around.commands)
    prompt = SystemPrompt(around.workspace.roots, time.strftime("%Y-%m-%d"), policy.is_secret)
    conversation = Conversation(
        model=LateModel(choice),
        tools=Toolbox(_tools(around, policy, terminals, choice.settings.terminal.timeout)),
        workspace=around.workspace,
        policy=policy,
        person=around.person,
        journal=journal,
        history=journal.history,
        limits=choice.settings.limits,
        system_prompt=prompt.text,
    )
    session = Session(id, conversation, journal, terminals)
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
        mode=choice.mode,
        user_rules=choice.settings.permission.rules,
        grants=Grants(home, roots[0]),
    )
    outputs = PermissionRule(tool="read", path=f"{outputs_folder(id)}/**", decision="allow")
    policy.remember(Scope("Read what commands printed", (outputs,)), "session")
    return policy


def _tools(around: Surroundings, policy: RulePolicy, terminals: Terminals, timeout: float) -> list[Tool]:
    seen = Seen()
    return [
        Read(seen),
        Write(seen),
        Edit(seen),
        Find(),
        Search(policy.is_secret),
        RunCommand(terminals, timeout),
        ReadCommand(terminals),
        StopCommand(terminals),
        Plan(),
        Ask(around.person),
    ]
