"""How much of the window the output of a call may take: a quarter at most, and less as it fills up.

Calls that run at once share what is left: each has its part before it begins.
"""

import msgspec

from crow.cutting import without_middle
from crow.results import CommandEnd, ToolKind, ToolResult
from crow.tokens import BYTES_A_TOKEN, tokens_of_text
from crow.turn.budget import estimate, room_in
from crow.turn.conversation import Conversation

SHARE = 0.25
"""Of the room that the system prompt and the tools leave; of what is left of it, half at most."""
LEAST = 250
"""Tokens that an output may take in any case: less would tell the model nothing."""

HOW = {
    ToolKind.EXECUTE: "Let it print less, such as with `head`, `tail` or `grep`.",
    ToolKind.SEARCH: "Narrow the search.",
}


class OutputRoom:
    """What the outputs of one reply's calls may take."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._claimed: dict[str, int] = {}

    def claim(self, call_id: str) -> int | None:
        """The bytes of the call's output that there is room for; None if the window is not known."""
        room = room_in(self._conversation)
        if room is None:
            return None
        left = room.most - estimate(self._conversation) - sum(self._claimed.values())
        self._claimed[call_id] = max(LEAST, min(left // 2, room.share(SHARE)))
        return self._claimed[call_id] * BYTES_A_TOKEN

    def release(self, call_id: str) -> None:
        """The call is settled: the history knows what its output takes."""
        self._claimed.pop(call_id, None)


def fitted(result: ToolResult, kind: ToolKind, most: int | None) -> ToolResult:
    """The same result, with a text for the model that takes so many bytes at most. The person still sees all of it."""
    size = tokens_of_text(result.text) * BYTES_A_TOKEN
    # A tool that cuts its output by itself says how to go on: a few words more do not matter.
    if most is None or size <= most + LEAST * BYTES_A_TOKEN // 2:
        return result
    printed = result.command.printed if result.command else len(result.text)
    output, rest = result.text[:printed], result.text[printed:]
    output = without_middle(output, max(0, len(output) * most // size - len(rest)))
    note = f"\n(Cut to what the model's window has room for. {HOW.get(kind, 'Ask for less at once.')})"
    command = result.command and CommandEnd(len(output), result.command.code, result.command.signal)
    return msgspec.structs.replace(result, text=f"{output}{rest}{note}", command=command)
