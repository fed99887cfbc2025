"""Each search service against a server that speaks its format, and what goes wrong with them.

DuckDuckGo is the exception: its library brings an HTTP client of its own and reads pages that are only on the net. A
small stand-in for the library shows how its results are taken over, and how its failures are told.
"""

import asyncio
import json
import logging
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

from crow.config.settings import WebSettings
from crow.errors import ConfigError, WebError
from crow.web.search import DUCKDUCKGO_HOST, DuckDuckGo, SearchResult, SearchService, choose
from tests.support.website import Request, Website, answer

KEY = "sk-very-secret-key-123"

A, B, DATE = "https://a.example/", "https://b.example/", "2024-05-01T00:00:00"
RESULTS: dict[str, tuple[str, Any]] = {
    "searxng": (
        "/search",
        {
            "query": "crows",
            "results": [
                {"url": A, "title": "A &amp; B", "content": "About  crows.", "publishedDate": DATE},
                {"url": B, "title": "B", "content": None, "publishedDate": None, "engine": "x"},
            ],
            "answers": [],
        },
    ),
    "brave": (
        "/res/v1/web/search",
        {
            "type": "search",
            "web": {
                "type": "search",
                "results": [
                    {"url": A, "title": "A & B", "description": "About <strong>crows</strong>.", "page_age": DATE},
                    {"url": B, "title": "B", "description": ""},
                ],
            },
        },
    ),
    "tavily": (
        "/search",
        {
            "query": "crows",
            "results": [
                {"url": A, "title": "A & B", "content": "About crows.", "score": 0.9, "published_date": DATE},
                {"url": B, "title": "B", "content": "", "score": 0.1},
            ],
        },
    ),
    "serper": (
        "/search",
        {
            "searchParameters": {"q": "crows"},
            "organic": [
                {"link": A, "title": "A & B", "snippet": "About crows.", "date": DATE, "position": 1},
                {"link": B, "title": "B"},
            ],
        },
    ),
    "kagi": (
        "/api/v0/search",
        {
            "meta": {"id": "x"},
            "data": [
                {"t": 0, "url": A, "title": "A & B", "snippet": "About crows.", "published": DATE},
                {"t": 1, "list": ["ravens"]},
                {"t": 0, "url": B, "title": "B"},
            ],
        },
    ),
}
EXPECTED = [
    SearchResult("A & B", "https://a.example/", "About crows.", "2024-05-01T00:00:00"),
    SearchResult("B", "https://b.example/"),
]


def service(site: Website, name: str) -> SearchService:
    return choose(WebSettings(search=name, url=site.url, api_key=KEY), {})


def found(site: Website, name: str) -> list[SearchResult]:
    return asyncio.run(service(site, name).search("crows & “ravens”", 10))


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_read(name):
    path, body = RESULTS[name]
    with Website() as site:
        site.pages[path] = answer(json.dumps(body), "application/json")
        assert found(site, name) == EXPECTED
        [request] = site.requests
    assert _says_who_we_are(name, request)
    assert KEY not in request.path


def _says_who_we_are(name: str, request: Request) -> bool:
    query = "q=crows%20%26%20%E2%80%9Cravens%E2%80%9D"
    match name:
        case "searxng":
            return query in request.path.replace("+", "%20") and "format=json" in request.path
        case "brave":
            return query in request.path.replace("+", "%20") and request.headers["x-subscription-token"] == KEY
        case "kagi":
            return query in request.path.replace("+", "%20") and request.headers["authorization"] == f"Bot {KEY}"
        case "tavily":
            sent = json.loads(request.body)
            return sent == {"query": "crows & “ravens”", "max_results": 10} and KEY in request.headers["authorization"]
        case _:
            sent = json.loads(request.body)
            return sent == {"q": "crows & “ravens”", "num": 10} and request.headers["x-api-key"] == KEY


@pytest.mark.parametrize("name", RESULTS)
def test_an_odd_entry_costs_none_of_the_others(name):
    path, body = RESULTS[name]
    body = json.loads(json.dumps(body))
    entries = next(part for part in lists_in(body) if part)
    odd = [{"title": "no address"}, {**entries[0], "title": 5}, "text", None, 5]
    entries[1:1] = odd
    with Website() as site:
        site.pages[path] = answer(json.dumps(body), "application/json")
        assert found(site, name) == EXPECTED
        entries[:] = odd
        site.pages[path] = answer(json.dumps(body), "application/json")
        with pytest.raises(WebError, match="something other than a list of results"):
            found(site, name)


