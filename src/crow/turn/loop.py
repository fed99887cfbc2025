"""The turn: ask the model, run what it calls for, ask again, until it has said what it had to say."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from crow import events
from crow.errors import ContextOverflow, ModelRejected, TurnCancelled
from crow.messages import StopReason, Text
from crow.model.base import ModelEvent
from crow.turn.budget import count_untold, estimate
from crow.turn.calls import CallBatch
from crow.turn.compaction import RoomKeeper, compact
from crow.turn.conversation import Conversation
from crow.turn.guard import LoopGuard
from crow.turn.ids import TurnIds
from crow.turn.prompt import Composer, unread
from crow.turn.refusals import RefusalRecovery
from crow.turn.reply import Reply
from crow.turn.waits import Wait, waiting

BREATH = 64
"""Events of a reply after which others get their turn."""
MOST_PAUSES = 5
"""In a row that a provider is asked to go on after."""


async def run_turn(
    conversation: Conversation, ids: TurnIds, prompt: Sequence[events.Sent], *, typed: bool = True
) -> StopReason:
    """Why the turn ended; a ModelError if the model failed. The journal has everything that happened.

    The turn's start is in the journal already. `typed`: the prompt is what the person sent, and not what a command of
    theirs stands for.
    """
    journal = conversation.journal
    await _take_prompt(conversation, ids, prompt, tuple(prompt) if typed else ())
    pace, keeper, guard = _Pace(journal), RoomKeeper(conversation, ids), LoopGuard(conversation)
    recovery, pauses = RefusalRecovery(conversation, keeper), 0
    try:
        if conversation.prepare is not None:
            await conversation.prepare(ids)
        for _ in range(conversation.limits.model_calls):
            if not await _is_ready(conversation, ids, keeper):
                conversation.left_open = "budget"
                return StopReason.MAX_TURN_REQUESTS
            async with CallBatch(conversation) as calls:
                reply = Reply(ids, conversation.model.info, conversation.tools)
                try:
                    asked = conversation.ask_model(recovery.without, paused=pauses > 0, unfinished=reply.unfinished)
                    stream = recovery.watched(asked)
                    await _follow(conversation, reply, stream, calls, pace)
                except ModelRejected as refusal:
                    await recovery.recover(refusal)
                    continue
                pauses = pauses + 1 if reply.paused and not calls else 0
                if 0 < pauses <= MOST_PAUSES:
                    continue
                if not calls or reply.stop_reason is not StopReason.END_TURN:
                    # A reply that was cut or refused may hold half a call: such calls are never run.
                    _mention_end(conversation, reply)
                    return reply.stop_reason
                await calls.run()
            if (reason := await _ended_by(conversation, ids, calls, guard)) is not None:
                return reason
    except TurnCancelled:
        return StopReason.CANCELLED
    except ContextOverflow as overflow:
        journal.append(events.Remark("error", str(overflow), why_stopped=True))
        return StopReason.MAX_TOKENS
    title = f"Stopped after {conversation.limits.model_calls} requests to the model."
    journal.append(events.Remark("warning", title, why_stopped=True))
    return StopReason.MAX_TURN_REQUESTS


async def _follow(
    conversation: Conversation,
    reply: Reply,
    stream: AsyncGenerator[ModelEvent, None],
    calls: CallBatch,
    pace: "_Pace",
) -> None:
    try:
        with waiting(conversation, _awaited(conversation)) as wait:
            async with aclosing(reply.read(stream, wait)) as events_of_reply:
                async for event in events_of_reply:
                    conversation.journal.append(event)
                    calls.follow(event)
                    await pace.keep(wait)
    finally:
        for usage in reply.usages:
            conversation.purse.count(usage)
        if reply.unfinished or not reply.usages:
            count_untold(conversation, reply, calls.written)


async def _is_ready(conversation: Conversation, ids: TurnIds, keeper: RoomKeeper) -> bool:
    """Whether the next request may be sent: the model knows the mode, the budgets allow it, and it has room."""
    if (news := conversation.mode_to_tell()) is not None:
        await conversation.journal.record(news)
    if not await _may_spend(conversation, ids):
        return False
    before = conversation.purse.session.tokens
    await keeper.make_room()
    return conversation.purse.session.tokens == before or await _may_spend(conversation, ids)


async def _may_spend(conversation: Conversation, ids: TurnIds) -> bool:
    match await conversation.purse.check(conversation.dialog):
        case "stop":
            return False
        case "compact":
            done = await compact(conversation, ids, reason="You asked for it, as the budget was used up.")
            conversation.journal.append(events.Remark("info", done))
            return await _may_spend(conversation, ids)  # a summary costs as well
        case "cheaper" if conversation.choose_model is not None:
            conversation.model = await conversation.choose_model(conversation.purse.cheaper())
        case _:
            pass
    return True


async def _ended_by(conversation: Conversation, ids: TurnIds, calls: CallBatch, guard: LoopGuard) -> StopReason | None:
    """Why the turn ends with these calls, after their last words; None if it goes on."""
    if calls.last_words:
        conversation.left_open = "question"
        conversation.journal.append(events.TextDelta(ids.message(), calls.last_words))
        return StopReason.END_TURN
    stop = await guard.check(calls.outcomes)
    if stop is None:
        return None
    if stop.reason is StopReason.MAX_TURN_REQUESTS:
        conversation.left_open = "repetition"
    conversation.journal.append(events.TextDelta(ids.message(), stop.last_words))
    return stop.reason


def _awaited(conversation: Conversation) -> str:
    info = conversation.model.info
    if not info.local:
        return "the model's answer"
    return f"the model's answer ({info.provider} reads about {estimate(conversation):,} tokens first)"


async def skip_turn(conversation: Conversation, ids: TurnIds, prompt: Sequence[events.Sent]) -> StopReason:
    """A turn that was cancelled before it began: what the person said stays said."""
    await conversation.journal.record(events.UserSaid(ids.message(), tuple(prompt), unread(prompt)))
    return StopReason.CANCELLED


async def _take_prompt(
    conversation: Conversation, ids: TurnIds, prompt: Sequence[events.Sent], shown: tuple[events.Sent, ...]
) -> None:
    journal, message_id = conversation.journal, ids.message()
    composer = Composer(conversation.workspace, conversation.model.info, conversation.policy)
    try:
        with waiting(conversation, "the prompt's attachments"):
            parts = await composer.compose(prompt)
    except asyncio.CancelledError:
        journal.append(events.UserSaid(message_id, shown, unread(prompt)))
        raise
    news = tuple(Text(text) for text in conversation.news())
    await journal.record(events.UserSaid(message_id, shown, parts + news))
    for remark in composer.remarks:
        journal.append(events.Remark("warning", remark))


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


def _mention_end(conversation: Conversation, reply: Reply) -> None:
    """A turn that ends without a word would look like one that hangs, and one after a pause like a whole one."""
    name = conversation.model.info.name
    if reply.paused:
        title = f"{name} paused its reply {MOST_PAUSES + 1} times in a row: it is not asked to go on again."
        conversation.journal.append(events.Remark("warning", title))
    elif not reply.spoke and reply.stop_reason is StopReason.END_TURN:
        conversation.journal.append(events.Remark("info", f"{name} ended its turn without saying anything."))
