"""Brave Search: by key."""

import msgspec

from crow.web.search.asking import ask
from crow.web.search.base import AccountService, Found, plain


class _Result(msgspec.Struct):
    url: str
    title: str | None = None
    description: str | None = None
    page_age: str | None = None
    age: str | None = None


class _Results(msgspec.Struct):
    results: list[_Result] = []


class _Answer(msgspec.Struct):
    type: str
    web: _Results | None = None
    """Missing if nothing was found."""


class Brave(AccountService):
    async def search(self, query: str, most: int) -> list[Found]:
        answer = await ask(
            self._account,
            "/res/v1/web/search",
            _Answer,
            query={"q": query, "count": str(most)},
            headers={"x-subscription-token": self._account.key},
        )
        results = answer.web.results if answer.web is not None else []
        return [
            Found(plain(result.title), result.url, plain(result.description), result.page_age or result.age or "")
            for result in results[:most]
        ]
