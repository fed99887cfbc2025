"""The wire of Anthropic's messages API: its path and headers, and which details are left out after a refusal."""

import dataclasses
from collections.abc import Mapping

from crow.config.settings import Limits, ProviderSettings
from crow.errors import ModelRejected
from crow.model.base import ModelInfo, ModelRequest
from crow.model.endpoint import Endpoint, find_endpoint
from crow.model.error_bodies import ReplyErrors
from crow.model.http import Http
from crow.model.wires.anthropic_reply import MessagesReader
from crow.model.wires.anthropic_request import encode, thinking_headers
from crow.model.wires.http_model import HttpModel, Learned, Lesson, RefusalPattern, without_projector

NOT_TAKEN = r".{0,80}(not support|unsupported|not permitted|not allowed|extra|unknown|unexpected|unrecognized|invalid)"
REFUSALS = (
    RefusalPattern("eager_input_streaming", "eager_input_streaming"),  # not everyone who speaks this wire knows it
    RefusalPattern("cache_control", "cache_control" + NOT_TAKEN),
    RefusalPattern("display", "display" + NOT_TAKEN),
    RefusalPattern("changed prefix", "bound to a different conversation"),
    RefusalPattern("block_binding", "block_binding" + NOT_TAKEN),
    RefusalPattern(
        "effort",
        "effort",
        "{provider} does not take the thought level {level} for {model}: it was left out.",
        of_level=True,
    ),
    RefusalPattern("missing thoughts", "thinking.{0,80}must be passed back|missing.{0,40}thinking block"),
    RefusalPattern(
        "thinking",
        "(adaptive|enabled|extended) thinking" + NOT_TAKEN + "|thinking: Extra inputs|thinking.type" + NOT_TAKEN,
        "{provider} does not let {model} be told how long to think: it decides by itself.",
    ),
    without_projector("images"),
    RefusalPattern(
        "images",
        "image.{0,80}(not support|unsupported|unknown variant)|(not support|unsupported|unknown variant).{0,80}image",
        "{provider} takes no images for {model}: they were left out.",
    ),
)
"""What is left out, or done differently, once a provider has refused it in these words."""


def create(info: ModelInfo, settings: ProviderSettings, limits: Limits, environ: Mapping[str, str]) -> HttpModel:
    endpoint = _with_headers(find_endpoint(info.provider, settings, environ), thinking_headers(info.model))
    connection = Http(endpoint, idle=limits.stream_idle, first=limits.first_token_at(endpoint.url), environ=environ)
    return HttpModel(info, connection, MessagesWire(info, endpoint), settings.extra_body)


def _with_headers(endpoint: Endpoint, more: Mapping[str, str]) -> Endpoint:
    """A header that the person has set as well has both values."""
    joined = {name: ",".join(filter(None, (endpoint.headers.get(name), value))) for name, value in more.items()}
    return dataclasses.replace(endpoint, headers={**endpoint.headers, **joined}) if joined else endpoint


class MessagesWire:
    path = "/messages"

    def __init__(self, info: ModelInfo, endpoint: Endpoint) -> None:
        self._info = info
        self._learned = Learned(endpoint, info.model)

    def encode(self, request: ModelRequest) -> bytes:
        return encode(self._info, request, refused=self._learned)

    def reader(self, errors: ReplyErrors) -> MessagesReader:
        return MessagesReader(errors)

    def learn(self, error: ModelRejected, request: ModelRequest) -> Lesson | None:
        notice = self._learned.learn(error, REFUSALS, request.thought_level)
        return None if notice is None else Lesson(self, notice)
