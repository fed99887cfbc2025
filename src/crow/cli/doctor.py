"""`crow doctor`: checks Python, Crow's folder, store, configuration and the web, and says how to fix what is wrong."""

import argparse
import asyncio
import importlib
import ipaddress
import os
import shutil
import sys
from collections.abc import Iterable, Mapping

from crow.cli.doctor_connections import Check, check_models, check_servers, failed, fine, warn
from crow.cli.models import TIME_LIMIT
from crow.cli.render_screen import BAD, BOLD, GOOD, WARNING, Screen, clean_prose, counted
from crow.cli.terminal import speaks_utf8
from crow.config.discovery import KNOWN, Discovery, add_local_servers, from_environment, mistakes
from crow.config.home import config_path, home, log_path
from crow.config.load import about_rule, load_settings
from crow.config.settings import Settings, WebSettings
from crow.config.toml import nearest
from crow.disk import network_file_system
from crow.errors import ConfigError, CrowError, StorageFailed, WebError
from crow.store.base import FILE_NAME
from crow.store.database import Database
from crow.store.failures import on_a_network
from crow.store.owners import can_be_attached_to, shared_folder
from crow.store.web_owner import find_web
from crow.timeouts import timeout
from crow.web.addresses import AllowedHosts, bracketed, proxy_variable, read_url
from crow.web.search import SearchService, choose
from crow.web_server.built_files import MISSING, find_built_files
from crow.web_server.built_files import REMEDY as PAGE_REMEDY

PLAIN_MARKS = {"fine": "ok  ", "warn": "warn", "failed": "FAIL"}
MARKS = {"fine": "✓", "warn": "!", "failed": "✗"}
STYLES = {"fine": GOOD, "warn": WARNING, "failed": BAD}
FIX = "Fix it there, then run crow doctor again."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    asking = parser.add_mutually_exclusive_group()
    asking.add_argument("--offline", action="store_true", help="contact no provider and no server")
    asking.add_argument("--try", dest="ask", action="store_true", help="ask the model too; costs a few tokens")
    parser.add_argument("--whole-store", action="store_true", help="check all of a large store; may take minutes")


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
            checks.append(failed(error.message, error.remedy or FIX))
    can_look = all(check.outcome != "failed" for check in own_folder)
    checks += [*check_store(place, whole=arguments.whole_store), *check_attaching(place)] if can_look else []
    checks += check_page(place)
    checks += [*check_programs(), *(check_log(place) if can_look else ())]
    return _report(checks)


def _report(checks: list[Check]) -> int:
    screen = Screen.of(sys.stdout, os.environ)
    for check in checks:
        _print(screen, check)
    failures = [check for check in checks if check.outcome == "failed"]
    warnings = sum(check.outcome == "warn" for check in checks)
    screen.line()
    screen.line(f"{_count(len(failures), warnings)}." if failures or warnings else "No problems found.", BOLD)
    if failures and checks[-1] not in failures:  # else they are in sight anyway
        for check in failures:
            _print(screen, check)
    screen.flush()
    return 1 if failures else 0


def _print(screen: Screen, check: Check) -> None:
    mark, style = (MARKS if speaks_utf8() else PLAIN_MARKS)[check.outcome], STYLES[check.outcome]
    screen.write(f"{mark} ", style)
    screen.write(clean_prose(check.text) + "\n", "" if check.outcome == "fine" else style)
    for line in clean_prose(check.remedy).splitlines():
        screen.line(f"{' ' * len(mark)}   {line}")


def _count(failures: int, warnings: int) -> str:
    counts = ((failures, "failure"), (warnings, "warning"))
    return ", ".join(counted(count, word) for count, word in counts if count)


# --- the configuration


