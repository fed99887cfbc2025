"""Fetches pages and keeps the last few of them: one that is read in pieces must not change in between."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from crow.errors import WebError
from crow.visible import one_line
from crow.web.reach import Reach
from crow.web.urls import Elsewhere, WebUrl

if TYPE_CHECKING:
    from crow.web.fetching import Page
    from crow.web.reading import Reading

MOST_KEPT = 4
MOST_AT_ONCE = 4
"""Pages that are fetched and converted at the same time: a reply may ask for any number."""


class Pages:
    def __init__(self, reach: Reach, may_follow: Callable[[WebUrl, WebUrl], bool]) -> None:
        self._reach = reach
        self._may_follow = may_follow
        self._kept: OrderedDict[str, Reading] = OrderedDict()
        """The one that was used least recently comes first."""
        self._places = asyncio.Semaphore(MOST_AT_ONCE)

    async def fetch(self, url: WebUrl) -> "Reading | Elsewhere":
        from crow.web.fetching import FetchLimits, fetch
        from crow.web.reading import read_page

        async with self._places:
            page = await fetch(url, self._reach, FetchLimits(), self._may_follow)
            if isinstance(page, Elsewhere):
                return page
            _expect_success(page)
            reading = await read_page(page)
        self._keep(url, reading)
        return reading

    async def go_on(self, url: WebUrl) -> "Reading | Elsewhere":
        """The page as it was fetched before; fetched anew if it is not kept any more."""
        kept = self._kept.get(url.text)
        if kept is None:
            return await self.fetch(url)
        self._keep(url, kept)
        return kept

    def _keep(self, url: WebUrl, reading: "Reading") -> None:
        self._kept[url.text] = reading
        self._kept.move_to_end(url.text)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)


def _expect_success(page: "Page") -> None:
    if page.status >= 300 or page.status < 200:
        raise WebError(
            f"{one_line(page.url.text, 200)} answered with status {page.status} {page.reason}".rstrip() + "."
        )
