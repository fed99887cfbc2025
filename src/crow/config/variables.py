"""The environment variables that say how Crow works, such as CROW_MODEL and CROW_MODE: what each may hold, and what is
wrong with a value.

A value that cannot be used is an error, as in the configuration: whoever set it would get something else than they
asked for, and never know.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import cast

import msgspec

from crow.config.discovery import MODEL, local_servers, split_model
from crow.config.load import parse_allowed
from crow.config.settings import MODES, Mode, ProviderSettings, Settings, WebSettings
from crow.config.toml import explain
from crow.config.vendors import VENDORS
from crow.errors import ConfigError
from crow.visible import one_line

MODE = "CROW_MODE"
PATIENCE = "CROW_PATIENCE"
ALLOW = "CROW_ALLOW"
"""Holds what `crow run --allow` was given, one a line. No command gets to see it."""
MCP_TOKEN = "CROW_MCP_TOKEN"  # noqa: S105 -- the name of a variable
"""What the clients of `crow mcp --http` have to show."""
KNOWN = ("CROW_HOME", MODEL, MODE, "CROW_LOCAL_SERVERS", PATIENCE, ALLOW, MCP_TOKEN)

SHORTEST_PATIENCE = 0.05


def mode_in(environ: Mapping[str, str]) -> Mode | None:
    """The mode that sessions begin with, whatever the configuration says; None if the variable is not set."""
    wanted = environ.get(MODE, "")
    if wanted and wanted not in MODES:
        raise ConfigError(f"{explain(wanted, Mode, MODE)}.")
    return cast("Mode", wanted) or None


def patience_in(environ: Mapping[str, str], default: float) -> float:
    """Seconds after which a wait is named."""
    written = environ.get(PATIENCE, "")
    if not written.strip():
        return default
    try:
        seconds = float(written)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ConfigError(f'{PATIENCE}: expected seconds, a number above 0, found "{one_line(written, 100)}".')
    return max(seconds, SHORTEST_PATIENCE)


def check_model(environ: Mapping[str, str]) -> None:
    """Whether it is written as a model is. Which there are, only the providers know."""
    written = environ.get(MODEL, "")
    if written and not all(split_model(written)):
        raise ConfigError(
            f'{MODEL}: expected provider/model, found "{one_line(written, 100)}".',
            remedy="`crow models` lists those there are.",
        )


def with_allowed(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """The settings with what is allowed for this start."""
    try:
        rules = [parse_allowed(line) for line in environ.get(ALLOW, "").splitlines() if line.strip()]
    except ConfigError as error:
        raise ConfigError(f"{ALLOW}: {error}") from None
    if not rules:
        return settings
    permission = msgspec.structs.replace(settings.permission, rules=[*settings.permission.rules, *rules])
    return msgspec.structs.replace(settings, permission=permission)


def mistakes(environ: Mapping[str, str]) -> Iterator[ConfigError]:
    """What is wrong with each variable."""
    checks: tuple[Callable[[], object], ...] = (
        lambda: mode_in(environ),
        lambda: patience_in(environ, SHORTEST_PATIENCE),
        lambda: check_model(environ),
        lambda: local_servers(environ),
        lambda: with_allowed(Settings(), environ),
    )
    for check in checks:
        try:
            check()
        except ConfigError as error:
            yield error


def check_variables(environ: Mapping[str, str]) -> None:
    """ConfigError says what is wrong with the first that cannot be used."""
    for mistake in mistakes(environ):
        raise mistake


# --- the variables that hold keys of ours: no command and no server gets to see them


def variables_of(provider: ProviderSettings) -> set[str]:
    """The variables that the provider's key and headers are taken from."""
    named = {name for value in provider.headers.values() for name in re.findall(r"\$\{(\w+)\}", value)}
    return named | ({provider.api_key_env} if provider.api_key_env else set[str]())


def key_variables(providers: Iterable[ProviderSettings], web: WebSettings) -> set[str]:
    configured = {web.api_key_env}.union(*map(variables_of, providers))
    vendors = {name for vendor in VENDORS.values() for name in vendor.key_variables}
    return {name for name in configured if name} | vendors | {MCP_TOKEN, ALLOW}
