"""Where a provider is and with which key: settings and environment, checked before anything is sent."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from crow.config.settings import ProviderSettings
from crow.errors import ConfigError, SetupNeeded
from crow.model.scrubbing import scrub

DEFAULT_URLS = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com/v1"}

VERSION = re.compile(r"v\d\w*")
SECRET_NAME = re.compile(r"key|token|secret|sig|pass|auth", re.IGNORECASE)
"""What a parameter of an address is called whose value should not be shown."""


@dataclass(frozen=True)
class Endpoint:
    provider: str
    url: str
    """Ends in the version, such as `https://api.example.com/v1`, and holds neither password nor query: fit to show."""
    key: str = field(default="", repr=False)
    key_name: str = ""
    """Where the key came from, in words for a remedy."""
    login: tuple[str, str] | None = field(default=None, repr=False)
    """Name and password, for a server behind a gate: written into base_url as `http://name:password@host`."""
    query: str = field(default="", repr=False)
    """Goes with every request, such as `api-version=2024-10-21`."""

    def address(self, path: str) -> str:
        """Where a request to this path goes; the path may bring parameters of its own."""
        path, _, own = path.partition("?")
        query = "&".join(filter(None, (self.query, own)))
        return f"{self.url}{path}?{query}" if query else self.url + path

    def secrets(self) -> list[str]:
        found = [value for name, value in parse_qsl(self.query) if SECRET_NAME.search(name)]
        if self.login:
            name, password = self.login
            found += [f"{name}:{password}", password or name]
        return [self.key, *found]

    def scrub(self, text: str) -> str:
        """Text that is fit to be shown. To be called before the text is shortened."""
        return scrub(text, self.secrets())


def find(provider: str, settings: ProviderSettings, environ: Mapping[str, str]) -> Endpoint:
    url, query, login = _address(provider, settings)
    key, key_name = _key(provider, settings, environ)
    if login and key and settings.type == "openai":
        # Both would go into the same header; with Anthropic's API, where the key has one of its own, both are sent.
        raise ConfigError(
            f"{provider} has two credentials: a name or password in providers.{provider}.base_url, and a key "
            f"({key_name}). Only one of them can be sent.",
            remedy="Remove one of them.",
        )
    return Endpoint(provider, url, key, key_name, login, query)


def _address(provider: str, settings: ProviderSettings) -> tuple[str, str, tuple[str, str] | None]:
    try:
        parts = urlsplit(settings.base_url or DEFAULT_URLS[settings.type])
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError as error:
        raise _wrong_url(provider) from error
    if not usable:
        raise _wrong_url(provider)
    path = parts.path.rstrip("/").removesuffix("/chat/completions").removesuffix("/messages")
    if not any(VERSION.fullmatch(segment) for segment in path.split("/")):
        path += "/v1"
    url = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path, "", ""))
    login = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return url, parts.query, login


def _wrong_url(provider: str) -> ConfigError:
    """The configuration was checked when it was read: of OpenAI's address, this is about the variable."""
    place = "the variable OPENAI_BASE_URL" if provider == "openai" else f"providers.{provider}.base_url"
    return ConfigError(
        f"The address in {place} is none of a server.", remedy="Write it like https://api.example.com/v1."
    )


def _key(provider: str, settings: ProviderSettings, environ: Mapping[str, str]) -> tuple[str, str]:
    if settings.api_key:
        key, key_name = settings.api_key, f"providers.{provider}.api_key"
    elif settings.api_key_env:
        key, key_name = environ.get(settings.api_key_env, ""), f"the variable {settings.api_key_env}"
        if not key.strip():
            raise SetupNeeded(
                f"The key of {provider} is missing: the variable {settings.api_key_env} is not set.",
                remedy="Set it where Crow is started, or run `crow login`.",
            )
    else:
        return "", ""
    key = key.strip()  # a line break at the end is what `cat keyfile` leaves
    if len(key.split()) > 1:
        raise ConfigError(
            f"The key of {provider} has a blank in it (see {key_name}).",
            remedy="Copy it again, alone: without a word such as Bearer before it.",
        )
    if not (key.isascii() and key.isprintable()):
        # Said here because an HTTP library would quote the key in its own error.
        raise ConfigError(
            f"The key of {provider} has characters that no key has (see {key_name}).", remedy="Copy it again."
        )
    return key, key_name
