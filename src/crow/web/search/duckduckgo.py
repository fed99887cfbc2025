"""DuckDuckGo without a key, through the `ddgs` library, which reads the pages that people see."""

import asyncio
import importlib
from typing import Any

import msgspec

from crow.errors import WebError
from crow.timeouts import timeout
from crow.web.search.base import Found, readable, usable, without_tags

MOST_SECONDS = 20.0
HOST = "html.duckduckgo.com"
REMEDY = "Try again later, or configure another service: search in the section [web] of config.toml."


class _Result(msgspec.Struct):
    href: str
    title: str | None = None
    body: str | None = None


class DuckDuckGo:
    name = "DuckDuckGo"
    host = HOST

    async def search(self, query: str, most: int) -> list[Found]:
        try:
            # In a thread: the library waits for the network, and takes a moment to load.
            async with timeout(MOST_SECONDS):
                raw = await asyncio.to_thread(_results, query, most)
        except TimeoutError:
            raise WebError(f"DuckDuckGo did not answer within {MOST_SECONDS:g} s.", remedy=REMEDY) from None
        try:
            results = readable(msgspec.convert(raw, list[Any]), _Result)
        except msgspec.ValidationError:
            raise WebError("DuckDuckGo answered with something that is no list of results.", remedy=REMEDY) from None
        found = [Found(without_tags(result.title), result.href, without_tags(result.body)) for result in results]
        return usable(found, most)


def _results(query: str, most: int) -> Any:
    ddgs = importlib.import_module("ddgs")
    exceptions = importlib.import_module("ddgs.exceptions")
    try:
        # Only this one of the services that the library knows: it is the host that the person was asked about.
        return ddgs.DDGS(timeout=10).text(query, max_results=most, backend="duckduckgo")
    except exceptions.DDGSException as error:
        if "No results found" in str(error):
            return []
        raise WebError("DuckDuckGo cannot be asked, or takes no more requests for now.", remedy=REMEDY) from error
