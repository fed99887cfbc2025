"""SearXNG: a service that people run themselves."""

from typing import Any

import msgspec

from crow.web.search.asking import ask, results
from crow.web.search.base import AccountService, Found, date_text, usable, without_tags


class _Result(msgspec.Struct):
    url: str
    title: str | None = None
    content: str | None = None
    published: Any = msgspec.field(default=None, name="publishedDate")


class _Answer(msgspec.Struct):
    results: list[Any]


class SearXNG(AccountService):
    async def search(self, query: str, most: int) -> list[Found]:
        headers = {"authorization": f"Bearer {self._account.key}"} if self._account.key else None
        answer = await ask(self._account, "/search", _Answer, query={"q": query, "format": "json"}, headers=headers)
        found = [
            Found(without_tags(result.title), result.url, without_tags(result.content), date_text(result.published))
            for result in results(self._account, answer.results, _Result)
        ]
        return usable(found, most)
