"""Brave Search: by key."""

from typing import Any

import msgspec

from crow.web.search.asking import ask, results
from crow.web.search.base import AccountService, Found, date_text, usable, without_tags


class _Result(msgspec.Struct):
    url: str
    title: str | None = None
    description: str | None = None
    page_age: Any = None
    age: Any = None


class _Results(msgspec.Struct):
    results: list[Any] = []


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
        entries = answer.web.results if answer.web is not None else []
        found = [
            Found(
                without_tags(result.title),
                result.url,
                without_tags(result.description),
                date_text(result.page_age or result.age),
            )
            for result in results(self._account, entries, _Result)
        ]
        return usable(found, most)
