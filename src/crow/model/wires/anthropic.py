"""The wire of Anthropic's messages API: writes requests, and decides which details are left out after a refusal.

The API insists on alternating roles, no empty text, no thought at a message's end, every result in the message after
its call, and at most four cache markers; what our history has more freedom in is brought into that form here.
"""

import dataclasses
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import assert_never

from crow.config.settings import Limits, ProviderSettings
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
from crow.model.base import ModelInfo, ModelRequest
from crow.model.endpoint import Endpoint, find_endpoint
from crow.model.http import Http
from crow.model.provider_errors import ReplyErrors
from crow.model.wires.anthropic_reply import MessagesReader
from crow.model.wires.encoding import (
    EMPTY_MESSAGE,
    NO_OUTPUT,
    Json,
    has_words,
    placeholder_for,
    to_json,
    tool_name,
    usable,
)
from crow.model.wires.http_model import HttpModel, RefusalPattern, Wire, without_projector

DEFAULT_MAX_TOKENS = 8_192
"""For a model that neither the configuration nor the table of families knows."""

IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})

CACHED = {"cache_control": {"type": "ephemeral"}}
LOOK_BACK = 18
"""Blocks before the last marker that the earlier one stands: the API looks 20 blocks back from each for what it has
cached."""

NO_THOUGHT: Json = {"type": "thinking", "thinking": " ", "signature": ""}
"""For servers that want a thought in every message with calls, also where there was none."""


def encode(info: ModelInfo, request: ModelRequest, *, refused: Container[str] = ()) -> bytes:
    """`refused` names what this provider is known not to take, see `anthropic.REFUSALS`."""
    messages = _alternating(info, request.messages, refused)
    if request.thought_level == "off" and binds_thoughts(info.model, refused):
        messages = _without_thoughts(messages)  # a request that asks for none cannot say that they may be dropped
    body: Json = {
        "model": info.model,
        "max_tokens": request.max_output or info.max_output or DEFAULT_MAX_TOKENS,
        "messages": messages,
        "stream": True,
    }
    if request.system:
        body["system"] = [{"type": "text", "text": request.system}]
    if request.tools:
        # Arguments are streamed as they are written; without this they come in large pieces.
        eager = claude_version(info.model) is not None and "eager_input_streaming" not in refused
        body["tools"] = [_tool(tool, {"eager_input_streaming": True} if eager else {}) for tool in request.tools]
    if "cache_control" not in refused:
        _mark_prefixes(body)
    body |= thinking_fields(info, request.thought_level, body["max_tokens"], messages, refused)
    return to_json(body)


def _tool(tool: ToolSpec, more: Json) -> Json:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.schema, **more}


def _mark_prefixes(body: Json) -> None:
    """Markers where a prefix ends that will be sent again: the system prompt, the tools, and all of the conversation so
    far; with an earlier one, where the request before this one ended if the API would not look back that far."""
    for prefix in (body.get("system"), body.get("tools")):
        if prefix:
            prefix[-1] |= CACHED
    blocks = [block for message in body["messages"] for block in message["content"]]
    ends: list[int] = []
    end = -1
    for message in body["messages"]:
        end += len(message["content"])
        if message["role"] == "user":
            ends.append(end)
    if not ends:
        return
    blocks[ends[-1]] |= CACHED
    earlier = ends[-1] - LOOK_BACK
    if earlier >= 0:
        earlier = min(earlier, ends[-2]) if len(ends) > 1 else earlier
        while earlier and blocks[earlier]["type"] in THOUGHTS:  # which take no marker
            earlier -= 1
        blocks[earlier] |= CACHED


def _alternating(info: ModelInfo, messages: Sequence[Message], refused: Container[str]) -> list[Json]:
    """Messages of one role that follow each other become one; results come first, as they directly follow calls."""
    merged: list[Json] = []
    for message in messages:
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        blocks = list(_blocks(info, message, refused))
        if not blocks:
            continue
        if merged and merged[-1]["role"] == role:
            merged[-1]["content"].extend(blocks)
        else:
            merged.append({"role": role, "content": blocks})
    if merged and merged[0]["role"] == "assistant":
        merged.insert(0, {"role": "user", "content": [{"type": "text", "text": EMPTY_MESSAGE}]})
    return merged


def _without_thoughts(messages: Sequence[Json]) -> list[Json]:
    return [
        message | {"content": [block for block in message["content"] if block["type"] not in THOUGHTS]}
        for message in messages
    ]


