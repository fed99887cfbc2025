"""`crow login`: choose a provider and a model, try them with one tiny request, and store all of it."""

import argparse
import os
import sys

import msgspec

from crow.cli.editors import shown_command
from crow.cli.pick import Candidate, find_candidate, is_listed, named, pick_candidate, pick_model
from crow.cli.render_screen import clean_prose
from crow.cli.terminal import ask_secret, confirm, is_interactive
from crow.config.home import check_writable, config_path, home, read_file, write_file
from crow.config.load import load_settings
from crow.config.settings import VENDORS, ProviderSettings
from crow.errors import ConfigError, CrowError, ModelError, ModelRefusedKey, ModelRejected

ATTEMPTS = 3
NOT_FOUND = 404
NO_TERMINAL = """\
crow: login needs a terminal. Without one, name the provider and pipe the key:
  crow login --provider anthropic --key-stdin < key-file
  crow login --provider local --base-url http://127.0.0.1:8080/v1 --model qwen3-coder --key-stdin < /dev/null"""


class NoSuchModel(CrowError):
    """The provider says that it has no model of this name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--provider", metavar="P", help="a vendor's name, or a name for your own server")
    parser.add_argument("--base-url", metavar="URL", help="the address of an OpenAI-compatible server")
    parser.add_argument("--model", metavar="M", help="the model, as the provider calls it")
    parser.add_argument("--key-stdin", action="store_true", help="read the key from standard input and ask nothing")


def main(arguments: argparse.Namespace) -> int:
    path = config_path(home(os.environ))
    if arguments.key_stdin and not arguments.provider and not arguments.base_url:
        print("crow: --key-stdin needs --provider or --base-url", file=sys.stderr)
        return 2
    if not arguments.key_stdin and not is_interactive():
        print(NO_TERMINAL, file=sys.stderr)
        return 2
    # What would stand in the way at the end is said before anything is asked.
    settings = load_settings(home(os.environ))
    named = arguments.provider or arguments.base_url
    candidate = find_candidate(arguments.provider, arguments.base_url, settings) if named else None
    check_writable(home(os.environ))
    if arguments.key_stdin and candidate is not None:
        provider = _with_key(candidate, _given_key(candidate))
        listed = _list_models(candidate.name, provider)
        model = _choose_silently(candidate, arguments.model, listed)
        _try_model(candidate.name, provider, model, listed)
    else:
        try:
            candidate = candidate or pick_candidate(settings)
            provider, model = _ask(candidate, arguments.model or "")
        except (EOFError, KeyboardInterrupt) as leaving:
            print("\ncrow: nothing changed", file=sys.stderr)
            return 130 if isinstance(leaving, KeyboardInterrupt) else 1
    return _store(path, candidate.name, provider, model)


# --- the key


def _ask(candidate: Candidate, model: str) -> tuple[ProviderSettings, str]:
    """Asks until the provider accepts the key, for its list of models and for an answer."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            provider = _ready_connection(candidate) if attempt == 1 else None
            provider = provider or _ask_for_key(candidate, is_first=attempt == 1)
            listed = _list_models(candidate.name, provider)
            while not model or not _has_model(candidate.name, provider, model, listed):
                model = pick_model(listed, candidate.first_model)
        except (ModelRefusedKey, ConfigError) as error:
            if attempt == ATTEMPTS:
                raise
            print(clean_prose(error.message))
        else:
            return provider, model
    raise AssertionError


def _ready_connection(candidate: Candidate) -> ProviderSettings | None:
    """What can be tried without asking for a key: one that is in a variable, or that a command prints, or none where
    none should be needed."""
    variable = candidate.key_variable
    if variable and os.environ.get(variable, "").strip():
        if confirm(f"The variable {variable} is set. Use it and store only its name?"):
            return _connection(candidate, api_key_env=variable)
    elif candidate.provider.api_key_command or not candidate.may_need_key:
        return candidate.provider
    return None


def _ask_for_key(candidate: Candidate, *, is_first: bool) -> ProviderSettings:
    if candidate.keys_page and is_first:
        print(f"To create a key: {candidate.keys_page}")
    optional = "" if candidate.needs_key else " (leave empty if it needs none)"
    return _with_key(candidate, ask_secret(f"Key for {candidate.title}{optional}"))


def _given_key(candidate: Candidate) -> str:
    """What is piped in; in a terminal it is typed, and not shown."""
    if is_interactive():
        return ask_secret(f"Key for {candidate.title}")
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]  so it is when it is closed
        raise CrowError("Standard input is closed: no key to read.")
    return sys.stdin.read().strip()


