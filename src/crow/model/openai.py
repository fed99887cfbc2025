"""Chat completions, as OpenAI defined them and many servers speak them, each with its own accent."""

from crow.errors import ModelRejected
from crow.model.base import ModelInfo, ModelRequest
from crow.model.endpoint import Endpoint
from crow.model.exchange import Lesson
from crow.model.http import Http
from crow.model.learning import Learned, RefusalPattern
from crow.model.openai_reply import ReplyReader
from crow.model.openai_request import encode

REFUSALS = (
    RefusalPattern("stream_options", r"stream_options"),  # an older server: better no token counts than no answer
)


class ChatWire:
    path = "/chat/completions"

    def __init__(self, info: ModelInfo, place: Endpoint) -> None:
        self._info = info
        self._learned = Learned(place, info.model)
        self._thought_field = "reasoning_content"
        self._reader: ReplyReader | None = None
        # OpenAI's own newer models refuse `max_tokens`; other servers know no other name.
        self._limit_field = "max_completion_tokens" if place.is_openai or place.is_azure else "max_tokens"

    def encode(self, request: ModelRequest) -> bytes:
        return encode(
            self._info,
            request,
            thought_field=self._thought_field,
            usage="stream_options" not in self._learned,
            limit_field=self._limit_field,
        )

    def reader(self, connection: Http) -> ReplyReader:
        if self._reader is not None:
            self._thought_field = self._reader.thought_field or self._thought_field
        self._reader = ReplyReader(connection)
        return self._reader

    def learn(self, error: ModelRejected, request: ModelRequest) -> Lesson | None:
        notice = self._learned.learn(error, REFUSALS, request.thought_level)
        return None if notice is None else Lesson(self, notice)
