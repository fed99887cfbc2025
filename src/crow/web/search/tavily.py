"""Tavily: by key."""

from typing import Any

import msgspec

from crow.web.search.asking import ask, results
from crow.web.search.base import AccountService, Found, date_text, usable, without_tags


class _Result(msgspec.Struct):
    url: str
    title: str | None = None
    content: str | None = None
    published_date: Any = None


class _Answer(msgspec.Struct):
    results: list[Any]


class Tavily(AccountService):
    async def search(self, query: str, most: int) -> list[Found]:
        answer = await ask(
            self._account,
            "/search",
            _Answer,
            body={"query": query, "max_results": most},
            headers={"authorization": f"Bearer {self._account.key}"},
        )
        found = [
            Found(
                without_tags(result.title), result.url, without_tags(result.content), date_text(result.published_date)
            )
            for result in results(self._account, answer.results, _Result)
        ]
        return usable(found, most)
