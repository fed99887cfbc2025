"""Decides which hosts, ports and IP addresses may be connected to: the public internet, and the private hosts that the
person named.

A name is looked up once, and every address it has must be public; whoever connects uses these addresses and does not
look up again, so that a name which changes its answer in between changes nothing.
"""

import asyncio
import ipaddress
import os
import socket
from collections.abc import Awaitable, Callable, Sequence

from crow.config.hosts import proxy_variable
from crow.errors import WebError
from crow.web.urls import WebUrl, bracketed

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
            raise WebError(
                f"Port {url.port} of {url.host} is not fetched: something else than web pages is served there."
            )
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
            remedy = with_proxy_hint("Check its name, and the network.", url.scheme, url.host)
            raise WebError(f"There is no host {url.host}.", remedy=remedy)
        return found


async def resolve(host: str, port: int) -> Sequence[str]:
    """As this machine's own programs would."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def address_for_connecting(scheme: str, address: str, port: int, target: str) -> str:
    return f"{scheme}://{bracketed(address)}:{port}{target}"


def _not_public(host_is: str) -> WebError:
    return WebError(
        f"{host_is} an address that is not on the public internet: it is not fetched.",
        remedy="Hosts that allow_private names, in the section [web] of config.toml, are fetched all the same.",
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
    hint = f"{name} is set, but Crow uses no proxy for the web: where only a proxy leads out, this cannot work."
    return f"{remedy} {hint}".lstrip()
