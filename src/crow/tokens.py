"""How long a text is: its tokens, estimated rather too high than too low from its bytes; and cutting a long one."""

from typing import assert_never

import msgspec

from crow.messages import (
    AssistantMessage,
    Audio,
    Image,
    Message,
    Text,
    Thought,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)

BYTES_A_TOKEN = 3
"""Prose and code have about four; tables of numbers, and writing beyond ASCII, fewer."""
PER_TOOL = 8
"""Tokens that a tool takes beside its text."""
MESSAGE = 8
"""The same of a message or a call."""
IMAGE = 1_600
AUDIO_BYTES_A_TOKEN = 500


def tokens_of_text(text: str) -> int:
    return _tokens_of_bytes(_bytes_of(text))


def tokens_of_tool(spec: ToolSpec) -> int:
    """What it takes in every request."""
    size = _bytes_of(spec.name) + _bytes_of(spec.description) + len(msgspec.json.encode(spec.schema))
    return _tokens_of_bytes(size) + PER_TOOL


def tokens_of(message: Message) -> int:
    """From its length: cheap enough to be asked of every message before each request."""
    match message:
        case UserMessage() | AssistantMessage():
            return MESSAGE + sum(tokens_of_part(part) for part in message.parts)
        case ToolMessage():
            return MESSAGE + tokens_of_text(message.text) + IMAGE * len(message.images)


def tokens_of_part(part: Text | Image | Audio | Thought | ToolCall) -> int:
    match part:
        case Text():
            return tokens_of_text(part.text)
        case Image():
            return IMAGE
        case Audio():
            return len(part.data) // AUDIO_BYTES_A_TOKEN
        case Thought():
            return tokens_of_text(part.signature if part.redacted else part.text)
        case ToolCall():
            return MESSAGE + tokens_of_text(part.name) + tokens_of_text(part.arguments)
        case _:
            assert_never(part)


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _tokens_of_bytes(size: int) -> int:
    return -(-size // BYTES_A_TOKEN)


def without_middle(text: str, longest: int) -> str:
    """The beginning and the end of a text that is too long, with the number of characters between them."""
    if len(text) <= longest:
        return text
    head = longest * 2 // 3
    tail = longest - head
    return f"{text[:head]}\n[… {len(text) - longest:,} characters left out …]\n{text[len(text) - tail :]}"