def _check_variables(environ: Mapping[str, str]) -> Iterable[Check]:
    yield from (failed(mistake.message, mistake.remedy or FIX) for mistake in mistakes(environ))
    for name in environ:
        if name in KNOWN or not name.startswith("CROW_"):
            continue
        if meant := nearest(name, KNOWN, cutoff=0.8):
            yield warn(f"unknown variable {name} is set", f"Did you mean {meant}?")


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
        yield fine(f"no configuration yet ({path}); none is needed")
        return
    yield fine(f"the configuration {path} is valid")
    holds_key = settings.web.api_key or any(provider.api_key for provider in settings.providers.values())
    if holds_key and mode & 0o077:
        remedy = "It is private now. If others use this machine, create a new key."
        yield warn(f"{path} holds a key that others could read (mode {mode:o})", remedy)
    for number, rule in enumerate(settings.permission.rules):
        for doubt in about_rule(f"permission.rules[{number}]", rule):
            yield warn(doubt, FIX)
        if rule.tool == "terminal" and rule.command is None:
            yield warn(
                f"permission.rules[{number}] matches every command ({rule.decision})",
                'Name the commands it is for: command = "npm test *".',
            )


# --- this machine

PACKAGES = ("httpx2", "msgspec", "jiter", "rapidfuzz", "tree-sitter", "tree-sitter-bash")
PROGRAMS = {
    "git": "Install git, so that the agent can see history and diffs.",
    "rg": "Install ripgrep to make searches faster.",
    "bash": "Install bash; until then commands run in sh.",
}


def check_python() -> Iterable[Check]:
    from importlib.metadata import PackageNotFoundError, version

    from crow import __version__

    python = ".".join(map(str, sys.version_info[:3]))
    yield fine(f"Python {python} ({sys.executable})")
    present: list[str] = []
    for package in PACKAGES:
        try:
            present.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            yield failed(f"the package {package} is missing", f"{sys.executable} -m pip install {package}")
    yield fine(f"crow {__version__} with {', '.join(present)}")


def check_home(place: str) -> Iterable[Check]:
    folder = place
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    mode = _mode_of(place)
    if folder != place and not (os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)):
        yield failed(f"{place} cannot be created in {folder}", "Set CROW_HOME to another folder.")
    elif folder != place:
        yield fine(f"{place} will be created when there is something to store")
    elif not os.path.isdir(place):
        yield failed(f"{place} is not a folder", "Move it away, or set CROW_HOME to another folder.")
    elif not os.access(place, os.R_OK | os.W_OK | os.X_OK):
        yield failed(f"{place} cannot be read or written", f"Make it yours with chown and chmod 700 {place}")
    elif mode & 0o077:
        yield warn(f"others could read {place} (mode {mode:o})", "Crow makes it private whenever it starts.")
    else:
        yield fine(f"{place} exists and is private")


def check_programs() -> Iterable[Check]:
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    if present := [name for name in PROGRAMS if name not in missing]:
        yield fine(f"programs: {', '.join(present)}")
    for name in missing:
        yield warn(f"{name} is not installed", PROGRAMS[name])


def check_log(place: str) -> Iterable[Check]:
    path = log_path(place)
    if not os.path.exists(path):
        yield fine(f"no log yet ({path})")
    elif not os.access(path, os.W_OK):
        yield failed(f"the log {path} cannot be written", f"chmod 600 {path}")
    else:
        yield fine(f"the log is {path} ({max(1, os.path.getsize(path) // 1024)} kB)")


def check_page(place: str) -> Iterable[Check]:
    """The page of `crow web`: whether it is there, and where it is served."""
    try:
        is_complete = find_built_files().is_complete
    except CrowError as error:
        yield failed(error.message, error.remedy)
        return
    if not is_complete:
        yield warn(MISSING, PAGE_REMEDY)
    web = find_web(place)
    if web is not None:
        yield fine(f"crow web is running at {web.origin} (process {web.process})")
    elif is_complete:
        yield fine("the page for crow web is installed")


# --- the store

FIX_STORE = (
    "Move it away with its -wal and -shm files, and restore a copy. Without one, Crow starts a new store. "
    "`crow sessions export` may still save what can be read."
)
SMALL_STORE = 64 * 1024 * 1024
"""Bytes of a store that is always checked as a whole: a large one may take minutes."""


def check_store(place: str, *, whole: bool = False) -> Iterable[Check]:
    path = os.path.join(place, FILE_NAME)
    if not os.path.lexists(path):
        yield fine("no sessions are stored yet")
        return
    if network := network_file_system(place):
        yield warn(*on_a_network(place, network))
    try:
        yield _check_file(path, whole=whole or os.path.getsize(path) <= SMALL_STORE)
    except StorageFailed as error:
        yield failed(error.message, error.remedy)


