"""A subagent: a turn of its own, with its own history and tools, in the session of the turn that asked for it.

It has the same model, workspace, policy and person. It works on one errand, and its last words are the result.
"""

import asyncio
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from crow.actions import Answer, PermissionAnswer, PermissionQuestion, Person, Question
from crow.cutting import without_middle
from crow.errors import CrowError, StorageFailed, TurnCancelled
from crow.events import CallDescribed, Journal, SentText, TurnEnded, TurnStarted
from crow.messages import AssistantMessage, Message, StopReason, Text
from crow.results import ToolKind, ToolResult
from crow.tools.base import Tool
from crow.tools.task import Errand
from crow.tools.toolbox import Toolbox
from crow.turn.child_journal import ChildJournal, named
from crow.turn.child_steps import Steps
from crow.turn.child_tools import tools_for
from crow.turn.conversation import Conversation, TurnIds
from crow.turn.loop import run_turn
from crow.turn.waits import waiting

MOST_AT_ONCE = 4
"""Subagents of a session that work at the same time; the others wait for a place."""
LONGEST_REPORT = 16_000
"""Characters of its last words that the model is told."""
LONGEST_SHOWN = 4_000
"""The same for the person."""
FIRST_TURN = "_t1"
"""What the ids of its only turn have after the id of the call that it works for."""

PROMPT = """
# You are a subagent
Another agent gave you the task below, and gets nothing of your work but your last message. Do this task and no more. \
Nobody can be asked: decide, and say what you assumed. There is no `plan` and no `ask` for you. End with a report: \
what you found or did, files by path and line, what is left open.
"""
EXPLORE = """\
You can only look: read files, search them, look on the web. You can change nothing and run no command.
"""

UNFINISHED = {
    StopReason.MAX_TURN_REQUESTS: "it reached its limit of {requests} requests to the model.",
    StopReason.MAX_TOKENS: "there was no room for more in the model's window, or in its reply.",
    StopReason.REFUSAL: "the model refused to go on.",
}


class Children:
    """The subagents of a session. `fresh` makes tools that know nothing of what others have read."""

    def __init__(self, parent: Conversation, fresh: Callable[[], Sequence[Tool]]) -> None:
        self._parent = parent
        self._fresh = fresh
        self._places = asyncio.Semaphore(MOST_AT_ONCE)
        self._errands: dict[str, Errand] = {}

    def errand_of(self, call_id: str) -> Errand | None:
        """Of the subagent whose call that is; None if it is the session's own."""
        parent, own, _ = call_id.rpartition(FIRST_TURN)
        return self._errands.get(parent) if own else None

    def hire(self, errand: Errand) -> "Child":
        self._errands[errand.call_id] = errand
        tools = tools_for(errand.kind, self._parent.tools, self._fresh())
        return Child(errand, self._parent, tools, self._places)


class Child:
    def __init__(self, errand: Errand, parent: Conversation, tools: Toolbox, places: asyncio.Semaphore) -> None:
        self._errand = errand
        self._parent = parent
        self._tools = tools
        self._places = places
        self._steps = Steps()

    async def work(self, journal: Journal) -> ToolResult:
        with ChildJournal(journal, self._errand, self._steps) as own:
            conversation = self._conversation(own, journal)
            try:
                with waiting(conversation, "another subagent to end"):
                    await self._places.acquire()
                try:
                    stop_reason = await self._turn(conversation, own)
                finally:
                    self._places.release()
            except StorageFailed:
                raise
            except CrowError as error:
                return self._failed(str(error), own)
        if stop_reason is StopReason.CANCELLED:
            raise TurnCancelled
        return self._ended(stop_reason, own)

    def interrupted(self, reason: str) -> ToolResult:
        text = f"{reason}{self._steps.steps_told()}{self._files()}"
        return ToolResult(ok=False, text=text, message=reason, display=self._steps.ended(reason))

    async def _turn(self, conversation: Conversation, own: ChildJournal) -> StopReason:
        ids = TurnIds(f"{self._errand.call_id}{FIRST_TURN}")  # of letters that every provider takes
        own.append(TurnStarted(ids.turn_id))
        try:
            stop_reason = await run_turn(conversation, ids, (SentText(self._errand.prompt),))
        except CrowError as error:
            own.append(TurnEnded(ids.turn_id, None, str(error)))
            raise
        except asyncio.CancelledError:
            own.append(TurnEnded(ids.turn_id, StopReason.CANCELLED))
            raise
        own.append(TurnEnded(ids.turn_id, stop_reason))
        return stop_reason

    def _conversation(self, own: ChildJournal, journal: Journal) -> Conversation:
        return replace(
            self._parent,
            tools=self._tools,
            person=_NamedPerson(self._parent.person, self._errand, journal),
            journal=own,
            history=own.history,
            system_prompt=self._system_prompt,
            prepare=None,
        )

    def _system_prompt(self) -> str:
        return self._parent.system_prompt() + PROMPT + (EXPLORE if self._errand.kind == "explore" else "")

    # --- what is told of its end

    def _ended(self, stop_reason: StopReason, own: ChildJournal) -> ToolResult:
        if stop_reason is not StopReason.END_TURN:
            return self._failed(self._why(stop_reason), own)
        words = _text_of(own.history.messages()[-1])
        if not words:
            return self._failed("it ended without a report.", own)
        display = self._steps.ended(without_middle(words, LONGEST_SHOWN))
        text = f"{without_middle(words, LONGEST_REPORT)}{self._files()}"
        return ToolResult(ok=True, text=text, message=self._counted(), display=display)

    def _why(self, stop_reason: StopReason) -> str:
        most = self._parent.limits.model_calls
        if stop_reason is StopReason.MAX_TURN_REQUESTS and self._steps.replies < most:
            return "it went round in circles."
        return UNFINISHED[stop_reason].format(requests=most)

    def _failed(self, reason: str, own: ChildJournal) -> ToolResult:
        told = f"The subagent did not finish: {reason}"
        words = next((text for said in reversed(own.history.messages()) if (text := _text_of(said))), "")
        if self._steps.has_said(words):
            words = ""
        last_words = f"\nIts last words were:\n{without_middle(words, LONGEST_REPORT)}" if words else ""
        text = f"{told}{self._steps.steps_told()}{last_words}{self._files()}"
        display = self._steps.ended(without_middle(words, LONGEST_SHOWN), told)
        return ToolResult(ok=False, text=text, message=told, display=display)

    def _files(self) -> str:
        return self._steps.files_told(self._parent.workspace.roots[0])

    def _counted(self) -> str:
        calls, files = self._steps.calls, len(self._steps.files)
        done = f"{calls} step{'' if calls == 1 else 's'}"
        return f"{done}, {files} file{'' if files == 1 else 's'} changed" if files else done


class _NamedPerson:
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


def _text_of(message: Message) -> str:
    """What the model said in it; empty if it is not the model's."""
    parts = message.parts if isinstance(message, AssistantMessage) else ()
    return "".join(part.text for part in parts if isinstance(part, Text)).strip()
