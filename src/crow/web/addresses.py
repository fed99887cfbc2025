"""Parses web addresses strictly, and decides which may be reached: the public internet, and private hosts that a person
named.

Programs differ in how they read a strange address, and that is how a forbidden host slips through. So whatever could
be read in two ways is refused, and a host has one spelling afterwards: lower case, ASCII, without a dot at its end,
an IP address in its usual form. What is checked and shown is exactly what will be asked.

A name is looked up once, and every address it has must be public; whoever connects uses these addresses and does not
look up again, so that a name which changes its answer in between changes nothing.
"""

import asyncio
import ipaddress
import os
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import quote, urljoin

import msgspec

from crow.config.hosts import NUMBER, proxy_variable
from crow.errors import WebError
from crow.visible import CONTROLS, SEPARATORS, one_line

LONGEST = 4096
PORTS = {"http": 80, "https": 443}

_PARTS = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/?#]+)(?P<target>[^#]*)(?:#.*)?", re.IGNORECASE)
_SPLITTING = re.compile(rf"[\t\n\f\r \xa0{CONTROLS}{SEPARATORS}\\]")
_NAME = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_PRINTABLE = "".join(chr(code) for code in range(0x21, 0x7F))


class WebUrl(msgspec.Struct, frozen=True):
    scheme: str
    host: str
    """A name, or an IP address without brackets."""
    port: int
    target: str
    """Path and query: what the server is asked for."""
    is_address: bool
    """Whether the host is an IP address."""

    @property
    def authority(self) -> str:
        """Host and port as a server expects to see them."""
        host = bracketed(self.host)
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def text(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


class RedirectNotFollowed(msgspec.Struct, frozen=True):
    """A server sent us to another place, which is not followed unasked."""

    url: WebUrl


def read_url(text: str) -> WebUrl:
    """WebError if it is no address of the web, or one that could be read in two ways."""
    text = text.strip()
    shown = one_line(text, 200)
    if len(text) > LONGEST:
        raise WebError(f"{shown} is too long for a web address.")
    if _SPLITTING.search(text):
        raise WebError(f"{shown} contains a space, a backslash or a control character.", advice="Encode it, as in %20.")
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise WebError(f"{shown} is not a web address.", advice="It has to begin with http:// or https:// and a host.")
    if "@" in parts["authority"]:
        raise WebError("Web addresses with a user name or a password are not fetched.", advice="Leave them out.")
    scheme = parts["scheme"].lower()
    written_host, port = _host_and_port(parts["authority"], PORTS[scheme], shown)
    host, is_address = _canonical(written_host, shown)
    target = quote(parts["target"], safe=_PRINTABLE)
    return WebUrl(scheme, host, port, target if target.startswith("/") else f"/{target}", is_address)


def follow(base: WebUrl, location: str) -> WebUrl:
    """Where a redirect leads. Servers write blanks there, and browsers put up with them."""
    location = location.strip()
    try:
        target = urljoin(base.text, location.replace(" ", "%20"))
    except ValueError:
        raise WebError(f"{base.host} redirects to {one_line(location, 200)}, which is not a web address.") from None
    return read_url(target)


def bracketed(host: str) -> str:
    """A host as it is written in an address."""
    return f"[{host}]" if ":" in host else host


def _host_and_port(authority: str, usual: int, shown: str) -> tuple[str, int]:
    host, written = authority, ""
    if authority.startswith("["):
        host, closing, rest = authority.partition("]")
        host += closing
        if not closing or (rest and not rest.startswith(":")):
            raise WebError(f"Invalid host in {shown}.")
        written = rest[1:]
    elif ":" in authority:
        host, _, written = authority.partition(":")
    if not written:
        return host, usual
    if not re.fullmatch(r"[0-9]{1,5}", written) or not 0 < int(written) < 65536:
        raise WebError(f"Invalid port in {shown}.")
    return host, int(written)


def _canonical(written: str, shown: str) -> tuple[str, bool]:
    """The one spelling of a host, and whether it is an IP address."""
    if written.startswith("["):
        try:
            return socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, written[1:-1])), True
        except (OSError, ValueError):
            raise WebError(f"Invalid IPv6 address in {shown}.") from None
    host = _ascii(written, shown).lower().removesuffix(".")
    if len(host) > 253 or not _NAME.fullmatch(host):
        raise WebError(f"Invalid host name in {shown}.")
    if not NUMBER.fullmatch(host.rpartition(".")[2]):
        return host, False
    # Every spelling that the system would take for an address: 127.1, 2130706433, 0x7f.0.0.1, 0177.0.0.1.
    try:
        return socket.inet_ntoa(socket.inet_aton(host)), True
    except OSError:
        raise WebError(f"Invalid host in {shown}: neither a name nor an IPv4 address.") from None


def _ascii(host: str, shown: str) -> str:
    if host.isascii():
        return host
    import idna  # only for the rare name that needs it

    try:
        return idna.encode(host, uts46=True, std3_rules=True).decode()
    except idna.IDNAError:
        raise WebError(f"Invalid host name in {shown}.") from None


