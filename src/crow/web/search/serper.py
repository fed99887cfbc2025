"""Serper, which gives Google's results: by key."""

from typing import Any

import msgspec

from crow.web.search.asking import ask, results
from crow.web.search.base import AccountService, Found, date_text, usable, without_tags


class _Result(msgspec.Struct):
    link: str
    title: str | None = None
    snippet: str | None = None
    date: Any = None


class _Answer(msgspec.Struct):
    organic: list[Any]


class Serper(AccountService):
    async def search(self, query: str, most: int) -> list[Found]:
        answer = await ask(
            self._account,
            "/search",
            _Answer,
            body={"q": query, "num": most},
            headers={"x-api-key": self._account.key},
        )
        found = [
            Found(without_tags(result.title), result.link, without_tags(result.snippet), date_text(result.date))
            for result in results(self._account, answer.organic, _Result)
        ]
        return usable(found, most)