def _check_file(path: str, *, whole: bool) -> Check:
    database = Database(path)
    try:
        with database.writing():
            pass  # it was possible: that is all we want to know
        with database.reading() as connection:
            # The list first: without it nothing is found.
            for what in ("sessions", 1) if whole else ("sessions",):
                found = connection.execute(f"PRAGMA quick_check({what})").fetchone()[0]
                if found != "ok":
                    return failed(f"{path} is damaged ({' '.join(found.split())[:200]})", FIX_STORE)
            count = connection.execute("SELECT count(*) FROM sessions WHERE listed = 1").fetchone()[0]
    finally:
        database.close()
    sessions = counted(count, "session")
    if whole:
        return fine(f"the store {path} is sound: {sessions}")
    size = f"{os.path.getsize(path) / 1e9:.1f} GB"
    return fine(f"the list of {path} is sound: {sessions}, {size}", "To check all of it: crow doctor --whole-store")


def check_attaching(place: str) -> Iterable[Check]:
    """Tells only of what is wrong."""
    if os.path.isdir(place) and not can_be_attached_to(place):
        yield warn(
            f"other programs cannot join your sessions: {shared_folder()} is not private",
            f"Have it removed, or set XDG_RUNTIME_DIR to a private folder (mode 700): {place} is too long a path.",
        )


# --- the web: whether the search service can be used, and what stands in the way

SOMEWHERE = "www.example.com"
"""Stands for the hosts that a person might want to fetch from."""


async def check_web(settings: WebSettings, *, offline: bool) -> list[Check]:
    """Nothing here keeps Crow from working, so nothing is worse than a warning. No key is told."""
    checks = [await _check_search(settings, offline=offline)]
    checks += _check_proxy(os.environ)
    return checks


async def _check_search(settings: WebSettings, *, offline: bool) -> Check:
    try:
        service = choose(settings, os.environ)
    except ConfigError as error:
        return warn(f"web search: {error.message}", error.remedy)
    if service.name == "DuckDuckGo":
        return _check_library()
    where = f"web search: {service.name} at {service.host}"
    if offline or not _is_nearby(service.host, settings):
        return fine(f"{where} (not tried)")
    return await _try_search(service, where)


def _check_library() -> Check:
    try:
        importlib.import_module("ddgs.ddgs")
    except Exception as error:  # noqa: BLE001 -- whatever it fails with: it cannot be used
        remedy = "Reinstall it: pip install ddgs. Or choose another service: search in [web] of config.toml."
        return warn(f"web search: the ddgs library does not work ({type(error).__name__})", remedy)
    return fine("web search: DuckDuckGo, no key needed (not tried)")


async def _try_search(service: SearchService, where: str) -> Check:
    """One search, as the tool makes it: what a service refuses is seen only then."""
    try:
        async with timeout(TIME_LIMIT):
            await service.search("crow", 1)
    except TimeoutError:
        return warn(f"{where} did not answer within {TIME_LIMIT:g} s", "Is it running? Check url in [web].")
    except WebError as error:
        return warn(f"web search: {error.message}", error.remedy)
    return fine(f"{where} answers")


def _is_nearby(host: str, settings: WebSettings) -> bool:
    """On this machine, or one that the person counts to their own: asking it costs nobody anything."""
    try:
        url = read_url(f"http://{bracketed(host)}/")
    except WebError:
        return False
    if url.is_address and ipaddress.ip_address(url.host).is_loopback:
        return True
    return url.host == "localhost" or AllowedHosts(settings.allow_private).is_allowed_private(url)


def _check_proxy(environ: Mapping[str, str]) -> Iterable[Check]:
    names = [proxy_variable(scheme, SOMEWHERE, environ) for scheme in ("https", "http")]
    if found := list(dict.fromkeys(name for name in names if name)):
        yield warn(
            f"{' and '.join(found)} {'is' if len(found) == 1 else 'are'} set, but web_fetch uses no proxy",
            "Behind a proxy that is the only way out, pages cannot be fetched: see docs/web.md.",
        )
