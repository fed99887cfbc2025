"""What a page says of itself."""

import msgspec
from bs4 import BeautifulSoup, Tag

_DATES = ("article:modified_time", "article:published_time", "date", "time")


class About(msgspec.Struct, frozen=True):
    title: str
    date: str
    base: str
    """What its links start from, where that is not its address."""


def about(soup: BeautifulSoup) -> About:
    found: dict[str, str] = {}
    """The first of each kind."""
    for element in soup.descendants:
        if isinstance(element, Tag) and (kind := _kind(element)) and kind not in found:
            text = " ".join(_text(element).split())
            if text:
                found[kind] = text
    title = found.get("title") or found.get("og:title") or found.get("h1") or ""
    date = next((found[kind] for kind in _DATES if kind in found), "")
    return About(title[:300], date[:40], found.get("base", ""))


def _kind(element: Tag) -> str:
    if element.name == "meta":
        return str(element.get("property", "") or element.get("name", ""))
    return element.name if element.name in ("title", "h1", "time", "base") else ""


def _text(element: Tag) -> str:
    match element.name:
        case "meta":
            return str(element.get("content", ""))
        case "time":
            return str(element.get("datetime", ""))
        case "base":
            return str(element.get("href", ""))
        case _:
            return element.get_text(" ", strip=True)
