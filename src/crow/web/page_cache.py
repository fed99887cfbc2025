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
from crow.web.addresses import AllowedHosts, RedirectNotFollowed, WebUrl

if TYPE_CHECKING:
    from crow.web.fetching import Page
    from crow.web.page_content import PageContent

MOST_KEPT = 4
MOST_AT_ONCE = 4
"""Pages that are fetched and converted at the same time: a reply may ask for any number."""


class Failed(msgspec.Struct, frozen=True):
    """A server answered that it does not give the page."""

    said: str
    """Its status, in a sentence."""
    text: str
    """What else it says, which may be long."""


class PageCache:
    def __init__(self, hosts: AllowedHosts, may_follow: Callable[[WebUrl, WebUrl], bool]) -> None:
        self._hosts = hosts
        self._may_follow = may_follow
        self._kept: OrderedDict[str, PageContent] = OrderedDict()
        """The one that was used least recently comes first."""
        self._places = asyncio.Semaphore(MOST_AT_ONCE)

    async def fetch(self, url: WebUrl) -> "PageContent | RedirectNotFollowed | Failed":
        from crow.web.fetching import FetchLimits, fetch
        from crow.web.page_content import read_page

        async with self._places:
            page = await fetch(url, self._hosts, FetchLimits(), self._may_follow)
            if isinstance(page, RedirectNotFollowed):
                return page
            if not 200 <= page.status < 300:
                return await _failed(page)
            content = await read_page(page)
        self._keep(url, content)
        return content

    async def fetch_cached(self, url: WebUrl) -> "PageContent | RedirectNotFollowed | Failed":
        """The page as it was fetched before; fetched anew if it is not kept any more."""
        kept = self._kept.get(url.text)
        if kept is None:
            return await self.fetch(url)
        self._keep(url, kept)
        return kept

    def _keep(self, url: WebUrl, content: "PageContent") -> None:
        self._kept[url.text] = content
        self._kept.move_to_end(url.text)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)


async def _failed(page: "Page") -> Failed:
    from crow.web.page_content import read_page

    said = f"{one_line(page.url.text, 200)} answered with status {page.status} {page.reason}".rstrip() + "."
    if page.retry_after:
        said += f" Try again after: {page.retry_after}."
    try:
        content = await read_page(page)
    except WebError:
        return Failed(said, "")
    return Failed(said, "" if content.image is not None else content.text.strip())
