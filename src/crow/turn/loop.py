"""Runs a turn: asks the model, runs its calls, asks again; decides why it ends, and what is left out when a provider
refuses the history.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Literal, NamedTuple

from crow import events
from crow.errors import (
    CallMalformed,
    ContextOverflow,
    ModelRejected,
    ModelUnavailable,
    ReplyBroken,
    TurnCancelled,
)
from crow.events import HistorySimplified, Journal, Remark, TurnIds
from crow.messages import AssistantMessage, StopReason
from crow.model.base import Awaiting, ModelEvent, Noticed, Waiting
from crow.model.provider_errors import NO_MONEY
from crow.turn.call_batch import CallBatch, LoopGuard
from crow.turn.compaction import RoomKeeper, compact
from crow.turn.context import TurnContext
from crow.turn.message_building import can_be_flattened, has_thoughts, whole_rounds
from crow.turn.prompt import take_prompt, take_steering, unread
from crow.turn.reply import CutReplies, Reply
from crow.turn.requests import Requests
from crow.turn.waits import Wait

BREATH = 64
"""Events of a reply after which others get their turn."""
MOST_PAUSES = 5
"""In a row that a provider is asked to go on after."""
INVALID = (400, 422)
"""Statuses of a request that the provider will not take as it is."""


class Outcome(NamedTuple):
    """How a turn ended."""

    stop_reason: StopReason
    left_open: Literal["", "question", "repetition", "budget"] = ""
    """What the turn ended with, if it is for the person to go on: the model's question, a call that was made again and
    again, or a budget that is used up."""


async def run_turn(context: TurnContext, ids: TurnIds, prompt: Sequence[events.Sent], *, typed: bool = True) -> Outcome:
    """Why the turn ended; a ModelError if the model failed. The journal has everything that happened.

    The turn's start is in the journal already. `typed`: the prompt is what the person sent, and not what a command of
    theirs stands for.
    """
    journal = context.journal
    await take_prompt(context, ids, prompt, tuple(prompt) if typed else ())
    pace, guard = _Pace(journal), LoopGuard(context.tools, context.person, context.dialog)
    keeper = RoomKeeper(context.window, ids, context.waiting, context.tell_once)
    recovery, pauses = RefusalRecovery(context.requests, journal, keeper), 0
    cuts = CutReplies(context.requests.live.limits.retry_wait, context.history, journal)
    try:
        if context.prepare is not None:
            await context.prepare(ids)
        for _ in range(context.requests.live.limits.model_calls):
            await cuts.pause()
            if not await _is_ready(context, ids, keeper, guard):
                return Outcome(StopReason.MAX_TURN_REQUESTS, "budget")
            async with CallBatch(context) as calls:
                reply = Reply(ids, context.model.info, context.tools, cuts.text_id, cuts.text)
                try:
                    asked = context.requests.send(
                        recovery.simplified, paused=pauses > 0, unfinished=reply.unfinished, retries=cuts.retries
                    )
                    stream = recovery.recording_acceptance(asked)
                    await _follow(context, reply, stream, calls, pace)
                except ModelRejected as refusal:
                    await recovery.recover(refusal)
                    continue
                except (ModelUnavailable, ReplyBroken) as failure:
                    cuts.take(failure, reply)
                    continue
                cuts.end()
                pauses = pauses + 1 if reply.paused and not calls else 0
                if 0 < pauses <= MOST_PAUSES:
                    continue
                if calls and reply.stop_reason is StopReason.END_TURN:
                    await calls.run()
                elif context.steering.lets_end(reply.stop_reason):
                    # A reply that was cut or refused may hold half a call: such calls are never run.
                    _mention_end(context, reply)
                    return Outcome(reply.stop_reason)
            outcome = await _ended_by(context, ids, calls, guard)
            if outcome is not None and context.steering.lets_end(outcome.stop_reason):
                return outcome
    except TurnCancelled:
        return Outcome(StopReason.CANCELLED)
    except ContextOverflow as overflow:
        journal.append(events.Remark("error", str(overflow), why_stopped=True))
        return Outcome(StopReason.MAX_TOKENS)
    title = f"Stopped after {context.requests.live.limits.model_calls} requests to the model."
    journal.append(events.Remark("warning", title, why_stopped=True))
    return Outcome(StopReason.MAX_TURN_REQUESTS)


async def _follow(
    context: TurnContext,
    reply: Reply,
    stream: AsyncGenerator[ModelEvent, None],
    calls: CallBatch,
    pace: "_Pace",
) -> None:
    try:
        with context.waiting(_awaited(context)) as wait:
            async with aclosing(reply.read(stream, wait)) as events_of_reply:
                async for event in events_of_reply:
                    context.journal.append(event)
                    calls.follow(event)
                    await pace.keep(wait)
    finally:
        for usage in reply.usages:
            context.budgets.count(usage)
        if reply.unfinished or not reply.usages:
            remark = context.window.count_without_usage(reply, calls.written)
            if remark is not None:
                context.tell_once(remark)


async def _is_ready(context: TurnContext, ids: TurnIds, keeper: RoomKeeper, guard: LoopGuard) -> bool:
    """Whether the next request may be sent: the model knows the mode, the budgets allow it, it has room, and everything
    is in it that the person has said by now."""
    if (surroundings := context.requests.prompt_news()) is not None:
        context.journal.append(surroundings)
    if (news := context.requests.mode_to_tell(context.policy.mode)) is not None:
        await context.journal.record(news)
    if not await _may_spend(context, ids):
        return False
    if await take_steering(context):
        guard.forget()
    before = context.budgets.session.tokens
    await keeper.make_room()
    return context.budgets.session.tokens == before or await _may_spend(context, ids)


async def _may_spend(context: TurnContext, ids: TurnIds) -> bool:
    match await context.budgets.check(context.dialog):
        case "stop":
            return False
        case "compact":
            reason = "you asked for it when the budget was used up."
            done = await compact(context.window, ids, context.waiting, reason=reason)
            context.journal.append(events.Remark("info", done))
            return await _may_spend(context, ids)  # a summary costs as well
        case "cheaper":
            await context.change_model(context.budgets.cheaper())
        case "go on":
            pass
    return True


async def _ended_by(context: TurnContext, ids: TurnIds, calls: CallBatch, guard: LoopGuard) -> Outcome | None:
    """How the turn ends with these calls, after their last words; None if it goes on."""
    if calls.last_words:
        context.journal.append(events.TextDelta(ids.message(), calls.last_words))
        return Outcome(StopReason.END_TURN, "question")
    stop = await guard.check(calls.outcomes)
    if stop is None:
        return None
    context.journal.append(events.TextDelta(ids.message(), stop.last_words))
    return Outcome(stop.reason, "repetition" if stop.reason is StopReason.MAX_TURN_REQUESTS else "")


def _awaited(context: TurnContext) -> str:
    info = context.model.info
    if not info.local:
        return "the model's answer"
    return f"the model's answer ({info.provider} reads about {context.window.estimate():,} tokens first)"


async def skip_turn(context: TurnContext, ids: TurnIds, prompt: Sequence[events.Sent]) -> Outcome:
    """A turn that was cancelled before it began: what the person said stays said."""
    await context.journal.record(events.UserSaid(ids.message(), tuple(prompt), unread(prompt)))
    return Outcome(StopReason.CANCELLED)


class _Pace:
    """Keeps a fast model from running away: from a client that cannot keep up, and from everyone else in the process.

    A stream that is always ready never waits, so that no cancel would be heard and no chunk sent until its end.
    """

    def __init__(self, journal: events.Journal) -> None:
        self._journal = journal
        self._steps = 0

    async def keep(self, wait: Wait) -> None:
        if not self._journal.has_room:
            with wait.paused():
                await self._journal.room()
        self._steps += 1
        if self._steps % BREATH == 0:
            await asyncio.sleep(0)


def _mention_end(context: TurnContext, reply: Reply) -> None:
    """A turn that ends without a word would look like one that hangs, and one after a pause like a whole one."""
    name = context.model.info.name
    if reply.paused:
        title = f"{name} paused its reply {MOST_PAUSES + 1} times in a row, so the turn stopped."
        context.journal.append(events.Remark("warning", title))
    elif not reply.spoke and reply.stop_reason is StopReason.END_TURN:
        context.journal.append(events.Remark("info", f"{name} ended its turn without a reply."))


# --- a request that is refused


class RefusalRecovery:
    """For one turn: sends a request that was refused as invalid again, without what the provider may have choked on, so
    that no session is ever stuck with a history that nobody takes.

    First without thoughts and what else only their provider understands, then with the message that the refusal names
    as plain text, then with all calls, results and attachments as plain text. What was accepted is an event of its own:
    from then on, and after a reload, the history is sent that way.
    """

    def __init__(self, requests: Requests, journal: Journal, keeper: RoomKeeper) -> None:
        self._history = requests.history
        self._requests = requests
        self._journal = journal
        self._keeper = keeper
        self.simplified: HistorySimplified | None = None
        """How the next request differs from the history; None if it does not."""
        self._refusal: ModelRejected | None = None
        """The first one: what was done about it is of no interest if it did not help."""
        self._left_out = ""

    async def recover(self, refusal: ModelRejected) -> None:
        """Sees to it that the next request differs from the one that was refused. Raises the refusal if there is
        nothing left to be done about it."""
        if isinstance(refusal, ContextOverflow):
            await self._keeper.recover(refusal)
            self.simplified = self._refusal = None  # which were about the history as it was before that
            return
        first = self._refusal or refusal
        if isinstance(refusal, CallMalformed):  # which was about the reply, not about the history
            raise refusal
        if refusal.status not in INVALID or NO_MONEY.search(refusal.said) or self._history.is_replying:
            raise first
        step = self._next(refusal)
        if step is None:
            raise first
        self._refusal = first
        self.simplified, self._left_out = step

    def _next(self, refusal: ModelRejected) -> tuple[HistorySimplified, str] | None:
        history, before = self._history, self.simplified
        entries = history.entries()
        thoughts = any(map(has_thoughts, entries))
        if before is None and thoughts and history.refused_thoughts:  # again: so will it be with every other one
            name = self._requests.info.name
            return HistorySimplified(thoughts=True, model=name), f"{name} gets none of its thoughts back"
        if before is None and thoughts:
            return HistorySimplified(thoughts=True), "the model's earlier thoughts are no longer sent"
        groups = history.groups(before)
        named = [place for sent in refusal.positions if sent < len(groups) for place in groups[sent]]
        if (places := whole_rounds(entries, named)) and not (before and before.flattened):
            what = _what(isinstance(entries[places[0]], AssistantMessage))
            return HistorySimplified(thoughts=thoughts, flattened=places), what
        places = tuple(place for place, message in enumerate(entries) if can_be_flattened(message))
        if places and (before is None or before.flattened != places):
            what = "earlier tool calls, their results and attachments are sent as plain text"
            return HistorySimplified(thoughts=thoughts, flattened=places), what
        return None

    def recording_acceptance(self, stream: AsyncGenerator[ModelEvent, None]) -> AsyncGenerator[ModelEvent, None]:
        """The stream itself, unless the person has to be told what its request left out."""
        return stream if self.simplified is None else self._told(self.simplified, stream)

    async def _told(
        self, without: HistorySimplified, stream: AsyncGenerator[ModelEvent, None]
    ) -> AsyncGenerator[ModelEvent, None]:
        async with aclosing(stream):
            async for event in stream:
                if self.simplified is not None and not isinstance(event, Waiting | Noticed | Awaiting):
                    self._accepted(without)
                yield event

    def _accepted(self, without: HistorySimplified) -> None:
        journal, refusal = self._journal, self._refusal
        journal.append(without)
        if refusal is not None:
            title = f"{refusal.provider} rejected the conversation as it was: from now on {self._left_out}."
            journal.append(Remark("warning", title, refusal.message))
        self.simplified = self._refusal = None


def _what(is_round: bool) -> str:
    return f"{'a round of tool calls' if is_round else 'a message'} that it would not take is sent as plain text"
