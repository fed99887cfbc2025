"""A conversation as one text, for whoever sums it up: outputs capped, and all of it as short as it has to be."""

from collections.abc import Sequence
from typing import NamedTuple

from crow.cutting import without_middle
from crow.messages import AssistantMessage, Message, Text, Thought, ToolCall, ToolMessage, UserMessage
from crow.tokens import BYTES_A_TOKEN, tokens_of_text


class _Caps(NamedTuple):
    """Characters that are shown of a text, of a call's arguments, and of what it printed."""

    text: int
    arguments: int
    output: int


CAPS = (_Caps(20_000, 2_000, 4_000), _Caps(6_000, 600, 1_000), _Caps(2_000, 200, 200))
"""From generous to stingy: the first that fits is taken."""


def transcript(messages: Sequence[Message], most_tokens: int) -> str:
    text = ""
    for caps in CAPS:
        text = "\n\n".join(_rendered(message, caps) for message in messages)
        if tokens_of_text(text) <= most_tokens:
            return text
    # Its beginning has the task (or the summary before this one), its end where the work stands.
    return fitted(text, most_tokens)


def fitted(text: str, most_tokens: int) -> str:
    """The text, or its beginning and end, in so many tokens."""
    tokens = tokens_of_text(text)
    if tokens <= most_tokens:
        return text
    bytes_a_character = tokens * BYTES_A_TOKEN / len(text)
    return without_middle(text, int(most_tokens * BYTES_A_TOKEN / bytes_a_character))


def _rendered(message: Message, caps: _Caps) -> str:
    match message:
        case UserMessage():
            said = [part.text if isinstance(part, Text) else "[an attachment]" for part in message.parts]
            return f"USER: {without_middle(chr(10).join(said), caps.text)}"
        case AssistantMessage():
            return f"ASSISTANT: {chr(10).join(filter(None, (_spoken(part, caps) for part in message.parts)))}"
        case ToolMessage():
            return f"RESULT{'' if message.ok else ' (failed)'}: {without_middle(message.text, caps.output)}"
        case _:
            raise TypeError(f"no kind of message: {type(message).__name__}")


def _spoken(part: Text | Thought | ToolCall, caps: _Caps) -> str:
    match part:
        case Text():
            return without_middle(part.text, caps.text)
        case ToolCall():
            return f"[calls {part.name} {without_middle(part.arguments, caps.arguments)}]"
        case Thought():
            return ""
