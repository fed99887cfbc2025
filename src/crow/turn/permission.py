"""May a call do what it was prepared to do: the policy says so, or the person where the policy says to ask."""

from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from crow import events, visible
from crow.actions import Deed, PermissionAnswer, PermissionQuestion
from crow.errors import FileSystemSilent, TurnCancelled
from crow.messages import ToolCall
from crow.policy.base import Allow, Ask, Deny
from crow.results import TextBlock, ToolResult
from crow.tools.base import Action, HasTwoYeses, Look
from crow.turn.context import TurnContext

REJECTED = "permission was asked for, and refused."
"""Whoever answered: a person, or an editor or a script in their place."""


class Rejected(Deny, frozen=True):
    """The answer to a question was no; or nobody could be asked, which is none either."""

    words: str = ""
    """The person's own, if they gave a reason."""


class Refusal(NamedTuple):
    """A call that is not to be run: why, and what it would have done."""

    verdict: Deny
    shown: Action | Look

    def as_result(self) -> ToolResult:
        """What was asked about stays to be seen after a no."""
        reason = self.verdict.reason
        if not isinstance(self.verdict, Rejected):
            return ToolResult.refused(reason)
        message = "" if reason == REJECTED else reason
        if self.verdict.words:  # they know what they did, and need not be told how the model is told
            message = f"Rejected: {self.verdict.words}"
        display = (*self.shown.display, TextBlock(message, prose=True)) if message else self.shown.display
        return ToolResult(
            ok=False, text=f"Not done: {reason}", message=message or "rejected", display=display, brief="rejected"
        )


async def verdict_on(context: TurnContext, call: ToolCall, action: Action | Look) -> Allow | Deny:
    policy = context.policy
    judge = partial(policy.judge, action.deed)
    verdict = await policy.beside(judge)
    if not isinstance(verdict, Ask):
        return verdict
    async with context.dialog:
        # While this question waited for its turn, the answer to another one may have covered it.
        verdict = await policy.beside(judge)
        if not isinstance(verdict, Ask):
            return verdict
        answer = await _ask_person(context, call, action, verdict)
        # What is forbidden by now, such as by a change to the mode `plan`, is not done after a late yes.
        verdict = await policy.beside(judge)
        return verdict if isinstance(verdict, Deny) else answer


async def _ask_person(context: TurnContext, call: ToolCall, action: Action | Look, ask: Ask) -> Allow | Deny:
    reason = " ".join(filter(None, (ask.reason, _warning_about(action.deed))))
    await context.journal.record(events.PermissionAsked(call.id, reason, action.display))
    two_yeses = action if isinstance(action, HasTwoYeses) else None
    question = PermissionQuestion(
        call_id=call.id,
        kind=action.deed.kind,
        title=action.title,
        reason=reason,
        locations=action.locations,
        display=action.display,
        session_scope=ask.session.label if ask.session else "",
        project_scope=ask.project.label if ask.project else "",
        takes_reason=True,
    )
    if two_yeses is not None:
        question = replace(question, yes=two_yeses.yes, session_scope=two_yeses.broader_yes)
    answer = await context.person.permit(question)
    await context.journal.record(events.PermissionAnswered(call.id, answer.allowed, answer.choice))
    if answer.choice == "cancelled":
        raise TurnCancelled
    if not answer.allowed:
        return Rejected("the user was asked", answer.reason or REJECTED, words=answer.words)
    if two_yeses is not None:
        two_yeses.agreed(answer)
    await _remember(context, ask, answer)
    return Allow("the user was asked")


def _warning_about(deed: Deed) -> str:
    """What hides in the words that the person is about to approve, whichever tool they belong to."""
    return visible.warning(deed.tool, deed.command, deed.cwd, deed.host, *deed.writes, *deed.reads)


async def _remember(context: TurnContext, ask: Ask, answer: PermissionAnswer) -> None:
    policy, warning = context.policy, ""
    if answer.choice == "session" and ask.session is not None:
        warning = policy.remember(ask.session, "session")
    elif answer.choice == "project" and ask.project is not None:
        try:
            warning = await policy.beside(partial(policy.remember, ask.project, "project"))
        except FileSystemSilent as silent:
            warning = f"It is not remembered: {silent}"
    if warning:
        context.journal.append(events.Remark("warning", warning))
