"""Makes room in the model's window (compaction): decides when, prunes old outputs, then puts a summary in the place of
the beginning.

The journal keeps everything, and the person still sees it: only the model's history becomes shorter. The last rounds
stay as they are, and no cut comes between a call and its result.
"""

import asyncio
from collections.abc import Callable, Sequence

from crow import events
from crow.errors import ContextOverflow
from crow.events import TurnIds
from crow.messages import SERVER_TOOL, AssistantMessage, Message, ToolMessage, UserMessage, tokens_of, tokens_of_text
from crow.tools.base import SMALL_WINDOW
from crow.turn.message_building import PRUNED
from crow.turn.requests import ContextWindow, Room, has_small_window
from crow.turn.summary import write_summary
from crow.turn.waits import Wait

ROUNDS_UNPRUNED = 4
"""The last rounds, whose outputs are never pruned."""
SMALL_OUTPUT = 150
"""Tokens: pruning less would save nothing."""
SMALLEST = 400
"""Tokens: a shorter beginning would hardly be longer than its summary."""
MOST_WINDOWS = 3
"""How often in a turn a provider is believed that the window is another one."""
FEWEST_ROUNDS = 3
"""Requests that must have fitted before a provider that refuses another one is given a shorter one once more."""

# Shares of the room that the system prompt and the tools leave.
WORTHWHILE = 0.1
"""What must be freed at least."""
TAIL = 0.3
"""What the last rounds may take when the beginning is summed up."""
BEGINNING = 0.35
"""What the beginning must take to be summed up in good time: a summary takes up to 0.23 (see `crow.turn.summary`)."""


Waiting = Callable[[str], Wait]
"""Names a wait to the person: the argument ends a sentence that begins with "Waiting for"."""