def _blocks(info: ModelInfo, message: Message, refused: Container[str]) -> Iterator[Json]:
    match message:
        case UserMessage():
            parts = list(usable(message.parts)) or [Text(EMPTY_MESSAGE)]
            yield from (_user_block(info, part, refused) for part in parts)
        case AssistantMessage():
            yield from _spoken(info, message, refused)
        case ToolMessage():
            yield _result(info, message, refused)


def _spoken(info: ModelInfo, message: AssistantMessage, refused: Container[str]) -> list[Json]:
    blocks = [block for part in message.parts for block in _assistant_blocks(info, part)]
    while blocks and blocks[-1]["type"] in THOUGHTS:  # as after a cancel in mid-thought
        blocks.pop()
    if message.calls and blocks[-1]["type"] == "text":  # what follows a call is taken for the beginning of a reply
        blocks.sort(key=lambda block: block["type"] == "tool_use")
    if "missing thoughts" in refused and message.calls and not any(block["type"] in THOUGHTS for block in blocks):
        blocks.insert(0, dict(NO_THOUGHT))
    return blocks


def _user_block(info: ModelInfo, part: UserPart, refused: Container[str]) -> Json:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Image() if info.images and part.mime_type in IMAGE_TYPES and "images" not in refused:
            return {"type": "image", "source": {"type": "base64", "media_type": part.mime_type, "data": part.data}}
        case Image() | Audio():  # the API takes no audio at all
            return {"type": "text", "text": placeholder_for(part).text}
        case _:
            assert_never(part)


def _assistant_blocks(info: ModelInfo, part: AssistantPart) -> Iterator[Json]:
    match part:
        case Text():
            if has_words(part.text):
                yield {"type": "text", "text": part.text}
        case Thought():
            if not _goes_back(info, part):
                return
            if part.redacted:
                yield {"type": "redacted_thinking", "data": part.signature}
            else:
                yield {"type": "thinking", "thinking": part.text, "signature": part.signature}
        case ToolCall():
            arguments = part.arguments_object()
            yield {"type": "tool_use", "id": part.id, "name": tool_name(part.name), "input": arguments}
        case _:
            assert_never(part)


def _goes_back(info: ModelInfo, thought: Thought) -> bool:
    """Whether the model had this thought and takes it back.

    Without its own seal Claude refuses a thought, and with it the whole request. Others that speak this wire may seal
    nothing, and want their thoughts all the same.
    """
    if not info.has_said(thought.origin, thought.model, thought.host):
        return False
    if thought.signature:
        return True
    return bool(thought.model) and not thought.field and claude_version(info.model) is None


def _result(info: ModelInfo, message: ToolMessage, refused: Container[str]) -> Json:
    text = [Text(message.text)] if has_words(message.text) or message.images else [Text(NO_OUTPUT)]
    content = [_user_block(info, part, refused) for part in usable([*text, *message.images])]
    block: Json = {"type": "tool_result", "tool_use_id": message.call_id, "content": content}
    if not message.ok and not message.images:  # an error may hold nothing but text
        block["is_error"] = True
    return block


# --- how long a model may think: older ones want a budget of tokens, newer ones a word

THOUGHTS = frozenset({"thinking", "redacted_thinking"})
"""The kinds of blocks that thoughts are."""

BUDGETS = {"minimal": 1_024, "low": 4_096, "medium": 12_000, "high": 24_000, "xhigh": 32_000, "max": 48_000}
SMALLEST_BUDGET = 1_024
"""The API refuses a smaller one."""

INTERLEAVED = {"anthropic-beta": "interleaved-thinking-2025-05-14"}
"""Lets the models that take budgets think between their tool rounds too; newer ones do so anyway."""

BINDING = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
DROPPED: Json = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
"""A thought is tied to all that was sent before it. One that has lost that, as after outputs were removed to save room,
is left out by the API instead of refused with the whole request."""

NEWEST = (99, 0)
VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?", re.IGNORECASE)


def claude_version(model: str) -> tuple[int, int] | None:
    """`(4, 5)` for claude-haiku-4-5-20251001; the newest there may be for a Claude without a number; None if the name
    is none of Claude's."""
    if (found := VERSION.search(model)) is not None:
        return int(found[1]), int(found[2] or 0)
    return NEWEST if "claude" in model.lower() else None


def thinking_headers(model: str) -> dict[str, str]:
    version = claude_version(model)
    if version is not None and version >= (5, 0):
        return BINDING
    return INTERLEAVED if version is not None and (4, 0) <= version < (4, 6) else {}


def binds_thoughts(model: str, refused: Container[str]) -> bool:
    """Whether the model's thoughts are good only behind exactly what they were thought behind."""
    version = claude_version(model)
    return version is not None and (version >= (5, 1) or "changed prefix" in refused)


