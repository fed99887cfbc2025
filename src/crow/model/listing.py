"""Which models a provider has: asked from its `/models`."""

from collections.abc import Mapping
from typing import Any

import msgspec

from crow.config.settings import ProviderSettings
from crow.model import catalog, endpoint
from crow.model.base import ModelInfo
from crow.model.http import Http

PATIENCE = 20.0
"""Seconds without a byte; a listing is a small thing."""

# Where servers say how much fits: OpenRouter, vLLM, Groq, Together, LM Studio, Mistral, Gemini, …
WINDOW_FIELDS = (
    "context_length",
    "max_model_len",
    "context_window",
    "max_context_length",
    "max_input_tokens",
    "inputTokenLimit",
)


NO_LIST = (404, 405, 501)
"""What a server answers that has models but no list of them."""

Entry = dict[str, Any]


class Listing(msgspec.Struct):
    data: list[Entry] | None = None
    """Null with a server that has nothing loaded."""
    models: list[Entry] | None = None
    """Gemini's and Ollama's own lists."""


async def list_models(provider: str, settings: ProviderSettings, environ: Mapping[str, str]) -> list[ModelInfo]:
    """The provider's models by name, with what it says of them; the same errors as a reply would give."""
    if settings.type == "scripted":
        return [catalog.describe(f"{provider}/{name}", {provider: settings}) for name in settings.models]
    path = "/models?limit=1000" if settings.type == "anthropic" else "/models"
    place = endpoint.find(provider, settings, environ)
    connection = Http(place, idle=PATIENCE, environ=environ)
    try:
        body = await connection.get(path)
    finally:
        await connection.close()
    try:
        listing: Listing | list[Entry] = msgspec.json.decode(body, type=Listing | list[Entry])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise connection.unreadable("something that is no list of models") from error
    entries = listing if isinstance(listing, list) else listing.data or listing.models or []
    return [_info(provider, settings, entry) for entry in entries if _name(entry)]


def _name(entry: Entry) -> str:
    for field in ("id", "name", "model"):
        if isinstance(name := entry.get(field), str) and name:
            return name.removeprefix("models/")  # Gemini
    return ""


def _info(provider: str, settings: ProviderSettings, entry: Entry) -> ModelInfo:
    """What the user configured comes first, then what the server says, then what is generally known."""
    name = _name(entry)
    info = catalog.describe(f"{provider}/{name}", {provider: settings})
    configured = settings.models.get(name)
    window = _window(entry)
    if window and not (configured and configured.context_window):
        info = msgspec.structs.replace(info, context_window=window)
    if _sees(entry) and not (configured and configured.images is not None):
        info = msgspec.structs.replace(info, images=True)
    return info


def _window(entry: Entry) -> int | None:
    places: list[Any] = [entry, entry.get("meta"), entry.get("top_provider")]
    for place in places:
        match place:
            case {**fields}:
                for field in (*WINDOW_FIELDS, "n_ctx", "n_ctx_train"):  # the last two: llama.cpp
                    if isinstance(size := fields.get(field), int) and size > 0:
                        return size
            case _:
                pass
    return None


def _sees(entry: Entry) -> bool:
    match entry:
        case {"architecture": {"input_modalities": [*kinds]}}:  # OpenRouter
            return "image" in kinds
        case {"capabilities": {"vision": bool(sees)}}:  # Mistral
            return sees
        case _:
            return False
