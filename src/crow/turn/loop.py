"""The turn: ask the model, run what it calls for, ask again, until it has said what it had to say."""

from collections.abc import Sequence
from contextlib import aclosing

from crow import events
from crow.errors import ContextOverflow
from crow.messages import StopReason
from crow.turn.calls import CallBatch, TurnCancelled
from crow.turn.conversation import Conversation, TurnIds
from crow.turn.prompt import compose
from crow.turn.reply import Reply


async def run_turn(conversation: Conversation, ids: TurnIds, sent: Sequence[events.Sent]) -> StopReason:
    """Why the turn ended; a ModelError if the model failed. The journal has everything that happened."""
    journal = conversation.journal
    journal.append(events.TurnStarted(ids.turn_id))
    parts, remarks = await compose(sent, conversation.workspace, conversation.model.info)
    journal.append(events.UserSaid(ids.message(), tuple(sent), parts))
    for remark in remarks:
        journal.append(events.Notice("warning", remark))
    try:
        for _ in range(conversation.limits.model_calls):
            async with CallBatch(conversation) as calls:
                reply = Reply(ids, conversation.model.info, conversation.tools)
                async with aclosing(reply.read(conversation.ask_model())) as stream:
                    async for event in stream:
                        journal.append(event)
                        calls.follow(event)
                        if not journal.has_room:
                            await journal.room()
                if not calls or reply.stop_reason is not StopReason.END_TURN:
                    # A reply that was cut or refused may hold half a call: such calls are never run.
                    return _said_its_piece(conversation, reply)
                await calls.run()
    except TurnCancelled:
        return StopReason.CANCELLED
    except ContextOverflow as overflow:
        journal.append(events.Notice("error", str(overflow)))
        return StopReason.MAX_TOKENS
    journal.append(events.Notice("warning", f"Stopped after {conversation.limits.model_calls} requests to the model."))
    return StopReason.MAX_TURN_REQUESTS


def _said_its_piece(conversation: Conversation, reply: Reply) -> StopReason:
    if not reply.spoke and reply.stop_reason is StopReason.END_TURN:
        name = conversation.model.info.name
        conversation.journal.append(events.Notice("info", f"{name} ended its turn without saying anything."))
    return reply.stop_reason
