"""Checks hosts and URLs, says which are nearby, and which proxy and certificates a connection uses.

A URL is shown without its secrets. A host has one spelling, so that a rule cannot miss the host it means.
"""

import functools
import re
import socket
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING

from crow.errors import ConfigError

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

    import httpx2

ONE_HOST = 'expected a host alone, like "docs.python.org", or all below one, like "*.python.org"'

_NAME = re.compile(r"(?:\*\.)?(?:[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?\.?")
NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""The last label of a host that a resolver takes for an IPv4 address, in whichever spelling."""


def check_host(key: str, written: str) -> None:
    """ValueError says what was expected."""
    host = written.strip().lower()
    if not host.isascii():
        raise ValueError(f"{key}: expected the host's ASCII form, which begins with xn--, found {written[:100]!r}")
    if ":" in host:
        _check_address(key, written, host.strip("[]"))
    elif not _NAME.fullmatch(host):
        raise ValueError(f"{key}: {ONE_HOST}, found {written[:100]!r}")
    elif NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]):
        _check_number(key, written, host)


def check_url(key: str, written: str) -> None:
    """ValueError says what was expected. The address is not repeated: it may hold a password."""
    from urllib.parse import urlsplit  # only for the few who configure one

    expected = f"{key}: expected an address that begins with http:// or https:// and a host"
    try:
        parts = urlsplit(written)
        has_host, _ = bool(parts.hostname), parts.port
    except ValueError:
        raise ValueError(f"{expected}, found one that cannot be read") from None
    if parts.scheme not in ("http", "https") or not has_host or written.split() != [written]:
        raise ValueError(expected)


_AUTHORITY = re.compile(r"https?://(?:[^/?#]*@)?((\[[^\]]*\]|[^/:?#\[\]]*)[^/?#]*)", re.IGNORECASE)
_THIS_MACHINE = re.compile(r"localhost|.*\.localhost|127\.[\d.]+|0\.0\.0\.0|\[::1\]|\[::\]|host\.docker\.internal")
_NEARBY = re.compile(
    r"10\.[\d.]+|192\.168\.[\d.]+|172\.(?:1[6-9]|2\d|3[01])\.[\d.]+|169\.254\.[\d.]+|\[f[cde][0-9a-f:]+\]"
    r"|[^.\[]+|.*\.(?:local|lan|home|internal|home\.arpa)"
)


def is_on_this_machine(url: str) -> bool:
    return _THIS_MACHINE.fullmatch(host_of(url)) is not None


def is_nearby(url: str) -> bool:
    """On this machine, or in a network of one's own: by the address alone, nobody is asked."""
    return is_on_this_machine(url) or _NEARBY.fullmatch(host_of(url)) is not None


def host_of(url: str) -> str:
    """The host that an address names, in lower case, IPv6 in brackets; empty if it is no address."""
    found = _AUTHORITY.match(url)
    return found[2].lower() if found else ""


def host_and_port(url: str) -> str:
    """The host that an address names, with its port if it names one; empty if it is no address."""
    found = _AUTHORITY.match(url)
    return found[1].lower() if found else ""


_NOT_SHOWN = re.compile(r"(?<=//)[^/?#]*@|[?#].*", re.DOTALL)
_KEY = re.compile(
    r"(?<![A-Za-z0-9_])(?=[A-Za-z_]*\d)(?=[\d_]*[A-Za-z])[A-Za-z0-9_]{12,}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]+){3,}"
)
"""A long row of letters and digits, which no name of a version or a deployment looks like."""


MASK = "[secret]"
"""What stands in the place of a secret."""


def shown_address(url: str) -> str:
    """The address as anybody may read it: without user, password, query and fragment, and with what looks like a key
    in its path hidden."""
    origin, slash, path = _in_parts(_NOT_SHOWN.sub("", url))
    return origin + slash + "/".join(MASK if looks_secret(part) else part for part in path.split("/"))


def secrets_in(url: str) -> list[str]:
    """The parts of an address's path that look like a key."""
    return [part for part in _in_parts(_NOT_SHOWN.sub("", url))[2].split("/") if looks_secret(part)]


def looks_secret(part: str) -> bool:
    return _KEY.search(part) is not None


def _in_parts(url: str) -> tuple[str, str, str]:
    """Scheme and host; a slash, if there is a path; the path."""
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return scheme + separator + host, slash, path


