"""The messages API, as Anthropic defined it."""

from collections.abc import Mapping

from crow.config.settings import Limits, ProviderSettings
from crow.errors import ModelRejected
from crow.model import endpoint
from crow.model.anthropic_reply import ReplyReader
from crow.model.anthropic_request import encode
from crow.model.base import ModelInfo, ModelRequest
from crow.model.exchange import HttpModel, Lesson
from crow.model.http import Http


def create(info: ModelInfo, settings: ProviderSettings, limits: Limits, environ: Mapping[str, str]) -> HttpModel:
    place = endpoint.find(info.provider, settings, environ)
    connection = Http(place, idle=limits.stream_idle, environ=environ)
    return HttpModel(info, connection, MessagesWire(info), settings.extra_body)


class MessagesWire:
    path = "/messages"

    def __init__(self, info: ModelInfo) -> None:
        self._info = info

    def encode(self, request: ModelRequest) -> bytes:
        return encode(self._info, request)

    def reader(self, connection: Http) -> ReplyReader:
        return ReplyReader(connection)

    def learn(self, error: ModelRejected, request: ModelRequest) -> Lesson | None:
        return None