DATES = ("publishedDate", "page_age", "published_date", "date", "published")
"""What the services call it, which should be a text."""


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize(
    ("given", "date"),
    [(1714521600, "2024-05-01"), (1714521600000, "2024-05-01"), (1e300, ""), (True, ""), (["2024"], ""), (None, "")],
)
def test_a_date_that_is_no_text_costs_no_result(name, given, date):
    path, body = RESULTS[name]
    body = json.loads(json.dumps(body))
    entries = next(part for part in lists_in(body) if part)
    entries[0].update(dict.fromkeys(DATES, given))
    with Website() as site:
        site.pages[path] = answer(json.dumps(body), "application/json")
        first, second = found(site, name)
    assert (first.url, first.date, second) == (A, date, EXPECTED[1])


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("url", ["", "javascript:alert(1)", "/relative", "ftp://a.example/", "http://", "http://["])
def test_a_result_that_cannot_be_fetched_is_left_out(name, url):
    path, body = RESULTS[name]
    body = json.loads(json.dumps(body))
    entries = next(part for part in lists_in(body) if part)
    entries[0].update({"url": url, "link": url})
    with Website() as site:
        site.pages[path] = answer(json.dumps(body), "application/json")
        assert found(site, name) == EXPECTED[1:]


def lists_in(body: Any) -> Iterator[list[Any]]:
    """Every list of an answer, wherever it is."""
    for part in body.values():
        if isinstance(part, list):
            yield part
        elif isinstance(part, dict):
            yield from lists_in(part)


def test_no_more_results_than_wanted_are_given():
    body = {"results": [{"url": f"https://{number}.example/"} for number in range(50)]}
    with Website() as site:
        site.pages["/search"] = answer(json.dumps(body), "application/json")
        assert len(found(site, "searxng")) == 10


