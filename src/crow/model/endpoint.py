"""Where a provider is reached, with which key and headers: from settings and environment, checked before anything is
sent.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from crow.config.hosts import SECRET_NAME, host_of, is_header_value, looks_secret, secrets_in, shown_address
from crow.config.settings import VENDORS, ProviderSettings
from crow.errors import ConfigError, SetupNeeded
from crow.model.credentials import scrub

METHODS = ("/chat/completions", "/responses", "/messages")

VERSION = re.compile(r"v\d\w*")
VARIABLE = re.compile(r"\$\{(\w+)\}")

OPENAI_HOSTS = ("api.openai.com",)
AZURE_HOSTS = ("openai.azure.com", "cognitiveservices.azure.com", "services.ai.azure.com")
XAI_HOSTS = ("api.x.ai",)
SILENT_HOSTS = ("api.cerebras.ai",)
"""Answer 400 without a word to a request that is too long."""

ANTHROPIC_VERSION = "2023-06-01"


@dataclass(frozen=True)
class Endpoint:
    provider: str
    url: str
    """What a method's path is added to, such as `https://api.example.com/v1`; it holds neither password nor query, but
    its path may hold a key: see `shown_url`."""
    key: str = field(default="", repr=False)
    key_name: str = ""
    """Where the key came from, in words for a remedy."""
    login: tuple[str, str] | None = field(default=None, repr=False)
    """Name and password, for a server behind a gate: written into base_url as `http://name:password@host`."""
    query: str = field(default="", repr=False)
    """Goes with every request, such as `api-version=2024-10-21`."""
    other_url: str = ""
    """To be tried where there is nothing at `url`: whether an address has a version in it can only be guessed."""
    method: str = ""
    """The method's path that the person wrote the address with, if they did."""
    key_header: str = "authorization"
    key_command: str = field(default="", repr=False)
    """Prints the key; `key` is then what it printed last."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Sent with every request, beside the key's."""
    hidden: tuple[str, ...] = field(default=(), repr=False)
    """What is secret in the headers, and in what is added to every request's body."""

    def address(self, path: str) -> str:
        """Where a request to this path goes; the path may bring parameters of its own."""
        path, _, own = path.partition("?")
        query = "&".join(filter(None, (self.query, own)))
        return f"{self.url}{path}?{query}" if query else self.url + path

    def credentials(self) -> dict[str, str]:
        """The header that carries the key."""
        if not self.key:
            return {}
        return {self.key_header: f"Bearer {self.key}" if self.key_header.lower() == "authorization" else self.key}

    @property
    def shown_url(self) -> str:
        return shown_address(self.url)

    @property
    def host(self) -> str:
        return host_of(self.url)

    @property
    def is_openai(self) -> bool:
        return _is_below(self.host, OPENAI_HOSTS)

    @property
    def is_azure(self) -> bool:
        return _is_below(self.host, AZURE_HOSTS)

    @property
    def is_xai(self) -> bool:
        return _is_below(self.host, XAI_HOSTS)

    @property
    def silence_is_overflow(self) -> bool:
        return _is_below(self.host, SILENT_HOSTS)

    def secrets(self) -> list[str]:
        found = [value for name, value in parse_qsl(self.query) if SECRET_NAME.search(name) or looks_secret(value)]
        if self.login:
            name, password = self.login
            found += [f"{name}:{password}", password or name]
        return [self.key, *found, *secrets_in(self.url), *self.hidden]

    def scrub(self, text: str) -> str:
        """Text that is fit to be shown. To be called before the text is shortened."""
        return scrub(text, self.secrets())


def find_endpoint(provider: str, settings: ProviderSettings, environ: Mapping[str, str]) -> Endpoint:
    place = _address(provider, settings)
    key, key_name = _key(provider, settings, environ)
    headers, hidden = _headers(provider, settings, environ)
    place = replace(
        place,
        key=key,
        key_name=key_name,
        key_header=settings.api_key_header or _usual_header(settings, place),
        key_command=settings.api_key_command,
        headers=headers,
        hidden=(*hidden, *_secrets_in(settings.extra_body)),
    )
    if place.login and (key or place.key_command) and place.key_header.lower() == "authorization":
        # Both would go into the same header; where the key has one of its own, both are sent.
        raise ConfigError(
            f"{provider} has two credentials: a name or password in providers.{provider}.base_url, and a key "
            f"({key_name}). Only one of them can be sent.",
            remedy="Remove one of them.",
        )
    return place


