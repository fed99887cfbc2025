"""Writes a history as the body of a chat completions request: messages, call ids, pictures, thoughts, cache markers."""

import hashlib
import itertools
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, assert_never

import msgspec

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
from crow.model.wires.dialects import GEMINI, Dialect
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
from crow.model.wires.stream_parsing import THOUGHT_TAGS

TOOL_IMAGES = "What the tool calls above returned as images:"

AUDIO_FORMATS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


def encode(info: ModelInfo, request: ModelRequest, dialect: Dialect, learned: Container[str] = ()) -> bytes:
    """`learned` has the names of what the model's server was found to refuse; see `openai.REFUSALS`."""
    if "images" in learned:
        info = msgspec.structs.replace(info, images=False)
    writer = MessageWriter(info, dialect, learned)
    body: Json = {"model": info.model, "messages": list(writer.write(request)), "stream": True}
    if "stream_options" not in learned:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    if limit := request.max_output or info.max_output:
        body[_limit_field(dialect, learned)] = limit
    if request.cache_key and dialect.cache_key and "prompt_cache_key" not in learned:
        body["prompt_cache_key"] = request.cache_key
    if "effort with tools" in learned and request.tools:
        body["reasoning_effort"] = "none"
    elif f"level {request.thought_level}" not in learned:
        body |= dialect.level(info.model, request.thought_level)
    if info.model.startswith(dialect.marked_models) and "cache_control" not in learned:
        _mark(body)
    return to_json(body)


def _limit_field(dialect: Dialect, learned: Container[str]) -> str:
    learned_names = (name for name in ("max_tokens", "max_completion_tokens") if name in learned)
    return next(learned_names, dialect.limit_field)


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

    def of(self, call_id: str, wanted: str = "") -> str:
        """`wanted` is the vendor's own id of the call, where it has to be that one; some vendors repeat theirs."""
        if call_id not in self._ids:
            own = (sent_id(call_id, attempt) for attempt in itertools.count())
            candidates = itertools.chain([wanted] if wanted else [], own)
            free = next(candidate for candidate in candidates if candidate not in self._taken)
            self._ids[call_id] = free
            self._taken.add(free)
        return self._ids[call_id]


class VendorFields(msgspec.Struct):
    """What this wire keeps of a reply in `ProviderData`: what a vendor attached and wants back, byte for byte."""

    extra_content: msgspec.Raw = msgspec.Raw()
    """Of a call or of a text: Gemini's signature."""
    reasoning_details: msgspec.Raw = msgspec.Raw()
    """Of a thought: a gateway's list, with the seals of the model behind it."""
    id: str = ""
    """The vendor's id of a call that its reasoning details name."""


_vendor_fields_decoder = msgspec.json.Decoder(VendorFields)


