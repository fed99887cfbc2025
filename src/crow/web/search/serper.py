"""Serper, which gives Google's results: by key."""

import msgspec

from crow.web.search.asking import ask
from crow.web.search.base import AccountService, Found, plain


class _Result(msgspec.Struct):
    link: str
    title: str | None = None
    snippet: str | None = None
    date: str | None = None


class _Answer(msgspec.Struct):
    organic: list[_Result]


class Serper(AccountService):
    async def search(self, query: str, most: int) -> list[Found]:
        answer = await ask(
            self._account,
            "/search",
            _Answer,
            body={"q": query, "num": most},
            headers={"x-api-key": self._account.key},
        )
        return [
            Found(plain(result.title), result.link, plain(result.snippet), result.date or "")
            for result in answer.organic[:most]
        ]
