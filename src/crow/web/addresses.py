"""Which IP addresses belong to the public internet.

IPv4: all but the listed. IPv6: only what is given out for global use, and of that not what stands for an IPv4
address or for nobody. Our own tables, since the standard library's answer depends on its version.
"""

import ipaddress

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
