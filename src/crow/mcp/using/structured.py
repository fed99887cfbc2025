"""Structured content: told where a server's texts do not say it already, as most do."""

from collections.abc import Sequence
from typing import Any

import msgspec

WRAPPED = {"result"}
"""The key under which the protocol's libraries put a value that is no object."""


def unsaid(structured: dict[str, Any] | None, texts: Sequence[str]) -> list[str]:
    """It as JSON, unless one of the texts is that, or all of them together are."""
    if structured is None:
        return []
    values = [structured, structured["result"]] if set(structured) == WRAPPED else [structured]
    read = [_read(text) for text in texts]
    known = [*texts, *read, list(texts), read]
    if any(value in known for value in values):
        return []
    return [msgspec.json.format(msgspec.json.encode(structured)).decode()]


def _read(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
