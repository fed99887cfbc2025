"""Chat completions, as OpenAI defined them and many servers speak them, each with its own accent."""

from crow.errors import ModelRejected
from crow.model.base import ModelInfo, ModelRequest
from crow.model.dialects import dialect_of
from crow.model.endpoint import Endpoint
from crow.model.exchange import Lesson
from crow.model.http import Http
from crow.model.learning import Learned, RefusalPattern
from crow.model.openai_reply import ReplyReader
from crow.model.openai_request import encode

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
    RefusalPattern(
        "images",
        r"image.{0,80}not support|not support.{0,80}image|support image input|unknown variant .?image_url"
        r"|content blocks are expected to be either text",
        "{provider} takes no images for {model}: they are left out.",
        statuses=(400, 404, 422),
    ),
    RefusalPattern("null content", r"content.{0,80}(must|can|should) ?not be (empty|null|none)|content is empty"),
)


class ChatWire:
    path = "/chat/completions"

    def __init__(self, info: ModelInfo, place: Endpoint) -> None:
        self._info = info
        self._dialect = dialect_of(place.url)
        self._learned = Learned(place, info.model)

    def encode(self, request: ModelRequest) -> bytes:
        return encode(self._info, request, self._dialect, self._learned)

    def reader(self, connection: Http) -> ReplyReader:
        return ReplyReader(connection)

    def learn(self, error: ModelRejected, request: ModelRequest) -> Lesson | None:
        notice = self._learned.learn(error, REFUSALS, request.thought_level)
        return None if notice is None else Lesson(self, notice)
