"""Decides on every request to `crow web` before anything else sees it: whose address, which page, which credential; and
makes all answers.

It is one function on purpose, so that no route can be forgotten. A WebSocket is refused before it is accepted.

A web page that a browser shows cannot choose `Host`, `Origin` and `Sec-Fetch-Site`. So a name that was made to lead to
this machine is known by `Host`, and another page (one of a program that Crow has just started, on another port) by the
other two. What is left is a program on this machine, which has to show a credential.
"""

from collections.abc import Callable, Iterable, MutableMapping
from typing import Any, NamedTuple

Scope = MutableMapping[str, Any]

ENDPOINT = "/acp"
"""Where the protocol is spoken, over WebSocket."""
PROTOCOL = "acp.v1"
"""The subprotocol that is answered; a page offers its credential as another one, which is never answered."""
LINK = "crow.link."
TOKEN = "crow.token."  # noqa: S105 -- how the subprotocol begins that carries one


class Refusal(NamedTuple):
    status: int
    reason: str


class Credential(NamedTuple):
    """What a client shows: the one-time link that a person opened, or a token."""

    kind: str
    """`LINK` or `TOKEN`."""
    secret: str


class Gate:
    """`own` gives the origins of the page, as a browser writes them: `http://127.0.0.1:2769`."""

    def __init__(self, own: Iterable[str]) -> None:
        self._origins = frozenset(origin.encode() for origin in own)
        self._hosts = frozenset(origin.partition("//")[2].encode() for origin in own)

    def check(self, scope: Scope) -> Refusal | Credential | None:
        """Why a request is refused; what is still to be verified of a WebSocket; None for what every page may have."""
        values = _headers(scope)
        refusal = self._check_address(values)
        if refusal is not None:
            return refusal
        if scope["type"] == "websocket":
            return self._check_web_socket(scope, values)
        if scope["method"] not in ("GET", "HEAD"):
            return Refusal(405, "Only GET and HEAD are supported.")
        if scope["path"] == ENDPOINT:
            return Refusal(426, f"{ENDPOINT} is a WebSocket.")
        return None

    def is_own(self, origin: str) -> bool:
        return origin.encode("utf-8", "replace") in self._origins

    def _check_address(self, values: Callable[[bytes], list[bytes]]) -> Refusal | None:
        hosts = values(b"host")
        if len(hosts) != 1:
            return Refusal(400, "Exactly one Host header is required.")
        if hosts[0] not in self._hosts:
            return Refusal(421, "Use the address that crow web printed.")
        if any(site not in (b"none", b"same-origin") for site in values(b"sec-fetch-site")):
            return Refusal(403, "Other pages may not use this one.")
        return None

    def _check_web_socket(self, scope: Scope, values: Callable[[bytes], list[bytes]]) -> Refusal | Credential:
        if scope["path"] != ENDPOINT:
            return Refusal(404, f"The WebSocket is at {ENDPOINT}.")
        origins, shown = values(b"origin"), _page_credentials(scope["subprotocols"])
        if len(origins) > 1:
            return Refusal(400, "At most one Origin header is allowed.")
        if origins:
            if origins[0] not in self._origins:
                return Refusal(403, "Other pages may not connect.")
            return shown[0] if len(shown) == 1 else Refusal(401, "Exactly one link or token is required.")
        if shown:
            return Refusal(403, "Only the page may send its credential this way; other clients use Authorization.")
        return _bearer(values(b"authorization"))


def _headers(scope: Scope) -> Callable[[bytes], list[bytes]]:
    """Gives the values of a header by its name in lower case, one for each time that it was sent."""
    headers: list[tuple[bytes, bytes]] = list(scope["headers"])
    return lambda name: [value for header, value in headers if header.lower() == name]


def _page_credentials(subprotocols: Iterable[str]) -> list[Credential]:
    return [
        Credential(kind, offered.removeprefix(kind))
        for offered in subprotocols
        for kind in (LINK, TOKEN)
        if offered.startswith(kind)
    ]


def _bearer(shown: list[bytes]) -> Refusal | Credential:
    if len(shown) == 1:
        scheme, _, token = shown[0].partition(b" ")
        if scheme.lower() == b"bearer" and token:
            return Credential(TOKEN, token.strip().decode("latin-1"))
    return Refusal(401, "The header `Authorization: Bearer TOKEN` is required. Run `crow web --token` for a token.")


# --- answers, and the headers that go with every one of them

TEXT = "text/plain; charset=utf-8"
Headers = list[tuple[bytes, bytes]]


class HttpAnswer(NamedTuple):
    status: int
    headers: Headers
    body: bytes

    @property
    def closing_headers(self) -> Headers:
        """All headers of an answer after which the connection is closed, as it is after each."""
        return [*self.headers, (b"content-length", str(len(self.body)).encode()), (b"connection", b"close")]


def content(kind: str, body: bytes, nonce: str = "") -> HttpAnswer:
    """`kind` is the type of the content; styles with the nonce are allowed in it."""
    return HttpAnswer(200, [(b"content-type", kind.encode()), *security_headers(nonce)], body)


def refusal(status: int, reason: str) -> HttpAnswer:
    headers = [(b"content-type", TEXT.encode()), *security_headers()]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 405:
        headers.append((b"allow", b"GET, HEAD"))
    if status == 426:
        headers.append((b"upgrade", b"websocket"))
    return HttpAnswer(status, headers, reason.encode() + b"\n")


def security_headers(nonce: str = "") -> Headers:
    """No header here lets another origin read anything: there are none for CORS, and no cookie."""
    style = f"'self' 'nonce-{nonce}'" if nonce else "'self'"
    policy = (
        f"default-src 'none'; script-src 'self'; style-src {style}; img-src 'self' data: blob:; font-src 'self'; "
        "manifest-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'"
    )
    return [
        (b"content-security-policy", policy.encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"cache-control", b"no-store"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
    ]
