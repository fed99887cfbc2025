"""Fetches one URL over HTTP: connects only to checked IP addresses, checks each redirect, bounds size and time, and
unpacks gzip.

The request goes to the IP address that was checked, with the host's name in the `Host` header and in the TLS
handshake, so that no second lookup can lead elsewhere. Proxies of the environment are not used: which address a proxy
connects to could not be checked. There are no cookies and no passwords.
"""

import asyncio
import contextlib
import os
import ssl
import zlib
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from typing import Literal, Protocol

import httpx2
import msgspec

import crow
from crow.config.hosts import tls_for
from crow.errors import WebError
from crow.timeouts import timeout_at
from crow.visible import one_line
from crow.web.addresses import (
    AllowedHosts,
    RedirectNotFollowed,
    WebUrl,
    address_for_connecting,
    follow,
    with_proxy_hint,
)

MOST_ADDRESSES = 4
"""Of one host that are tried."""
REDIRECTS = frozenset({301, 302, 303, 307, 308})
HEADERS = {
    "user-agent": f"crow/{crow.__version__}",
    "accept": "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.9, */*;q=0.5",
    "accept-encoding": "gzip, deflate",
}

Cut = Literal["", "size", "time", "broken", "damaged"]

MayFollow = Callable[[WebUrl, WebUrl], bool]
"""Whether a redirect from one address to another is followed without asking."""


class FetchLimits(msgspec.Struct, frozen=True):
    """Seconds and bytes. Of headers the HTTP library takes 100 KiB."""

    total: float = 30
    connect: float = 5
    silence: float = 10
    """The longest wait for the next piece."""
    body: int = 8 * 1024 * 1024
    """Decoded."""
    redirects: int = 5


class Page(msgspec.Struct, frozen=True):
    """What a server answered."""

    url: WebUrl
    status: int
    reason: str
    content_type: str
    body: bytes
    modified: str = ""
    cut: Cut = ""
    """Why the body is not whole."""
    retry_after: str = ""
    """When to ask again, as the server says it."""


async def fetch(
    url: WebUrl, hosts: AllowedHosts, limits: FetchLimits, may_follow: MayFollow
) -> Page | RedirectNotFollowed:
    deadline = asyncio.get_running_loop().time() + limits.total
    for _ in range(limits.redirects + 1):
        async with _answer(url, hosts, limits, deadline) as response:
            if response.status_code not in REDIRECTS or not response.headers.get("location"):
                return await _page(url, response, limits, deadline)
            target = follow(url, response.headers["location"])
        if not may_follow(url, target):
            return RedirectNotFollowed(target)
        url = target
    raise WebError(f"{url.host} redirected more than {limits.redirects} times.")


@contextlib.asynccontextmanager
async def _answer(
    url: WebUrl, hosts: AllowedHosts, limits: FetchLimits, deadline: float
) -> AsyncGenerator[httpx2.Response]:
    async with contextlib.AsyncExitStack() as stack:
        try:
            async with timeout_at(deadline):
                response = await _ask(url, await hosts.addresses(url), limits, stack)
        except TimeoutError:
            raise WebError(f"{url.host} did not answer within {limits.total:g} s.", remedy=_later(url)) from None
        yield response


