"""Lists that a server gives page by page."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

MOST_PAGES = 100

T = TypeVar("T")


async def all_pages(
    listing: Callable[..., Awaitable[Any]], items: Callable[[Any], list[T]], most: int
) -> tuple[list[T], bool]:
    """As many as may be, and whether there are more."""
    found: list[T] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await listing(cursor=cursor)
        found += items(page)
        cursor = page.next_cursor
        if not cursor or len(found) > most:
            break
    return found[:most], len(found) > most or bool(cursor)
