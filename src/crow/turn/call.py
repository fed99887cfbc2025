"""The life of one call: opened, prepared, judged by the policy, asked about, recorded, performed, settled, also if
rejected or interrupted.

The calls of a model and of its subagents go through it (`crow.turn.call_batch`), the question whether a project is
trusted, undo, and the calls that `crow mcp` serves. Each leaves out what it has no need of: undo is judged by nobody,
trust performs nothing that has to be recorded first, and `crow mcp` has nobody to ask and a journal that reports
progress.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Protocol, Self

import msgspec
from msgspec.structs import replace

from crow import events, visible
from crow.actions import Deed, PermissionAnswer, PermissionQuestion, Person
from crow.errors import CrowError, FileSystemSilent, StorageFailed, TurnCancelled
from crow.events import Journal
from crow.files.base import Workspace
from crow.messages import ToolCall, json_object
from crow.policy.base import Allow, Ask, Deny, Policy
from crow.results import DisplayBlock, TextBlock, ToolKind, ToolResult
from crow.tools.base import Action, ReadNeeded, Tool, failure
from crow.turn.waits import HeardJournal, Wait
from crow.visible import one_line

INTERRUPTED = "Interrupted by the user before it was done."
REJECTED = "permission was asked for, and refused."
"""Whoever answered: a person, or an editor or a script in their place."""
FROM_TEXT = "The model wrote this call as text, so it may be a quotation."
BY_ANSWER = "the user was asked"
"""The rule that a verdict names if it is an answer of the person's."""


class Permission(Protocol):
    """Whoever says whether a call may do something."""

    async def verdict_on(self, call_id: str, action: Action | ReadNeeded) -> Allow | Deny: ...


class Call:
    """Used in an `async with`, it is settled when that is left, whatever the reason.

    Without a `permission` everything is allowed. `waiting` names what a call waits for if that takes long: it gets the
    end of a sentence that begins with "Waiting for", and the call's id. `unfinished` is the result of a call that is
    left before it had one.
    """

    def __init__(
        self,
        id: str,
        journal: Journal,
        permission: Permission | None = None,
        *,
        waiting: Callable[[str, str], Wait] | None = None,
        unfinished: ToolResult | None = None,
    ) -> None:
        self.id = id
        self.is_settled = False
        self._journal = journal
        self._permission = permission
        self._waiting = waiting
        self._unfinished = unfinished
        self._judged: Action | ReadNeeded | None = None
        """What the call would do, from the moment on in which somebody may be asked about it."""
        self._performed: Action | None = None
        self._begun: float | None = None
        """When that began."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.is_settled:
            with contextlib.suppress(StorageFailed):  # told by whoever ends the turn
                await self.settle(self._left_by(error))

    def open(self, tool: str, kind: ToolKind, title: str) -> None:
        """Opens a call of Crow's own. A call of the model is opened by its reply."""
        self._journal.append(events.CallOpened(self.id, tool, kind, title, own=True))

    async def run(self, tool: Tool, call: ToolCall, workspace: Workspace) -> ToolResult:
        """Does what the arguments ask the tool for. What goes wrong is a result, which the model can do something
        about; only what ends the turn is raised."""
        try:
            look = await tool.look(call, workspace)
            if look is not None and look.path.existed and isinstance(verdict := await self.judge(look), Deny):
                return self.refused(verdict)
            return await self.carry_out(await self._prepared(tool, call, workspace, look))
        except (TurnCancelled, StorageFailed):
            raise
        except Exception as error:  # noqa: BLE001 -- the edge of a tool: its failure is a result, not ours
            return failure(call, error)

    async def carry_out(self, action: Action) -> ToolResult:
        """Describes the action and, once it is allowed, records that it begins and performs it."""
        self._journal.append(events.CallDescribed(self.id, action.deed.kind, action.title, action.locations))
        if isinstance(verdict := await self.judge(action), Deny):
            return self.refused(verdict)
        await self._journal.record(events.CallStarted(self.id))
        self._performed, self._begun = action, time.monotonic()
        return await self.perform(action)

    async def judge(self, action: Action | ReadNeeded) -> Allow | Deny:
        """The verdict on what the call would do, after the person was asked if need be."""
        self._judged = action
        if self._permission is None:
            return Allow("nobody is asked")
        return await self._permission.verdict_on(self.id, action)

    async def perform(self, action: Action) -> ToolResult:
        if self._waiting is None or not action.is_wait_named:
            return await action.perform(self._journal)
        with self._waiting(_named(action.title), self.id) as wait:
            return await action.perform(HeardJournal(self._journal, wait))

    @property
    def seconds(self) -> float | None:
        """For how long it has been performed by now; None if it is not."""
        return None if self._begun is None else round(time.monotonic() - self._begun, 3)

    async def settle(self, result: ToolResult) -> None:
        await settle_all(self._journal, [(self, result)])

    async def _prepared(self, tool: Tool, call: ToolCall, workspace: Workspace, look: ReadNeeded | None) -> Action:
        with self._waiting_for(tool, call):
            if look is not None:
                return await tool.prepare_once_read(call, workspace, look)
            return await tool.prepare(call, workspace)

    def _waiting_for(self, tool: Tool, call: ToolCall) -> contextlib.AbstractContextManager[object]:
        if self._waiting is None:
            return contextlib.nullcontext()
        return self._waiting(_named(tool.title(json_object(call.arguments) or {})), self.id)

    # --- what a call shows that was not done

    def refused(self, verdict: Deny) -> ToolResult:
        """What the person was asked about stays to be seen after a no."""
        reason = verdict.reason
        if not isinstance(verdict, Rejected):
            return replace(ToolResult.refused(reason), message=visible.capitalised(reason))
        message = "" if reason == REJECTED else reason
        if verdict.words:  # they know what they did, and need not be told how the model is told
            message = f"Rejected: {verdict.words}"
        shown = self._judged.display if self._judged is not None else ()
        display = (*shown, TextBlock(message, prose=True)) if message else shown
        return ToolResult(
            ok=False, text=f"Not done: {reason}", message=message or "rejected", display=display, brief="rejected"
        )

    def interrupted(self, why: str, changes: tuple[DisplayBlock, ...] = ()) -> ToolResult:
        """What would be changed stays to be seen, as it does after a no: `changes`, if the call was not judged yet."""
        if self._performed is not None and (told := self._performed.interrupted(why)) is not None:
            return told
        display = changes if self._judged is None else self._judged.display
        if not display:
            return ToolResult.failed(why)
        brief = "interrupted" if why == INTERRUPTED else ""
        return ToolResult(ok=False, text=why, message=why, display=(*display, TextBlock(why, prose=True)), brief=brief)

    def _left_by(self, error: BaseException | None) -> ToolResult:
        if isinstance(error, CrowError):
            return ToolResult.failed(error.message)
        return self._unfinished or self.interrupted(INTERRUPTED)


