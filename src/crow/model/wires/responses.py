"""The wire of OpenAI's Responses API: writes the request, and decides which details are left out after a refusal. It is
the only way to OpenAI's newest models with both tools and reasoning.

Nothing is stored there: the whole conversation is sent each time, items have no ids, and the model's reasoning goes
back sealed, as it came.
"""

import re
from collections.abc import Container, Iterator, Sequence
from typing import Any, assert_never

import msgspec

from crow.messages import (
    AssistantMessage,
    Audio,
    Image,
    Message,
    ProviderData,
    Text,
    Thought,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
    UserPart,
)
from crow.model.base import ModelInfo, ModelRequest
from crow.model.provider_errors import ReplyErrors
from crow.model.wires.encoding import (
    EMPTY_MESSAGE,
    NO_OUTPUT,
    Json,
    has_words,
    merge_users,
    placeholder_for,
    to_json,
    tool_name,
    usable,
)
from crow.model.wires.http_model import RefusalPattern, Wire, without_projector
from crow.model.wires.responses_reply import ResponsesReader

LEAST_OUTPUT = 16
"""The API refuses a smaller limit."""

LONGEST_CACHE_KEY = 64

WITHOUT_REASONING = re.compile(r"(?:^|[/.:_-])(gpt-[34]|gpt-35|chatgpt-4o)", re.IGNORECASE)
"""Models that refuse every word about reasoning. Of others, such as the deployments of a company, it is asked for."""


def encode(info: ModelInfo, request: ModelRequest, refused: Container[str]) -> bytes:
    """`refused` names what the model has been found not to take, as `REFUSALS` does."""
    reasons = WITHOUT_REASONING.search(info.model) is None and "responses.reasoning" not in refused
    sealed = reasons and "responses.sealed" not in refused
    if "responses.images" in refused:
        info = msgspec.structs.replace(info, images=False)
    body: Json = {
        "model": info.model,
        "input": list(_items(info, request.messages, sealed=sealed and "responses.thoughts" not in refused)),
        "stream": "responses.stream" not in refused,
        "store": False,
    }
    if request.system:
        body["instructions"] = request.system
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if sealed:
        body["include"] = ["reasoning.encrypted_content"]
    if reasons and (reasoning := _reasoning(request.thought_level, refused)):
        body["reasoning"] = reasoning
    if info.max_output:
        body["max_output_tokens"] = max(info.max_output, LEAST_OUTPUT)
    if request.cache_key and "responses.cache_key" not in refused:
        body["prompt_cache_key"] = request.cache_key[:LONGEST_CACHE_KEY]
    return to_json(body)


def _tool(tool: ToolSpec) -> Json:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.schema,
        # Strict is the default here, and makes the model fill in every argument that it may leave out.
        "strict": False,
    }


def _reasoning(level: str, refused: Container[str]) -> Json:
    reasoning: Json = {}
    if level and f"responses.effort {level}" not in refused:
        reasoning["effort"] = "none" if level == "off" else level
    if "responses.summary" not in refused:
        reasoning["summary"] = "auto"  # without it no thought is ever shown
    return reasoning


def _items(info: ModelInfo, messages: Sequence[Message], *, sealed: bool) -> Iterator[Json]:
    for message in merge_users(messages):
        match message:
            case UserMessage():
                yield {"role": "user", "content": _user_content(info, message.parts)}
            case AssistantMessage():
                yield from _assistant_items(info, message, sealed=sealed)
            case ToolMessage():
                yield {"type": "function_call_output", "call_id": message.call_id, "output": _output(info, message)}


def _user_content(info: ModelInfo, parts: Sequence[UserPart]) -> list[Json]:
    return [_user_part(info, part) for part in usable(parts)] or [_text(EMPTY_MESSAGE)]


