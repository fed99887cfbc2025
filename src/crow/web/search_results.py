"""Reads the results of a search service, whatever it calls their parts: address, title, snippet, date."""

import html
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from crow.config.hosts import host_of

LATEST = 100_000_000_000
"""Seconds since 1970: a larger number is one of milliseconds."""
_TAG = re.compile(r"<[^<>]{0,200}>")


class SearchResult(msgspec.Struct, frozen=True):
    title: str
    url: str
    snippet: str = ""
    date: str = ""


class ResultFields(msgspec.Struct, frozen=True):
    """What a service calls the parts of a result."""

    url: str = "url"
    title: str = "title"
    snippet: str = "content"
    dates: tuple[str, ...] = ()
    """The first that has a value is taken."""


class _Result(msgspec.Struct):
    url: str
    title: str | None = None
    snippet: str | None = None


def usable_results(entries: Sequence[Any], fields: ResultFields, most: int) -> list[SearchResult]:
    """The entries that `web_fetch` could open, and no more than are wanted. An odd entry costs none of the others.

    ValidationError if there are entries, and all of them are odd.
    """
    found: list[SearchResult] = []
    odd: msgspec.ValidationError | None = None
    for entry in entries:
        try:
            found.append(_read_entry(entry, fields))
        except msgspec.ValidationError as error:
            odd = error
    if odd is not None and not found:
        raise odd
    return [entry for entry in found if entry.url.startswith(("http://", "https://")) and host_of(entry.url)][:most]


def _read_entry(entry: Any, fields: ResultFields) -> SearchResult:
    given = msgspec.convert(entry, dict[str, Any])
    named = {"url": fields.url, "title": fields.title, "snippet": fields.snippet}
    result = msgspec.convert({ours: given.get(theirs) for ours, theirs in named.items()}, _Result)
    date = next((given[name] for name in fields.dates if given.get(name)), None)
    return SearchResult(_without_tags(result.title), result.url, _without_tags(result.snippet), _date_text(date))


def _date_text(given: Any) -> str:
    """A date as text, however a service writes it; empty for what is none."""
    if isinstance(given, str):
        return given
    if not isinstance(given, int | float) or isinstance(given, bool):
        return ""
    seconds = given / 1000 if given > LATEST else given
    try:
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return ""


def _without_tags(marked: str | None) -> str:
    """A snippet without the tags that some services mark the hits with."""
    return " ".join(html.unescape(_TAG.sub("", marked or "")).split())
