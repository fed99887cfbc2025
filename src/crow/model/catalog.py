"""From a name such as `local/qwen3-coder` to a model: which adapter is created, and which source of its window and
price wins. Imports an adapter only when one is asked for.
"""

import asyncio
import importlib
import os.path
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from crow.config.hosts import host_and_port, is_nearby
from crow.config.settings import VENDORS, Limits, ModelSettings, ProviderSettings
from crow.errors import ConfigError
from crow.model.base import Model, ModelInfo, Price
from crow.model.facts import Facts, known_facts

if TYPE_CHECKING:
    from crow.model.listing import ServerReport

DEMO = "scripted/demo"

SCRIPTED_WINDOW = 100_000

_DEMO_SETTINGS = ProviderSettings(
    type="scripted",
    script=os.path.join(os.path.dirname(__file__), "demo.toml"),
    models={"demo": ModelSettings(images=True)},  # its script shows a picture
)


def create(
    name: str,
    providers: Mapping[str, ProviderSettings],
    limits: Limits,
    environ: Mapping[str, str],
    info: ModelInfo | None = None,
) -> Model:
    """The model of that name; `info` if more is known of it than the providers say. Nothing is sent yet."""
    settings = _settings(name, providers)
    info = info or describe(name, providers)
    match settings.type:
        case "scripted":
            return _scripted(msgspec.structs.replace(info, calls_as_text=True), settings)
        case "openai":
            from crow.model.wires import openai
            from crow.model.wires.dialects import is_vendor

            known = is_vendor(settings.base_url or VENDORS["openai"].base_url)
            return openai.create(msgspec.structs.replace(info, calls_as_text=not known), settings, limits, environ)
        case "anthropic":
            from crow.model.wires import anthropic

            return anthropic.create(info, settings, limits, environ)


def describe(name: str, providers: Mapping[str, ProviderSettings], listed: Facts | None = None) -> ModelInfo:
    """What the model can take; `listed` is what the vendor's own list says of it."""
    settings = _settings(name, providers)
    provider, model = _split(name)
    facts = facts_about(name, providers, listed)
    said = settings.models.get(model, ModelSettings())
    return ModelInfo(
        provider=provider,
        model=model,
        context_window=facts.window,
        # Only Anthropic's API insists on a limit; elsewhere a large one may count as spent before anything is said.
        max_output=facts.output if settings.type == "anthropic" else said.max_output,
        images=bool(facts.images),
        audio=bool(facts.audio),
        thought_levels=facts.levels or (),
        price=facts.price,
        room_apart=facts.apart,
    )


def to_be_used(name: str, providers: Mapping[str, ProviderSettings], listed: Facts | None = None) -> ModelInfo:
    """The same, and what is known of the model's server before it was asked."""
    settings = _settings(name, providers)
    local = settings.type != "scripted" and is_nearby(settings.base_url)
    # One that wants no key is no vendor's: until it says what it is, it may have no limit of its own.
    keyless = not (settings.api_key or settings.api_key_env or settings.api_key_command)
    return msgspec.structs.replace(
        describe(name, providers, listed),
        local=local,
        metered=settings.type != "scripted",
        needs_limit=local and keyless and settings.type == "openai",
        host="" if settings.type == "scripted" else host_and_port(settings.base_url or VENDORS[settings.type].base_url),
    )


def facts_about(name: str, providers: Mapping[str, ProviderSettings], listed: Facts | None = None) -> Facts:
    """As configured, else as the vendor lists it, else as the catalogue has it, else as its name suggests."""
    settings = _settings(name, providers)
    _, model = _split(name)
    said = _configured(settings.models.get(model, ModelSettings()))
    if settings.type == "scripted":
        return said.over(Facts(window=SCRIPTED_WINDOW))
    address = settings.base_url or VENDORS[settings.type].base_url
    return said.over((listed or Facts()).over(known_facts(model, address)))


def _configured(said: ModelSettings) -> Facts:
    return Facts(
        window=said.context_window,
        output=said.max_output,
        images=said.images,
        audio=said.audio,
        thinks=bool(said.thought_levels) if said.thought_levels is not None else None,
        levels=tuple(dict.fromkeys(said.thought_levels)) if said.thought_levels is not None else None,
        price=_price(said),
        source="" if said == ModelSettings() else "config",
    )


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

        endpoint.find_endpoint(_split(name)[0], settings, environ)
    elif settings.script and not os.path.isfile(settings.script):
        raise ConfigError(
            f"The script {settings.script} does not exist.", remedy="Check `script` in the configuration."
        )


def warm(name: str, providers: Mapping[str, ProviderSettings]) -> None:
    """Imports what `create` and the first request will need. Takes a moment: call it in a thread."""
    settings = _settings(name, providers)
    importlib.import_module("crow.model.text_calls")
    if settings.type == "scripted":
        importlib.import_module("crow.model.scripted")
    else:
        importlib.import_module(f"crow.model.wires.{settings.type}")
        from crow.model import http

        http.warm(settings.base_url)
        if is_nearby(settings.base_url):
            importlib.import_module("crow.model.listing")


async def listed(provider: str, settings: ProviderSettings, environ: Mapping[str, str]) -> dict[str, Facts]:
    """The models that the provider says it has, with what it says of them; the same errors as a reply would give."""
    await asyncio.to_thread(_warm_listing, settings)
    from crow.model.listing import list_facts

    return await list_facts(provider, settings, environ)


async def ask_server(
    name: str, providers: Mapping[str, ProviderSettings], environ: Mapping[str, str]
) -> "ServerReport | None":
    """What the server of a model nearby says of itself. The adapter must have been imported: see `warm`."""
    from crow.model.listing import ask_server as ask

    provider, model = _split(name)
    return await ask(provider, _settings(name, providers), model, environ)


def has_configured_window(name: str, providers: Mapping[str, ProviderSettings]) -> bool:
    settings = _settings(name, providers).models.get(_split(name)[1])
    return settings is not None and settings.context_window is not None


def _warm_listing(settings: ProviderSettings) -> None:
    importlib.import_module("crow.model.listing")
    from crow.model import http

    http.warm(settings.base_url)


def _split(name: str) -> tuple[str, str]:
    provider, _, model = name.partition("/")
    if not provider or not model:
        raise ConfigError(f"{name!r} is not a model name.", remedy='Write it as "provider/model".')
    return provider, model


def _settings(name: str, providers: Mapping[str, ProviderSettings]) -> ProviderSettings:
    provider, _ = _split(name)
    if provider in providers:
        return providers[provider]
    if name == DEMO:
        return _DEMO_SETTINGS
    known = ", ".join(sorted(providers)) or "none"
    raise ConfigError(
        f'Unknown provider "{provider}" in "{name}". Available: {known}.',
        remedy=f"Run `crow login`, or add [providers.{provider}] to the configuration.",
    )


def _scripted(info: ModelInfo, settings: ProviderSettings) -> Model:
    from crow.model import scripted

    if not settings.script:
        raise ConfigError(
            f"providers.{info.provider}.script is not set.", remedy='Name a script: script = "file.toml".'
        )
    return scripted.ScriptedModel(scripted.load(settings.script), info=info, record=settings.record)
