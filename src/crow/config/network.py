"""Which proxy (`HTTPS_PROXY`, `NO_PROXY`) and which TLS certificates (`SSL_CERT_FILE`) a connection uses, from the
environment.
"""

import functools
import ipaddress
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from crow.errors import ConfigError

if TYPE_CHECKING:
    import httpx2


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
    address = _address(host)
    return address is not None and address.is_loopback


def _is_excluded(host: str, no_proxy: str) -> bool:
    """`NO_PROXY` as curl reads it: names with what is below them, addresses, networks, or `*` for all."""
    address = _address(host)
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


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