async def compact(window: ContextWindow, ids: TurnIds, waiting: Waiting, *, focus: str = "", reason: str) -> str:
    """Sums up the beginning now, full or not. A sentence for the person says what was won."""
    before = window.estimate()
    known = window.room()
    full = known is not None and before > known.comfortable
    room = known or Room(before, window.overhead())
    cut = _beginning(window, min(room.share(TAIL), max(0, before - room.fixed) // 3), SMALLEST)
    if full and _left(window, cut) > room.enough:
        cut = _everything(window) or cut
    if not cut and full:
        return f"Nothing to compact. What takes most is {_largest(window)}."
    if not cut:
        return "Nothing to compact yet: the conversation before the last message is short."
    await _replace_beginning(window, ids, waiting, room, cut, focus, reason)
    after = window.estimate()
    return f"Compacted the conversation: about {after:,} tokens now, {before:,} before."


class RoomKeeper:
    """For one turn: sees to it that each request fits. A conversation that cannot be made to fit is a ContextOverflow
    that says what is too large.

    It comes to an end in any case: room is made at most once a request, in good time only where that is sure to free
    some, and a request that does not fit all the same is not sent.
    """

    def __init__(
        self, window: ContextWindow, ids: TurnIds, waiting: Waiting, tell_once: Callable[[events.Remark], None]
    ) -> None:
        self._window = window
        self._ids = ids
        self._waiting = waiting
        self._tell_once = tell_once
        self._requests = 0
        self._recovered_at: int | None = None
        self._window_size: int | None = None
        self._windows_learned = 0
        self._compacted = False

    async def make_room(self) -> None:
        """Called before each request."""
        self._requests += 1
        self._window_size = self._window.requests.info.context_window
        self._mention_small_set()
        room = self._window.room()
        if room is None or (before := self._window.estimate()) <= room.comfortable:
            return
        if not await _prune(self._window, room, before):
            least = room.share(BEGINNING if before <= room.most else WORTHWHILE)
            reason = f"it takes about {before:,} of the {room.most:,} tokens available."
            await self._replace_if_worthwhile(room, least, reason)
        if self._window.estimate() > room.most:
            await _prune_latest(self._window, room)
        # What only the provider's count says to be too long is sent all the same: it may have counted wrongly.
        if (after := self._window.estimate()) > room.most and self._window.own_estimate() > room.most:
            raise self._too_large(room, after)

    def _mention_small_set(self) -> None:
        requests = self._window.requests
        if has_small_window(requests.info):
            names = ", ".join(spec.name for spec in requests.tool_specs() if not spec.name.startswith(SERVER_TOOL))
            title = (
                f"{requests.info.name} has a small context window ({self._window_size:,} tokens): "
                f"it gets only the tools {names}."
            )
            more = f"From {SMALL_WINDOW:,} tokens it gets all of them."
            self._tell_once(events.Remark("info", title, more))

    async def recover(self, overflow: ContextOverflow) -> None:
        """The provider found the request too long, whatever we thought: once more after a compaction, or not at all.

        If it said how large the window is, that is known by now: the next request is made to fit.
        """
        if self._window.requests.info.context_window != self._window_size and self._windows_learned < MOST_WINDOWS:
            self._windows_learned += 1
            self._window.tell_usage()
            return
        last, self._recovered_at = self._recovered_at, self._requests
        if last is not None and self._requests - last < FEWEST_ROUNDS:
            raise overflow
        fixed, before = self._window.overhead(), self._window.estimate()
        room = Room(max(fixed, before * 6 // 10), fixed)
        reason = "the provider says that it no longer fits the context window."
        if await self._replace_if_worthwhile(room, room.share(WORTHWHILE), reason):
            return
        await _prune_latest(self._window, room)
        if self._window.estimate() >= before:
            raise overflow

    async def _replace_if_worthwhile(self, room: Room, least: int, reason: str) -> bool:
        """False if there is no beginning that is worth it."""
        cut = _beginning(self._window, room.share(TAIL), max(least, SMALLEST))
        if cut:
            await _replace_beginning(self._window, self._ids, self._waiting, room, cut, "", reason)
            self._compacted = True
        return bool(cut)

    def _too_large(self, room: Room, tokens: int) -> ContextOverflow:
        info = self._window.requests.info
        tried = "compacting did not help" if self._compacted else "there is nothing to compact"
        return ContextOverflow(
            f"The conversation no longer fits the context window of {info.name}: the next request would take about "
            f"{tokens:,} tokens of {room.most:,} available, and {tried}. "
            f"What takes most is {_largest(self._window)}.",
            provider=info.provider,
            remedy="`/undo` this prompt and ask for less at once, choose a model with a larger context window, "
            "or start afresh with `/clear`.",
        )


async def _prune(window: ContextWindow, room: Room, before: int) -> bool:
    """Old outputs, oldest first, until enough is free; none if that would not be enough, or not worth it."""
    messages = window.requests.history.entries()
    ratio = window.provider_ratio()
    left = tokens_of_text(PRUNED)
    pruned: list[str] = []
    freed = 0.0
    for message in messages[: _rounds(messages)[-ROUNDS_UNPRUNED:][0]]:
        if before - freed <= room.enough:
            break
        if isinstance(message, ToolMessage) and (tokens := tokens_of(message)) > SMALL_OUTPUT:
            pruned.append(message.call_id)
            freed += (tokens - left) * ratio
    if before - freed > room.enough or freed < room.share(WORTHWHILE):
        return False
    await _record_pruned(window, pruned, "older call")
    return True


async def _prune_latest(window: ContextWindow, room: Room) -> None:
    """Outputs of the last rounds, largest first, until the request fits. The model can call for them again: outputs are
    made to fit, unless the window was not known yet. None if not even that would be enough."""
    ratio, left = window.provider_ratio(), tokens_of_text(PRUNED)
    outputs = [message for message in window.requests.history.entries() if isinstance(message, ToolMessage)]
    too_much = window.estimate() - room.enough
    pruned: list[str] = []
    for message in sorted(outputs, key=tokens_of, reverse=True):
        if too_much <= 0 or tokens_of(message) <= SMALL_OUTPUT:
            break
        pruned.append(message.call_id)
        too_much -= int((tokens_of(message) - left) * ratio)
    if pruned and too_much <= room.most - room.enough:
        await _record_pruned(window, pruned, "call")


async def _record_pruned(window: ContextWindow, pruned: Sequence[str], what: str) -> None:
    ratio = window.provider_ratio()
    await window.journal.record(events.OutputsPruned(tuple(pruned)))
    number = f"one {what}" if len(pruned) == 1 else f"{len(pruned)} {what}s"
    title = f"To free up context, the output of {number} is no longer sent to the model."
    window.journal.append(events.Remark("info", title))
    window.tell_usage(ratio)


async def _replace_beginning(
    window: ContextWindow, ids: TurnIds, waiting: Waiting, room: Room, cut: int, focus: str, reason: str
) -> None:
    """A summary takes the place of the first messages. If it is cancelled or fails, the history is as it was."""
    journal = window.journal
    messages = window.requests.history.entries()
    ratio = window.provider_ratio()
    compaction_id = ids.compaction()
    try:
        await journal.record(events.CompactionStarted(compaction_id, reason))
        with waiting("a summary of the conversation"):
            summary = await write_summary(window, messages[:cut], messages[cut:], room, focus)
    except asyncio.CancelledError:
        journal.append(events.CompactionEnded(compaction_id, "cancelled"))
        raise
    except Exception as error:
        journal.append(events.CompactionEnded(compaction_id, "failed", error=str(error)))
        raise
    if summary.complaint:
        title = f"{window.requests.info.name} could not summarise the conversation ({summary.complaint.rstrip('.')})."
        journal.append(
            events.Remark("warning", title, "Crow kept the prompts, the changed files and the model's last message.")
        )
    await journal.record(events.CompactionEnded(compaction_id, "completed", summary.text, cut))
    window.tell_usage(ratio, summary.usage)


def _rounds(messages: Sequence[Message]) -> list[int]:
    """Where the history can be cut: before a message of the person's, or a reply with everything it called for."""
    return [index for index, message in enumerate(messages) if not isinstance(message, ToolMessage)] or [0]


def _beginning(window: ContextWindow, tail: int, least: int) -> int:
    """How many messages make it up: all but the last round, and those before it that fit into the tail.

    0 if they take less than `least`. Both are counted as the provider counts.
    """
    messages = window.requests.history.entries()
    ratio = window.provider_ratio()
    cut = len(messages)
    taken = 0.0
    for start in reversed(_rounds(messages)):
        taken += sum(tokens_of(message) for message in messages[start:cut]) * ratio
        if taken > tail and cut < len(messages):
            break
        cut = start
    return cut if sum(tokens_of(message) for message in messages[:cut]) * ratio >= least else 0


def _left(window: ContextWindow, cut: int) -> float:
    """What a request would still take without the first messages, a summary of them aside."""
    messages = window.requests.history.entries()[cut:]
    return window.overhead() + sum(tokens_of(message) for message in messages) * window.provider_ratio()


def _everything(window: ContextWindow) -> int:
    """All messages, the last round among them: it is what does not fit. 0 if they take next to nothing."""
    messages = window.requests.history.entries()
    return len(messages) if sum(tokens_of(message) for message in messages) >= SMALLEST else 0


def _largest(window: ContextWindow) -> str:
    messages = window.requests.history.entries()
    largest = max(messages, key=tokens_of, default=None)
    fixed = window.overhead()
    if largest is None or fixed > tokens_of(largest):
        return f"the system prompt with the tools (about {fixed:,} tokens)"
    size = f"(about {tokens_of(largest):,} tokens)"
    match largest:
        case ToolMessage():
            calls = [call for message in messages if isinstance(message, AssistantMessage) for call in message.calls]
            names = {call.id: call.name for call in calls}
            return f"the output of `{names[largest.call_id]}` {size}"
        case UserMessage():
            return f"a message of yours {size}"
        case AssistantMessage():
            return f"a reply of the model {size}"
