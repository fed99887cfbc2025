"""Whose a question is: the person deals with several subagents at once, and is told which of them asks."""

from msgspec.structs import replace

from crow.actions import Answer, PermissionAnswer, PermissionQuestion, Person, Question
from crow.events import CallDescribed, Journal
from crow.results import ToolKind
from crow.tools.task import Errand


def named(errand: Errand, text: str) -> str:
    """A title or a question, with whose it is."""
    return f"Subagent “{errand.name}”: {text}"


class NamedPerson(Person):
    """The same person, who is told which subagent asks."""

    def __init__(self, person: Person, errand: Errand, journal: Journal) -> None:
        self._person = person
        self._errand = errand
        self._journal = journal

    async def permit(self, question: PermissionQuestion) -> PermissionAnswer:
        return await self._person.permit(replace(question, title=named(self._errand, question.title)))

    async def ask(self, question: Question) -> Answer | None:
        """About the subagent as a whole: the editor does not know its calls."""
        errand = self._errand
        try:
            return await self._person.ask(replace(question, call_id=errand.call_id, text=named(errand, question.text)))
        finally:
            # A question is shown in the call's place: the call takes it back.
            self._journal.append(CallDescribed(errand.call_id, ToolKind.OTHER, errand.title))
