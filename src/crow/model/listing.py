"""Asks a provider's `/models` which models it has and what it says of them, and tries with one tiny request whether a
model answers.
"""

import contextlib
import re
from collections.abc import Mapping
from typing import Any, cast, get_args

import msgspec

from crow.config.settings import Limits, ProviderSettings, ThoughtLevel
from crow.errors import ModelRejected, ModelUnavailable
from crow.messages import Text, UserMessage
from crow.model import catalog
from crow.model.base import ModelInfo, ModelRequest, Price
from crow.model.endpoint import find_endpoint
from crow.model.facts import Facts
from crow.model.http import Http
from crow.timeouts import timeout

LIST_TIMEOUT = 20.0
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

LONGEST_NAME = 300

Entry = dict[str, Any]


class Listing(msgspec.Struct):
    data: list[Any] | None = None
    """Null with a server that has nothing loaded."""
    models: list[Any] | None = None
    """Gemini's and Ollama's own lists."""


async def list_models(provider: str, settings: ProviderSettings, environ: Mapping[str, str]) -> list[ModelInfo]:
    """The provider's models by name, with what it says of them; the same errors as a reply would give."""
    providers = {provider: settings}
    if settings.type == "scripted":
        return [catalog.describe(f"{provider}/{name}", providers) for name in settings.models]
    listed = await list_facts(provider, settings, environ)
    return [catalog.describe(f"{provider}/{name}", providers, facts) for name, facts in listed.items()]


async def list_facts(provider: str, settings: ProviderSettings, environ: Mapping[str, str]) -> dict[str, Facts]:
    """The same, as the provider alone says it."""
    path = "/models?limit=1000" if settings.type == "anthropic" else "/models"
    connection = Http(find_endpoint(provider, settings, environ), idle=LIST_TIMEOUT, environ=environ)
    try:
        body = await connection.get(path)
    finally:
        await connection.close()
    try:
        listing: Listing | list[Any] = msgspec.json.decode(body, type=Listing | list[Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise connection.unreadable("something that is no list of models") from error
    entries = listing if isinstance(listing, list) else listing.data or listing.models or []
    if entries and not any(isinstance(entry, dict) for entry in entries):
        raise connection.unreadable("something that is no list of models")
    return {name: facts_in(entry) for entry in entries if (name := _name(entry))}


def _name(entry: Any) -> str:
    """Empty if it is no entry of a model, or has a name that nobody could type."""
    fields = cast("Entry", entry) if isinstance(entry, dict) else {}
    for field in ("id", "name", "model"):
        if isinstance(name := fields.get(field), str) and name:
            name = name.removeprefix("models/")  # Gemini
            return name if name.isprintable() and len(name) <= LONGEST_NAME else ""
    return ""


def facts_in(entry: Entry) -> Facts:
    levels = _levels(entry)
    return Facts(
        window=_window(entry),
        output=_output(entry),
        images=_sees(entry),
        audio=_hears(entry),
        thinks=True if levels else _thinks(entry),
        levels=levels,
        price=_price(entry),
        source="list",
    )


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


def _output(entry: Entry) -> int | None:
    match entry:
        case {"top_provider": {"max_completion_tokens": int(tokens)}}:  # OpenRouter
            return tokens
        case {"max_completion_tokens": int(tokens)}:  # Groq
            return tokens
        case {"max_input_tokens": int(), "max_tokens": int(tokens)}:  # Anthropic
            return tokens
        case _:
            return None


def _sees(entry: Entry) -> bool | None:
    match entry:
        case {"architecture": {"input_modalities": [*kinds]}}:  # OpenRouter
            return "image" in kinds
        case {"capabilities": {"vision": bool(sees)}}:  # Mistral
            return sees
        case {"capabilities": {"image_input": {"supported": bool(sees)}}}:  # Anthropic
            return sees
        case _:
            return None


def _hears(entry: Entry) -> bool | None:
    match entry:
        case {"architecture": {"input_modalities": [*kinds]}}:
            return "audio" in kinds
        case _:
            return None


def _thinks(entry: Entry) -> bool | None:
    match entry:
        case {"supported_parameters": [*parameters]}:  # OpenRouter
            return "reasoning" in parameters
        case {"capabilities": {"thinking": {"supported": bool(thinks)}}}:  # Anthropic
            return thinks
        case _:
            return None


def _levels(entry: Entry) -> tuple[str, ...] | None:
    match entry:
        case {"capabilities": {"effort": {"supported": True, **efforts}}}:  # Anthropic
            return tuple(level for level in get_args(ThoughtLevel) if _is_supported(efforts.get(level)))
        case _:
            return None


def _is_supported(ability: Any) -> bool:
    match ability:
        case {"supported": True}:
            return True
        case _:
            return False


def _price(entry: Entry) -> Price | None:
    """OpenRouter's, in dollars for a token, as text; less than nothing where it depends."""
    match entry:
        case {"pricing": {"prompt": str(into), "completion": str(out), **more}}:
            try:
                costs = [float(cost) * 1_000_000 for cost in (into, out)]
                read = float(more.get("input_cache_read") or into) * 1_000_000
                written = float(more.get("input_cache_write") or into) * 1_000_000
            except (TypeError, ValueError):
                return None
            prices = [round(price, 6) for price in (*costs, read, written)]
            readable = all(0 <= price < 1e12 for price in prices)
            return Price(prices[0], prices[1], prices[2], prices[3], "USD") if readable else None
        case _:
            return None


# --- one tiny request to a model: the only way to know that it answers

# A list of models proves little. Some are public, so that any key gets one, and not every model on it is for everybody.

TRIAL_TIMEOUT = 60.0
"""Seconds; a server on this machine may have to load the model first."""
LONGEST_ANSWER = 16
"""Tokens. Some servers refuse a limit of one."""

CUT_OFF = r"max_tokens or model output limit was reached"
"""How OpenAI words it that a model was still thinking when its tokens were used up: it did answer."""

QUESTION = ModelRequest("", (UserMessage((Text("Say hi."),)),))


async def try_model(name: str, providers: Mapping[str, ProviderSettings], environ: Mapping[str, str]) -> None:
    """Returns if the model answered, raises what a reply would raise. Nothing is tried twice."""
    info = msgspec.structs.replace(catalog.describe(name, providers), max_output=LONGEST_ANSWER)
    settings = providers.get(info.provider)
    if settings is None or settings.type == "scripted":
        return
    model = catalog.create_adapter(name, providers, Limits(stream_idle=TRIAL_TIMEOUT), environ, info)
    try:
        async with timeout(TRIAL_TIMEOUT), contextlib.aclosing(model.reply(QUESTION)) as events:
            async for _ in events:
                pass
    except ModelRejected as error:
        if not re.search(CUT_OFF, error.said, re.IGNORECASE):
            raise
    except TimeoutError:
        raise ModelUnavailable(
            f"{info.provider} did not finish a short answer within {TRIAL_TIMEOUT:g} s.", provider=info.provider
        ) from None
    finally:
        await model.close()
