"""A history without what a provider refused in it: thoughts left out, or a round of calls as plain text.

Each message stays one message, so that positions in a history mean the same before and after.
"""

from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from crow.events import HistorySimplified
from crow.markdown import fence
from crow.messages import AssistantMessage, AssistantPart, Message, Text, Thought, ToolCall, ToolMessage, UserMessage

MEDIA_DROPPED = "[An attachment was here. The request with it was refused, so it is not sent again.]"
CALLED = "[I called tools here. What they gave follows.]"


def simplified(messages: Sequence[Message], how: HistorySimplified) -> list[Message]:
    flattened = frozenset(how.flattened)
    calls = {call.id: call for message in messages if isinstance(message, AssistantMessage) for call in message.calls}
    return [
        _flat(message, calls) if place in flattened else _without_thoughts(message) if how.thoughts else message
        for place, message in enumerate(messages)
    ]


def has_thoughts(message: Message) -> bool:
    """Whether it holds what only its provider understands: thoughts, or data that came with its parts."""
    return isinstance(message, AssistantMessage) and any(_is_thought(part) for part in message.parts)


def can_be_flattened(message: Message) -> bool:
    match message:
        case UserMessage():
            return not all(isinstance(part, Text) for part in message.parts)
        case AssistantMessage():
            return bool(message.calls) or has_thoughts(message)
        case _:
            return True


def whole_rounds(messages: Sequence[Message], places: Sequence[int]) -> tuple[int, ...]:
    """The places, and with each call its results, with each result its call and the results beside it."""
    found: set[int] = set()
    for place in places:
        first = place
        while first and isinstance(messages[first], ToolMessage):
            first -= 1
        last = first + 1
        while last < len(messages) and isinstance(messages[last], ToolMessage):
            last += 1
        found.update(range(first, last))
    return tuple(place for place in sorted(found) if can_be_flattened(messages[place]))


def without_media(message: Message) -> Message:
    if not isinstance(message, UserMessage):
        return message
    return UserMessage(tuple(part if isinstance(part, Text) else Text(MEDIA_DROPPED) for part in message.parts))


def _is_thought(part: AssistantPart) -> bool:
    return isinstance(part, Thought) or part.kept is not None


def _without_thoughts(message: Message) -> Message:
    if not has_thoughts(message):
        return message
    parts = message.parts if isinstance(message, AssistantMessage) else ()
    return AssistantMessage(tuple(replace(part, kept=None) for part in parts if not isinstance(part, Thought)))


def without_thoughts_of(message: Message, models: Collection[str]) -> Message:
    """Without the thoughts that these models had, and what came with their words and calls."""
    if not isinstance(message, AssistantMessage) or not models:
        return message
    parts = (part for part in message.parts if not isinstance(part, Thought) or not _is_of(part, models))
    return AssistantMessage(tuple(_without_kept(part, models) for part in parts))


def _is_of(thought: Thought, models: Collection[str]) -> bool:
    """Of a thought that was withheld, only the provider is known."""
    return any(name.startswith(f"{thought.origin}/{thought.model}") for name in models)


def _without_kept(part: AssistantPart, models: Collection[str]) -> AssistantPart:
    kept = part.kept
    return replace(part, kept=None) if kept and f"{kept.provider}/{kept.model}" in models else part


def _flat(message: Message, calls: Mapping[str, ToolCall]) -> Message:
    match message:
        case AssistantMessage():
            texts = tuple(Text(part.text) for part in message.parts if isinstance(part, Text))
            return AssistantMessage(texts or ((Text(CALLED),) if message.calls else ()))
        case ToolMessage():
            call = calls.get(message.call_id)
            what = f"`{call.name}` with the arguments `{call.arguments}`" if call else "a tool"
            told = f"[Crow called {what}. It {'gave' if message.ok else 'failed with'}:]\n{fence(message.text)}"
            return UserMessage((Text(told), *(Text(MEDIA_DROPPED) for _ in message.images)))
        case _:
            return without_media(message)
