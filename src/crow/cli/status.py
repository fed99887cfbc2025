"""`crow status`, and bare `crow` where there is no terminal or no model yet: says what is set up, and the next step."""

import asyncio
import os
import sys
from typing import TYPE_CHECKING

from crow import __version__
from crow.cli.editors import shown_command
from crow.cli.terminal import is_interactive, only_prints_lines
from crow.config.discovery import (
    Discovery,
    add_local_servers,
    check_variables,
    discover,
    from_environment,
    how_to_choose,
    without_a_model,
)
from crow.config.home import config_path, home
from crow.config.load import load_settings
from crow.config.settings import VENDORS, Settings
from crow.errors import ConfigError, CrowError

if TYPE_CHECKING:
    import argparse  # only for the types

LOG_IN = ("login", "choose a provider and a model")
DEMO = ("demo", "see it work first, without a key")
CONNECT = ("setup EDITOR", "connect zed, jetbrains, neovim, emacs, toad or vscode")
TRY = ("chat", "chat with it here")
CHECK = ("doctor", "check everything")


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    pass


def main(arguments: "argparse.Namespace | None" = None) -> int:
    print(f"Crow {__version__}, a coding agent for every editor\n")
    path = config_path(home(os.environ))
    try:
        settings = load_settings(home(os.environ))
        check_variables(os.environ)
        found = asyncio.run(_discover(settings))
    except ConfigError as error:
        _line("config", f"broken. {error}")
        _next_steps(CHECK, before=("fix it", "then run crow again"))
        return 1
    problem = _problem(found)
    _line("model", _model(found, problem))
    _line("keys", ", ".join(_keys_set()) or "none in the environment")
    _line("servers", _servers(found))
    _line("config", path if os.path.exists(path) else f"none yet ({path})")
    if found.default and not problem:
        _next_steps(CONNECT, TRY)
    elif problem:
        _next_steps(LOG_IN, CHECK)
    else:
        _next_steps(LOG_IN, DEMO)
    return 0


def can_chat() -> bool:
    """Whether bare `crow` begins a conversation: in a terminal, with a model that nothing is known against."""
    if not is_interactive() or not sys.stdout.isatty() or only_prints_lines(os.environ):
        return False
    try:
        check_variables(os.environ)
        found = asyncio.run(discover(load_settings(home(os.environ)), os.environ))
    except ConfigError:
        return False
    return bool(found.default) and not _problem(found)


async def _discover(settings: Settings) -> Discovery:
    """Servers are always looked for here, as this command says what there is."""
    return await add_local_servers(from_environment(settings, os.environ), os.environ)


def _model(found: Discovery, problem: str) -> str:
    if not found.default:
        # Where nothing is there to choose from, the next steps below say what to do.
        return f"none yet. {how_to_choose(found, os.environ)}" if without_a_model(found, os.environ) else "none yet"
    named = f"{found.default} (from {found.chosen_by})"
    return f"{named}, but it does not work: {problem}" if problem else named


def _problem(found: Discovery) -> str:
    """Why the default model cannot be used as things are; empty if nothing is known against it."""
    from crow.model.catalog import check

    if not found.default:
        return ""
    try:
        check(found.default, found.providers, os.environ)
    except CrowError as error:
        return error.message
    return ""


def _keys_set() -> list[str]:
    variables = (name for vendor in VENDORS.values() for name in vendor.key_variables)
    return [variable for variable in variables if os.environ.get(variable, "").strip()]


def _servers(found: Discovery) -> str:
    if not found.local_models:
        return "none found on this machine"
    return "; ".join(
        f"{name} with {', '.join(models[:3])}{' and more' if len(models) > 3 else ''}"
        if models
        else f"{name}(no models yet)"
        for name, models in found.local_models.items()
    )


def _line(name: str, text: str) -> None:
    print(f"  {name:<9}{text}")


def _next_steps(*commands: tuple[str, str], before: tuple[str, str] | None = None) -> None:
    """Commands of Crow with their purposes; before them, something that is no command."""
    crow = shown_command(os.environ)
    steps = [(f"{crow} {command}", purpose) for command, purpose in commands]
    steps = [before, *steps] if before else steps
    width = max(20, *(len(step) + 3 for step, _ in steps))
    print("\nNext:")
    for step, purpose in steps:
        print(f"  {step:<{width}}{purpose}")
