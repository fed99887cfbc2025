"""`crow models`: which models the providers have; and the model that is meant by a name without its provider."""

import argparse
import asyncio
import os
import sys

import msgspec

from crow.cli.health_models import ask_for_models
from crow.config.discovery import (
    Discovery,
    add_local_servers,
    can_chat,
    from_environment,
    has_key,
    how_to_choose,
    shown_address,
    split_model,
)
from crow.config.home import home
from crow.config.load import load_settings
from crow.errors import CrowError
from crow.model.catalog import DEMO, describe


class Listed(msgspec.Struct, frozen=True):
    """The models of a provider, and why there may be more than these."""

    models: list[str]
    trouble: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("provider", metavar="PROVIDER", nargs="?", help="only this provider's")


def main(arguments: argparse.Namespace) -> int:
    found = asyncio.run(_discover())
    if arguments.provider is not None and arguments.provider not in found.providers:
        others = f"There is: {', '.join(found.providers)}." if found.providers else "There are none at all."
        raise CrowError(f'There is no provider "{arguments.provider}". {others}')
    if not found.providers:
        raise CrowError("No provider is set up.", remedy=how_to_choose(found, os.environ))
    names = [arguments.provider] if arguments.provider is not None else list(found.providers)
    listed = asyncio.run(_list_all(found, names))
    for name, one in listed.items():
        if one.trouble:
            print(f"crow: {one.trouble}", file=sys.stderr)
        for model in one.models:
            full_name = f"{name}/{model}"
            is_default = full_name == found.default and sys.stdout.isatty()
            print(f"{full_name}  (chosen by {found.chosen_by})" if is_default else full_name)
    return 0 if any(one.models for one in listed.values()) else 1


def full_name(model: str) -> str:
    """The `provider/model` that is meant: a name may come without its provider where only one has it. CrowError."""
    return asyncio.run(_full_name(model))


async def _full_name(model: str) -> str:
    known = from_environment(load_settings(home(os.environ)), os.environ)
    if model == DEMO or split_model(model)[0] in known.providers:
        return model
    having = [name for name, provider in known.providers.items() if model in provider.models]
    if not having:
        found = await _discover()
        if split_model(model)[0] in found.providers:
            return model
        listed = await _list_all(found, list(found.providers))
        having = [name for name, one in listed.items() if model in one.models]
    if len(having) == 1:
        return f"{having[0]}/{model}"
    if having:
        names = ", ".join(f"{name}/{model}" for name in having)
        raise CrowError(f"Several providers have a model {model}.", remedy=f"Say which: {names}.")
    if "/" in model:
        describe(model, known.providers)  # says that there is no such provider
    raise CrowError(f"No provider has a model {model}.", remedy="`crow models` lists those there are.")


async def _discover() -> Discovery:
    settings = load_settings(home(os.environ))
    return await add_local_servers(from_environment(settings, os.environ), os.environ)


async def _list_all(found: Discovery, names: list[str]) -> dict[str, Listed]:
    """All are asked at the same time."""
    return dict(zip(names, await asyncio.gather(*(_list_one(name, found) for name in names)), strict=True))


async def _list_one(name: str, found: Discovery) -> Listed:
    provider = found.providers[name]
    own = list(provider.models)
    default_provider, default = split_model(found.default)
    if default_provider == name and default not in own and not own:
        own = [default]
    if provider.type == "scripted":
        return Listed(own)
    place = f"{name} at {shown_address(provider)}"
    if not has_key(provider, os.environ):
        return Listed(own, f"{place} was not asked: the variable {provider.api_key_env} is not set.")
    try:
        listed = await ask_for_models(name, provider)
    except TimeoutError:
        return Listed(own, f"{place} did not answer in time.")
    except CrowError as error:
        return Listed(own, f"{place}: {error}")
    if listed is None:
        return Listed(own, f"{place} has no list of models: these are of your configuration.")
    names = [info.model for info in listed if can_chat(info.model)]
    return Listed(list(dict.fromkeys([*(model for model in provider.models if model not in names), *names])))
