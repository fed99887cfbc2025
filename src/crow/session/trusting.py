"""Trust: a project's commands, skills, servers and settings have no effect before the person has said yes to them.

They are asked in the first turn in a project that brings any of these and is not trusted as it is, and asked again
when it changes. `trusted` puts into effect what they said yes to.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from crow.actions import PermissionAnswer, PermissionQuestion, Person
from crow.errors import FileSystemSilent
from crow.events import Journal, Notice, TurnIds
from crow.project.offer import ProjectOffer, trust_display
from crow.project.sources import Sources
from crow.results import ToolKind, ToolResult
from crow.session.trusted import TrustedProjects
from crow.turn.call import Call, ask_person

TITLE = "Trust what this project brings?"
WHY = (
    "The project brings commands, skills, servers or settings for Crow. Until you trust them, none of them is used. "
    "You will be asked again when they change."
)
THIS_SESSION = "Trust for this session only"
ALWAYS = "Trust until it changes"
UNANSWERED = "Not answered: nothing that the project brings is used."
REJECTED = "Not trusted: nothing that the project brings is used in this session."


class Trusting:
    def __init__(
        self, sources: Sources, projects: TrustedProjects, journal: Journal, person: Person, dialog: asyncio.Lock
    ) -> None:
        self._sources = sources
        self._journal = journal
        self._person = person
        self._dialog = dialog
        self._projects = projects
        self._unchosen: list[ProjectOffer] = []
        """Projects whose model is to be chosen in the first turn."""
        self._new = False

    def begin(self, *, new: bool) -> list[Notice]:
        """Puts into effect what the person trusts already; what they should know of it.

        In a session that is not new, what was chosen in it wins: its options are restored afterwards.
        """
        self._new = new
        notices = [Notice("warning", self._sources.warning)] if self._sources.warning else []
        trusted = self._sources.trusted()
        self._projects.use_servers(trusted)
        for offer in trusted:
            notices += self._projects.tighten(offer)
            self._projects.begin_in_mode(offer)
            if new:
                self._unchosen.append(offer)
        return notices

    async def prepare(self, ids: TurnIds) -> None:
        """At the beginning of each turn: whatever waits to be trusted is asked about, all of it at once."""
        with suppress(FileSystemSilent):  # said when the turn began; nothing has changed, as far as is known
            await self._sources.refresh_in_thread()
        if untrusted := self._sources.waiting():
            await self._ask(untrusted, ids)
        trusted = self._sources.trusted()
        self._projects.use_servers(trusted)
        for offer in trusted:
            before = self._projects.in_effect(offer.root)
            if before != offer:
                self._tell(self._projects.tighten(offer))
                if self._new and (before is None or before.config != offer.config):
                    await self._projects.choose_mode(offer)
                    self._unchosen.append(offer)
        while self._unchosen:
            self._tell(await self._projects.choose_model(self._unchosen.pop(0)))

    async def _ask(self, untrusted: Sequence[ProjectOffer], ids: TurnIds) -> None:
        """Asks as a call of Crow's own. Nothing has to be recorded as begun: nothing of the project is used yet."""
        call_id = ids.call()
        display = tuple(block for offer in untrusted for block in trust_display(offer))
        question = PermissionQuestion(
            call_id, ToolKind.OTHER, TITLE, WHY, display=display, project_scope=ALWAYS, yes=THIS_SESSION
        )
        async with Call(call_id, self._journal, unfinished=ToolResult.refused(UNANSWERED)) as call:
            call.open("trust", ToolKind.OTHER, TITLE)
            async with self._dialog:
                answer = await ask_person(self._journal, self._person, question)
            await call.settle(await self._answered(untrusted, answer))

    async def _answered(self, untrusted: Sequence[ProjectOffer], answer: PermissionAnswer) -> ToolResult:
        if not answer.allowed:
            for offer in untrusted:
                self._sources.reject(offer)
            return ToolResult.refused(REJECTED)
        remember = answer.choice == "project"
        for offer in untrusted:
            if warning := await self._sources.accept(offer, remember=remember):
                self._journal.append(Notice("warning", warning))
        return ToolResult(ok=True, text="", message="Trusted until it changes." if remember else "Trusted.")

    def _tell(self, notices: Sequence[Notice]) -> None:
        for notice in notices:
            self._journal.append(notice)
