"""What a search service is, and what it finds."""

import html
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec

Entry = TypeVar("Entry")

LATEST = 100_000_000_000
"""Seconds since 1970: a larger number is one of milliseconds."""
_TAG = re.compile(r"<[^<>]{0,200}>")


class Found(msgspec.Struct, frozen=True):
    title: str
    url: str
    snippet: str = ""
    date: str = ""


class SearchService(Protocol):
    @property
    def name(self) -> str:
        """For the person."""
        ...

    @property
    def host(self) -> str:
        """Who will be asked."""
        ...

    async def search(self, query: str, most: int) -> list[Found]:
        """WebError if the service cannot be used."""
        ...


class Account(msgspec.Struct, frozen=True):
    """Where a service is asked, and as whom."""

    name: str
    address: str
    """Without a slash at the end."""
    key: str = ""
    key_name: str = ""
    """Where the key was found: a person can look there."""

    @property
    def host(self) -> str:
        return host_of(self.address)


class AccountService:
    """A service that is asked over HTTP. Each of them only says how it is asked, and reads the answer."""

    def __init__(self, account: Account) -> None:
        self.name, self.host = account.name, account.host
        self._account = account


def host_of(address: str) -> str:
    """Empty if it has none, or none that can be read."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def readable(entries: Sequence[Any], kind: type[Entry]) -> list[Entry]:
    """Those of a service's entries that are as expected: an odd one costs none of the others.

    ValidationError if there are entries, and all of them are odd.
    """
    found: list[Entry] = []
    odd: msgspec.ValidationError | None = None
    for entry in entries:
        try:
            found.append(msgspec.convert(entry, kind))
        except msgspec.ValidationError as error:
            odd = error
    if odd is not None and not found:
        raise odd
    return found


def usable(found: Sequence[Found], most: int) -> list[Found]:
    """Those that `web_fetch` could open, and no more than are wanted."""
    return [entry for entry in found if entry.url.startswith(("http://", "https://")) and host_of(entry.url)][:most]


def date_text(given: Any) -> str:
    """A date as text, however a service writes it; empty for what is none."""
    if isinstance(given, str):
        return given
    if not isinstance(given, int | float) or isinstance(given, bool):
        return ""
    seconds = given / 1000 if given > LATEST else given
    try:
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return ""


def without_tags(marked: str | None) -> str:
    """A snippet without the tags that some services mark the hits with."""
    return " ".join(html.unescape(_TAG.sub("", marked or "")).split())
