"""`crow config`: shows where the configuration is, opens it in an editor, and checks whether it is valid."""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator

from crow.cli.parsing import a_file
from crow.cli.terminal import confirm, is_interactive
from crow.config.discovery import mistakes, variables_of
from crow.config.home import config_path, home, is_there, reason, write_file
from crow.config.load import doubts, parse_settings, read_config
from crow.config.settings import Amount, Settings, amounts_of
from crow.errors import ConfigError, CrowError

EDITORS = ("nano", "vim", "vi", "emacs")
"""Tried in this order where neither VISUAL nor EDITOR is set."""

FIRST_TEXT = """\
# Crow's configuration. Every key: docs/configuration.md. Whether it is valid: crow config check
# `crow login` writes the model and its provider for you.

# model = "local/qwen3-coder"            # provider/model
# mode = "ask"                           # ask | edit | plan | auto

# [providers.local]
# type = "openai"                        # openai (any compatible server) | anthropic | scripted
# base_url = "http://127.0.0.1:8080/v1"
# api_key_env = "LOCAL_KEY"              # or api_key = "…" in this file; or none

# [[permission.rules]]
# tool = "terminal"
# command = "npm test *"
# decision = "allow"
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(act=_check, file=None)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    actions.add_parser("path", help="print where it is").set_defaults(act=_path)
    edit = actions.add_parser("edit", help="open it in your editor (VISUAL, EDITOR), then check it")
    edit.set_defaults(act=_edit)
    check = actions.add_parser("check", help="say whether it is valid, and if not, what is wrong")
    check.add_argument(
        "file", metavar="FILE", nargs="?", type=a_file, help="another file, such as a project's .crow/config.toml"
    )
    check.set_defaults(act=_check)


def main(arguments: argparse.Namespace) -> int:
    return arguments.act(arguments)


def _path(arguments: argparse.Namespace) -> int:
    print(config_path(home(os.environ)))
    return 0


def _check(arguments: argparse.Namespace) -> int:
    path = os.path.abspath(arguments.file) if arguments.file else config_path(home(os.environ))
    text = read_config(path)
    if text is None and arguments.file:
        raise ConfigError(f"File not found: {path}.")
    found = [] if text is None else _mistakes(text, path)
    if not arguments.file:
        found += [str(mistake) for mistake in mistakes(os.environ)]  # variables go before what the file says
    for mistake in found:
        print(f"crow: {mistake}", file=sys.stderr)
    if found:
        return 1
    none = f"No configuration yet; none is needed. It would be {path}."
    print(none if text is None else f"{path} is valid.")
    for key, amount in _budgets(text or "", path):
        print(f"{key}: {amount}")
    return 0


def _budgets(text: str, path: str) -> Iterator[tuple[str, Amount]]:
    """The amounts as they were read: a point and a comma mean different things in different countries."""
    for scope, amounts in amounts_of(parse_settings(text, path).budget).items():
        for amount in amounts:
            yield f"budget.{scope}", amount


def _mistakes(text: str, path: str) -> list[str]:
    """What is wrong with the text: the first thing that makes it unreadable, or else all that cannot work."""
    try:
        settings = parse_settings(text, path)
    except ConfigError as error:
        return [str(error)]
    return [
        *(f"{path}: {doubt}." for doubt in doubts(settings)),
        *(f"{path}: {refusal}" for refusal in _refusals(settings)),
    ]


def _refusals(settings: Settings) -> Iterator[ConfigError]:
    """What would be refused when it is used. Variables count as set: an editor may have others than this shell."""
    from crow.model.endpoint import find_endpoint
    from crow.web.search import choose

    try:
        choose(settings.web, {settings.web.api_key_env: "key"})
    except ConfigError as error:
        yield error
    for name, provider in settings.providers.items():
        if provider.type == "scripted":
            continue
        try:
            find_endpoint(name, provider, dict.fromkeys(variables_of(provider), "key"))
        except ConfigError as error:
            yield error


def _edit(arguments: argparse.Namespace) -> int:
    path = config_path(home(os.environ))
    command = _editor(path)
    if not is_there(path):
        write_file(path, FIRST_TEXT.encode())
    while True:
        _open(command, path)
        try:
            status = _check(argparse.Namespace(file=None))
        except ConfigError as error:
            print(f"crow: {error}", file=sys.stderr)
            status = 1
        if not status or not is_interactive() or not confirm("Edit it again?"):
            return status


def _editor(path: str) -> list[str]:
    for variable in ("VISUAL", "EDITOR"):
        if words := shlex.split(os.environ.get(variable, "")):
            return words
    if not is_interactive() or not sys.stdout.isatty():  # those that we know need one
        raise CrowError(f"No terminal to edit {path} in.", remedy="Set the variable EDITOR.")
    for name in EDITORS:
        if shutil.which(name):
            return [name]
    raise CrowError("No editor found.", remedy="Set the variable EDITOR, such as EDITOR=nano.")


def _open(command: list[str], path: str) -> None:
    try:
        status = subprocess.run([*command, path], check=False).returncode  # noqa: S603 -- the person's own editor
    except OSError as error:
        raise CrowError(
            f"The editor {command[0]} cannot be started: {reason(error)}.",
            remedy="Check the variables VISUAL and EDITOR.",
        ) from None
    if status:
        raise CrowError(f"The editor {command[0]} ended with exit code {status}.")
