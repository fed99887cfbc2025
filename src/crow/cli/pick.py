"""The choices of `crow login`: a provider, named on the command line or picked from a list, and one of its models."""

import os
import re
from urllib.parse import urlsplit

import msgspec

from crow.cli.render_screen import clean_prose, counted
from crow.cli.terminal import ask, choose
from crow.config.discovery import (
    Discovery,
    add_local_servers,
    can_chat,
    first_model,
    local_provider,
    local_servers,
)
from crow.config.hosts import check_url, shown_address
from crow.config.settings import VENDORS, ProviderSettings, Settings
from crow.errors import ConfigError
from crow.visible import one_line

NAME = re.compile(r"[\w.-]+")


class Candidate(msgspec.Struct, frozen=True):
    """A provider that could be logged in to; `provider` says how to reach it, still without a key."""

    name: str
    title: str
    provider: ProviderSettings
    needs_key: bool = False
    may_need_key: bool = True
    key_variable: str = ""
    keys_page: str = ""
    first_model: str = ""


def find_candidate(name: str | None, base_url: str | None, settings: Settings) -> Candidate:
    """The provider that the command line names, by a known name, an address, or both."""
    if base_url:
        try:
            check_url("--base-url", base_url)
        except ValueError:
            raise ConfigError("The address must begin with http:// or https://, followed by a host.") from None
        name = name or name_for(base_url)
        if not NAME.fullmatch(name):
            raise ConfigError("Use only letters, digits, - or _ in the name.")
        kind = VENDORS[name].type if name in VENDORS else "openai"
        return _own_server(name, ProviderSettings(type=kind, base_url=base_url))
    if name in VENDORS:
        return _vendor(name)
    if name in settings.providers and settings.providers[name].type != "scripted":
        return _own_server(name, settings.providers[name])
    servers = local_servers(os.environ)
    if name in servers:
        return _local(name, servers[name], [])
    known = ", ".join([*VENDORS, *servers])
    raise ConfigError(f'Unknown provider "{name}".', remedy=f"Give its --base-url. Available: {known}.")


def pick_candidate(settings: Settings) -> Candidate:
    import asyncio

    found = asyncio.run(add_local_servers(Discovery(providers={}), os.environ))
    servers = local_servers(os.environ)
    candidates = [_local(name, servers[name], models) for name, models in found.local_models.items()]
    candidates += [_vendor(name) for name in VENDORS]
    candidates += [
        _own_server(name, provider)
        for name, provider in settings.providers.items()
        if provider.type != "scripted" and name not in VENDORS and name not in found.providers
    ]
    titles = [candidate.title + _note(candidate) for candidate in candidates]
    print("Which provider?")
    chosen = choose("Provider", [*titles, "Another OpenAI-compatible server"], _preferred(candidates))
    return candidates[chosen] if chosen < len(candidates) else _ask_for_server()


def _preferred(candidates: list[Candidate]) -> int:
    ready = (index for index, candidate in enumerate(candidates) if _note(candidate) or not candidate.may_need_key)
    return next(ready, 0)


def _note(candidate: Candidate) -> str:
    variable = candidate.key_variable
    return f" ({variable} is set)" if variable and os.environ.get(variable, "").strip() else ""


def _ask_for_server() -> Candidate:
    while True:
        base_url = ask("Its address", "http://127.0.0.1:8080/v1")
        name = ask("A short name for it", name_for(base_url))
        try:
            if not NAME.fullmatch(name) or name in VENDORS:
                raise ConfigError("Use only letters, digits, - or _ in the name, and not a vendor's name.")
            return find_candidate(name, base_url, Settings())
        except ConfigError as error:
            print(clean_prose(error.message))


def name_for(base_url: str) -> str:
    """A name for a server: `local` on this machine, else the telling part of its host."""
    host = urlsplit(base_url).hostname or ""
    if host in ("localhost", "127.0.0.1", "::1") or host.endswith(".localhost"):
        return "local"
    parts = host.split(".")
    telling = host if host.replace(".", "").isdecimal() else parts[-2] if len(parts) > 1 else host
    return re.sub(r"[^\w-]+", "-", telling).strip("-") or "server"


def _vendor(name: str) -> Candidate:
    vendor = VENDORS[name]
    address = vendor.address_in(os.environ)
    return Candidate(
        name=name,
        title=vendor.title if address == vendor.base_url else f"{vendor.title} at {shown_address(address)}",
        provider=ProviderSettings(type=vendor.type, base_url=address),
        needs_key=True,
        key_variable=vendor.variable_in(os.environ) or vendor.key_variable,
        keys_page=vendor.keys_page,
        first_model=vendor.default_model,
    )


def _local(name: str, port: int, models: list[str]) -> Candidate:
    usable = [model for model in models if can_chat(model)]
    return Candidate(
        name=name,
        title=f"{name} on this machine, port {port}" + (f" ({counted(len(usable), 'model')})" if models else ""),
        provider=local_provider(port),
        may_need_key=False,
        first_model=usable[0] if usable else "",
    )


def _own_server(name: str, provider: ProviderSettings) -> Candidate:
    return Candidate(
        name=name,
        title=f"{name} at {shown_address(provider.base_url)}",
        provider=provider,
        key_variable=provider.api_key_env,
        first_model=first_model(name, provider),
    )


# --- a model

SHOWN = 20
MOST_NAMED = 6


def pick_model(listed: list[str] | None, preferred: str) -> str:
    """`listed` is None if the provider has no list; then the name must be typed."""
    if not listed:
        print("The provider does not list its models. Type a name." if listed is None else "It has no models.")
        return _ask_for_name(preferred)
    models = sorted(listed, key=lambda model: (model != preferred, not can_chat(model)))
    shown: list[str] = models
    while True:
        _show(shown)
        answer = ask("Model (a number, a name, or a part of one)", models[0])
        if answer.isdecimal() and 0 < int(answer) <= len(shown[:SHOWN]):
            return shown[int(answer) - 1]
        if answer in models:
            return answer
        matches = [model for model in models if answer.lower() in model.lower()]
        if len(matches) == 1:
            return matches[0]
        if not matches:
            print(f'No model has "{answer}" in its name.')
        shown = matches or models


def is_listed(model: str, listed: list[str]) -> bool:
    """Vendors list some models by a dated name or a path, and know the short name all the same."""
    return any(is_same_model(other, model) for other in listed)


def is_same_model(listed: str, model: str) -> bool:
    return listed == model or listed.startswith(f"{model}-") or listed.endswith(f"/{model}")


def named(provider: str, models: list[str], wanted: str = "") -> str:
    """The models that a provider has, in a sentence: those that are most like `wanted` first."""
    import difflib

    usable = [model for model in models if can_chat(model)]
    if not usable:
        return "It has no models."
    near = difflib.get_close_matches(wanted, usable, n=MOST_NAMED, cutoff=0.5) if wanted else []
    shown = [*near, *(model for model in usable if model not in near)][:MOST_NAMED]
    if len(usable) > len(shown):
        return f"It has {', '.join(shown)} and {len(usable) - len(shown)} more: crow models {provider}"
    return f"It has {', '.join(shown)}."


def _ask_for_name(preferred: str) -> str:
    while not (name := ask("Model", preferred)):
        pass
    return name


def _show(models: list[str]) -> None:
    for number, model in enumerate(models[:SHOWN], start=1):
        print(f"  {number:>2}  {one_line(model)}")
    if len(models) > SHOWN:
        print(f"      and {len(models) - SHOWN} more")
