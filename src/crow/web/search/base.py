"""What a search service is, and what it finds."""

import html
import re
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

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
        return urlsplit(self.address).hostname or ""


class AccountService:
    """A service that is asked over HTTP. Each of them only says how it is asked, and reads the answer."""

    def __init__(self, account: Account) -> None:
        self.name, self.host = account.name, account.host
        self._account = account


def plain(marked: str | None) -> str:
    """A snippet without the tags that some services mark the hits with."""
    return " ".join(html.unescape(_TAG.sub("", marked or "")).split())
