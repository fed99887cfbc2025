"""Tavily: by key."""

import msgspec

from crow.web.search.asking import ask
from crow.web.search.base import AccountService, Found, plain


class _Result(msgspec.Struct):
    url: str
    title: str | None = None
    content: str | None = None
    published_date: str | None = None


class _Answer(msgspec.Struct):
    results: list[_Result]


class Tavily(AccountService):
    async def search(self, query: str, most: int) -> list[Found]:
        answer = await ask(
            self._account,
            "/search",
            _Answer,
            body={"query": query, "max_results": most},
            headers={"authorization": f"Bearer {self._account.key}"},
        )
        return [
            Found(plain(result.title), result.url, plain(result.content), result.published_date or "")
            for result in answer.results[:most]
        ]