def _user_part(info: ModelInfo, part: UserPart) -> Json:
    match part:
        case Text():
            return _text(part.text)
        case Image() if info.images:
            return {"type": "input_image", "image_url": f"data:{part.mime_type};base64,{part.data}"}
        case Image() | Audio():  # the API takes no audio at all
            return _text(placeholder_for(part).text)
        case _:
            assert_never(part)


def _text(text: str) -> Json:
    return {"type": "input_text", "text": text}


def _assistant_items(info: ModelInfo, message: AssistantMessage, *, sealed: bool) -> Iterator[Json]:
    """Reasoning waits for what followed it: alone, as after a turn that only thought, it would be refused. Calls come
    last, as nothing may stand between them and their results."""
    said: list[Json] = []
    called: list[Json] = []
    reasoning: list[Json] = []
    for part in message.parts:
        match part:
            case Thought():
                item = _vendor_fields(info, part.kept)
                if sealed and item.get("encrypted_content"):
                    reasoning.append(item)
            case Text():
                if has_words(part.text):
                    said += [*reasoning, _spoken(info, part)]
                    reasoning.clear()
            case ToolCall():
                called += [*reasoning, _call(part)]
                reasoning.clear()
            case _:
                assert_never(part)
    yield from (*said, *called)


def _spoken(info: ModelInfo, part: Text) -> Json:
    item: Json = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": part.text}]}
    if phase := _vendor_fields(info, part.kept).get("phase"):
        item["phase"] = phase
    return item


def _call(call: ToolCall) -> Json:
    return {
        "type": "function_call",
        "call_id": call.id,
        "name": tool_name(call.name),
        "arguments": call.arguments_text(),
    }


def _output(info: ModelInfo, message: ToolMessage) -> str | list[Json]:
    text = message.text if has_words(message.text) else NO_OUTPUT
    if not message.images:
        return text
    said = [Text(message.text)] if has_words(message.text) else []
    return [_user_part(info, part) for part in (*said, *message.images)]


def _vendor_fields(info: ModelInfo, kept: ProviderData | None) -> Json:
    """What this very model attached; nothing if it was another one's, or came over another wire."""
    if kept is None or not info.has_said(kept.provider, kept.model, kept.host):
        return {}
    try:
        return msgspec.json.decode(kept.data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}


REFUSALS = (
    RefusalPattern(
        "responses.summary",
        r"verified to generate reasoning summaries",
        "{provider} hides the thoughts of {model} until your OpenAI organization is verified.",
    ),
    RefusalPattern("responses.summary", r"reasoning\.summary"),
    RefusalPattern(
        "responses.stream",
        r"verified to stream",
        "{provider} does not stream replies from {model} until your OpenAI organization is verified.",
    ),
    RefusalPattern(
        "responses.effort",
        r"reasoning[._]effort|effort level|'(none|minimal|low|medium|high|xhigh|max)' is not supported",
        "{provider} does not support the thought level {level} for {model}: it is left out.",
        of_level=True,
    ),
    # What was sealed for another account or model, or lost what followed it: better without than no answer.
    RefusalPattern(
        "responses.thoughts",
        r"required following item|of type '?reasoning|could not be (verified|decrypted)",
        "{provider} rejected the earlier thoughts of {model}: they are left out from now on.",
    ),
    RefusalPattern("responses.sealed", r"encrypted[ _]content"),
    RefusalPattern("responses.reasoning", r"(unsupported|unknown|unrecognized|extra)[^.]*\breasoning\b"),
    RefusalPattern("responses.cache_key", r"prompt_cache_key"),
    without_projector("responses.images"),
    RefusalPattern(
        "responses.images",
        r"image[^.]*not supported|not support[^.]*image|input_image",
        "{model} does not accept images: they are left out.",
    ),
)


class ResponsesWire(Wire):
    path = "/responses"
    refusals = REFUSALS

    def encode(self, request: ModelRequest) -> bytes:
        return encode(self._info, request, self._learned)

    def reader(self, errors: ReplyErrors) -> ResponsesReader:
        return ResponsesReader(errors)
