"""Decides which settings of a project's own `.crow/config.toml` count: it can ask for more caution than the user, never
for less.

How a provider is reached, and whose key goes there, is the user's alone to say: a project's `providers` and `web` are
passed over, and so is whether the client's terminal is used.
"""

import contextlib
from typing import cast

import msgspec

from crow.config.load import parse_settings
from crow.config.settings import Amount, Limits, McpServerSettings, Mode, PermissionRule, amounts_of
from crow.config.toml import parse_toml
from crow.errors import ConfigError
from crow.paths import shown

CAUTION: tuple[Mode, ...] = ("plan", "ask", "edit", "auto")
"""The modes, the most careful first."""


USERS_ALONE = (
    "providers",
    "web",
    "terminal.use_client",
    "limits.retry_wait",
    "limits.stream_idle",
    "limits.first_token",
)


class ProjectConfig(msgspec.Struct, frozen=True):
    """The settings of the file that may count. None or empty: the file does not set it."""

    rules: tuple[PermissionRule, ...] = ()
    mode: Mode | None = None
    model: str = ""
    limits: dict[str, float] = {}
    budgets: dict[str, tuple[Amount, ...]] = {}
    terminal_timeout: float | None = None
    servers: dict[str, McpServerSettings] = {}
    passed_over: tuple[str, ...] = ()
    """Keys that are the user's alone to set."""

    def lowered(self, limits: Limits) -> Limits:
        """The user's limits, each lowered where the project wants less."""
        lower = {name: min(value, getattr(limits, name)) for name, value in self.limits.items()}
        return msgspec.structs.replace(limits, **lower)


def read_project_config(content: bytes, path: str) -> ProjectConfig:
    """Reads the file. ConfigError names the file and the key that is wrong."""
    try:
        text = content.decode("utf-8-sig")
        table = parse_toml(text, shown(path))
        settings = parse_settings(text, shown(path))
    except UnicodeDecodeError:
        raise ConfigError(f"{shown(path)}: expected UTF-8 text, found a byte that is none.") from None
    except ValueError as error:  # a number with more digits than can be read
        raise ConfigError(f"{shown(path)}: {error}.") from None
    given = [*table, *(f"{name}.{key}" for name in ("terminal", "limits") for key in _keys(table, name))]
    return ProjectConfig(
        rules=tuple(settings.permission.rules),
        mode=settings.mode if "mode" in table else None,
        model=settings.model,
        limits={
            name: getattr(settings.limits, name)
            for name in _keys(table, "limits")
            if f"limits.{name}" not in USERS_ALONE
        },
        budgets=amounts_of(settings.budget),
        terminal_timeout=settings.terminal.timeout if "terminal.timeout" in given else None,
        servers=settings.mcp_servers,
        passed_over=tuple(key for key in given if key in USERS_ALONE),
    )


def tightening_rules(content: bytes) -> tuple[PermissionRule, ...]:
    """The rules that refuse or ask, and can be read, of a file with a mistake in it: a mistake must not loosen."""
    try:
        table = parse_toml(content.decode("utf-8-sig"), "")
        found = msgspec.convert(table, _Rules).permission.rules
    except (UnicodeDecodeError, ValueError, ConfigError):  # msgspec's own is a ValueError too
        return ()
    rules: list[PermissionRule] = []
    for rule in found:
        with contextlib.suppress(msgspec.ValidationError):
            rules.append(msgspec.convert(rule, PermissionRule))
    return tuple(rule for rule in rules if rule.decision != "allow")


class _RuleList(msgspec.Struct, frozen=True):
    rules: list[object] = []


class _Rules(msgspec.Struct, frozen=True):
    """A config of which nothing but the rules is looked at."""

    permission: _RuleList = _RuleList()


def _keys(table: dict[str, object], name: str) -> list[str]:
    """The keys of a table within the table, which was found to be right."""
    return list(cast("dict[str, object]", table.get(name, {})))


def is_looser(mode: Mode, than: Mode) -> bool:
    return CAUTION.index(mode) > CAUTION.index(than)
