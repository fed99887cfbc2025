"""Decides in which of OpenAI's two APIs a provider is spoken to: chat completions, which everybody offers, or
Responses.
"""

from collections.abc import Mapping
from typing import Any

from crow.config.settings import Limits, ProviderSettings
from crow.errors import ModelRejected
from crow.model.base import ModelInfo, ModelRequest
from crow.model.endpoint import Endpoint, find_endpoint
from crow.model.http import Http
from crow.model.provider_errors import ReplyErrors
from crow.model.wires.chat import ChatWire
from crow.model.wires.http_model import HttpModel, Learned, Lesson, RefusalPattern, Wire
from crow.model.wires.responses import ResponsesWire
from crow.model.wires.stream_parsing import ReplyReader

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
    chat, responses = ChatWire(info, endpoint), ResponsesWire(info, endpoint)
    match settings.wire:
        case "chat":
            wire = chat
        case "responses":
            wire = responses
        case _:
            wire = EitherWire(
                chat, responses, Learned(endpoint, info.model), prefers_responses=prefers_responses(endpoint)
            )
    return HttpModel(info, connection, wire, settings.extra_body)


def prefers_responses(endpoint: Endpoint) -> bool:
    """At OpenAI, Azure and xAI, unless the address was written for the other one; elsewhere hardly anybody offers it.

    xAI calls its chat completions deprecated, and has no field in them for what its models have thought."""
    if endpoint.method:
        return endpoint.method == ResponsesWire.path
    # The older addresses of Azure, with a deployment or /models in them, have chat completions only.
    return endpoint.is_openai or endpoint.is_xai or (endpoint.is_azure and endpoint.url.endswith("/v1"))


class EitherWire:
    """Speaks one of the two until a refusal says that this model wants the other one."""

    def __init__(self, chat: Wire, responses: Wire, learned: Learned, *, prefers_responses: bool) -> None:
        self._chat = chat
        self._responses = responses
        self._learned = learned
        self._prefers_responses = prefers_responses

    @property
    def _wire(self) -> Wire:
        if "use chat" in self._learned:  # also where chat completions say otherwise: the other one is not there
            return self._chat
        return self._responses if self._prefers_responses or "use responses" in self._learned else self._chat

    @property
    def path(self) -> str:
        return self._wire.path

    def encode(self, request: ModelRequest) -> bytes:
        return self._wire.encode(request)

    def reader(self, errors: ReplyErrors) -> ReplyReader[Any]:
        return self._wire.reader(errors)

    def learn(self, error: ModelRejected, request: ModelRequest) -> Lesson | None:
        wire = self._wire
        other = USE_CHAT if wire is self._responses else () if "use chat" in self._learned else USE_RESPONSES
        if self._learned.learn(error, other) is not None:
            return Lesson(self)
        lesson = wire.learn(error, request)
        return lesson._replace(wire=self) if lesson else None