async def _ask(
    url: WebUrl, addresses: Sequence[str], limits: FetchLimits, stack: contextlib.AsyncExitStack
) -> httpx2.Response:
    """From the first of the addresses that takes the connection."""
    client = await stack.enter_async_context(_client(url.scheme, limits))
    failure: httpx2.HTTPError | None = None
    for address in addresses[:MOST_ADDRESSES]:
        request = client.build_request(
            "GET",
            address_for_connecting(url.scheme, address, url.port, url.target),
            headers={"host": url.authority},
            extensions={} if url.is_address else {"sni_hostname": url.host},
        )
        try:
            response = await client.send(request, stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            failure = error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise _failed(url, error) from error
        else:
            stack.push_async_callback(response.aclose)
            return response
    raise _failed(url, failure) from failure


def _client(scheme: str, limits: FetchLimits) -> httpx2.AsyncClient:
    """A new one for each hop: nothing, no cookie and no connection, is carried from one to the next."""
    return httpx2.AsyncClient(
        headers=HEADERS,
        timeout=httpx2.Timeout(limits.silence, connect=limits.connect),
        verify=tls_for(scheme, os.environ),
        follow_redirects=False,
        trust_env=False,
    )


async def _page(url: WebUrl, response: httpx2.Response, limits: FetchLimits, deadline: float) -> Page:
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in ENCODINGS:
        raise WebError(f"{url.host} sent its answer in the unsupported encoding {one_line(encoding, 40)}.")
    pieces: list[bytes] = []
    cut: Cut = ""
    try:
        async with timeout_at(deadline):
            cut = await _read(response, Unpacker(encoding), pieces, limits.body)
    except WrongEncoding:
        if not pieces:
            raise WebError(f"{url.host} sent an answer that is not valid {encoding}.") from None
        cut = "damaged"
    except (TimeoutError, httpx2.TimeoutException):
        cut = "time"
    except httpx2.HTTPError:
        cut = "broken"
    return Page(
        url,
        response.status_code,
        one_line(response.reason_phrase, 80),
        response.headers.get("content-type", ""),
        b"".join(pieces),
        one_line(response.headers.get("last-modified", ""), 60),
        cut,
        one_line(response.headers.get("retry-after", ""), 60),
    )


async def _read(response: httpx2.Response, unpacker: "Unpacker", pieces: list[bytes], limit: int) -> Cut:
    size = packed = 0
    async with contextlib.aclosing(response.aiter_raw()) as arriving:
        async for data in arriving:
            packed += len(data)
            for piece in unpacker.unpack(data):
                pieces.append(piece[: limit - size])
                size += len(piece)
                if size > limit:
                    return "size"
            if packed > limit:  # and next to nothing is in it
                return "size"
    return "" if unpacker.is_whole else "broken"


def _failed(url: WebUrl, error: httpx2.HTTPError | httpx2.InvalidURL | None) -> WebError:
    match error:
        case httpx2.ConnectTimeout():
            return WebError(f"{url.host} did not accept the connection in time.", remedy=_later(url))
        case httpx2.TimeoutException():
            return WebError(f"{url.host} stopped sending data.", remedy="Try again later.")
        case httpx2.ConnectError() if _is_about_tls(error):
            return WebError(f"The TLS connection to {url.host} failed: {one_line(str(error), 200)}.")
        case httpx2.ConnectError():
            remedy = with_proxy_hint("", url.scheme, url.host)
            return WebError(f"{url.host} does not accept connections on port {url.port}.", remedy=remedy)
        case _:
            return WebError(f"{url.host} sent an invalid HTTP answer: {one_line(str(error).rstrip('.'), 200)}.")


def _later(url: WebUrl) -> str:
    return with_proxy_hint("Try again later.", url.scheme, url.host)


def _is_about_tls(error: BaseException) -> bool:
    step: BaseException | None = error
    while step is not None:
        if isinstance(step, ssl.SSLError):
            return True
        step = step.__cause__ or step.__context__
    return False


# --- unpacking what a server sends packed, piece by piece and never much at once


ENCODINGS = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})
PIECE = 1024 * 1024
"""Bytes that are unpacked at once: what a bomb would unpack to is never all there."""

_GZIP_MARK = b"\x1f\x8b"
_GZIP, _ZLIB, _RAW = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS


class _Member(Protocol):
    """One of zlib's objects, whose class has no public name."""

    @property
    def eof(self) -> bool: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class WrongEncoding(Exception):
    """What was sent is not packed as its header says."""


class Unpacker:
    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._waiting = b""
        """The first bytes of a member, which say how it is packed, until there are enough of them."""
        self._member: _Member | None = None
        self._is_first = True
        self._has_ended = False
        """Whether what follows is none of it: some servers fill up with zeros."""

    @property
    def is_whole(self) -> bool:
        return self._member is None and not (self._is_first and self._waiting)

    def unpack(self, data: bytes) -> Iterator[bytes]:
        if self._encoding in ("", "identity"):
            yield data
            return
        data, self._waiting = self._waiting + data, b""
        while data and not self._has_ended:
            if self._member is not None:
                data = yield from self._unpack_member(self._member, data)
            elif len(data) < len(_GZIP_MARK):
                data, self._waiting = b"", data
            else:
                self._begin(data)

    def _unpack_member(self, member: _Member, data: bytes) -> Generator[bytes, None, bytes]:
        """Gives back what follows it."""
        try:
            while unpacked := member.decompress(data, PIECE):
                yield unpacked
                data = member.unconsumed_tail
        except zlib.error as error:
            raise WrongEncoding from error
        if member.eof:
            self._member, self._is_first = None, False
        return member.unused_data

    def _begin(self, data: bytes) -> None:
        """A file of gzip may be several, one after the other."""
        if self._encoding == "deflate" and self._is_first:
            # Meant is zlib's format, but some servers send what is within it.
            self._member = zlib.decompressobj(_ZLIB if _has_zlib_header(data) else _RAW)
        elif self._encoding != "deflate" and data.startswith(_GZIP_MARK):
            self._member = zlib.decompressobj(_GZIP)
        elif self._is_first:
            raise WrongEncoding
        else:
            self._has_ended = True


def _has_zlib_header(data: bytes) -> bool:
    return data[0] & 0x0F == 8 and int.from_bytes(data[:2]) % 31 == 0