def _address(provider: str, settings: ProviderSettings) -> Endpoint:
    try:
        parts = urlsplit(settings.base_url or VENDORS[settings.type].base_url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError as error:
        raise _wrong_url(provider) from error
    if not usable:
        raise _wrong_url(provider)
    path = parts.path.rstrip("/")
    method = next((method for method in METHODS if path.endswith(method)), "")
    first, other = _paths(path.removesuffix(method), parts.hostname or "", settings.type, is_whole=bool(method))
    host = parts.netloc.rpartition("@")[2]
    return Endpoint(
        provider,
        urlunsplit((parts.scheme, host, first, "", "")),
        login=(unquote(parts.username), unquote(parts.password or "")) if parts.username else None,
        query=parts.query,
        other_url="" if other is None else urlunsplit((parts.scheme, host, other, "", "")),
        method=method,
    )


def _paths(path: str, host: str, kind: str, *, is_whole: bool) -> tuple[str, str | None]:
    """The path that methods are below, and the one to try if there is nothing.

    What a person wrote counts as it is. To a host alone a version is added; and to every address of the messages API,
    whose own programs add it, so that its vendors name their addresses without.
    """
    if is_whole or any(VERSION.fullmatch(segment) for segment in path.split("/")):
        return path, None
    version = "/openai/v1" if not path and _is_below(host, AZURE_HOSTS) else "/v1"
    if path and kind == "openai":
        return path, path + version
    return path + version, path


def _is_below(host: str, domains: Sequence[str]) -> bool:
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)


def _usual_header(settings: ProviderSettings, place: Endpoint) -> str:
    if settings.type == "anthropic":
        return "x-api-key"
    return "api-key" if place.is_azure else "authorization"


def _headers(
    provider: str, settings: ProviderSettings, environ: Mapping[str, str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The headers of every request, and what of them no person and no log should see."""
    headers = {"anthropic-version": ANTHROPIC_VERSION} if settings.type == "anthropic" else {}
    hidden: list[str] = []
    for name, written in settings.headers.items():
        variables = {variable: environ.get(variable, "").strip() for variable in VARIABLE.findall(written)}
        if missing := [variable for variable, value in variables.items() if not value]:
            raise SetupNeeded(
                f"The header {name} of {provider} is missing: the variable {missing[0]} is not set.",
                remedy="Set it where Crow is started.",
            )
        value = VARIABLE.sub(lambda found, variables=variables: variables[found[1]], written)
        if not is_header_value(value):
            raise ConfigError(
                f"The header {name} of {provider} contains characters that are not allowed in a header.",
                remedy=f"Check the variables in providers.{provider}.headers.",
            )
        headers[name.lower()] = value
        hidden += variables.values()
        if SECRET_NAME.search(name):
            hidden += [value, max(value.split(), key=len, default="")]  # the last without the word Bearer
    return headers, tuple(hidden)


def _secrets_in(value: Any, *, secret: bool = False) -> Iterator[str]:
    """The texts below a name that sounds secret, at any depth."""
    if isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            yield from _secrets_in(inner, secret=secret or SECRET_NAME.search(name) is not None)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _secrets_in(inner, secret=secret)
    elif secret and isinstance(value, str):
        yield value


def _wrong_url(provider: str) -> ConfigError:
    """The configuration was checked when it was read: where a variable may hold the address, this is about it."""
    variable = VENDORS[provider].address_variable if provider in VENDORS else ""
    place = f"the variable {variable}" if variable else f"providers.{provider}.base_url"
    return ConfigError(
        f"The address in {place} is not a valid URL.", remedy="Use a URL such as https://api.example.com/v1."
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
        return "", f"providers.{provider}.api_key_command" if settings.api_key_command else ""
    key = key.strip()  # a line break at the end is what `cat keyfile` leaves
    if len(key.split()) > 1:
        raise ConfigError(
            f"The key of {provider} contains a space (see {key_name}).",
            remedy="Copy the key alone, without a word such as Bearer.",
        )
    if not (key.isascii() and key.isprintable()):
        # Said here because an HTTP library would quote the key in its own error.
        raise ConfigError(
            f"The key of {provider} contains characters that are not allowed in a key (see {key_name}).",
            remedy="Copy it again.",
        )
    return key, key_name
