"""Putting a session together from what it is given and what the rooms below provide."""

import time
from collections.abc import Sequence

from crow.actions import Person
from crow.policy.rules import BuiltInPolicy
from crow.project.prompt import system_prompt
from crow.session.journal import SessionJournal, Sink
from crow.session.models import LateModel, ModelChoice
from crow.session.session import Session
from crow.tools.read import Read
from crow.tools.toolbox import Toolbox
from crow.turn.conversation import Conversation
from crow.workspace.base import Workspace


def open_session(
    id: str, choice: ModelChoice, *, workspace: Workspace, person: Person, sink: Sink, private: Sequence[str]
) -> Session:
    journal = SessionJournal()
    journal.subscribe(sink)
    conversation = Conversation(
        model=LateModel(choice),
        tools=Toolbox([Read()]),
        workspace=workspace,
        policy=BuiltInPolicy(workspace.roots, private),
        person=person,
        journal=journal,
        history=journal.history,
        limits=choice.settings.limits,
        system_prompt=system_prompt(workspace.roots, time.strftime("%Y-%m-%d")),
    )
    return Session(id, conversation, journal)
