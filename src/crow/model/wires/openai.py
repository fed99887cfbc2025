"""The wires of OpenAI: chat completions, which everybody offers, or Responses; decides which one is spoken.

Of chat completions, as OpenAI defined them and many servers speak them, it also knows which details are left out after
a refusal, and what becomes of malformed calls.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from crow.config.settings import Limits, ProviderSettings
from crow.errors import CallMalformed, ModelRejected
from crow.messages import AssistantMessage, StopReason, Text, UserMessage
from crow.model.base import CallBegan, CallGrew, Done, ModelInfo, ModelRequest
from crow.model.endpoint import Endpoint, find_endpoint
from crow.model.http import Http
from crow.model.provider_errors import ReplyErrors
from crow.model.wires.chat_reply import ChatReader
from crow.model.wires.chat_request import encode
from crow.model.wires.dialects import dialect_of
from crow.model.wires.http_model import HttpModel, Lesson, RefusalPattern, Wire, without_projector
from crow.model.wires.responses import ResponsesWire
from crow.model.wires.stream_parsing import ReplyReader

_NOT = r"unsupported|not supported|extra_forbidden|not permitted|unknown|unexpected|unrecognized|not allowed|invalid"


def _refused(name: str) -> str:
    """Words that say that the field is not taken, before its name or behind it."""
    return rf"\b{name}\b.{{0,120}}({_NOT})|({_NOT}).{{0,120}}\b{name}\b"


REFUSALS = (
    # An older server: better no token counts than no answer.
    RefusalPattern("stream_options", r"stream_options"),
    RefusalPattern("max_completion_tokens", r"max_tokens.{0,80}not supported.*max_completion_tokens"),
    RefusalPattern("max_tokens", _refused("max_completion_tokens")),
    RefusalPattern("prompt_cache_key", r"prompt_cache_key"),
    RefusalPattern("cache_control", r"cache_control"),
    RefusalPattern("missing thoughts", r"must be passed back|reasoning_content is missing"),
    RefusalPattern("signatures", r"missing a `?thought_?signature"),
    RefusalPattern("reply after results", r"unexpected role .?user.? after role .?tool"),
    RefusalPattern(
        "effort with tools",
        r"Function tools with reasoning_effort|use /v1/responses",
        "At this address of {provider}, {model} can only think without tools: thinking is off.",
    ),
    RefusalPattern(
        "level",
        rf"does not support effort level|{_refused('(reasoning_)?effort')}|{_refused('(enable_)?thinking')}",
        "{provider} does not support the thought level {level} for {model}: it is asked without one.",
        of_level=True,
    ),
    RefusalPattern("thoughts", _refused("reasoning(_content|_details)?")),
    without_projector("images"),
    RefusalPattern(
        "images",
        r"image.{0,80}not support|not support.{0,80}image|support image input|unknown variant .?image_url"
        r"|content blocks are expected to be either text",
        "{provider} does not accept images for {model}: they are left out.",
        statuses=(400, 404, 422),
    ),
    RefusalPattern("null content", r"content.{0,80}(must|can|should) ?not be (empty|null|none)|content is empty"),
)


MALFORMED_IN_A_ROW = 2
LAST = 1_000_000
"""The index of a call behind all others of its reply."""


class ChatWire(Wire):
    path = "/chat/completions"
    refusals = REFUSALS

    def __init__(self, info: ModelInfo, endpoint: Endpoint) -> None:
        super().__init__(info, endpoint)
        self._dialect = dialect_of(endpoint.url)
        self._reader: ChatReader | None = None
        self._malformed = 0
        """Calls in a row that the provider would not pass on."""

    def encode(self, request: ModelRequest) -> bytes:
        return encode(self._info, request, self._dialect, self._learned)

    def reader(self, errors: ReplyErrors) -> ChatReader:
        if self._reader is not None and self._reader.finished:
            self._malformed = 0
        self._reader = ChatReader(errors)
        return self._reader

    def learn(self, error: ModelRejected, request: ModelRequest) -> Lesson | None:
        if isinstance(error, CallMalformed):
            return self._go_on(error, request)
        return super().learn(error, request)

    def _go_on(self, error: CallMalformed, request: ModelRequest) -> Lesson | None:
        """The call that Groq would not pass on is the model's reply all the same: what is wrong with it, the tool will
        say. What is no call at all is shown to the model. Not for ever: some models make the same mistake again."""
        self._malformed += 1
        if self._malformed > MALFORMED_IN_A_ROW:
            return None
        if call := _call_in(error.written):
            name, arguments = call
            return Lesson(reply=[CallBegan(LAST, name), CallGrew(LAST, arguments), Done(StopReason.END_TURN)])
        said = AssistantMessage((Text(error.written),))
        told = UserMessage((Text(f"[That was no tool call that could be made: {error.said}]"),))
        return Lesson(request=replace(request, messages=[*request.messages, said, told]))


def _call_in(written: str) -> tuple[str, str] | None:
    """The name and the arguments of a call that is written as JSON; None if it is not."""
    try:
        value = msgspec.json.decode(written)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    match value:
        case [one]:
            value = one
        case _:
            pass
    match value:
        case {"name": str(name), "arguments": arguments} | {"name": str(name), "parameters": arguments} if name:
            return name, arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
        case _:
            return None


# --- which of the two is spoken

USE_RESPONSES = (
    RefusalPattern(
        "use responses",
        r"v1/responses|responses api|function tools with reasoning_effort|not a chat model",
        statuses=(400, 404, 422),
    ),
)
USE_CHAT = (
    # Nothing is there; a model or a deployment that is not there is another matter.
    RefusalPattern("use chat", r"^(?!.*\b(?:model|deployment)\b)", statuses=(404, 405, 501)),
    RefusalPattern("use chat", r"responses api|operation is unsupported|chat/completions"),
)


def create(info: ModelInfo, settings: ProviderSettings, limits: Limits, environ: Mapping[str, str]) -> HttpModel:
    endpoint = find_endpoint(info.provider, settings, environ)
    connection = Http(endpoint, idle=limits.stream_idle, first=limits.first_token_at(endpoint.url), environ=environ)
    wire: type[Wire] = {"chat": ChatWire, "responses": ResponsesWire}.get(settings.wire, EitherWire)
    return HttpModel(info, connection, wire(info, endpoint), settings.extra_body)


def prefers_responses(endpoint: Endpoint) -> bool:
    """At OpenAI, Azure and xAI, unless the address was written for the other one; elsewhere hardly anybody offers it.

    xAI calls its chat completions deprecated, and has no field in them for what its models have thought."""
    if endpoint.method:
        return endpoint.method == ResponsesWire.path
    # The older addresses of Azure, with a deployment or /models in them, have chat completions only.
    return endpoint.is_openai or endpoint.is_xai or (endpoint.is_azure and endpoint.url.endswith("/v1"))


class EitherWire(Wire):
    """Speaks one of the two until a refusal says that this model wants the other one."""

    def __init__(self, info: ModelInfo, endpoint: Endpoint) -> None:
        super().__init__(info, endpoint)
        self._chat, self._responses = ChatWire(info, endpoint), ResponsesWire(info, endpoint)
        self._prefers_responses = prefers_responses(endpoint)

    @property
    def _wire(self) -> Wire:
        if "use chat" in self._learned:  # also where chat completions say otherwise: the other one is not there
            return self._chat
        return self._responses if self._prefers_responses or "use responses" in self._learned else self._chat

    @property
    def path(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] -- it changes with what is learned
        return self._wire.path

    def encode(self, request: ModelRequest) -> bytes:
        return self._wire.encode(request)

    def reader(self, errors: ReplyErrors) -> ReplyReader[Any]:
        return self._wire.reader(errors)

    def learn(self, error: ModelRejected, request: ModelRequest) -> Lesson | None:
        wire = self._wire
        other = USE_CHAT if wire is self._responses else () if "use chat" in self._learned else USE_RESPONSES
        if self._learned.learn(error, other) is not None:
            return Lesson()
        return wire.learn(error, request)