def _with_key(candidate: Candidate, key: str) -> ProviderSettings:
    if not key and candidate.needs_key:
        raise ConfigError(f"{candidate.title} needs a key.")
    return _connection(candidate, api_key=key)


def _connection(candidate: Candidate, *, api_key: str = "", api_key_env: str = "") -> ProviderSettings:
    return msgspec.structs.replace(candidate.provider, api_key=api_key, api_key_env=api_key_env, api_key_command="")


# --- the model


def _list_models(name: str, provider: ProviderSettings) -> list[str] | None:
    """What the server has, or None if it has no list of it. Most servers look at the key for this already."""
    import asyncio

    from crow.cli.models import if_listed
    from crow.model.listing import list_models

    models = asyncio.run(if_listed(list_models(name, provider, os.environ), patience=None))
    return None if models is None else [info.model for info in models]


def _choose_silently(candidate: Candidate, wanted: str | None, listed: list[str] | None) -> str:
    model = wanted or candidate.first_model
    if not wanted and listed and model not in listed:
        model = listed[0]
    if not model:
        raise CrowError(f"{candidate.title} does not list its models.", remedy="Name one with --model.")
    return model


def _has_model(name: str, provider: ProviderSettings, model: str, listed: list[str] | None) -> bool:
    """Tries the model; whether the provider has it."""
    print(f"Trying {name}/{model} ...", flush=True)  # a server may have to load it first
    try:
        _try_model(name, provider, model, listed)
    except NoSuchModel as error:
        print(clean_prose(error.message))
        return False
    return True


def _try_model(name: str, provider: ProviderSettings, model: str, listed: list[str] | None) -> None:
    """Says whether the model answers. Raises if the key is refused, or if there is no such model: the rest may pass."""
    import asyncio

    from crow.model.listing import try_model

    if listed is not None and not is_listed(model, listed):
        print(f"crow: {name} does not list a model {model}.", file=sys.stderr)
    try:
        asyncio.run(try_model(f"{name}/{model}", {name: provider}, os.environ))
    except ModelRefusedKey:
        raise
    except ModelError as error:
        is_unknown = listed is not None and not is_listed(model, listed)
        if isinstance(error, ModelRejected) and (is_unknown or error.status == NOT_FOUND):
            has = named(name, listed, model) if listed else "Check the address and the name of the model."
            raise NoSuchModel(
                f"{name}/{model} was tried: {error.message}", remedy=f"Nothing was saved. {has}"
            ) from None
        print(f"crow: {name}/{model} was tried: {clean_prose(error.message)}", file=sys.stderr)
    else:
        print(f"{name}/{model} answers.")


# --- the file


def _store(path: str, name: str, provider: ProviderSettings, model: str) -> int:
    connection = {"type": provider.type, "base_url": provider.base_url}
    if name in VENDORS and VENDORS[name].base_url == provider.base_url:
        del connection["base_url"]
    connection |= {"api_key": provider.api_key} if provider.api_key else {}
    connection |= {"api_key_env": provider.api_key_env} if provider.api_key_env else {}
    connection |= {"api_key_command": provider.api_key_command} if provider.api_key_command else {}
    try:
        text = read_file(path).decode()
    except FileNotFoundError:
        text = ""
    full_name = f"{name}/{model}"
    from crow.config.edit import CannotEdit, choose_model  # only now: the library behind it is for this alone

    try:
        changed = choose_model(text, path, full_name, name, connection)
    except CannotEdit:
        print(f"crow: {path} was not changed: its layout is too unusual to edit safely", file=sys.stderr)
        hidden = connection | ({"api_key": "YOUR KEY"} if provider.api_key else {})
        print(f"Add this by hand:\n\n{choose_model('', path, full_name, name, hidden)}", end="")
        return 1
    write_file(path, changed.encode())
    kept = "the key is stored there, readable only by you" if provider.api_key else "no key is stored there"
    if provider.api_key_env:
        kept = f"the key stays in the variable {provider.api_key_env}, which your editor must see as well"
    if provider.api_key_command:
        kept = "the key comes from the command there"
    print(f"Crow will use {full_name}. Saved in {path}; {kept}.")
    crow = shown_command(os.environ)
    print(f"Next: {crow} setup zed (or another editor), or chat here: {crow} chat")
    return 0