class MessageWriter:
    """Writes the messages of one request."""

    def __init__(self, info: ModelInfo, dialect: Dialect, learned: Container[str]) -> None:
        self._info = info
        self._dialect = dialect
        self._ids = CallIds()
        self._thinks_back = "thoughts" not in learned
        self._fills = self._thinks_back and (dialect.fills_thoughts or "missing thoughts" in learned)
        self._signature = dialect.signature if GEMINI.search(info.model) else ""
        if "signatures" in learned:
            self._signature = dialect.signature or "call"
        self._null_content = dialect.content_beside_calls and "null content" not in learned
        self._bridges = dialect.reply_after_results or "reply after results" in learned

    def write(self, request: ModelRequest) -> Iterator[Json]:
        if request.system:
            yield {"role": "system", "content": request.system}
        spoken = [message for message in request.messages if _speaks(message)]
        current = _current_turn(spoken)
        before: Message | None = None
        for message in merge_users(_with_images_from_users(spoken)):
            if self._bridges and isinstance(before, ToolMessage) and isinstance(message, UserMessage):
                yield {"role": "assistant", "content": NO_REPLY}
            before = message
            match message:
                case UserMessage():
                    yield {"role": "user", "content": _user_content(self._info, message.parts)}
                case AssistantMessage():
                    yield self._assistant(message, is_current=id(message) in current)
                case ToolMessage():
                    text = message.text if has_words(message.text) else NO_OUTPUT
                    yield {"role": "tool", "tool_call_id": self._ids.of(message.call_id), "content": text}

    def _assistant(self, message: AssistantMessage, *, is_current: bool) -> Json:
        thoughts = [part for part in message.parts if isinstance(part, Thought) and self._is_own(part)]
        encoded: Json = {"role": "assistant"}
        content = self._content(message, thoughts, is_current=is_current)
        if content or self._null_content or not message.calls:
            encoded["content"] = content or None
        if message.calls:
            encoded["tool_calls"] = self._calls(message.calls)
        for part in message.parts:
            if isinstance(part, Text) and (extra := self._vendor_fields(part).extra_content):
                encoded["extra_content"] = extra
        if self._thinks_back:
            encoded |= self._thought_fields(message, thoughts)
        return encoded

    # --- thoughts

    def _is_own(self, thought: Thought) -> bool:
        """Only the model that had a thought may get it back. Which one it was, older histories do not say."""
        own = self._info.has_said(thought.origin, thought.model, thought.host)
        return own and not (thought.redacted or thought.signature)

    def _field_of(self, thought: Thought) -> str:
        return thought.field or self._dialect.thought_field

    def _thought_fields(self, message: AssistantMessage, thoughts: Sequence[Thought]) -> Json:
        fields: Json = {}
        details: list[msgspec.Raw] = []
        for thought in thoughts:
            if kept := self._vendor_fields(thought).reasoning_details:
                details.append(kept)
            elif (field := self._field_of(thought)) in TEXT_FIELDS:
                fields[field] = fields.get(field, "") + thought.text
        if details:
            fields["reasoning_details"] = details[0] if len(details) == 1 else _joined(details)
        elif self._signature == "details" and message.calls:
            fields["reasoning_details"] = [self._sentinel(message.calls[0])]
        if self._fills and message.calls and "reasoning_content" not in fields:
            fields["reasoning_content"] = fields.pop("reasoning", BLANK_THOUGHT)
        return fields

    def _content(self, message: AssistantMessage, thoughts: Sequence[Thought], *, is_current: bool) -> str | list[Json]:
        texts = [part.text for part in message.parts if isinstance(part, Text) and has_words(part.text)]
        if self._thinks_back and any(self._field_of(thought) == "content" for thought in thoughts):
            parts = [
                {"type": "text", "text": part.text}
                if isinstance(part, Text)
                else {"type": "thinking", "thinking": [{"type": "text", "text": part.text}]}
                for part in message.parts
                if (isinstance(part, Text) and has_words(part.text)) or (isinstance(part, Thought) and part in thoughts)
            ]
            while parts and parts[-1]["type"] == "thinking" and not message.calls:  # as after a cancel in mid-thought
                parts.pop()
            return parts
        # Thoughts that the model wrote into its text belong there, and its template looks for those of this turn only.
        tagged = [thought for thought in thoughts if is_current and thought.field in THOUGHT_TAGS]
        return "\n\n".join([_tagged(thought) for thought in tagged] + texts)

    # --- calls

    def _calls(self, calls: Sequence[ToolCall]) -> list[Json]:
        encoded = [self._call(call) for call in calls]
        if self._signature == "call" and not any("extra_content" in call for call in encoded):
            # Of calls that were made together only the first has one.
            encoded[0]["extra_content"] = {"google": {"thought_signature": NO_SIGNATURE}}
        return encoded

    def _call(self, call: ToolCall) -> Json:
        kept = self._vendor_fields(call)
        encoded: Json = {
            "id": self._ids.of(call.id, kept.id),
            "type": "function",
            "function": {"name": tool_name(call.name), "arguments": call.arguments_text()},
        }
        if kept.extra_content:
            encoded["extra_content"] = kept.extra_content
        return encoded

    def _sentinel(self, call: ToolCall) -> Json:
        return {
            "type": "reasoning.encrypted",
            "data": NO_SIGNATURE,
            "id": self._ids.of(call.id),
            "format": "google-gemini-v1",
        }

    def _vendor_fields(self, part: AssistantPart) -> VendorFields:
        kept = part.kept
        if kept is None or not self._info.has_said(kept.provider, kept.model, kept.host):
            return VendorFields()
        try:
            return _vendor_fields_decoder.decode(kept.data)
        except (msgspec.DecodeError, UnicodeError):  # another wire's
            return VendorFields()


TEXT_FIELDS = ("reasoning_content", "reasoning")
NO_REPLY = "(no reply)"
"""Between results and a prompt, where a server insists that the model has answered the first."""
BLANK_THOUGHT = " "
"""The least that is taken for a thought."""
NO_SIGNATURE = "skip_thought_signature_validator"
"""Google's documented word for a call that was not made by the model that is asked."""


def _current_turn(messages: Sequence[Message]) -> set[int]:
    """Identities of the messages after the last prompt."""
    current: set[int] = set()
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            break
        current.add(id(message))
    return current


def _joined(lists: Sequence[msgspec.Raw]) -> list[Any]:
    return [entry for entries in lists for entry in msgspec.json.decode(entries)]


def _tagged(thought: Thought) -> str:
    return f"{thought.field}\n{thought.text}\n{THOUGHT_TAGS[thought.field]}"


# --- what is cached only up to marks

MARK = {"type": "ephemeral"}


def _mark(body: Json) -> None:
    """Marks what the next request will begin with: the instructions, the tools, and the end of this request and of the
    one before. Four marks are as many as there may be."""
    messages: list[Json] = body["messages"]
    if tools := body.get("tools"):
        tools[-1]["cache_control"] = MARK
    ends = [place for place, message in enumerate(messages) if message["role"] in ("user", "tool")]
    replies = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    before = [place for place in ends if replies and place < replies[-1]]
    systems = [place for place, message in enumerate(messages) if message["role"] == "system"]
    for place in {*systems[:1], *before[-1:], *ends[-1:]}:
        _mark_message(messages[place])


def _mark_message(message: Json) -> None:
    content = message["content"]
    if isinstance(content, str):
        message["content"] = [{"type": "text", "text": content, "cache_control": MARK}]
    elif content:
        content[-1]["cache_control"] = MARK


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
        case [*parts] if texts := _all_texts(parts):
            return "\n\n".join(texts)  # the simplest servers understand nothing else
        case several:
            return [_user_part(part) for part in several]


def _all_texts(parts: Sequence[UserPart]) -> list[str]:
    texts = [part.text for part in parts if isinstance(part, Text)]
    return texts if len(texts) == len(parts) else []


def _acceptable(info: ModelInfo, part: UserPart) -> UserPart:
    match part:
        case Image() if not info.images:
            return placeholder_for(part)
        case Audio() if not info.audio or part.mime_type not in AUDIO_FORMATS:
            return placeholder_for(part)
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


def _speaks(message: Message) -> bool:
    """False for a reply of which nothing is left to send, as after a turn that only thought."""
    if not isinstance(message, AssistantMessage):
        return True
    return bool(message.calls) or any(isinstance(part, Text) and has_words(part.text) for part in message.parts)
