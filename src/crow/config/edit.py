"""Changes the user's config.toml as text, so that comments and layout stay as they are.

The edit itself is simple-minded; what makes it safe is that the result is parsed again and must mean exactly the old
settings and the change. Where it does not, nothing is written and the person is told what to paste.
"""

import re
from typing import Any, cast

from crow.config.load import parse_settings
from crow.config.toml import parse_toml, toml_key, toml_string
from crow.errors import ConfigError

CONNECTION_KEYS = ("type", "base_url", "api_key", "api_key_env", "api_key_command")
"""The keys of a provider that say how to reach it: they are replaced together."""

_VALUE = r"""("(?:[^"\\]|\\.)*"|'[^']*')"""


class CannotEdit(Exception):
    """The file is laid out in a way that this module does not dare to change."""


def choose_model(text: str, path: str, model: str, provider: str, connection: dict[str, str]) -> str:
    """The text of a config with `model` as its default, and with how to reach its provider."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    old = text.removeprefix(mark)
    new = _set_provider(_set_model(old, model), provider, connection)
    wanted = _meaning_after(parse_toml(old, path), model, provider, connection)
    try:
        if parse_toml(new, path) != wanted:
            raise CannotEdit
        parse_settings(new, path)
    except ConfigError as error:
        raise CannotEdit from error
    return mark + new


def remove_key(text: str, path: str, provider: str) -> str:
    """The text of a config without the key of this provider."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    old = text.removeprefix(mark)
    lines = _lines(old)
    start, end = _table_of(lines, provider)
    kept = [line for line in lines[start:end] if not re.match(r"""[ \t]*(api_key|"api_key"|'api_key')[ \t]*=""", line)]
    new = "".join([*lines[:start], *kept, *lines[end:]])
    wanted = parse_toml(old, path)
    try:
        del cast("Any", wanted)["providers"][provider]["api_key"]
        if parse_toml(new, path) != wanted:
            raise CannotEdit
    except (ConfigError, KeyError, TypeError) as error:
        raise CannotEdit from error
    return mark + new


def provider_table(provider: str, connection: dict[str, str]) -> str:
    lines = [f"{key} = {toml_string(value)}" for key, value in connection.items()]
    return "\n".join([f"[providers.{toml_key(provider)}]", *lines, ""])


def model_line(model: str) -> str:
    return f"model = {toml_string(model)}\n"


def _meaning_after(settings: dict[str, Any], model: str, provider: str, connection: dict[str, str]) -> dict[str, Any]:
    providers = settings.get("providers", {})
    table = providers.get(provider, {}) if isinstance(providers, dict) else {}  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    if not isinstance(providers, dict) or not isinstance(table, dict):
        raise CannotEdit
    kept = {key: value for key, value in cast("dict[str, Any]", table).items() if key not in CONNECTION_KEYS}
    return settings | {"model": model, "providers": {**providers, provider: kept | connection}}


def _set_model(text: str, model: str) -> str:
    lines = _lines(text)
    top = next((index for index, line in enumerate(lines) if _starts_table(line)), len(lines))
    for index in range(top):
        if changed := _with_value(lines[index], "model", model):
            return "".join([*lines[:index], changed, *lines[index + 1 :]])
    place = _after_heading(lines)
    return "".join([*lines[:place], _native(model_line(model), text), *lines[place:]])


def _after_heading(lines: list[str]) -> int:
    """Behind a comment that heads the file, if an empty line sets it apart; else the very beginning."""
    count = next((index for index, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return count + 1 if 0 < count < len(lines) and not lines[count].strip() else 0


def _set_provider(text: str, provider: str, connection: dict[str, str]) -> str:
    lines = _lines(text)
    start, end = _table_of(lines, provider)
    if start == end:
        return text + _native(_gap(text) + provider_table(provider, connection), text)
    body: list[str] = []
    missing = dict(connection)
    for line in lines[start + 1 : end]:
        key = next((key for key in CONNECTION_KEYS if re.match(rf"[ \t]*{key}[ \t]*=", line)), None)
        if key is None:
            body.append(line)
        elif key in missing:
            value = missing.pop(key)
            body.append(_with_value(line, key, value) or _native(f"{key} = {toml_string(value)}\n", text))
    first = lines[start] if lines[start].endswith("\n") else _native(lines[start] + "\n", text)
    added = [_native(f"{key} = {toml_string(value)}\n", text) for key, value in missing.items()]
    return "".join([*lines[:start], first, *added, *body, *lines[end:]])


def _table_of(lines: list[str], provider: str) -> tuple[int, int]:
    """The lines of a provider's own table: from its header to the next one's. Both are the end if it has none."""
    header = _header(provider)
    start = next((index for index, line in enumerate(lines) if header.match(line)), len(lines))
    return start, next((index for index in range(start + 1, len(lines)) if _starts_table(lines[index])), len(lines))


def _with_value(line: str, key: str, value: str) -> str:
    """The line with another string as the key's value, its comment kept; empty if it is not such a line."""
    found = re.match(rf"""([ \t]*(?:{key}|"{key}"|'{key}')[ \t]*=[ \t]*){_VALUE}(?!["'])""", line)
    return found[1] + toml_string(value) + line[found.end() :] if found else ""


def _header(provider: str) -> re.Pattern[str]:
    name = re.escape(provider)
    return re.compile(rf"""[ \t]*\[[ \t]*providers[ \t]*\.[ \t]*(?:{name}|"{name}"|'{name}')[ \t]*\]""")


def _starts_table(line: str) -> bool:
    return line.lstrip(" \t").startswith("[")


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _gap(text: str) -> str:
    """What separates a new table from the text before it: an empty line, if there is any text."""
    if not text:
        return ""
    return "\n" if text.endswith("\n") else "\n\n"


def _native(added: str, text: str) -> str:
    return added.replace("\n", "\r\n") if "\r\n" in text else added
