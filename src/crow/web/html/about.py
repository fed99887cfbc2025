"""What a page says of itself."""

import re

import msgspec
from bs4 import BeautifulSoup, Tag

_DATES = ("article:modified_time", "article:published_time", "date", "time")
_DESCRIPTIONS = ("description", "og:description", "twitter:description")
_PLACES_OF_TITLES = frozenset({"head", "body", "html", "[document]"})
"""Pictures in a page have titles of their own."""
_REFRESH = re.compile(r"\s*[\d.]*\s*[;,]?\s*url\s*=\s*[\"']?\s*([^\"']+)", re.IGNORECASE)
_MOST_FRAMES = 10


class About(msgspec.Struct, frozen=True):
    title: str
    date: str
    base: str
    """What its links start from, where that is not its address."""
    description: str
    without_scripts: str
    """What it says to those who run no scripts."""
    has_scripts: bool
    refresh: str
    """Where it leads on to by itself."""
    frames: tuple[str, ...]
    """The pages that it puts together."""


def about(soup: BeautifulSoup) -> About:
    found: dict[str, str] = {}
    """The first of each kind."""
    frames: list[str] = []
    has_scripts = False
    for element in soup.descendants:
        if not isinstance(element, Tag):
            continue
        has_scripts = has_scripts or element.name == "script"
        if element.name == "frame" and (source := str(element.get("src", ""))):
            frames.append(source)
        if (kind := _kind(element)) and kind not in found:
            text = " ".join(_text(element).split())
            if text:
                found[kind] = text
    title = found.get("title") or found.get("og:title") or found.get("h1") or ""
    date = next((found[kind] for kind in _DATES if kind in found), "")
    refresh = _REFRESH.match(found.get("refresh", ""))
    return About(
        title[:300],
        date[:40],
        found.get("base", ""),
        next((found[kind] for kind in _DESCRIPTIONS if kind in found), "")[:2000],
        found.get("noscript", "")[:2000],
        has_scripts,
        refresh[1] if refresh else "",
        tuple(frames[:_MOST_FRAMES]),
    )


def _kind(element: Tag) -> str:
    match element.name:
        case "meta" if str(element.get("http-equiv", "")).lower() == "refresh":
            return "refresh"
        case "meta":
            return str(element.get("property", "") or element.get("name", ""))
        case "title":
            return "title" if element.parent is None or element.parent.name in _PLACES_OF_TITLES else ""
        case "h1" | "time" | "base" | "noscript":
            return element.name
        case _:
            return ""


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
