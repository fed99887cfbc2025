"""A history as the body of a chat completions request."""

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, assert_never

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
    UserPart,
)
from crow.model.base import ModelInfo, ModelRequest
from crow.model.encoding import (
    EMPTY_MESSAGE,
    NO_OUTPUT,
    has_words,
    left_out,
    merge_users,
    to_json,
    tool_name,
    usable,
)

Json = dict[str, Any]

TOOL_IMAGES = "What the tool calls above returned as images:"

AUDIO_FORMATS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


def encode(info: ModelInfo, request: ModelRequest, *, thought_field: str, usage: bool, limit_field: str) -> bytes:
    body: Json = {
        "model": info.model,
        "messages": list(_messages(info, request, thought_field)),
        "stream": True,
    }
    if usage:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if info.max_output:
        body[limit_field] = info.max_output
    if request.thought_level:
        body["reasoning_effort"] = "none" if request.thought_level == "off" else request.thought_level
    return to_json(body)


def _tool(tool: ToolSpec) -> Json:
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
    }


DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ID_LENGTH = 9


def sent_id(call_id: str, attempt: int = 0) -> str:
    """An id that every server takes: Mistral's insists on nine letters and digits.

    The same for the same call in every request, as providers cache what they have read before.
    """
    digest = hashlib.blake2b(f"{attempt}:{call_id}".encode("utf-8", "replace"), digest_size=8).digest()
    number = int.from_bytes(digest)
    digits: list[str] = []
    for _ in range(ID_LENGTH):
        number, digit = divmod(number, len(DIGITS))
        digits.append(DIGITS[digit])
    return "".join(digits)


class CallIds:
    """The ids of one request's calls, which are told apart even if two of them should fall together."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._taken: set[str] = set()

    def of(self, call_id: str) -> str:
        if call_id not in self._ids:
            candidates = (sent_id(call_id, attempt) for attempt in itertools.count())
            free = next(candidate for candidate in candidates if candidate not in self._taken)
            self._ids[call_id] = free
            self._taken.add(free)
        return self._ids[call_id]


def _messages(info: ModelInfo, request: ModelRequest, thought_field: str) -> Iterator[Json]:
    ids = CallIds()
    if request.system:
        yield {"role": "system", "content": request.system}
    history = _with_current_thoughts(info.provider, request.messages)
    spoken = (message for message in history if not isinstance(message, AssistantMessage) or _speaks(message))
    for message in merge_users(_with_images_from_users(spoken)):
        match message:
            case UserMessage():
                yield {"role": "user", "content": _user_content(info, message.parts)}
            case AssistantMessage():
                yield {"role": "assistant", **_assistant(message, thought_field, ids)}
            case ToolMessage():
                text = message.text if has_words(message.text) else NO_OUTPUT
                yield {"role": "tool", "tool_call_id": ids.of(message.call_id), "content": text}
            case _:
                raise TypeError(message)


def _with_current_thoughts(provider: str, messages: Sequence[Message]) -> Iterator[Message]:
    """Keeps the thoughts that a model in the middle of its tool rounds needs: its own, since the last prompt."""
    prompts = [place for place, message in enumerate(messages) if isinstance(message, UserMessage)]
    last_prompt = prompts[-1] if prompts else -1
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            yield AssistantMessage(
                tuple(
                    part
                    for part in message.parts
                    if not isinstance(part, Thought)
                    or (place > last_prompt and part.origin == provider and not part.redacted)
                )
            )
        else:
            yield message


def _with_images_from_users(messages: Iterable[Message]) -> Iterator[Message]:
    """Most servers take only text from a tool: its images follow the round's results as if a person sent them."""
    images: list[Image] = []
    for message in messages:
        if images and not isinstance(message, ToolMessage):
            yield _shown(images)
            images.clear()
        if isinstance(message, ToolMessage):
            images.extend(message.images)
        yield message
    if images:
        yield _shown(images)


def _shown(images: Sequence[Image]) -> UserMessage:
    return UserMessage((Text(TOOL_IMAGES), *images))


def _user_content(info: ModelInfo, parts: Sequence[UserPart]) -> str | list[Json]:
    match [_acceptable(info, part) for part in usable(parts)]:
        case []:
            return EMPTY_MESSAGE
        case [Text(text)]:
            return text  # the simplest servers understand nothing else
        case several:
            return [_user_part(part) for part in several]


def _acceptable(info: ModelInfo, part: UserPart) -> UserPart:
    match part:
        case Image() if not info.images:
            return left_out(part)
        case Audio() if not info.audio or part.mime_type not in AUDIO_FORMATS:
            return left_out(part)
        case _:
            return part


def _user_part(part: UserPart) -> Json:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Image():
            return {"type": "image_url", "image_url": {"url": f"data:{part.mime_type};base64,{part.data}"}}
        case Audio():
            audio = {"data": part.data, "format": AUDIO_FORMATS[part.mime_type]}
            return {"type": "input_audio", "input_audio": audio}
        case _:
            assert_never(part)


def _speaks(message: AssistantMessage) -> bool:
    """False where nothing is left to send, as after a turn that only thought."""
    return bool(message.calls) or any(isinstance(part, Text) and has_words(part.text) for part in message.parts)


def _assistant(message: AssistantMessage, thought_field: str, ids: CallIds) -> Json:
    text = "\n\n".join(part.text for part in message.parts if isinstance(part, Text) and has_words(part.text))
    thoughts = "".join(part.text for part in message.parts if isinstance(part, Thought))
    encoded: Json = {"content": text or None}
    if message.calls:
        encoded["tool_calls"] = [_call(call, ids.of(call.id)) for call in message.calls]
    if thoughts:
        encoded[thought_field] = thoughts
    return encoded


def _call(call: ToolCall, call_id: str) -> Json:
    # The model's own text if it can be sent back at all: rewriting it would spoil the provider's cache.
    arguments = call.arguments if call.arguments_object() else "{}"
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": tool_name(call.name), "arguments": arguments},
    }
