"""The search services (DuckDuckGo, SearXNG, Brave and others): which one is asked, how each is asked, what its answers
and its errors mean.

Failures are told in our own words: a service's may hold the key.
"""

import asyncio
import contextlib
import html
import importlib
import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import httpx2
import msgspec

import crow
from crow.config.hosts import host_of, tls_for
from crow.config.settings import WebSettings
from crow.errors import ConfigError, WebError
from crow.timeouts import timeout
from crow.web.addresses import with_proxy_hint

LONGEST_WAIT = 15.0
"""Seconds for one request."""
LARGEST_ANSWER = 2 * 1024 * 1024
SECTION = "[web] of config.toml"
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


class SearchService(Protocol):
    @property
    def name(self) -> str:
        """For the person."""
        ...

    @property
    def host(self) -> str:
        """Who will be asked."""
        ...

    async def search(self, query: str, most: int) -> list[SearchResult]:
        """WebError if the service cannot be used."""
        ...


def choose(settings: WebSettings, environ: Mapping[str, str]) -> SearchService:
    """The configured service, or DuckDuckGo if none is. ConfigError if what is configured does not suffice."""
    wanted = settings.search.strip().lower()
    if wanted in WITHOUT_KEY:
        return DuckDuckGo()
    api = APIS.get(wanted)
    if api is None:
        known = ", ".join([*APIS, "duckduckgo"])
        raise ConfigError(f"Unknown search service “{settings.search}”.", remedy=f"Set search in {SECTION}: {known}.")
    address = (settings.url or api.address).rstrip("/")
    if not address.startswith(("http://", "https://")) or not host_of(address):
        what = "is invalid" if settings.url else "is missing"
        raise ConfigError(f"The address of {api.name} {what}.", remedy=f"Set url in {SECTION}, with http(s)://.")
    key, key_name = _key(settings, environ)
    if api.needs_key and not key:
        remedy = f"Set api_key_env (the name of a variable) or api_key in {SECTION}."
        if settings.api_key_env:
            remedy = f"Set the variable {settings.api_key_env}, which api_key_env in {SECTION} names."
        raise ConfigError(f"The key of {api.name} is missing.", remedy=remedy)
    return ApiService(api, Account(api.name, address, key, key_name))


def _key(settings: WebSettings, environ: Mapping[str, str]) -> tuple[str, str]:
    if settings.api_key:
        return settings.api_key.strip(), f"api_key in {SECTION}"
    if settings.api_key_env:
        return environ.get(settings.api_key_env, "").strip(), f"the variable {settings.api_key_env}"
    return "", ""


# --- DuckDuckGo without a key, through the `ddgs` library, which reads the pages that people see

WITHOUT_KEY = ("", "duckduckgo", "ddgs")
DUCKDUCKGO_HOST = "html.duckduckgo.com"
_LONGEST_LIBRARY_WAIT = 20.0
_REMEDY = f"Try again later, or configure another service: search in {SECTION}."


class DuckDuckGo:
    name = "DuckDuckGo"
    host = DUCKDUCKGO_HOST

    async def search(self, query: str, most: int) -> list[SearchResult]:
        try:
            # In a thread: the library waits for the network, and takes a moment to load.
            async with timeout(_LONGEST_LIBRARY_WAIT):
                raw = await asyncio.to_thread(_ask_library, query, most)
        except TimeoutError:
            raise WebError(f"DuckDuckGo did not answer within {_LONGEST_LIBRARY_WAIT:g} s.", remedy=_REMEDY) from None
        try:
            return usable_results(msgspec.convert(raw, list[Any]), ResultFields(url="href", snippet="body"), most)
        except msgspec.ValidationError:
            raise WebError("DuckDuckGo sent something other than a list of results.", remedy=_REMEDY) from None


def _ask_library(query: str, most: int) -> Any:
    ddgs = importlib.import_module("ddgs")
    exceptions = importlib.import_module("ddgs.exceptions")
    try:
        # Only this one of the services that the library knows: it is the host that the person was asked about.
        return ddgs.DDGS(timeout=10).text(query, max_results=most, backend="duckduckgo")
    except exceptions.DDGSException as error:
        if "No results found" in str(error):
            return []
        raise WebError("DuckDuckGo cannot be reached, or accepts no more requests for now.", remedy=_REMEDY) from error


# --- services with an API


class Api(msgspec.Struct, frozen=True):
    """How a service is asked, and what it answers."""

    name: str
    path: str
    results: str
    """Where the results are in the answer."""
    fields: ResultFields
    query: str = "q"
    count: str = ""
    """The name of the number of results; empty if it cannot be chosen."""
    fixed: Mapping[str, str] = {}
    """What else is sent."""
    address: str = ""
    """Empty if everybody has their own."""
    needs_key: bool = True
    key_header: tuple[str, str] = ("authorization", "Bearer ")
    """The header that holds the key, and what comes before the key in it."""
    posts: bool = False
    """Whether the request is the body of a POST; else it is in the query of a GET."""
    nothing: str = ""
    """What an answer has that leaves its results out, as nothing was found."""

    def request(self, query: str, most: int) -> dict[str, Any]:
        count = {self.count: most if self.posts else str(most)} if self.count else {}
        return {self.query: query, **count, **self.fixed}

    def entries(self, answer: Any) -> list[Any]:
        """ValidationError if the answer is no list of results."""
        found = msgspec.convert(answer, dict[str, Any])
        if self.nothing in found and self.results.partition(".")[0] not in found:
            return []
        *outer, last = self.results.split(".")
        for step in outer:
            found = msgspec.convert(found.get(step), dict[str, Any])
        return msgspec.convert(found.get(last), list[Any])


