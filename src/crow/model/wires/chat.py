"""The wire of chat completions, as OpenAI defined them and many servers speak them: which details are left out after a
refusal, and malformed calls.
"""

import msgspec
from msgspec.structs import replace

from crow.errors import CallMalformed, ModelRejected
from crow.messages import AssistantMessage, StopReason, Text, UserMessage
from crow.model.base import CallBegan, CallGrew, Done, ModelInfo, ModelRequest
from crow.model.endpoint import Endpoint
from crow.model.provider_errors import ReplyErrors
from crow.model.wires.chat_reply import ChatReader
from crow.model.wires.chat_request import encode
from crow.model.wires.dialects import dialect_of
from crow.model.wires.http_model import Learned, Lesson, RefusalPattern, without_projector

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
        "{provider} lets {model} think only without tools at this address: it is asked not to think.",
    ),
    RefusalPattern(
        "level",
        rf"does not support effort level|{_refused('(reasoning_)?effort')}|{_refused('(enable_)?thinking')}",
        "{provider} does not take the thought level {level} for {model}: it is asked without one.",
        of_level=True,
    ),
    RefusalPattern("thoughts", _refused("reasoning(_content|_details)?")),
    without_projector("images"),
    RefusalPattern(
        "images",
        r"image.{0,80}not support|not support.{0,80}image|support image input|unknown variant .?image_url"
        r"|content blocks are expected to be either text",
        "{provider} takes no images for {model}: they are left out.",
        statuses=(400, 404, 422),
    ),
    RefusalPattern("null content", r"content.{0,80}(must|can|should) ?not be (empty|null|none)|content is empty"),
)


MALFORMED_IN_A_ROW = 2
LAST = 1_000_000
"""The index of a call behind all others of its reply."""


class ChatWire:
    path = "/chat/completions"

    def __init__(self, info: ModelInfo, endpoint: Endpoint) -> None:
        self._info = info
        self._dialect = dialect_of(endpoint.url)
        self._learned = Learned(endpoint, info.model)
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
        notice = self._learned.learn(error, REFUSALS, request.thought_level)
        return None if notice is None else Lesson(self, notice)

    def _go_on(self, error: CallMalformed, request: ModelRequest) -> Lesson | None:
        """The call that Groq would not pass on is the model's reply all the same: what is wrong with it, the tool will
        say. What is no call at all is shown to the model. Not for ever: some models make the same mistake again."""
        self._malformed += 1
        if self._malformed > MALFORMED_IN_A_ROW:
            return None
        if call := _call_in(error.written):
            name, arguments = call
            return Lesson(self, reply=[CallBegan(LAST, name), CallGrew(LAST, arguments), Done(StopReason.END_TURN)])
        said = AssistantMessage((Text(error.written),))
        told = UserMessage((Text(f"[That was no tool call that could be made: {error.said}]"),))
        return Lesson(self, request=replace(request, messages=[*request.messages, said, told]))


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
