"""A reply of the model while it grows: its parts in order, what its calls gave, and the messages that makes."""

from msgspec.structs import replace

from crow import events
from crow.messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    ProviderData,
    Text,
    Thought,
    ToolCall,
    ToolMessage,
)
from crow.results import ToolResult

UNFINISHED = "No result: the call was interrupted before it ended."


class GrowingReply:
    """Valid messages at every moment: a call whose arguments are not complete is left out, one without a result gets
    one. Deltas are joined only when the messages are asked for."""

    def __init__(self) -> None:
        self._parts: dict[str, list[str] | ToolCall | None] = {}
        """By message or call id; None holds the place of a call whose arguments are not complete."""
        self._seals: dict[str, events.ThoughtSealed] = {}
        self._thoughts: dict[str, Thought] = {}
        """What is known of each thought but its text."""
        self._kept: dict[str, ProviderData] = {}
        self._results: dict[str, ToolMessage] = {}

    def say(self, message_id: str, text: str) -> None:
        part = self._parts.setdefault(message_id, [])
        if isinstance(part, list):
            part.append(text)

    def think(self, event: events.ThoughtDelta) -> None:
        if event.message_id not in self._thoughts:
            self._thoughts[event.message_id] = Thought(
                "", event.origin, model=event.model, field=event.field, host=event.host
            )
        self.say(event.message_id, event.text)

    def seal(self, event: events.ThoughtSealed) -> None:
        self._thoughts.setdefault(event.message_id, Thought("", event.origin, model=event.model, host=event.host))
        self._seals[event.message_id] = event
        self.say(event.message_id, "")

    def keep(self, event: events.ProviderDataKept) -> None:
        self._kept[event.part_id] = event.kept
        if event.thought:
            kept = event.kept
            self._thoughts.setdefault(event.part_id, Thought("", kept.provider, model=kept.model, host=kept.host))
            self.say(event.part_id, "")

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
        kept = self._kept.get(key)
        if value is None or isinstance(value, ToolCall):
            return replace(value, kept=kept) if value and kept else value
        text = "".join(value)
        if (thought := self._thoughts.get(key)) is None:
            return Text(text, kept) if text else None
        seal = self._seals.get(key)
        if seal is not None:
            thought = replace(thought, origin=seal.origin, signature=seal.signature, redacted=seal.redacted)
        return replace(thought, text=text, kept=kept) if text or seal or kept else None
