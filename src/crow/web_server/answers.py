"""The answers of `crow web` to requests, and the headers that go with every one of them."""

from typing import NamedTuple

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
