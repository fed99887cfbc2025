"""A reply of the model while it grows: its parts in order, what its calls gave, and the messages that makes."""

from crow import events
from crow.messages import AssistantMessage, AssistantPart, Message, Text, Thought, ToolCall, ToolMessage
from crow.results import ToolResult

UNFINISHED = "No result: the call was interrupted before it ended."


class GrowingReply:
    """Valid messages at every moment: a call whose arguments are not complete is left out, one without a result gets
    one. Deltas are joined only when the messages are asked for."""

    def __init__(self) -> None:
        self._parts: dict[str, list[str] | ToolCall | None] = {}
        """By message or call id; None holds the place of a call whose arguments are not complete."""
        self._seals: dict[str, events.ThoughtSealed] = {}
        self._origins: dict[str, str] = {}
        self._results: dict[str, ToolMessage] = {}

    def say(self, message_id: str, text: str) -> None:
        part = self._parts.setdefault(message_id, [])
        if isinstance(part, list):
            part.append(text)

    def think(self, event: events.ThoughtDelta) -> None:
        self._origins[event.message_id] = event.origin
        self.say(event.message_id, event.text)

    def seal(self, event: events.ThoughtSealed) -> None:
        self._origins[event.message_id] = event.origin
        self._seals[event.message_id] = event
        self.say(event.message_id, "")

    def open_call(self, call_id: str) -> None:
        self._parts[call_id] = None

    def request_call(self, call: ToolCall) -> None:
        self._parts[call.id] = call

    def settle(self, call_id: str, result: ToolResult) -> None:
        if call_id in self._parts:
            self._results[call_id] = ToolMessage(call_id, result.text, ok=result.ok, images=result.images)

    def messages(self) -> list[Message]:
        parts = tuple(part for key, value in self._parts.items() if (part := self._part(key, value)) is not None)
        if not parts:
            return []
        reply = AssistantMessage(parts)
        results = [self._results.get(call.id) or ToolMessage(call.id, UNFINISHED, ok=False) for call in reply.calls]
        return [reply, *results]

    def _part(self, key: str, value: list[str] | ToolCall | None) -> AssistantPart | None:
        if value is None or isinstance(value, ToolCall):
            return value
        text = "".join(value)
        if key in self._origins:
            seal = self._seals.get(key)
            if seal is None:
                return Thought(text, self._origins[key]) if text else None
            return Thought(text, seal.origin, seal.signature, redacted=seal.redacted)
        return Text(text) if text else None
