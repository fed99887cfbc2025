"""`crow logout`: deletes the key of a provider from the configuration; all else in it stays."""

import argparse
import os
import sys

from crow.config.discovery import from_environment, split_model
from crow.config.home import config_path, home, read_file, write_file
from crow.config.load import load_settings
from crow.config.settings import Settings
from crow.errors import CrowError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("provider", metavar="PROVIDER", nargs="?", help="the provider (default: the one in use)")


def main(arguments: argparse.Namespace) -> int:
    path = config_path(home(os.environ))
    settings = load_settings(home(os.environ))
    name = arguments.provider or _only_one(settings)
    if name not in settings.providers:
        return _without_key(name)
    if not settings.providers[name].api_key:
        return _without_key(name)
    from crow.config.edit import CannotEdit, remove_key  # only now: the library behind it is for this alone

    try:
        changed = remove_key(read_file(path).decode(), path, name)
    except CannotEdit:
        print(f"crow: {path} was not changed: its layout is too unusual to edit safely", file=sys.stderr)
        print(f"Remove the line with api_key from [providers.{name}] by hand: crow config edit")
        return 1
    write_file(path, changed.encode())
    print(f"Deleted the key of {name} from {path}. It is still valid at the provider: revoke it there if needed.")
    return 0


def _only_one(settings: Settings) -> str:
    """The provider in use; else the only one that has a key here."""
    having = [name for name, provider in settings.providers.items() if provider.api_key]
    used = split_model(from_environment(settings, os.environ).default)[0]
    if used in having or (used and not having):
        return used
    if len(having) == 1:
        return having[0]
    if not having:
        raise CrowError("No key is stored.")
    raise CrowError("Several keys are stored.", remedy=f"Choose one: crow logout {' | '.join(having)}")


def _without_key(name: str) -> int:
    found = from_environment(load_settings(home(os.environ)), os.environ)
    variable = found.providers[name].api_key_env if name in found.providers else ""
    if variable:
        print(f"No key of {name} is stored. Crow uses the one in the variable {variable}: unset it there.")
    elif name in found.providers and found.providers[name].api_key_command:
        print(f"No key of {name} is stored. Crow runs a command for it: providers.{name}.api_key_command.")
    elif name in found.providers:
        print(f"{name} has no key.")
    else:
        others = f"Available: {', '.join(found.providers)}." if found.providers else "None is set up."
        raise CrowError(f'Unknown provider "{name}". {others}')
    return 0
