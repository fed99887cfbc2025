"""Which search service is asked: the configured one, or DuckDuckGo if none is."""

from collections.abc import Callable, Mapping

import msgspec

from crow.config.settings import WebSettings
from crow.errors import ConfigError
from crow.web.search.base import Account, SearchService, host_of
from crow.web.search.brave import Brave
from crow.web.search.duckduckgo import DuckDuckGo
from crow.web.search.kagi import Kagi
from crow.web.search.searxng import SearXNG
from crow.web.search.serper import Serper
from crow.web.search.tavily import Tavily


class _Kind(msgspec.Struct, frozen=True):
    name: str
    make: Callable[[Account], SearchService]
    address: str = ""
    """Empty if everybody has their own."""
    needs_key: bool = True


KINDS = {
    "searxng": _Kind("SearXNG", SearXNG, needs_key=False),
    "brave": _Kind("Brave Search", Brave, "https://api.search.brave.com"),
    "tavily": _Kind("Tavily", Tavily, "https://api.tavily.com"),
    "serper": _Kind("Serper", Serper, "https://google.serper.dev"),
    "kagi": _Kind("Kagi", Kagi, "https://kagi.com"),
}
WITHOUT_KEY = ("", "duckduckgo", "ddgs")
SECTION = "the section [web] of config.toml"


def choose(settings: WebSettings, environ: Mapping[str, str]) -> SearchService:
    """ConfigError if what is configured does not suffice."""
    wanted = settings.search.strip().lower()
    if wanted in WITHOUT_KEY:
        return DuckDuckGo()
    kind = KINDS.get(wanted)
    if kind is None:
        known = ", ".join([*KINDS, "duckduckgo"])
        raise ConfigError(
            f"There is no search service “{settings.search}”.", remedy=f"Set search in {SECTION}: {known}."
        )
    address = (settings.url or kind.address).rstrip("/")
    if not address.startswith(("http://", "https://")) or not host_of(address):
        what = "cannot be read" if settings.url else "is missing"
        raise ConfigError(f"The address of {kind.name} {what}.", remedy=f"Set url in {SECTION}, with http(s)://.")
    key, key_name = _key(settings, environ)
    if kind.needs_key and not key:
        remedy = f"Set api_key_env (the name of a variable) or api_key in {SECTION}."
        if settings.api_key_env:
            remedy = f"Set the variable {settings.api_key_env}, which api_key_env in {SECTION} names."
        raise ConfigError(f"The key of {kind.name} is missing.", remedy=remedy)
    return kind.make(Account(kind.name, address, key, key_name))


def _key(settings: WebSettings, environ: Mapping[str, str]) -> tuple[str, str]:
    if settings.api_key:
        return settings.api_key.strip(), "api_key in the section [web] of config.toml"
    if settings.api_key_env:
        return environ.get(settings.api_key_env, "").strip(), f"the variable {settings.api_key_env}"
    return "", ""
