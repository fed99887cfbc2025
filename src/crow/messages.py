"""The messages that a model is sent, in nobody's wire format; how many tokens each takes, estimated; and the types of
pictures and sounds.

Each adapter in `crow.model` turns these into its provider's JSON and nothing else does. How many tokens they take is
estimated here, rather too high than too low, from their bytes; so is what a picture or a sound really is.
"""

import base64
import binascii
import enum
import re
from typing import Any, assert_never, cast

import msgspec

LARGEST_IMAGE = 5 * 1024 * 1024
"""Bytes of the largest picture that models take."""
SERVER_TOOL = "mcp__"
"""The beginning of the name of every tool of an MCP server: `mcp__server__tool`."""


class _Message(msgspec.Struct, frozen=True, tag_field="role"):
    """Base of all messages."""


class Part(msgspec.Struct, frozen=True, tag_field="part", omit_defaults=True):
    """A piece of a message."""


class ProviderData(msgspec.Struct, frozen=True):
    """What a provider attached to a part of its reply and wants back with it, unchanged. Nobody else reads it."""

    provider: str
    """Its name in the configuration."""
    model: str
    data: str
    """JSON, as the adapter that kept it will understand it."""
    host: str = ""
    """See `Thought.host`."""


class Text(Part, frozen=True, tag="text"):
    text: str
    kept: ProviderData | None = None


class Image(Part, frozen=True, tag="image"):
    data: str
    """Base64."""
    mime_type: str


class Audio(Part, frozen=True, tag="audio"):
    data: str
    mime_type: str


class Thought(Part, frozen=True, tag="thought"):
    """Reasoning that the model showed. Only the provider it came from may get it back."""

    text: str
    origin: str
    """The provider (its name in the configuration) that said it."""
    signature: str = ""
    """The provider's seal over the text; without it the provider does not take the thought back."""
    redacted: bool = False
    """The text was withheld; `signature` then holds the provider's opaque data."""
    model: str = ""
    """The model that had it; empty in histories from before this was recorded."""
    field: str = ""
    """How it came, where a wire has several ways, such as `reasoning_content`: it goes back the same way."""
    host: str = ""
    """Where the provider was, as its name may be given to another address; empty in histories from before this was
    recorded."""
    kept: ProviderData | None = None


UNREADABLE = "unreadable_arguments"
"""The only argument of a call, as it is sent back to its model, whose arguments were no JSON object."""
LONGEST_UNREADABLE = 2000


class ToolCall(Part, frozen=True, tag="call"):
    id: str
    """Ours, unique in the session, whatever the provider called it."""
    name: str
    arguments: str
    """The JSON text as the model wrote it; it may be no JSON at all."""
    kept: ProviderData | None = None

    def arguments_object(self) -> dict[str, Any]:
        """The arguments for providers that insist on an object: what the model wrote, or marked as no such thing."""
        given = json_object(self.arguments)
        return {UNREADABLE: _bounded(self.arguments)} if given is None else given

    def arguments_text(self) -> str:
        """The same as text: the model's own wherever it can be sent back, since another would spoil caches."""
        if self.arguments and json_object(self.arguments) is not None:
            return self.arguments
        return msgspec.json.encode(self.arguments_object()).decode()


def json_object(text: str) -> dict[str, Any] | None:
    """Arguments as they stand; None if they are no JSON object, or one with too many values. No text at all stands for
    no arguments."""
    if has_too_many_values(text):
        return None
    try:
        value = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


MOST_VALUES = 20_000
"""Members in the arguments of a call, the nested ones too: no tool has a use for so many, and each is an object that
takes longer to make than its characters take to arrive."""
_VALUE = r'[^"\[{,]*+(?:[\[{,]|"[^"\\]*+(?:\\.[^"\\]*+)*+"?)'
"""A string, or one of the marks after which another value begins: a member has two of these."""
_TOO_MANY_VALUES = re.compile(f"(?:{_VALUE}){{{2 * MOST_VALUES}}}+", re.DOTALL)


def has_too_many_values(text: str) -> bool:
    """Whether arguments have more values than anybody reads, found without making one of them."""
    return len(text) >= 2 * MOST_VALUES and _TOO_MANY_VALUES.match(text) is not None


def _bounded(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()
    left_out = len(text) - LONGEST_UNREADABLE
    return text if left_out <= 0 else f"{text[:LONGEST_UNREADABLE]}… ({left_out} more characters)"


UserPart = Text | Image | Audio
AssistantPart = Text | Thought | ToolCall


class UserMessage(_Message, frozen=True, tag="user"):
    parts: tuple[UserPart, ...]


class AssistantMessage(_Message, frozen=True, tag="assistant"):
    parts: tuple[AssistantPart, ...]

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


class ToolMessage(_Message, frozen=True, tag="tool"):
    """The answer to one call. Every call of an AssistantMessage has exactly one, directly after it."""

    call_id: str
    text: str
    ok: bool = True
    images: tuple[Image, ...] = ()


Message = UserMessage | AssistantMessage | ToolMessage
"""One entry of the history."""


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool as the model is told of it."""

    name: str
    description: str
    schema: dict[str, Any]


class StopReason(enum.StrEnum):
    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    MAX_TURN_REQUESTS = "max_turn_requests"
    REFUSAL = "refusal"
    CANCELLED = "cancelled"

    @property
    def why(self) -> str:
        """Why a turn stopped before the model had said what it had to say, in a few words; else empty."""
        return _WHY_STOPPED.get(self, "")

    @property
    def sentence(self) -> str:
        """How a turn ended that did not end by itself; else empty."""
        if self is StopReason.CANCELLED:
            return "Cancelled."
        return f"Stopped: {self.why}." if self.why else ""


_WHY_STOPPED = {
    StopReason.MAX_TOKENS: "the length limit was reached",
    StopReason.MAX_TURN_REQUESTS: "too many requests to the model in one turn",
    StopReason.REFUSAL: "the model refused to answer",
}


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


SAMPLES = 1000
LONGEST_SAMPLE = 1000


def _bytes_of(text: str) -> int:
    """Of a long text estimated from samples: it is asked for before each request."""
    if text.isascii():
        return len(text)
    whole = len(text)
    if whole > 2 * SAMPLES * LONGEST_SAMPLE:
        text = "".join(text[start : start + LONGEST_SAMPLE] for start in range(0, whole, whole // SAMPLES))
    return len(text.encode("utf-8", "surrogatepass")) * whole // len(text)


def _tokens_of_bytes(size: int) -> int:
    return -(-size // BYTES_A_TOKEN)


def without_middle(text: str, longest: int) -> str:
    """The beginning and the end of a text that is too long, with the number of characters between them."""
    if len(text) <= longest:
        return text
    head = longest * 2 // 3
    tail = longest - head
    return f"{text[:head]}\n[… {len(text) - longest:,} characters left out …]\n{text[len(text) - tail :]}"


_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
)
_IN_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}


def media_type(head: bytes) -> str | None:
    """The type of a picture or sound that models take, from its first dozen bytes; None for anything else."""
    if head[:4] == b"RIFF":
        return _IN_RIFF.get(head[8:12])
    return next((kind for beginning, kind in _BEGINNINGS if head.startswith(beginning)), None)


def encoded_media_type(data: str) -> str | None:
    """The same for base64; None also if it is none."""
    try:
        return media_type(base64.b64decode(data, validate=True)[:16])
    except (binascii.Error, ValueError):
        return None
