"""From a name such as `local/qwen3-coder` to a model. Imports an adapter only when one is asked for."""

import asyncio
import importlib
import os.path
from collections.abc import Mapping

from crow.config.settings import Limits, ModelSettings, ProviderSettings
from crow.errors import ConfigError
from crow.model.base import Model, ModelInfo, Price
from crow.model.families import Family, family_of

DEMO = "scripted/demo"

SCRIPTED_WINDOW = 100_000

_DEMO_SETTINGS = ProviderSettings(type="scripted", script=os.path.join(os.path.dirname(__file__), "demo.toml"))


def create(name: str, providers: Mapping[str, ProviderSettings], limits: Limits, environ: Mapping[str, str]) -> Model:
    """The model of that name, with its retries. Nothing is sent yet."""
    from crow.model.retry import RetryingModel

    settings = _settings(name, providers)
    info = describe(name, providers)
    match settings.type:
        case "scripted":
            model = _scripted(info, settings)
        case "openai":
            from crow.model import openai_wires

            model = openai_wires.create(info, settings, limits, environ)
        case "anthropic":
            from crow.model import anthropic

            model = anthropic.create(info, settings, limits, environ)
    return RetryingModel(model, limits)


def describe(name: str, providers: Mapping[str, ProviderSettings]) -> ModelInfo:
    """What the model can take: as configured, else as its family is known to be, else cautiously."""
    settings = _settings(name, providers)
    provider, model = _split(name)
    said = settings.models.get(model, ModelSettings())
    family = family_of(model) if settings.type != "scripted" else None
    window = family.context_window if family else SCRIPTED_WINDOW if settings.type == "scripted" else None
    return ModelInfo(
        provider=provider,
        model=model,
        context_window=said.context_window or window,
        max_output=said.max_output or (family.max_output if family and settings.type == "anthropic" else None),
        images=said.images if said.images is not None else bool(family and family.images),
        audio=said.audio if said.audio is not None else bool(family and family.audio),
        thought_levels=_thought_levels(said, family),
        price=_price(said),
    )


def _thought_levels(said: ModelSettings, family: Family | None) -> tuple[str, ...]:
    if said.thought_levels is not None:
        return tuple(dict.fromkeys(said.thought_levels))
    return family.thought_levels if family else ()


def _price(said: ModelSettings) -> Price | None:
    if said.price_input is None or said.price_output is None:
        return None
    return Price(
        input=said.price_input,
        output=said.price_output,
        cached=said.price_input if said.price_cached is None else said.price_cached,
        cache_write=said.price_input if said.price_cache_write is None else said.price_cache_write,
        currency=said.currency,
    )


def check(name: str, providers: Mapping[str, ProviderSettings], environ: Mapping[str, str]) -> None:
    """Raises what `create` would raise for a missing key, script or address, without importing an adapter."""
    settings = _settings(name, providers)
    if settings.type != "scripted":
        from crow.model import endpoint

        endpoint.find(_split(name)[0], settings, environ)
    elif settings.script and not os.path.isfile(settings.script):
        raise ConfigError(f"There is no script {settings.script}.", remedy="Check `script` in the configuration.")


def warm(name: str, providers: Mapping[str, ProviderSettings]) -> None:
    """Imports what `create` and the first request will need. Takes a moment: call it in a thread."""
    settings = _settings(name, providers)
    importlib.import_module("crow.model.openai_wires" if settings.type == "openai" else f"crow.model.{settings.type}")
    if settings.type != "scripted":
        from crow.model import http

        http.warm(settings.base_url)


async def listed(provider: str, settings: ProviderSettings, environ: Mapping[str, str]) -> list[str]:
    """The names of the models that the provider says it has; the same errors as a reply would give."""
    await asyncio.to_thread(_warm_listing, settings)
    from crow.model.listing import list_models

    return [info.model for info in await list_models(provider, settings, environ)]


def _warm_listing(settings: ProviderSettings) -> None:
    importlib.import_module("crow.model.listing")
    from crow.model import http

    http.warm(settings.base_url)


def _split(name: str) -> tuple[str, str]:
    provider, _, model = name.partition("/")
    if not provider or not model:
        raise ConfigError(f"{name!r} is no model's name.", remedy='Write it as "provider/model".')
    return provider, model


def _settings(name: str, providers: Mapping[str, ProviderSettings]) -> ProviderSettings:
    provider, _ = _split(name)
    if provider in providers:
        return providers[provider]
    if name == DEMO:
        return _DEMO_SETTINGS
    known = ", ".join(sorted(providers)) or "none"
    raise ConfigError(
        f"There is no provider {provider!r} for the model {name}. Configured providers: {known}.",
        remedy=f"Run `crow login`, or add [providers.{provider}] to the configuration.",
    )


def _scripted(info: ModelInfo, settings: ProviderSettings) -> Model:
    from crow.model import script, scripted

    if not settings.script:
        raise ConfigError(
            f"providers.{info.provider}.script is missing.", remedy='Name a script: script = "file.toml".'
        )
    return scripted.ScriptedModel(script.load(settings.script), info=info, record=settings.record)
