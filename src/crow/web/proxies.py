"""Proxies, which are not used for the web. A person behind one has to learn why nothing is reached."""

import os
from collections.abc import Mapping


def proxy_variable(scheme: str, host: str, environ: Mapping[str, str]) -> str:
    """The variable that makes other programs ask this host through a proxy; empty if there is none."""
    is_here = host in ("localhost", "::1") or host.startswith("127.")
    if is_here or _is_excluded(host, environ.get("no_proxy") or environ.get("NO_PROXY") or ""):
        return ""
    names = (f"{scheme}_proxy", f"{scheme}_proxy".upper(), "all_proxy", "ALL_PROXY")
    return next((name for name in names if environ.get(name)), "")


def _is_excluded(host: str, no_proxy: str) -> bool:
    """Names with what is below them, addresses, or `*` for all. Networks are not looked into: it is for a hint."""
    names = [entry.lstrip(".") for entry in no_proxy.lower().replace(",", " ").split()]
    return any(name == "*" or host == name or host.endswith(f".{name}") for name in names)


def mind_the_proxy(remedy: str, scheme: str, host: str) -> str:
    """The remedy for a host that is not reached, and the likely reason where the network has a proxy.

    Only the variable's name is told: its value may hold a password.
    """
    name = proxy_variable(scheme, host, os.environ)
    if not name:
        return remedy
    hint = f"{name} is set, but Crow uses no proxy for the web: where only a proxy leads out, this cannot work."
    return f"{remedy} {hint}".lstrip()
