"""Checks of the section [web]: whether the search service can be used, and what stands in the way of the web."""

import importlib
import ipaddress
import os
from collections.abc import Iterable, Mapping

from crow.cli.health import Check, fine, warn
from crow.config.settings import WebSettings
from crow.errors import ConfigError, WebError
from crow.timeouts import timeout
from crow.web.proxies import proxy_variable
from crow.web.reach import Reach
from crow.web.search.base import SearchService
from crow.web.search.choosing import choose
from crow.web.urls import bracketed, read_url

TIME_LIMIT = 5.0
SOMEWHERE = "www.example.com"
"""Stands for the hosts that a person might want to fetch from."""


async def check_web(settings: WebSettings, *, offline: bool) -> list[Check]:
    """Nothing here keeps Crow from working, so nothing is worse than a warning. No key is told."""
    checks = [await _check_search(settings, offline=offline)]
    checks += _check_variable(settings, os.environ)
    checks += _check_proxy(os.environ)
    return checks


async def _check_search(settings: WebSettings, *, offline: bool) -> Check:
    try:
        service = choose(settings, os.environ)
    except ConfigError as error:
        return warn(f"web search: {error.message}", error.remedy)
    if service.name == "DuckDuckGo":
        return _check_library()
    where = f"web search: {service.name} at {service.host}"
    if offline or not _is_nearby(service.host, settings):
        return fine(f"{where} (not tried)")
    return await _try_search(service, where)


def _check_library() -> Check:
    try:
        importlib.import_module("ddgs.ddgs")
    except Exception as error:  # noqa: BLE001 -- whatever it fails with: it cannot be used
        remedy = "Install it again: pip install ddgs. Or configure another service: search in [web] of config.toml."
        return warn(f"web search: the ddgs library cannot be used ({type(error).__name__})", remedy)
    return fine("web search: DuckDuckGo, which needs no key (not tried)")


async def _try_search(service: SearchService, where: str) -> Check:
    """One search, as the tool makes it: what a service refuses is seen only then."""
    try:
        async with timeout(TIME_LIMIT):
            await service.search("crow", 1)
    except TimeoutError:
        return warn(f"{where} did not answer within {TIME_LIMIT:g} s", "Is it running? Check url in [web].")
    except WebError as error:
        return warn(f"web search: {error.message}", error.remedy)
    return fine(f"{where} answers")


def _is_nearby(host: str, settings: WebSettings) -> bool:
    """On this machine, or one that the person counts to their own: asking it costs nobody anything."""
    try:
        url = read_url(f"http://{bracketed(host)}/")
    except WebError:
        return False
    if url.is_address and ipaddress.ip_address(url.host).is_loopback:
        return True
    return url.host == "localhost" or Reach(settings.allow_private).is_named(url)


def _check_variable(settings: WebSettings, environ: Mapping[str, str]) -> Iterable[Check]:
    """Where the service insists on a key, its absence was already told."""
    name = settings.api_key_env
    if settings.search.strip().lower() == "searxng" and name and not settings.api_key and not environ.get(name):
        yield warn(
            f"web search: the variable {name} is not set, so SearXNG is asked without a key",
            "Set it where crow is started, or take api_key_env out of [web].",
        )


def _check_proxy(environ: Mapping[str, str]) -> Iterable[Check]:
    names = [proxy_variable(scheme, SOMEWHERE, environ) for scheme in ("https", "http")]
    if found := list(dict.fromkeys(name for name in names if name)):
        yield warn(
            f"{' and '.join(found)} {'is' if len(found) == 1 else 'are'} set, but web_fetch uses no proxy",
            "Where only a proxy leads out, pages cannot be fetched; docs/web.md says why.",
        )
