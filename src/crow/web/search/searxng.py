"""SearXNG: a service that people run themselves."""

import msgspec

from crow.web.search.asking import ask
from crow.web.search.base import AccountService, Found, plain


class _Result(msgspec.Struct):
    url: str
    title: str | None = None
    content: str | None = None
    published: str | None = msgspec.field(default=None, name="publishedDate")


class _Answer(msgspec.Struct):
    results: list[_Result]


class SearXNG(AccountService):
    async def search(self, query: str, most: int) -> list[Found]:
        headers = {"authorization": f"Bearer {self._account.key}"} if self._account.key else None
        answer = await ask(self._account, "/search", _Answer, query={"q": query, "format": "json"}, headers=headers)
        return [
            Found(plain(result.title), result.url, plain(result.content), result.published or "")
            for result in answer.results[:most]
        ]
