"""Where a provider is and with which key: settings and environment, checked before anything is sent."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit, urlunsplit

from crow.config.settings import ProviderSettings
from crow.errors import ConfigError, SetupNeeded

DEFAULT_URLS = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com/v1"}

VERSION = re.compile(r"v\d\w*")


@dataclass(frozen=True)
class Endpoint:
    provider: str
    url: str
    """Ends in the version, such as `https://api.example.com/v1`, and holds no password: it may be shown."""
    key: str = field(default="", repr=False)
    key_name: str = ""
    """Where the key came from, in words for a remedy."""
    login: tuple[str, str] | None = field(default=None, repr=False)
    """Name and password, for a server behind a gate: written into base_url as `http://name:password@host`."""

    def scrub(self, text: str) -> str:
        """Text that is fit to be shown: providers quote what they were sent, keys included."""
        for secret in (self.key, self.login[1] if self.login else ""):
            if secret:
                text = text.replace(secret, "[secret]")
        return text


def find(provider: str, settings: ProviderSettings, environ: Mapping[str, str]) -> Endpoint:
    url, login = _address(provider, settings)
    key, key_name = _key(provider, settings, environ)
    return Endpoint(provider, url, key, key_name, login)


def _address(provider: str, settings: ProviderSettings) -> tuple[str, tuple[str, str] | None]:
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
    return url, login


def _wrong_url(provider: str) -> ConfigError:
    return ConfigError(
        f"providers.{provider}.base_url is no address of a server.",
        remedy="Write it like https://api.example.com/v1.",
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
    if not (key.isascii() and key.isprintable()):
        # Said here because an HTTP library would quote the key in its own error.
        raise ConfigError(
            f"The key of {provider} has characters that no key has (see {key_name}).", remedy="Copy it again."
        )
    return key, key_name
