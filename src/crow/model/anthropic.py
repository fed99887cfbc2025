"""The messages API, as Anthropic defined it."""

from collections.abc import AsyncGenerator, Mapping

from crow.config.settings import Limits, ProviderSettings
from crow.model import endpoint
from crow.model.anthropic_reply import ReplyReader
from crow.model.anthropic_request import encode
from crow.model.base import ModelEvent, ModelInfo, ModelRequest
from crow.model.http import Http

VERSION = "2023-06-01"


def create(info: ModelInfo, settings: ProviderSettings, limits: Limits, environ: Mapping[str, str]) -> "AnthropicModel":
    place = endpoint.find(info.provider, settings, environ)
    return AnthropicModel(info, Http(place, headers=headers(place), idle=limits.stream_idle, environ=environ))


def headers(place: endpoint.Endpoint) -> dict[str, str]:
    key = {"x-api-key": place.key} if place.key else {}
    return {"anthropic-version": VERSION, **key}


class AnthropicModel:
    def __init__(self, info: ModelInfo, connection: Http) -> None:
        self.info = info
        self._http = connection

    async def close(self) -> None:
        await self._http.close()

    async def reply(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        reader = ReplyReader(self._http)
        async with self._http.post("/messages", encode(self.info, request)) as batches:
            async for batch in batches:
                for arrived in batch:
                    for event in reader.read(arrived):
                        yield event
                if reader.done:
                    break
        for event in reader.finish():
            yield event