# --- what may be reached

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Gives the addresses of a name; OSError if there are none."""

LOWEST_FREE_PORT = 1024
_WEB_PORTS = (80, 443)
_OTHER_SERVICES = frozenset(
    {
        *(1433, 1521, 3306, 5432, 5984, 6379, 9042, 9200, 9300, 11211, 27017),  # databases and caches
        *(2049, 3260, 4045),  # files
        *(2375, 2376, 2379, 2380, 6443, 10250, 10255),  # containers
        *(1719, 1720, 1723, 3389, 3659, 4190, 5060, 5061, 5900, 5985, 5986, 6566, 10080),
        *range(6000, 6064),  # screens
        *(6665, 6666, 6667, 6668, 6669, 6697),  # chat
    }
)
"""Ports from 1024 on where something else than the web is served: a request there could pass for an order."""


class AllowedHosts:
    """What of the network may be reached: the public part, and the hosts that the person named."""

    def __init__(self, allow_private: Sequence[str] = (), resolver: Resolver | None = None) -> None:
        self._private = tuple(entry.strip().strip("[]").rstrip(".").lower() for entry in allow_private)
        self._resolve = resolver or resolve

    def check(self, url: WebUrl) -> None:
        """What can be said before anybody is asked: WebError if this port or IP address must not be reached."""
        if self.is_allowed_private(url):
            return
        if not _is_web_port(url.port):
            raise WebError(f"Port {url.port} of {url.host} is not fetched: other services than the web use it.")
        if url.is_address and not is_public(url.host):
            raise _not_public(f"{url.host} is")

    async def addresses(self, url: WebUrl) -> Sequence[str]:
        """Those of the host, in the order in which they are to be tried; WebError if it must not be reached."""
        self.check(url)
        if url.is_address:
            return [url.host]
        found = await self._look_up(url)
        if not self.is_allowed_private(url) and not all(is_public(address) for address in found):
            raise _not_public(f"{url.host} has")
        return found

    def is_allowed_private(self, url: WebUrl) -> bool:
        """Whether the person named this host: exactly, or by `*.` and what its name ends with."""
        if url.is_address:
            return url.host in self._private
        return any(
            url.host.endswith(entry[1:]) if entry.startswith("*.") else url.host == entry for entry in self._private
        )

    async def _look_up(self, url: WebUrl) -> Sequence[str]:
        try:
            found = list(dict.fromkeys(await self._resolve(url.host, url.port)))
        except (OSError, UnicodeError):
            found = []
        if not found:
            remedy = with_proxy_hint("Check the name and your network connection.", url.scheme, url.host)
            raise WebError(f"Unknown host {url.host}.", remedy=remedy)
        return found


async def resolve(host: str, port: int) -> Sequence[str]:
    """As this machine's own programs would."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def address_for_connecting(scheme: str, address: str, port: int, target: str) -> str:
    return f"{scheme}://{bracketed(address)}:{port}{target}"


def _not_public(host_is: str) -> WebError:
    return WebError(
        f"{host_is} an address that is not on the public internet, so it is not fetched.",
        remedy="To fetch it, add the host to allow_private in [web] of config.toml.",
    )


def _is_web_port(port: int) -> bool:
    return port in _WEB_PORTS or (port >= LOWEST_FREE_PORT and port not in _OTHER_SERVICES)


# --- which IP addresses belong to the public internet
#
# IPv4: all but the listed. IPv6: only what is given out for global use, and of that not what stands for an IPv4 address
# or for nobody. Our own tables, since the standard library's answer depends on its version.

_NOT_PUBLIC_4 = [
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this machine
        "10.0.0.0/8",
        "100.64.0.0/10",  # between a provider and its customers; some clouds keep their metadata there
        "127.0.0.0/8",
        "168.63.129.16/32",  # a cloud's own service, in public guise
        "169.254.0.0/16",  # link-local, with the metadata services of clouds
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays between IPv4 and IPv6
        "192.168.0.0/16",
        "198.18.0.0/15",  # measurements
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
]
_GLOBAL_6 = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_6 = [
    ipaddress.IPv6Network(network)
    for network in (
        "2001::/23",  # protocols' own, with Teredo, which holds an IPv4 address
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which holds an IPv4 address
        "3fff::/20",  # documentation
    )
]


def is_public(address: str) -> bool:
    """Whether everybody on the internet means the same machine by it."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv4Address):
        return not any(parsed in network for network in _NOT_PUBLIC_4)
    if parsed.scope_id is not None or parsed not in _GLOBAL_6:
        return False
    return not any(parsed in network for network in _NOT_PUBLIC_6)


# --- proxies, which are not used for the web: a person behind one has to learn why nothing is reached


def with_proxy_hint(remedy: str, scheme: str, host: str) -> str:
    """The remedy for a host that is not reached, and the likely reason where the network has a proxy.

    Only the variable's name is told: its value may hold a password.
    """
    name = proxy_variable(scheme, host, os.environ)
    if not name:
        return remedy
    hint = f"{name} is set, but Crow does not use a proxy for web pages."
    return f"{remedy} {hint}".lstrip()
