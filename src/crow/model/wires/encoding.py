"""What all wires share in writing a request: placeholders for what a model cannot see or hear, tool names, joined
prompts.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from crow.messages import Audio, Image, Message, Text, UserMessage, UserPart

Json = dict[str, Any]

NO_OUTPUT = "(no output)"
EMPTY_MESSAGE = "(empty message)"


def to_json(body: Json) -> bytes:
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:  # half a surrogate pair, as in a file name or a torn emoji: no UTF-8 can carry it
        return json.dumps(body, ensure_ascii=False, default=_plain).encode("utf-8", "replace")


def _plain(kept: msgspec.Raw) -> Any:
    return json.loads(bytes(kept))


def tool_name(name: str) -> str:
    """A model may have called a tool by a name that no tool can have; sent back as it is, it would be refused."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "unnamed"


def placeholder_for(part: Image | Audio) -> Text:
    """Says to the model what it cannot be given: it has to know that there was something."""
    kind = "image" if isinstance(part, Image) else "audio"
    return Text(f"[{kind} left out: this model does not take {part.mime_type}]")


def has_words(text: str) -> bool:
    """Providers refuse empty text, and some of them blank text too."""
    return bool(text) and not text.isspace()


def usable(parts: Iterable[UserPart]) -> Iterator[UserPart]:
    return (part for part in parts if not isinstance(part, Text) or has_words(part.text))


def merge_users(messages: Iterable[Message]) -> Iterator[Message]:
    """Prompts that follow each other, as after a failed turn, become one: many servers insist on alternation."""
    parts: list[UserPart] = []
    for message in messages:
        if isinstance(message, UserMessage):
            parts.extend(message.parts)
            continue
        if parts:
            yield UserMessage(tuple(parts))
            parts.clear()
        yield message
    if parts:
        yield UserMessage(tuple(parts))
