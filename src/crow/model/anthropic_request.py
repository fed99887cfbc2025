"""A history as the body of a messages request.

The API insists on alternating roles, no empty text, every result in the message after its call, and at most four
cache markers; what our history has more freedom in is brought into that form here.
"""

from collections.abc import Iterator, Sequence
from typing import Any, assert_never

from crow.messages import (
    AssistantMessage,
    AssistantPart,
    Audio,
    Image,
    Message,
    Text,
    Thought,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
    UserPart,
)
from crow.model.anthropic_thinking import thinking_fields
from crow.model.base import ModelInfo, ModelRequest
from crow.model.encoding import EMPTY_MESSAGE, NO_OUTPUT, has_words, left_out, to_json, tool_name, usable

Json = dict[str, Any]

DEFAULT_MAX_TOKENS = 8_192
"""For a model that neither the configuration nor the table of families knows."""

IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})

CACHED = {"cache_control": {"type": "ephemeral"}}


def encode(info: ModelInfo, request: ModelRequest) -> bytes:
    messages = _alternating(info, request.messages)
    body: Json = {
        "model": info.model,
        "max_tokens": info.max_output or DEFAULT_MAX_TOKENS,
        "messages": messages,
        "stream": True,
    }
    # Markers where the stable prefix ends: the system prompt, the tools, and all of the conversation so far.
    if request.system:
        body["system"] = [{"type": "text", "text": request.system, **CACHED}]
    if request.tools:
        tools = [_tool(tool) for tool in request.tools]
        tools[-1] |= CACHED
        body["tools"] = tools
    if messages and messages[-1]["role"] == "user":
        messages[-1]["content"][-1] |= CACHED
    body |= thinking_fields(info, request.thought_level, body["max_tokens"], messages)
    return to_json(body)


def _tool(tool: ToolSpec) -> Json:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.schema}


def _alternating(info: ModelInfo, messages: Sequence[Message]) -> list[Json]:
    """Messages of one role that follow each other become one; results come first, as they directly follow calls."""
    merged: list[Json] = []
    for message in messages:
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        blocks = list(_blocks(info, message))
        if not blocks:
            continue
        if merged and merged[-1]["role"] == role:
            merged[-1]["content"].extend(blocks)
        else:
            merged.append({"role": role, "content": blocks})
    if merged and merged[0]["role"] == "assistant":
        merged.insert(0, {"role": "user", "content": [{"type": "text", "text": EMPTY_MESSAGE}]})
    return merged


def _blocks(info: ModelInfo, message: Message) -> Iterator[Json]:
    match message:
        case UserMessage():
            parts = list(usable(message.parts)) or [Text(EMPTY_MESSAGE)]
            yield from (_user_block(info, part) for part in parts)
        case AssistantMessage():
            for part in message.parts:
                yield from _assistant_blocks(info.provider, part)
        case ToolMessage():
            yield _result(info, message)
        case _:
            raise TypeError(message)


def _user_block(info: ModelInfo, part: UserPart) -> Json:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Image() if info.images and part.mime_type in IMAGE_TYPES:
            return {"type": "image", "source": {"type": "base64", "media_type": part.mime_type, "data": part.data}}
        case Image() | Audio():  # the API takes no audio at all
            return {"type": "text", "text": left_out(part).text}
        case _:
            assert_never(part)


def _assistant_blocks(provider: str, part: AssistantPart) -> Iterator[Json]:
    match part:
        case Text():
            if has_words(part.text):
                yield {"type": "text", "text": part.text}
        case Thought():
            # Without its own seal the API refuses the thought, and with it the whole request.
            if part.origin == provider and part.signature:
                if part.redacted:
                    yield {"type": "redacted_thinking", "data": part.signature}
                else:
                    yield {"type": "thinking", "thinking": part.text, "signature": part.signature}
        case ToolCall():
            arguments = part.arguments_object()
            yield {"type": "tool_use", "id": part.id, "name": tool_name(part.name), "input": arguments}
        case _:
            assert_never(part)


def _result(info: ModelInfo, message: ToolMessage) -> Json:
    text = [Text(message.text)] if has_words(message.text) or message.images else [Text(NO_OUTPUT)]
    content = [_user_block(info, part) for part in usable([*text, *message.images])]
    block: Json = {"type": "tool_result", "tool_use_id": message.call_id, "content": content}
    if not message.ok:
        block["is_error"] = True
    return block
