"""What MCP servers ask the person, brought to them."""

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from crow.actions import Filled, Form, Link
from crow.events import Remark
from crow.tools.task import Errand
from crow.turn.conversation import Conversation
from crow.turn.subagent.naming import named
from crow.visible import one_line

MOST_TOLD = 20
"""Declined questions that the person is told of."""
LONGEST_TOLD = 500


class Asker:
    """Brings servers' questions to the person: those of a call one at a time, like every other question of a turn.

    What is asked in a call of a subagent is asked about the subagent as a whole: the editor does not know its calls.
    What is asked outside any call may wait as long as the person likes, and holds up nothing else.
    """

    def __init__(self, conversation: Conversation, errand_of: Callable[[str], Errand | None]) -> None:
        self._conversation = conversation
        self._person = conversation.person
        self._errand_of = errand_of
        self._outside_calls = asyncio.Lock()
        self._told: set[str] = set()
        """Questions that were declined in the person's name, and told."""

    @property
    def can_visit(self) -> bool:
        return self._person.can_visit

    async def fill_in(self, form: Form) -> Filled:
        """As a form where the client has forms; else it is declined. Never as a permission, which some clients give by
        themselves."""
        if not form.call_id:
            async with self._outside_calls:
                return await self._person.fill_in(form) or self._declined(form)
        errand = self._errand_of(form.call_id)
        if errand is not None:
            form = replace(form, call_id=errand.call_id, text=named(errand, form.text))
        async with self._conversation.dialog:
            return await self._person.fill_in(form) or self._declined(form)

    async def visit(self, link: Link) -> bool:
        if not link.call_id:
            return await self._person.visit(link)
        errand = self._errand_of(link.call_id)
        if errand is not None:
            link = replace(link, call_id=errand.call_id, text=named(errand, link.text))
        async with self._conversation.dialog:
            return await self._person.visit(link)

    def visited(self, link_id: str) -> None:
        self._person.visited(link_id)

    def _declined(self, form: Form) -> Filled:
        """In the person's name, who would otherwise not know."""
        if form.text not in self._told and len(self._told) < MOST_TOLD:
            self._told.add(form.text)
            asked = one_line(form.text, LONGEST_TOLD)
            self._conversation.journal.append(
                Remark("warning", f"{asked} Your editor cannot show this question, so it was told no.")
            )
        return Filled("decline")
