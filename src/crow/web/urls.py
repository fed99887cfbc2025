"""Parses web addresses strictly: refuses what could be read in two ways, and gives each host one spelling. What is
checked and shown is exactly what will be asked.

Programs differ in how they read a strange address, and that is how a forbidden host slips through. So whatever could
be read in two ways is refused, and a host has one spelling afterwards: lower case, ASCII, without a dot at its end,
an IP address in its usual form.
"""

import re
import socket
from urllib.parse import quote, urljoin

import msgspec

from crow.config.hosts import NUMBER
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
        raise WebError(f"{shown} holds a blank, a backslash or a control character.", advice="Encode it, as in %20.")
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise WebError(f"{shown} is no web address.", advice="It has to begin with http:// or https:// and a host.")
    if "@" in parts["authority"]:
        raise WebError("A web address with a user name or a password in it is not fetched.", advice="Leave them out.")
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
        raise WebError(f"{base.host} redirects to {one_line(location, 200)}, which is no web address.") from None
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
            raise WebError(f"The host of {shown} cannot be read.")
        written = rest[1:]
    elif ":" in authority:
        host, _, written = authority.partition(":")
    if not written:
        return host, usual
    if not re.fullmatch(r"[0-9]{1,5}", written) or not 0 < int(written) < 65536:
        raise WebError(f"The port of {shown} is none.")
    return host, int(written)


def _canonical(written: str, shown: str) -> tuple[str, bool]:
    """The one spelling of a host, and whether it is an IP address."""
    if written.startswith("["):
        try:
            return socket.inet_ntop(socket.AF_INET6, socket.inet_pton(socket.AF_INET6, written[1:-1])), True
        except (OSError, ValueError):
            raise WebError(f"The host of {shown} is no IPv6 address that can be used.") from None
    host = _ascii(written, shown).lower().removesuffix(".")
    if len(host) > 253 or not _NAME.fullmatch(host):
        raise WebError(f"The host of {shown} is no name of a host.")
    if not NUMBER.fullmatch(host.rpartition(".")[2]):
        return host, False
    # Every spelling that the system would take for an address: 127.1, 2130706433, 0x7f.0.0.1, 0177.0.0.1.
    try:
        return socket.inet_ntoa(socket.inet_aton(host)), True
    except OSError:
        raise WebError(f"The host of {shown} is neither a name nor an IPv4 address.") from None


def _ascii(host: str, shown: str) -> str:
    if host.isascii():
        return host
    import idna  # only for the rare name that needs it

    try:
        return idna.encode(host, uts46=True, std3_rules=True).decode()
    except idna.IDNAError:
        raise WebError(f"The host of {shown} is no name of a host.") from None
