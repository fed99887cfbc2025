"""Changes the default model, provider or key in the user's config.toml so that comments and layout stay as they are.

The result is parsed again and must mean exactly the old settings and the change. Where it does not, nothing is written
and the person is told what to paste.
"""

import re
from collections.abc import Callable
from typing import Any, cast

import tomlkit
from tomlkit.exceptions import TOMLKitError

from crow.config.load import parse_settings
from crow.config.toml import parse_toml
from crow.errors import ConfigError
from crow.visible import BYTE_ORDER_MARK

CONNECTION_KEYS = ("type", "base_url", "api_key", "api_key_env", "api_key_command")
"""The keys of a provider that say how to reach it: they are replaced together."""

Table = dict[str, Any]


class CannotEdit(Exception):
    """The file would not mean what it should after the change."""


def choose_model(text: str, path: str, model: str, provider: str, connection: dict[str, str]) -> str:
    """The text of a config with `model` as its default, and with how to reach its provider."""

    def change(config: Table) -> None:
        config["model"] = model
        providers: Table = config.setdefault("providers", {})
        table: Table | None = providers.get(provider)
        if table is None:
            providers[provider] = connection
            return
        for key in CONNECTION_KEYS:
            if key in connection:
                table[key] = connection[key]
            elif key in table:
                del table[key]

    new = _edited(_with_model_line(text, path), path, change)
    try:
        parse_settings(new.removeprefix(BYTE_ORDER_MARK), path)
    except ConfigError as error:
        raise CannotEdit from error
    return new


def remove_key(text: str, path: str, provider: str) -> str:
    """The text of a config without the key of this provider."""

    def change(config: Table) -> None:
        del config["providers"][provider]["api_key"]

    return _edited(text, path, change)


def _with_model_line(text: str, path: str) -> str:
    """The text with a line for the model, if it has none: at its beginning, or behind a comment that heads the file and
    that an empty line sets apart. Any other place would come between a comment and what it is about.
    """
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    lines = text.removeprefix(mark).splitlines(keepends=True)
    if "model" in parse_toml("".join(lines), path):
        return text
    count = next((index for index, line in enumerate(lines) if not line.startswith("#")), len(lines))
    place = count + 1 if 0 < count < len(lines) and not lines[count].strip() else 0
    return mark + "".join([*lines[:place], 'model = ""\n', *lines[place:]])


def _edited(text: str, path: str, change: Callable[[Table], None]) -> str:
    """The text after a change, which is made twice: in the text, and in what the text means."""
    mark = BYTE_ORDER_MARK if text.startswith(BYTE_ORDER_MARK) else ""
    old = text.removeprefix(mark)
    meant: Table = parse_toml(old, path)
    try:
        document = tomlkit.parse(old)
        change(cast("Table", document))
        change(meant)
        new = tomlkit.dumps(document)  # pyright: ignore[reportUnknownMemberType] -- of its options
        if "\r\n" in old:
            new = re.sub(r"(?<!\r)\n", "\r\n", new)
        if parse_toml(new, path) != meant:
            raise CannotEdit
    except (TOMLKitError, ConfigError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CannotEdit from error
    return mark + new
