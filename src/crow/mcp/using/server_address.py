"""The address of a server over HTTP: it may hold a key, which nobody is told."""

import re
from urllib.parse import parse_qsl, urlsplit

from crow.config.settings import McpServerSettings

_SECRET_NAME = re.compile(r"key|token|secret|sig|pass|auth|cookie|credential", re.IGNORECASE)
"""What a header or a parameter is called whose value lets somebody in."""


def bare_address(url: str) -> str:
    """As logins are stored by it and asked for: without user, password, query and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def place_of_key(settings: McpServerSettings) -> str:
    """Where the configuration says how the server lets us in; empty if nowhere: then it may want a login."""
    if any(_SECRET_NAME.search(name) for name in settings.headers):
        return "headers"
    try:
        parts = urlsplit(settings.url)
    except ValueError:
        return ""
    names = (name for name, _ in parse_qsl(parts.query, keep_blank_values=True))
    return "address" if "@" in parts.netloc or any(map(_SECRET_NAME.search, names)) else ""
