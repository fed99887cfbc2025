"""Fetches a page and makes it readable, a few at a time, and caches the last ones: one that is read in pieces must not
change in between.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from crow.errors import WebError
from crow.visible import one_line
from crow.web.reach import Reach
from crow.web.urls import RedirectNotFollowed, WebUrl

if TYPE_CHECKING:
    from crow.web.fetching import Page
    from crow.web.reading import Reading

MOST_KEPT = 4
MOST_AT_ONCE = 4
"""Pages that are fetched and converted at the same time: a reply may ask for any number."""


class Failed(msgspec.Struct, frozen=True):
    """A server answered that it does not give the page."""

    said: str
    """Its status, in a sentence."""
    text: str
    """What else it says, which may be long."""


class Pages:
    def __init__(self, reach: Reach, may_follow: Callable[[WebUrl, WebUrl], bool]) -> None:
        self._reach = reach
        self._may_follow = may_follow
        self._kept: OrderedDict[str, Reading] = OrderedDict()
        """The one that was used least recently comes first."""
        self._places = asyncio.Semaphore(MOST_AT_ONCE)

    async def fetch(self, url: WebUrl) -> "Reading | RedirectNotFollowed | Failed":
        from crow.web.fetching import FetchLimits, fetch
        from crow.web.reading import read_page

        async with self._places:
            page = await fetch(url, self._reach, FetchLimits(), self._may_follow)
            if isinstance(page, RedirectNotFollowed):
                return page
            if not 200 <= page.status < 300:
                return await _failed(page)
            reading = await read_page(page)
        self._keep(url, reading)
        return reading

    async def fetch_cached(self, url: WebUrl) -> "Reading | RedirectNotFollowed | Failed":
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


async def _failed(page: "Page") -> Failed:
    from crow.web.reading import read_page

    said = f"{one_line(page.url.text, 200)} answered with status {page.status} {page.reason}".rstrip() + "."
    if page.retry_after:
        said += f" Ask again after: {page.retry_after}."
    try:
        reading = await read_page(page)
    except WebError:
        return Failed(said, "")
    return Failed(said, "" if reading.image is not None else reading.text.strip())
