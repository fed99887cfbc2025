"""Chat completions, as OpenAI defined them and many servers speak them, each with its own accent."""

from collections.abc import AsyncGenerator, Mapping
from urllib.parse import urlsplit

from crow.config.settings import Limits, ProviderSettings
from crow.errors import ModelRejected
from crow.model import endpoint
from crow.model.base import ModelEvent, ModelInfo, ModelRequest
from crow.model.http import Http
from crow.model.openai_reply import ReplyReader
from crow.model.openai_request import encode


def create(info: ModelInfo, settings: ProviderSettings, limits: Limits, environ: Mapping[str, str]) -> "OpenAIModel":
    place = endpoint.find(info.provider, settings, environ)
    return OpenAIModel(info, Http(place, headers=headers(place), idle=limits.stream_idle, environ=environ))


def headers(place: endpoint.Endpoint) -> dict[str, str]:
    return {"authorization": f"Bearer {place.key}"} if place.key else {}


class OpenAIModel:
    def __init__(self, info: ModelInfo, connection: Http) -> None:
        self.info = info
        self._http = connection
        self._asks_usage = True
        self._thought_field = "reasoning_content"
        # OpenAI's own newer models refuse `max_tokens`; other servers know no other name.
        official = urlsplit(connection.endpoint.url).hostname == "api.openai.com"
        self._limit_field = "max_completion_tokens" if official else "max_tokens"

    async def close(self) -> None:
        await self._http.close()

    async def reply(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        reader = ReplyReader(self._http)
        while True:
            try:
                async with self._http.post("/chat/completions", self._body(request)) as batches:
                    async for batch in batches:
                        for arrived in batch:
                            for event in reader.read(arrived):
                                yield event
                        if reader.done:
                            break
            except ModelRejected as error:
                if not (self._asks_usage and "stream_options" in error.said):
                    raise
                self._asks_usage = False  # an older server: better no token counts than no answer
            else:
                break
        self._thought_field = reader.thought_field or self._thought_field
        for event in reader.finish():
            yield event

    def _body(self, request: ModelRequest) -> bytes:
        return encode(
            self.info,
            request,
            thought_field=self._thought_field,
            usage=self._asks_usage,
            limit_field=self._limit_field,
        )
