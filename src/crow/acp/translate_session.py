"""What is said of a session besides what happens in it: what can be chosen, and how it stands in a list. Pure."""

import time
from collections.abc import Container, Iterable, Sequence
from typing import Literal

from crow import events
from crow.acp import wire
from crow.config.settings import McpServerSettings
from crow.store.base import SessionEntry
from crow.visible import one_line


def modes(options: Iterable[events.SessionOption]) -> wire.SessionModes | None:
    """The option `mode` for clients that know modes alone."""
    for option in options:
        if option.id == "mode":
            available = [
                wire.SessionMode(id=choice.value, name=choice.name, description=choice.description or None)
                for choice in option.choices
            ]
            return wire.SessionModes(current_mode_id=option.value, available_modes=available)
    return None


def config_options(options: Iterable[events.SessionOption]) -> list[wire.ConfigOption]:
    return [
        wire.ConfigOption(
            id=option.id,
            name=option.name,
            description=option.description or None,
            category=option.id,
            current_value=option.value,
            options=_choices(option.choices),
        )
        for option in options
    ]


def _choices(choices: Sequence[events.Choice]) -> list[wire.ConfigChoice]:
    """As a list; or in groups, where there are any."""
    groups: dict[str, list[wire.ConfigChoice]] = {}
    for choice in choices:
        made = wire.ConfigChoice(value=choice.value, name=choice.name, description=choice.description or None)
        groups.setdefault(choice.group, []).append(made)
    if not any(groups):
        return groups.get("", [])
    return [
        wire.ConfigChoice(group=group or "other", name=group or "Other", options=made) for group, made in groups.items()
    ]


def title(event: events.TitleChanged, now: int) -> wire.Update:
    return wire.SessionInfoUpdate(title=event.title, updated_at=_iso_time(now))


def stored_title(entry: SessionEntry) -> wire.Update:
    """What a client may head a session with that it has loaded."""
    return wire.SessionInfoUpdate(title=entry.title or None, updated_at=_iso_time(entry.updated_at))


def session_info(entry: SessionEntry) -> wire.SessionInfo:
    return wire.SessionInfo(
        session_id=entry.id,
        cwd=entry.cwd,
        title=entry.title or None,
        updated_at=_iso_time(entry.updated_at),
        additional_directories=list(entry.roots) or None,
    )


def _iso_time(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:03d}Z"


# --- what a client hands over


def servers(given: Sequence[wire.McpServer]) -> tuple[dict[str, McpServerSettings], list[str]]:
    """The MCP servers by name, and what is wrong with those that cannot be used."""
    found: dict[str, McpServerSettings] = {}
    problems: list[str] = []
    for server in given:
        fault = _fault_of(server, found)
        if fault:
            problems.append(f"The MCP server `{one_line(server.name, 100)}` of your editor is not used: {fault}.")
            continue
        found[server.name] = McpServerSettings(
            command=server.command or "",
            args=server.args or [],
            env={variable.name: variable.value for variable in server.env or ()},
            url=server.url or "",
            type=_TRANSPORTS[server.type],
            headers={header.name: header.value for header in server.headers or ()},
        )
    return found, problems


_TRANSPORTS: dict[str | None, Literal["stdio", "http", "sse"]] = {
    None: "stdio",
    "stdio": "stdio",
    "http": "http",
    "sse": "sse",
}


def _fault_of(server: wire.McpServer, known: Container[str]) -> str:
    if not server.name:
        return "it has no name"
    if server.name in known:
        return "there are two of that name"
    if server.type not in _TRANSPORTS:
        return f"its type `{one_line(server.type or '', 40)}` is not supported"
    if _TRANSPORTS[server.type] == "stdio":
        return "" if server.command else "it has no command"
    return "" if server.url else "it has no address"
