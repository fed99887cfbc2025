"""The subagents of a session: how many work at the same time, and whose name stands before a question that one of them
asks.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from crow.actions import Answer, PermissionAnswer, PermissionQuestion, Person, Question
from crow.events import CallDescribed, Journal
from crow.results import ToolKind
from crow.tools.base import Tool
from crow.tools.task import SubagentTask
from crow.turn.context import TurnContext

if TYPE_CHECKING:
    from crow.turn.subagent.run import SubagentRun

MOST_AT_ONCE = 4
"""Subagents of a session that work at the same time; the others wait for a place."""


def named(task: SubagentTask, text: str) -> str:
    """The text of a title or a question, with the name of the subagent before it."""
    return f"Subagent “{task.name}”: {text}"


class NamedPerson(Person):
    """The session's person, who is told which of several subagents asks."""

    def __init__(self, person: Person, task: SubagentTask, journal: Journal) -> None:
        self._person = person
        self._task = task
        self._journal = journal

    async def permit(self, question: PermissionQuestion) -> PermissionAnswer:
        return await self._person.permit(replace(question, title=named(self._task, question.title)))

    async def ask(self, question: Question) -> Answer | None:
        """Asks about the subagent as a whole: the editor does not know its calls."""
        task = self._task
        try:
            return await self._person.ask(replace(question, call_id=task.call_id, text=named(task, question.text)))
        finally:
            # A question is shown in the call's place: the call takes it back.
            self._journal.append(CallDescribed(task.call_id, ToolKind.OTHER, task.title))


class Subagents:
    """Makes subagents, lets a few of them work at the same time, and knows the task of each that is at work.

    `parent` gives the context of the turn that runs. `fresh` makes tools that know nothing of what others have read.
    """

    def __init__(self, parent: Callable[[], TurnContext], fresh: Callable[[], Sequence[Tool]]) -> None:
        self._parent = parent
        self._fresh = fresh
        self._free = asyncio.Semaphore(MOST_AT_ONCE)
        self._at_work: dict[str, SubagentTask] = {}
        """The tasks of the subagents at work, by the call that each works for."""

    def subagent_for(self, task: SubagentTask) -> "SubagentRun":
        """A subagent that is ready to go. Its task is not known to `task_of` before it works."""
        from crow.turn.subagent.run import SubagentRun, tools_for  # few sessions send one

        parent = self._parent()
        tools = tools_for(task.kind, parent.tools, self._fresh())
        return SubagentRun(task, parent, tools, self)

    async def take_place(self, task: SubagentTask) -> None:
        """Waits until there is a free place for the subagent."""
        await self._free.acquire()
        self._at_work[task.call_id] = task

    def leave_place(self, task: SubagentTask) -> None:
        del self._at_work[task.call_id]
        self._free.release()

    def task_of(self, call_id: str) -> SubagentTask | None:
        """The task of the subagent at work that makes this call; None if the call is the session's own."""
        return next((task for task in self._at_work.values() if task.makes(call_id)), None)