async def settle_all(journal: Journal, results: Sequence[tuple[Call, ToolResult]]) -> None:
    """Settles calls with their results, all in one step: a cancel that comes meanwhile finds none left."""
    for call, _ in results:
        call.is_settled = True
    if results:
        await journal.record(*(events.CallSettled(call.id, result, call.seconds) for call, result in results))


def _named(title: str) -> str:
    return f"“{one_line(title, 120)}”"


# --- permission


class Rejected(Deny, frozen=True):
    """The answer to a question was no; or nobody could be asked, which is none either."""

    words: str = ""
    """The person's own, if they gave a reason."""


async def ask_person(journal: Journal, person: Person, question: PermissionQuestion) -> PermissionAnswer:
    """The person's answer, once it is recorded. TurnCancelled if they ended the turn instead."""
    await journal.record(events.PermissionAsked(question.call_id, question.reason, question.display))
    answer = await person.permit(question)
    await journal.record(
        events.PermissionAnswered(question.call_id, answer.allowed, answer.choice, answer.by, answer.accepted)
    )
    if answer.choice == "cancelled":
        raise TurnCancelled
    return answer


class PolicyPermission(msgspec.Struct, frozen=True):
    """The policy says whether a call may do something, or the person where the policy says to ask.

    `dialog` is held while the person is asked.
    """

    policy: Policy
    person: Person
    journal: Journal
    dialog: asyncio.Lock
    from_text: bool = False
    """The call was written as text."""

    async def verdict_on(self, call_id: str, action: Action | ReadNeeded) -> Allow | Deny:
        judge = partial(self.policy.judge, replace(action.deed, from_text=self.from_text))
        verdict = await self.policy.run_off_loop(judge)
        if not isinstance(verdict, Ask):
            return verdict
        async with self.dialog:
            # While this question waited for its turn, the answer to another one may have covered it.
            verdict = await self.policy.run_off_loop(judge)
            if not isinstance(verdict, Ask):
                return verdict
            answer = await self._ask(call_id, action, verdict)
            # What is forbidden by now, such as by a change to the mode `plan`, is not done after a late yes.
            verdict = await self.policy.run_off_loop(judge)
            return verdict if isinstance(verdict, Deny) else answer

    async def _ask(self, call_id: str, action: Action | ReadNeeded, ask: Ask) -> Allow | Deny:
        question = PermissionQuestion(
            call_id=call_id,
            kind=action.deed.kind,
            title=action.title,
            reason=" ".join(
                filter(None, (ask.reason, FROM_TEXT if self.from_text else "", _warning_about(action.deed)))
            ),
            locations=action.locations,
            display=action.display,
            session_scope=ask.session.label if ask.session else "",
            project_scope=ask.project.label if ask.project else "",
            takes_reason=True,
            is_divisible=isinstance(action, Action) and action.is_divisible,
        )
        if isinstance(action, Action) and action.yes_once:
            question = replace(question, yes=action.yes_once, session_scope=action.yes_for_session)
        answer = await ask_person(self.journal, self.person, question)
        if not answer.allowed:
            return Rejected(BY_ANSWER, answer.reason or REJECTED, words=answer.words)
        if isinstance(action, Action):
            if answer.accepted is not None:
                await action.accept(answer.accepted)
            action.agreed(answer)
        await self._remember(ask, answer)
        return Allow(BY_ANSWER)

    async def _remember(self, ask: Ask, answer: PermissionAnswer) -> None:
        warning = ""
        if answer.choice == "session" and ask.session is not None:
            warning = self.policy.remember(ask.session, "session")
        elif answer.choice == "project" and ask.project is not None:
            try:
                warning = await self.policy.run_off_loop(partial(self.policy.remember, ask.project, "project"))
            except FileSystemSilent as silent:
                warning = f"Not remembered: {silent}"
        if warning:
            self.journal.append(events.Remark("warning", warning))


def _warning_about(deed: Deed) -> str:
    """What hides in the words that the person is about to approve, whichever tool they belong to."""
    return visible.warning(deed.tool, deed.command, deed.cwd, deed.host, *deed.writes, *deed.reads)
