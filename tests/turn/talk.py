"""A conversation in this process, of real parts: a scripted model, file tools, a folder, a list of what happened."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from crow.actions import Answer, PermissionAnswer, PermissionQuestion, Person, Question
from crow.config.settings import Limits
from crow.events import Event, SentText, TurnEnded, TurnIds, TurnStarted
from crow.files.local import LocalWorkspace
from crow.messages import StopReason
from crow.model.base import Model, ModelInfo
from crow.model.scripted import ScriptedModel, ScriptedReply
from crow.policy.rule_policy import RulePolicy
from crow.session.journal import SessionJournal
from crow.tools.ask import Ask
from crow.tools.base import Toolbox
from crow.tools.read import Read, ReadTracker
from crow.tools.write import Write
from crow.turn.context import TurnContext
from crow.turn.history import History
from crow.turn.loop import run_turn
from crow.turn.requests import LiveSettings, Requests
from tests.support.recording import RecordingSink
from tests.support.store import MemoryLog


class Someone(Person):
    """A person whose answers are ready: one for each question, then none."""

    def __init__(self, *answers: Answer | None, permit: Callable[[], Awaitable[None]] | None = None) -> None:
        self.questions: list[Question] = []
        self._answers = list(answers)
        self._permit = permit

    async def permit(self, question: PermissionQuestion) -> PermissionAnswer:
        if self._permit is not None:
            await self._permit()
        return PermissionAnswer("once")

    async def ask(self, question: Question) -> Answer | None:
        self.questions.append(question)
        return self._answers.pop(0) if self._answers else None


class Talk:
    def __init__(
        self,
        folder: Path,
        script: Sequence[ScriptedReply] | Model,
        *,
        window: int | None = None,
        system: str = "Be brief.",
        person: Someone | None = None,
        limits: Limits | None = None,
        **more: Any,
    ) -> None:
        info = ModelInfo("scripted", "test", context_window=window)
        self.model: Any = ScriptedModel(script, info=info) if isinstance(script, Sequence) else script
        self.journal = SessionJournal(MemoryLog())
        self.sink = RecordingSink()
        self.journal.subscribe(self.sink)
        self.person = person or Someone()
        seen = ReadTracker()
        tools = Toolbox([Read(seen), Write(seen), Ask(self.person)])
        live = LiveSettings(self.model, limits or Limits())
        self.context = TurnContext(
            requests=Requests(live, tools, self.journal.history, lambda: system),
            workspace=LocalWorkspace([str(folder)]),
            policy=RulePolicy([str(folder)]),
            person=self.person,
            journal=self.journal,
            **more,
        )
        self._turns = 0

    @property
    def history(self) -> History:
        return self.journal.history

    @property
    def events(self) -> list[Event]:
        return self.sink.events

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def next_ids(self) -> TurnIds:
        self._turns += 1
        return TurnIds(f"t{self._turns}")

    async def turn(self, text: str) -> StopReason:
        ids = self.next_ids()
        self.journal.append(TurnStarted(ids.turn_id))
        reason, _ = await run_turn(self.context, ids, (SentText(text),))
        self.journal.append(TurnEnded(ids.turn_id, reason))
        return reason