APIS = {
    "searxng": Api(
        name="SearXNG",
        path="/search",
        fixed={"format": "json"},
        results="results",
        fields=ResultFields(dates=("publishedDate",)),
        needs_key=False,
    ),
    "brave": Api(
        name="Brave Search",
        path="/res/v1/web/search",
        count="count",
        results="web.results",
        fields=ResultFields(snippet="description", dates=("page_age", "age")),
        address="https://api.search.brave.com",
        key_header=("x-subscription-token", ""),
        nothing="type",
    ),
    "tavily": Api(
        name="Tavily",
        path="/search",
        query="query",
        count="max_results",
        results="results",
        fields=ResultFields(dates=("published_date",)),
        address="https://api.tavily.com",
        posts=True,
    ),
    "serper": Api(
        name="Serper",
        path="/search",
        count="num",
        results="organic",
        fields=ResultFields(url="link", snippet="snippet", dates=("date",)),
        address="https://google.serper.dev",
        key_header=("x-api-key", ""),
        posts=True,
    ),
    "kagi": Api(
        name="Kagi",
        path="/api/v0/search",
        count="limit",
        results="data",
        fields=ResultFields(snippet="snippet", dates=("published",)),
        address="https://kagi.com",
        key_header=("authorization", "Bot "),
    ),
}


class Account(msgspec.Struct, frozen=True):
    """Where a service is asked, and as whom."""

    name: str
    address: str
    """Without a slash at the end."""
    key: str = ""
    key_name: str = ""
    """Where the key was found: a person can look there."""

    @property
    def host(self) -> str:
        return host_of(self.address)


class ApiService:
    def __init__(self, api: Api, account: Account) -> None:
        self.name, self.host = account.name, account.host
        self._api = api
        self._account = account

    async def search(self, query: str, most: int) -> list[SearchResult]:
        content = await self._ask(self._api.request(query, most))
        try:
            return usable_results(self._api.entries(msgspec.json.decode(content)), self._api.fields, most)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            raise _no_list(self._account) from None

    async def _ask(self, request: Mapping[str, Any]) -> bytes:
        """The person configured the address, so that it may be a private one."""
        account, api = self._account, self._api
        header, before_key = api.key_header
        headers = {"accept": "application/json"} | ({header: before_key + account.key} if account.key else {})
        try:
            async with timeout(LONGEST_WAIT), _client(account) as client:
                built = client.build_request(
                    "POST" if api.posts else "GET",
                    f"{account.address}{api.path}",
                    params=None if api.posts else request,
                    json=request if api.posts else None,
                    headers=headers,
                )
                response = await client.send(built, stream=True)
                async with contextlib.aclosing(response):
                    if response.status_code != 200:
                        raise _refused(account, response.status_code)
                    return await _read(response)
        except (TimeoutError, httpx2.TimeoutException):
            remedy = _or_the_proxy(account, "Try again later.")
            raise _unusable(account, f"did not answer within {LONGEST_WAIT:g} s", remedy) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError):  # a header cannot hold every key
            remedy = _or_the_proxy(account, f"Check url and the key in {SECTION}, and the network.")
            raise _unusable(account, "cannot be reached", remedy) from None


def _client(account: Account) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        headers={"user-agent": f"crow/{crow.__version__}"},
        timeout=LONGEST_WAIT,
        verify=tls_for(account.address.partition(":")[0], os.environ),
        trust_env=False,
    )


async def _read(response: httpx2.Response) -> bytes:
    content = bytearray()
    async for piece in response.aiter_bytes():
        content += piece
        if len(content) > LARGEST_ANSWER:
            break  # cut off, and so no longer JSON
    return bytes(content)


def _refused(account: Account, status: int) -> WebError:
    match status:
        case 401 | 403 if account.key_name:
            return _unusable(account, f"rejected the key (status {status})", f"Check {account.key_name}.")
        case 401 | 403:
            remedy = "SearXNG gives results to programs only if `json` is among search.formats in its settings.yml."
            return _unusable(account, f"rejected the request (status {status})", remedy)
        case 402 | 429 | 432 | 433:
            remedy = "Wait a while, or check the plan of your account."
            return _unusable(account, f"accepts no more requests for now (status {status})", remedy)
        case _ if status >= 500:
            return _unusable(account, f"has an internal problem (status {status})", "Try again later.")
        case _:
            return _unusable(account, f"rejected the request (status {status})", "Check url in [web].")


def _no_list(account: Account) -> WebError:
    remedy = f"Check url in {SECTION}: is it the address of {account.name}?"
    return _unusable(account, "sent something other than a list of results", remedy)


def _or_the_proxy(account: Account, remedy: str) -> str:
    return with_proxy_hint(remedy, account.address.partition(":")[0], account.host)


def _unusable(account: Account, what: str, remedy: str) -> WebError:
    return WebError(f"{account.name} at {account.host} {what}.", remedy=remedy)


# --- results, whatever a service calls their parts


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