def thinking_fields(
    info: ModelInfo, level: str, max_tokens: int, messages: Sequence[Json], refused: Container[str] = ()
) -> Json:
    """What a request says about it; nothing if it is left to the provider, switched off or not possible now.

    `refused` names what the provider does not take: `thinking` of any kind, `display`, `block_binding`, or `effort`
    with a level.
    """
    if "thinking" in refused:
        return {}
    version = claude_version(info.model)
    if version is not None and version >= (4, 6):
        fields = _adaptive(version, "" if f"effort {level}" in refused else level, shows="display" not in refused)
        if binds_thoughts(info.model, refused) and level != "off" and "block_binding" not in refused:
            fields["thinking"] |= DROPPED
        return fields
    if level in ("", "off"):
        return {}
    # The budget counts towards the reply's limit: a quarter of that is kept for the answer.
    budget = min(BUDGETS[level], max_tokens * 3 // 4)
    if budget < SMALLEST_BUDGET or not _may_begin(messages):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _adaptive(version: tuple[int, int], level: str, *, shows: bool) -> Json:
    """From 4.7 on a model thinks unasked, and keeps its thoughts to itself unless it is told to show them."""
    unasked = version >= (4, 7)
    if level == "off":
        return {"thinking": {"type": "disabled"}} if unasked else {}
    if not level and not unasked:
        return {}
    thinking = {"type": "adaptive"} | ({"display": "summarized"} if unasked and shows else {})
    effort = {"output_config": {"effort": "low" if level == "minimal" else level}} if level else {}
    return {"thinking": thinking, **effort}


def _may_begin(messages: Sequence[Json]) -> bool:
    """In the middle of its tool rounds a model may think only if it began to with the first of them.

    A level that was chosen meanwhile therefore counts from the next prompt on: the API would refuse the request.
    """
    first: Json | None = None
    for message in reversed(messages):
        if message["role"] == "assistant":
            first = message
        elif not any(block["type"] == "tool_result" for block in message["content"]):
            break
    return first is None or first["content"][0]["type"] in THOUGHTS


# --- the wire itself

NOT_TAKEN = r".{0,80}(not support|unsupported|not permitted|not allowed|extra|unknown|unexpected|unrecognized|invalid)"
REFUSALS = (
    RefusalPattern("eager_input_streaming", "eager_input_streaming"),  # not everyone who speaks this wire knows it
    RefusalPattern("cache_control", "cache_control" + NOT_TAKEN),
    RefusalPattern("display", "display" + NOT_TAKEN),
    RefusalPattern("changed prefix", "bound to a different conversation"),
    RefusalPattern("block_binding", "block_binding" + NOT_TAKEN),
    RefusalPattern(
        "effort",
        "effort",
        "{provider} does not support the thought level {level} for {model}: it was left out.",
        of_level=True,
    ),
    RefusalPattern("missing thoughts", "thinking.{0,80}must be passed back|missing.{0,40}thinking block"),
    RefusalPattern(
        "thinking",
        "(adaptive|enabled|extended) thinking" + NOT_TAKEN + "|thinking: Extra inputs|thinking.type" + NOT_TAKEN,
        "{provider} does not accept a thought level for {model}: the model decides by itself.",
    ),
    without_projector("images"),
    RefusalPattern(
        "images",
        "image.{0,80}(not support|unsupported|unknown variant)|(not support|unsupported|unknown variant).{0,80}image",
        "{provider} does not accept images for {model}: they were left out.",
    ),
)


def create(info: ModelInfo, settings: ProviderSettings, limits: Limits, environ: Mapping[str, str]) -> HttpModel:
    endpoint = _with_headers(find_endpoint(info.provider, settings, environ), thinking_headers(info.model))
    connection = Http(endpoint, idle=limits.stream_idle, first=limits.first_token_at(endpoint.url), environ=environ)
    return HttpModel(info, connection, MessagesWire(info, endpoint), settings.extra_body)


def _with_headers(endpoint: Endpoint, more: Mapping[str, str]) -> Endpoint:
    """A header that the person has set as well has both values."""
    joined = {name: ",".join(filter(None, (endpoint.headers.get(name), value))) for name, value in more.items()}
    return dataclasses.replace(endpoint, headers={**endpoint.headers, **joined}) if joined else endpoint


class MessagesWire(Wire):
    path = "/messages"
    refusals = REFUSALS

    def encode(self, request: ModelRequest) -> bytes:
        return encode(self._info, request, refused=self._learned)

    def reader(self, errors: ReplyErrors) -> MessagesReader:
        return MessagesReader(errors)
