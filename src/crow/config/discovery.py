"""What can be used without a configuration: keys in the environment, and model servers on this machine."""

import re
from collections.abc import Mapping

import msgspec

from crow.config.hosts import shown_address
from crow.config.settings import ProviderSettings, Settings
from crow.config.vendors import VENDORS
from crow.errors import ConfigError

LOCAL_SERVERS = {"ollama": 11434, "lmstudio": 1234, "llamacpp": 8080, "vllm": 8000}
"""Where the usual model servers listen; the variable CROW_LOCAL_SERVERS ("name=port,name=port") says otherwise."""

MODEL = "CROW_MODEL"
"""The variable that names the model, whatever the configuration says."""

HOW_TO_SET_UP = "Run `crow login` in a terminal, set a key such as ANTHROPIC_API_KEY, or start a local model server."

_OTHER_MODELS = re.compile(r"embed|rerank|moderation|whisper|transcribe|tts|realtime|dall-e|image", re.IGNORECASE)


class Discovery(msgspec.Struct, frozen=True):
    """The providers there are: configured ones first, then those of the environment, then servers on this machine."""

    providers: dict[str, ProviderSettings]
    local_models: dict[str, list[str]] = {}
    """What each server on this machine offers; a server without a model yet has an empty list."""
    default: str = ""
    """The model to use, `provider/model`; empty if none is known."""
    chosen_by: str = ""
    """What named the default, for people: a variable, the config file, or a server."""


def from_environment(settings: Settings, environ: Mapping[str, str]) -> Discovery:
    """Everything that can be known without asking anyone on the network."""
    providers = dict(settings.providers)
    for name, vendor in VENDORS.items():
        if name not in providers and (variable := vendor.variable_in(environ)):
            providers[name] = ProviderSettings(
                type=vendor.type, base_url=vendor.address_in(environ), api_key_env=variable
            )
    default, chosen_by = _default(settings, providers, environ)
    name = split_model(default)[0]
    servers = local_servers(environ)
    if name in servers and name not in providers:
        # A model of a server on this machine can be named without configuring the server.
        providers[name] = local_provider(servers[name])
    return Discovery(providers=providers, default=default, chosen_by=chosen_by)


async def discover(settings: Settings, environ: Mapping[str, str]) -> Discovery:
    """The same; and, if no model is known for certain yet, what the servers on this machine offer."""
    known = from_environment(settings, environ)
    if known.default and not _is_tentative(known):
        return known
    return await add_local_servers(known, environ)


async def add_local_servers(known: Discovery, environ: Mapping[str, str]) -> Discovery:
    servers = {name: port for name, port in local_servers(environ).items() if name not in known.providers}
    if not servers:
        return known
    from crow.config.probe import probe

    found = await probe(servers)
    default, chosen_by, is_open = known.default, known.chosen_by, not known.default or _is_tentative(known)
    for name, models in found.items():
        usable = [model for model in models if can_chat(model)]
        if is_open and usable:
            is_open = False
            default, chosen_by = f"{name}/{usable[0]}", f"the server at 127.0.0.1:{servers[name]}"
    return Discovery(
        providers=known.providers | {name: local_provider(servers[name]) for name in found},
        local_models=found,
        default=default,
        chosen_by=chosen_by,
    )


def _is_tentative(known: Discovery) -> bool:
    """Whether the default is there only because of a key that may not be meant for models at all."""
    vendor = VENDORS.get(split_model(known.default)[0])
    return vendor is not None and vendor.key_has_other_uses and known.chosen_by in vendor.key_variables


def _default(settings: Settings, providers: dict[str, ProviderSettings], environ: Mapping[str, str]) -> tuple[str, str]:
    if environ.get(MODEL):
        return environ[MODEL], MODEL
    if settings.model:
        return settings.model, "the config file"
    for name, provider in providers.items():
        model = first_model(name, provider)
        if model and has_key(provider, environ):
            configured = name in settings.providers
            return f"{name}/{model}", "the config file" if configured else provider.api_key_env
    return "", ""


def first_model(name: str, provider: ProviderSettings) -> str:
    """The model to begin with: the first that the config describes, else the vendor's; empty if neither is there."""
    if provider.models:
        return next(iter(provider.models))
    vendor = VENDORS.get(name)
    return vendor.default_model if vendor and vendor.is_at(provider.base_url) else ""


def without_a_model(found: Discovery, environ: Mapping[str, str]) -> str:
    """The first provider that could be used if somebody chose a model of it; empty if there is none."""
    usable = (name for name, provider in found.providers.items() if provider.type != "scripted")
    return next((name for name in usable if has_key(found.providers[name], environ)), "")


def how_to_choose(found: Discovery, environ: Mapping[str, str]) -> str:
    """What to do where there is no default model."""
    name = without_a_model(found, environ)
    if not name:
        return HOW_TO_SET_UP
    provider = found.providers[name]
    what = f"{provider.api_key_env} is set for" if provider.api_key_env else f"{name} is set up at"
    return (
        f"{what} {shown_address(provider.base_url)}, but no model of it is chosen: run `crow login --provider {name}`, "
        f"or set {MODEL}={name}/NAME."
    )


def has_key(provider: ProviderSettings, environ: Mapping[str, str]) -> bool:
    """False if the provider wants its key from a variable that is not set."""
    return not provider.api_key_env or bool(environ.get(provider.api_key_env, "").strip())


def can_chat(model: str) -> bool:
    """False for what servers list beside their language models."""
    return not _OTHER_MODELS.search(model)


def split_model(name: str) -> tuple[str, str]:
    """`provider/model` in two; a model's own name may hold further slashes."""
    provider, _, model = name.partition("/")
    return provider, model


def local_provider(port: int) -> ProviderSettings:
    return ProviderSettings(type="openai", base_url=f"http://127.0.0.1:{port}/v1")


def local_servers(environ: Mapping[str, str]) -> dict[str, int]:
    """The table above, or what CROW_LOCAL_SERVERS says; empty means that none is looked for."""
    text = environ.get("CROW_LOCAL_SERVERS")
    if text is None:
        return LOCAL_SERVERS
    servers: dict[str, int] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, port = item.partition("=")
        if not re.fullmatch(r"[\w.-]+", name) or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ConfigError(f'CROW_LOCAL_SERVERS: expected "name=port,name=port", found "{item}".')
        servers[name] = int(port)
    return servers