SECRET_NAME = re.compile(r"key|token|secret|sig|pass|auth|cookie|credential", re.IGNORECASE)
"""What a parameter of an address, or a header, is called whose value should not be shown."""

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def is_header_name(name: str) -> bool:
    return _HEADER_NAME.fullmatch(name) is not None


def is_header_value(value: str) -> bool:
    return value.isascii() and value.isprintable()


def _check_address(key: str, written: str, host: str) -> None:
    try:
        usual = socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, host))
    except OSError:
        raise ValueError(f"{key}: {ONE_HOST}, without a scheme or a port, found {written[:100]!r}") from None
    if usual != host:
        raise ValueError(f'{key}: expected the address in its usual form, "{usual}", found {written[:100]!r}')


def _check_number(key: str, written: str, host: str) -> None:
    try:
        usual = socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        raise ValueError(f"{key}: {ONE_HOST}, found {written[:100]!r}") from None
    if usual != host:
        raise ValueError(f'{key}: expected the address in its usual form, "{usual}", found {written[:100]!r}')


# --- how a connection is made: its certificates and its proxy


def tls_for(scheme: str, environ: Mapping[str, str]) -> ssl.SSLContext:
    """Whom to believe in a TLS handshake: the system's authorities, or those of SSL_CERT_FILE and SSL_CERT_DIR."""
    if scheme != "https":
        return _no_authorities()
    return _authorities(environ.get("SSL_CERT_FILE", ""), environ.get("SSL_CERT_DIR", ""))


@functools.cache
def _authorities(cert_file: str, cert_dir: str) -> ssl.SSLContext:
    """Shared by all sessions: the authorities in it take a megabyte and some milliseconds to load."""
    import httpx2  # whoever asks for a context has loaded it, or is about to

    if not cert_file and not cert_dir:
        # The system's authorities: through truststore on macOS and Windows, as OpenSSL finds them on Linux, where
        # truststore would add the same files to the context again with every handshake.
        return httpx2.create_ssl_context(trust_env=False)
    try:
        return ssl.create_default_context(cafile=cert_file or None, capath=cert_dir or None)
    except OSError as error:  # which ssl.SSLError is, too
        raise ConfigError(
            f"The certificates in {cert_file or cert_dir} cannot be loaded: {error}.",
            remedy="Check SSL_CERT_FILE and SSL_CERT_DIR.",
        ) from error


@functools.cache
def _no_authorities() -> ssl.SSLContext:
    """For plain http: an empty context, since the library would load the authorities without one."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def proxy_variable(scheme: str, host: str, environ: Mapping[str, str]) -> str:
    """The variable that names the proxy for this host; empty if there is none."""
    if _is_loopback(host) or _is_excluded(host, environ.get("no_proxy") or environ.get("NO_PROXY") or ""):
        return ""
    names = (f"{scheme}_proxy", f"{scheme}_proxy".upper(), "all_proxy", "ALL_PROXY")
    return next((name for name in names if environ.get(name)), "")


def proxy_for(url: str, environ: Mapping[str, str]) -> "httpx2.Proxy | None":
    from urllib.parse import urlsplit

    import httpx2

    parts = urlsplit(url)
    name = proxy_variable(parts.scheme, parts.hostname or "", environ)
    if not name:
        return None
    written = environ[name]
    try:
        proxy = httpx2.Proxy(written if "://" in written else f"http://{written}")
        if proxy.url.scheme in ("http", "https"):
            return proxy
    except (ValueError, httpx2.InvalidURL):
        pass
    # Not quoted: a proxy's address may hold a password.
    raise ConfigError(f"The variable {name} names no proxy that Crow can use.", remedy="Name an HTTP proxy.")


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _ip_address(host)
    return address is not None and address.is_loopback


def _is_excluded(host: str, no_proxy: str) -> bool:
    """`NO_PROXY` as curl reads it: names with what is below them, addresses, networks, or `*` for all."""
    import ipaddress

    address = _ip_address(host)
    for entry in no_proxy.lower().replace(",", " ").split():
        name = entry.lstrip(".")
        if entry == "*" or host == name or host.endswith(f".{name}"):
            return True
        if address is not None and "/" in entry:
            try:
                if address in ipaddress.ip_network(entry, strict=False):
                    return True
            except ValueError:
                continue
    return False


def _ip_address(host: str) -> "IPv4Address | IPv6Address | None":
    import ipaddress  # not for the first answer

    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
