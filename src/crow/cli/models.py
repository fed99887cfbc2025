"""`crow models`: lists the providers' models with window and price; and finds the model that is meant by a name without
its provider.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Mapping
from typing import TypeVar

import msgspec

from crow.cli.render_screen import clean_json, clean_prose
from crow.config.discovery import (
    Discovery,
    add_local_servers,
    can_chat,
    from_environment,
    has_key,
    how_to_choose,
    split_model,
)
from crow.config.home import home
from crow.config.hosts import shown_address
from crow.config.load import load_settings
from crow.config.settings import ProviderSettings
from crow.errors import CrowError, ModelRejected
from crow.model.catalog import DEMO, describe, facts_about, has_configured_window, to_be_used
from crow.model.facts import Facts, ListedModels, Windows, keep_listing, read_listings
from crow.timeouts import timeout
from crow.visible import one_line

T = TypeVar("T")

TIME_LIMIT = 5
"""Seconds that a provider gets to list its models."""
REFRESH = "refresh"
SOURCES = {
    "": "",
    "config": "config",
    "server": "its server",
    "list": "its list",
    "catalogue": "catalogue",
    "name": "its name",
}


class Listed(msgspec.Struct, frozen=True):
    """The models of a provider with what it says of them, and why there may be more than these."""

    models: dict[str, Facts]
    trouble: str = ""
    asked: bool = True
    """False if the provider's list was to be had, and was not."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "words", metavar="PROVIDER", nargs="*", help=f"only this provider; after the word {REFRESH}, ask it again"
    )
    parser.add_argument("--json", action="store_true", help="for programs")


def main(arguments: argparse.Namespace) -> int:
    refresh = arguments.words[:1] == [REFRESH]
    wanted: list[str] = arguments.words[1:] if refresh else arguments.words
    found = asyncio.run(_discover())
    for provider in wanted:
        if provider not in found.providers:
            others = f"Available: {', '.join(found.providers)}." if found.providers else "None is set up."
            raise CrowError(f'Unknown provider "{provider}". {others}')
    if not found.providers:
        raise CrowError("No provider is set up.", remedy=how_to_choose(found, os.environ))
    listed = asyncio.run(_list_all(found, wanted or list(found.providers), refresh=refresh))
    for one in listed.values():
        if one.trouble:
            print(f"crow: {clean_prose(one.trouble)}", file=sys.stderr)
    windows = Windows(home(os.environ))
    windows.read()
    models = {
        f"{name}/{model}": _facts(f"{name}/{model}", found.providers, facts, windows)
        for name, one in listed.items()
        for model, facts in one.models.items()
    }
    if arguments.json:
        described = [{"name": name, **msgspec.to_builtins(facts)} for name, facts in models.items()]
        print(clean_json(msgspec.json.format(msgspec.json.encode(described), indent=2).decode()))
    elif sys.stdout.isatty():
        _print_table(models, found)
    else:
        for name, facts in models.items():
            print("\t".join((one_line(name), *_cells(facts))).rstrip())
    nothing_new = refresh and not any(one.asked for one in listed.values())
    return 0 if models and not nothing_new else 1


def _facts(name: str, providers: Mapping[str, ProviderSettings], listed: Facts, windows: Windows) -> Facts:
    """What a session would go by: the window that the server told of wins over all but the configuration."""
    facts = facts_about(name, providers, listed)
    learned = None if has_configured_window(name, providers) else windows.get(to_be_used(name, providers))
    return msgspec.structs.replace(facts, window=learned, source="server") if learned else facts


def _print_table(models: Mapping[str, Facts], found: Discovery) -> None:
    rows = [(one_line(name), *_cells(facts)) for name, facts in models.items()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        print(f"{line}  (chosen by {found.chosen_by})" if row[0] == one_line(found.default) else line)


def _cells(facts: Facts) -> tuple[str, ...]:
    """Window, output, sees, thinks, price of a million tokens, where it is from."""
    price = facts.price
    return (
        f"{facts.window:,}" if facts.window else "?",
        f"{facts.output:,}" if facts.output else "",
        "sees" if facts.images else "",
        "thinks" if facts.thinks else "",
        f"{price.input:g}/{price.output:g} {price.currency}" if price else "",
        SOURCES[facts.source],
    )


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
        raise CrowError(f"Several providers have a model {model}.", remedy=f"Choose one: {names}.")
    if "/" in model:
        describe(model, known.providers)  # says that there is no such provider
    raise CrowError(f"No provider has a model {model}.", remedy="`crow models` lists the models available.")


async def _discover() -> Discovery:
    settings = load_settings(home(os.environ))
    return await add_local_servers(from_environment(settings, os.environ), os.environ)


async def _list_all(found: Discovery, names: list[str], *, refresh: bool = False) -> dict[str, Listed]:
    """All are asked at the same time."""
    kept = {} if refresh else read_listings(home(os.environ))
    answers = await asyncio.gather(*(_list_one(name, found, kept) for name in names))
    return dict(zip(names, answers, strict=True))


async def _list_one(name: str, found: Discovery, kept: Mapping[str, ListedModels]) -> Listed:
    from crow.model.listing import list_facts

    provider = found.providers[name]
    own = dict.fromkeys(provider.models, Facts())
    default_provider, default = split_model(found.default)
    if default_provider == name and default not in own and not own:
        own = {default: Facts()}
    if provider.type == "scripted":
        return Listed(own)
    if (listed := kept.get(provider.base_url)) is not None and listed.is_fresh:
        return _both(own, listed.models)
    place = f"{name} at {shown_address(provider.base_url)}"
    if not has_key(provider, os.environ):
        return Listed(own, f"{place} was skipped: the variable {provider.api_key_env} is not set.", asked=False)
    try:
        models = await if_listed(list_facts(name, provider, os.environ))
    except TimeoutError:
        return Listed(own, f"{place} did not answer in time.", asked=False)
    except CrowError as error:
        return Listed(own, f"{place}: {error}", asked=False)
    if models is None:
        return Listed(own, f"{place} has no list of models. These are from your configuration.")
    try:
        keep_listing(home(os.environ), provider.base_url, models)
    except CrowError as error:
        return Listed(_both(own, models).models, f"the list of {place} could not be stored: {error}")
    return _both({model: Facts() for model in provider.models}, models)


def _both(own: Mapping[str, Facts], listed: Mapping[str, Facts]) -> Listed:
    chatting = {model: facts for model, facts in listed.items() if can_chat(model)}
    return Listed({**{model: facts for model, facts in own.items() if model not in chatting}, **chatting})


async def if_listed(listing: Awaitable[T], patience: float | None = TIME_LIMIT) -> T | None:
    """What a provider answers that was asked for its models, or None if it has no list of them. TimeoutError after so
    many seconds, and what a reply would raise.
    """
    from crow.model.listing import NO_LIST

    try:
        async with timeout(patience):
            return await listing
    except ModelRejected as error:
        if error.status in NO_LIST:
            return None
        raise
