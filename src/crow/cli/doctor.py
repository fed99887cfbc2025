"""`crow doctor`: checks everything that Crow needs, and says how to mend what is wrong."""

import argparse
import asyncio
import os
import sys
from collections.abc import Iterable, Mapping

from crow.cli.health import Check, failed, fine, warn
from crow.cli.health_machine import check_home, check_log, check_programs, check_python
from crow.cli.health_mcp import check_servers
from crow.cli.health_models import check_models
from crow.cli.health_store import check_store
from crow.cli.health_web import check_web
from crow.cli.render_screen import BAD, BOLD, GOOD, WARNING, Screen
from crow.cli.render_text import counted
from crow.cli.terminal import speaks_utf8
from crow.config.discovery import Discovery, add_local_servers, from_environment
from crow.config.doubts import about_rule
from crow.config.explain import nearest
from crow.config.home import config_path, home
from crow.config.load import load_settings
from crow.config.settings import Settings
from crow.config.variables import KNOWN, mistakes
from crow.errors import ConfigError
from crow.mcp.using.naming import server_names

PLAIN_MARKS = {"fine": "ok  ", "warn": "warn", "failed": "FAIL"}
MARKS = {"fine": "✓", "warn": "!", "failed": "✗"}
STYLES = {"fine": GOOD, "warn": WARNING, "failed": BAD}


MEND = "Mend it there, then run crow doctor again."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    asking = parser.add_mutually_exclusive_group()
    asking.add_argument("--offline", action="store_true", help="ask no provider and no server")
    asking.add_argument("--try", dest="ask", action="store_true", help="ask the model too; costs a few tokens")


def main(arguments: argparse.Namespace) -> int:
    place = home(os.environ)
    own_folder = list(check_home(place))
    mode = _mode_of(config_path(place))  # reading it takes from others what they may do
    checks = [*check_python(), *own_folder, *_check_variables(os.environ)]
    try:
        settings = load_settings(place)
        checks += _check_config(config_path(place), settings, mode)
        checks += asyncio.run(_check_models(settings, offline=arguments.offline, ask=arguments.ask))
        checks += asyncio.run(check_web(settings.web, offline=arguments.offline))
        checks += check_servers(settings, place, offline=arguments.offline)
    except ConfigError as error:
        if all(check.text != error.message for check in checks):  # else it is a variable, and told already
            checks.append(failed(error.message, error.remedy or MEND))
    can_look = all(check.outcome != "failed" for check in own_folder)
    checks += [*(check_store(place) if can_look else ()), *check_programs(), *(check_log(place) if can_look else ())]
    return _report(checks)


def _check_variables(environ: Mapping[str, str]) -> Iterable[Check]:
    yield from (failed(mistake.message, mistake.remedy or MEND) for mistake in mistakes(environ))
    for name in environ:
        if name in KNOWN or not name.startswith("CROW_"):
            continue
        if meant := nearest(name, KNOWN, cutoff=0.8):
            yield warn(f"the variable {name} is set, which Crow does not know", f"Did you mean {meant}?")


async def _check_models(settings: Settings, *, offline: bool, ask: bool) -> list[Check]:
    found: Discovery = from_environment(settings, os.environ)
    if not offline:
        found = await add_local_servers(found, os.environ)
    return await check_models(found, settings, offline=offline, ask=ask)


def _mode_of(path: str) -> int:
    try:
        return os.stat(path).st_mode & 0o777
    except OSError:
        return 0


def _check_config(path: str, settings: Settings, mode: int) -> Iterable[Check]:
    if not os.path.exists(path):
        yield fine(f"no configuration yet ({path}), which is fine")
        return
    yield fine(f"the configuration {path} is valid")
    holds_key = settings.web.api_key or any(provider.api_key for provider in settings.providers.values())
    if holds_key and mode & 0o077:
        remedy = "It is yours alone now. If others use this machine, make a new key."
        yield warn(f"{path} holds a key, and others could read it (mode {mode:o})", remedy)
    servers = server_names(settings.mcp_servers).values()
    for number, rule in enumerate(settings.permission.rules):
        server = rule.tool.removeprefix("mcp__").partition("__")[0] if rule.tool.startswith("mcp__") else ""
        if server and "*" not in server and server not in servers:
            yield warn(
                f"permission.rules[{number}] is about the server {server}, which is not in the configuration",
                f"It counts if an editor or a project brings one. Yours are: {', '.join(sorted(servers)) or 'none'}.",
            )
        for doubt in about_rule(f"permission.rules[{number}]", rule):
            yield warn(doubt, MEND)
        if rule.tool == "terminal" and rule.command is None:
            yield warn(
                f"permission.rules[{number}] covers every command line ({rule.decision})",
                'Name the commands it is meant for: command = "npm test *".',
            )


def _report(checks: list[Check]) -> int:
    screen = Screen.of(sys.stdout, os.environ)
    for check in checks:
        _print(screen, check)
    failures = [check for check in checks if check.outcome == "failed"]
    warnings = sum(check.outcome == "warn" for check in checks)
    screen.line()
    screen.line(f"{_count(len(failures), warnings)}." if failures or warnings else "All is well.", BOLD)
    if failures and checks[-1] not in failures:  # else they are in sight anyway
        for check in failures:
            _print(screen, check)
    screen.flush()
    return 1 if failures else 0


def _print(screen: Screen, check: Check) -> None:
    mark, style = (MARKS if speaks_utf8() else PLAIN_MARKS)[check.outcome], STYLES[check.outcome]
    screen.write(f"{mark} ", style)
    screen.write(check.text + "\n", "" if check.outcome == "fine" else style)
    for line in check.remedy.splitlines():
        screen.line(f"{' ' * len(mark)}   {line}")


def _count(failures: int, warnings: int) -> str:
    counts = ((failures, "failure"), (warnings, "warning"))
    return ", ".join(counted(count, word) for count, word in counts if count)