def test_brave_says_nothing_of_the_web_when_nothing_is_found():
    with Website() as site:
        site.pages["/res/v1/web/search"] = answer('{"type": "search"}', "application/json")
        assert found(site, "brave") == []


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize(
    ("page", "said"),
    [
        (answer(f"wrong key {KEY}", "text/plain", "401 Unauthorized"), r"rejected the key \(status 401\)"),
        (answer("no", "text/plain", "403 Forbidden"), r"status 403"),
        (answer("slowly", "text/plain", "429 Too Many Requests"), r"accepts no more requests for now"),
        (answer("oh", "text/plain", "500 Internal Server Error"), r"has an internal problem \(status 500\)"),
        (answer("gone", "text/plain", "404 Not Found"), r"rejected the request \(status 404\)"),
        (answer("", "text/plain", "302 Found", location="http://127.0.0.1:9/"), r"status 302"),
        (answer("<html>welcome</html>"), r"something other than a list of results"),
        (answer("[]", "application/json"), r"something other than a list of results"),
        (answer('{"results": 5}', "application/json"), r"something other than a list of results"),
        (answer(b"\xff\xfe", "application/json"), r"something other than a list of results"),
        (b"", r"cannot be reached"),
        (b"nonsense\r\n\r\n", r"cannot be reached"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_failures_are_told_without_the_key(name, page, said, caplog):
    caplog.set_level(logging.DEBUG)
    with Website() as site:
        site.pages[RESULTS[name][0]] = page
        with pytest.raises(WebError, match=said) as failure:
            found(site, name)
    assert KEY not in str(failure.value)
    assert KEY not in caplog.text


def test_where_a_proxy_is_set_a_service_that_is_not_reached_says_that_none_is_used(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://me:secret@proxy.test:3128")
    service = choose(WebSettings(search="searxng", url="http://0.0.0.0:9"), {})
    with pytest.raises(WebError, match="HTTP_PROXY") as raised:
        asyncio.run(service.search("crows", 3))
    assert "secret" not in str(raised.value)


def test_an_answer_without_an_end_is_given_up():
    with Website() as site:
        site.pages["/search"] = answer(b'{"results": [' + b" " * 3_000_000 + b"]}", "application/json")
        with pytest.raises(WebError, match="something other than a list of results"):
            found(site, "searxng")


# --- which one


def test_without_configuration_duckduckgo_is_asked():
    chosen = choose(WebSettings(), {})
    assert (chosen.name, chosen.host) == ("DuckDuckGo", "html.duckduckgo.com")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (WebSettings(search="altavista"), r"Unknown search service “altavista”.*searxng, brave, tavily"),
        (WebSettings(search="searxng"), r"address of SearXNG is missing.*url.*\[web\]"),
        (WebSettings(search="brave"), r"key of Brave Search is missing.*api_key_env.*\[web\]"),
        (WebSettings(search="tavily", api_key_env="TAVILY"), r"key of Tavily is missing.*variable TAVILY"),
        (WebSettings(search="kagi", api_key="x", url="kagi.com"), r"address of Kagi is invalid"),
        (WebSettings(search="searxng", url="http://[::1"), r"address of SearXNG is invalid.*url.*\[web\]"),
        (WebSettings(search="searxng", url="http://"), r"address of SearXNG is invalid"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(settings, said):
    with pytest.raises(ConfigError, match=said):
        choose(settings, {})


def test_a_key_can_come_from_a_variable():
    chosen = choose(WebSettings(search="Brave", api_key_env="BRAVE_KEY"), {"BRAVE_KEY": "k"})
    assert chosen.host == "api.search.brave.com"


# --- DuckDuckGo, by a stand-in for its library


class Failed(Exception):
    pass


def stand_in(monkeypatch: pytest.MonkeyPatch, results: Any) -> list[dict[str, Any]]:
    asked: list[dict[str, Any]] = []

    class DDGS:
        def __init__(self, timeout: int) -> None:
            pass

        def text(self, query: str, **options: Any) -> Any:
            asked.append({"query": query, **options})
            if isinstance(results, Exception):
                raise results
            return results

    monkeypatch.setitem(sys.modules, "ddgs", types.SimpleNamespace(DDGS=DDGS))
    monkeypatch.setitem(sys.modules, "ddgs.exceptions", types.SimpleNamespace(DDGSException=Failed))
    return asked


def test_duckduckgo_gives_what_its_library_finds(monkeypatch):
    asked = stand_in(monkeypatch, [{"title": "A", "href": "https://a.example/", "body": "About <b>crows</b>"}])
    assert asyncio.run(DuckDuckGo().search("crows", 10)) == [SearchResult("A", "https://a.example/", "About crows")]
    assert asked == [{"query": "crows", "max_results": 10, "backend": "duckduckgo"}]


def test_an_odd_entry_of_duckduckgo_costs_none_of_the_others(monkeypatch):
    stand_in(monkeypatch, [{"title": "no address"}, {"title": "A", "href": "https://a.example/"}, None])
    assert asyncio.run(DuckDuckGo().search("crows", 10)) == [SearchResult("A", "https://a.example/")]


def test_duckduckgo_may_find_nothing(monkeypatch):
    stand_in(monkeypatch, Failed("No results found."))
    assert asyncio.run(DuckDuckGo().search("crows", 10)) == []


@pytest.mark.parametrize("results", [Failed("ratelimit"), [{"other": 1}], None])
def test_duckduckgo_that_does_not_work_is_told_with_a_way_out(monkeypatch, results):
    stand_in(monkeypatch, results)
    with pytest.raises(WebError, match=r"\[web\]"):
        asyncio.run(DuckDuckGo().search("crows", 10))


def test_the_library_has_what_is_used_of_it():
    """The real one, as far as it can be looked at without the net."""
    import inspect

    import ddgs.ddgs
    import ddgs.engines
    import ddgs.exceptions

    assert issubclass(ddgs.exceptions.DDGSException, Exception)
    assert "timeout" in inspect.signature(ddgs.ddgs.DDGS.__init__).parameters
    assert ddgs.engines.ENGINES["text"]["duckduckgo"].search_url == f"https://{DUCKDUCKGO_HOST}/html/"
