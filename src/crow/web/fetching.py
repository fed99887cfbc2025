"""One page from the web: over checked addresses only, every redirect checked anew, within limits.

The request goes to the IP address that was checked, with the host's name in the `Host` header and in the TLS
handshake, so that no second lookup can lead elsewhere. Proxies of the environment are not used: which address a proxy
connects to could not be checked. There are no cookies and no passwords.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Literal

import httpx2
import msgspec

import crow
from crow.errors import WebError
from crow.timeouts import timeout_at
from crow.visible import one_line
from crow.web.proxies import mind_the_proxy
from crow.web.reach import Reach, address_for_connecting
from crow.web.tls import context_for
from crow.web.unpacking import ENCODINGS, Unpacker, WrongEncoding
from crow.web.urls import Elsewhere, WebUrl, follow

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


async def fetch(url: WebUrl, reach: Reach, limits: FetchLimits, may_follow: MayFollow) -> Page | Elsewhere:
    deadline = asyncio.get_running_loop().time() + limits.total
    for _ in range(limits.redirects + 1):
        async with _answer(url, reach, limits, deadline) as response:
            if response.status_code not in REDIRECTS or not response.headers.get("location"):
                return await _page(url, response, limits, deadline)
            target = follow(url, response.headers["location"])
        if not may_follow(url, target):
            return Elsewhere(target)
        url = target
    raise WebError(f"{url.host} redirects more than {limits.redirects} times: given up.")


@contextlib.asynccontextmanager
async def _answer(url: WebUrl, reach: Reach, limits: FetchLimits, deadline: float) -> AsyncGenerator[httpx2.Response]:
    async with contextlib.AsyncExitStack() as stack:
        try:
            async with timeout_at(deadline):
                response = await _ask(url, await reach.addresses(url), limits, stack)
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
        verify=context_for(scheme),
        follow_redirects=False,
        trust_env=False,
    )


async def _page(url: WebUrl, response: httpx2.Response, limits: FetchLimits, deadline: float) -> Page:
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in ENCODINGS:
        raise WebError(f"{url.host} sent its answer encoded as {one_line(encoding, 40)}, which Crow cannot read.")
    pieces: list[bytes] = []
    cut: Cut = ""
    try:
        async with timeout_at(deadline):
            cut = await _read(response, Unpacker(encoding), pieces, limits.body)
    except WrongEncoding:
        if not pieces:
            raise WebError(f"{url.host} says that its answer is encoded as {encoding}, but it is not.") from None
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


async def _read(response: httpx2.Response, unpacker: Unpacker, pieces: list[bytes], limit: int) -> Cut:
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
            return WebError(f"{url.host} did not take the connection in time.", remedy=_later(url))
        case httpx2.TimeoutException():
            return WebError(f"{url.host} sent nothing for too long.", remedy="Try again later.")
        case httpx2.ConnectError() if _is_about_tls(error):
            return WebError(f"The TLS connection to {url.host} failed: {one_line(str(error), 200)}.")
        case httpx2.ConnectError():
            remedy = mind_the_proxy("", url.scheme, url.host)
            return WebError(f"{url.host} does not take connections on port {url.port}.", remedy=remedy)
        case _:
            return WebError(f"{url.host} did not answer as a web server does: {one_line(str(error).rstrip('.'), 200)}.")


def _later(url: WebUrl) -> str:
    return mind_the_proxy("Try again later.", url.scheme, url.host)


def _is_about_tls(error: BaseException) -> bool:
    step: BaseException | None = error
    while step is not None:
        if isinstance(step, ssl.SSLError):
            return True
        step = step.__cause__ or step.__context__
    return False
