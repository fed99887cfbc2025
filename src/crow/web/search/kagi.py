"""Kagi: by key."""

from typing import Any

import msgspec

from crow.web.search.asking import ask, results
from crow.web.search.base import AccountService, Found, date_text, usable, without_tags

RESULT = 0
"""The type of an entry that is a result; others are related searches."""


class _Entry(msgspec.Struct):
    t: int
    url: str | None = None
    title: str | None = None
    snippet: str | None = None
    published: Any = None


class _Answer(msgspec.Struct):
    data: list[Any]


class Kagi(AccountService):
    async def search(self, query: str, most: int) -> list[Found]:
        answer = await ask(
            self._account,
            "/api/v0/search",
            _Answer,
            query={"q": query, "limit": str(most)},
            headers={"authorization": f"Bot {self._account.key}"},
        )
        found = [
            Found(without_tags(entry.title), entry.url, without_tags(entry.snippet), date_text(entry.published))
            for entry in results(self._account, answer.data, _Entry)
            if entry.t == RESULT and entry.url
        ]
        return usable(found, most)
