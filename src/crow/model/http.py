"""The one place that knows the HTTP library: connections, requests, and what can go wrong with them.

Importing this module is what costs time; `crow.model.catalog` imports it, with an adapter, only when needed.
"""

import asyncio
import contextlib
import email.utils
import functools
import importlib
import os
import socket
import ssl
import time
from collections.abc import AsyncGenerator, Mapping

import httpx2

import crow
from crow.errors import ConfigError, ModelError, ModelRejected, ModelUnavailable, ReplyBroken
from crow.model import complaint, network
from crow.model.endpoint import Endpoint
from crow.model.faults import from_status
from crow.model.sse import EventDecoder, EventTooLong, ServerEvent

CONNECT_TIMEOUT = 10.0
KEEP_ALIVE = 90.0
"""A person thinks for longer than the library's 5 s; a new connection costs a TLS handshake."""
LONGEST_COMPLAINT = 64 * 1024
LONGEST_LISTING = 8 * 1024 * 1024
DRAIN_TIMEOUT = 0.1


class Http:
    """Requests to one provider. Connections stay open between them until `close`."""

    def __init__(
        self, endpoint: Endpoint, *, headers: Mapping[str, str], idle: float, environ: Mapping[str, str]
    ) -> None:
        self.endpoint = endpoint
        self._idle = idle
        self._client = httpx2.AsyncClient(
            headers={"user-agent": f"crow/{crow.__version__}", "accept-encoding": "identity", **headers},
            timeout=httpx2.Timeout(idle, connect=CONNECT_TIMEOUT),
            limits=httpx2.Limits(keepalive_expiry=KEEP_ALIVE),
            auth=httpx2.BasicAuth(*endpoint.login) if endpoint.login else None,
            verify=network.tls_for(endpoint.url, environ),
            proxy=network.proxy_for(endpoint.url, environ),
            # Neither .netrc nor anything else from the environment but what is read here.
            trust_env=False,
        )

    async def close(self) -> None:
        await self._client.aclose()

    @contextlib.asynccontextmanager
    async def post(self, path: str, body: bytes) -> AsyncGenerator[AsyncGenerator[list[ServerEvent]]]:
        """Sends a request and gives the events of its answer, in a list for each chunk that arrives."""
        async with self._answer("POST", path, body) as response:
            await self._expect_events(response)
            events = self._events(response)
            try:
                yield events
                await _drain(events)
            finally:
                await events.aclose()

    async def get(self, path: str) -> bytes:
        async with self._answer("GET", path) as response:
            try:
                return await _read_some(response, LONGEST_LISTING)
            except httpx2.HTTPError as error:
                raise self._broken(error) from error

    @contextlib.asynccontextmanager
    async def _answer(self, method: str, path: str, body: bytes | None = None) -> AsyncGenerator[httpx2.Response]:
        try:
            request = self._client.build_request(
                method,
                self.endpoint.url + path,
                content=body,
                headers={"content-type": "application/json"} if body else None,
            )
            response = await self._client.send(request, stream=True)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self._unreachable(error) from error
        try:
            if response.status_code != 200:
                raise await self._refused(response)
            yield response
        finally:
            await response.aclose()

    async def _events(self, response: httpx2.Response) -> AsyncGenerator[list[ServerEvent]]:
        decoder = EventDecoder()
        encoded = "content-encoding" in response.headers  # asked for none, but a proxy may know better
        chunks = response.aiter_bytes() if encoded else response.aiter_raw()
        try:
            async with contextlib.aclosing(chunks):
                async for chunk in chunks:
                    if events := decoder.feed(chunk):
                        yield events
        except httpx2.HTTPError as error:
            raise self._broken(error) from error
        except EventTooLong as error:
            raise self.unreadable("an event without an end") from error
        if events := decoder.end():
            yield events

    # --- what went wrong

    def unreadable(self, what: str) -> ReplyBroken:
        provider = self.endpoint.provider
        return ReplyBroken(
            f"{provider} sent {self.endpoint.scrub(what)}.",
            provider=provider,
            remedy="Try again; if it stays, base_url or the server is at fault.",
        )

    def complained(self, said: complaint.Complaint) -> ModelError:
        """The error for a complaint inside a stream."""
        clean = complaint.Complaint(self.endpoint.scrub(said.said), said.name, said.status)
        return complaint.in_stream(self.endpoint.provider, clean, self.endpoint.key_name)

    async def _expect_events(self, response: httpx2.Response) -> None:
        """Some servers answer 200 with something else: an error as JSON, or the web page at a wrong address."""
        kind = response.headers.get("content-type", "")
        if kind.startswith("application/json"):
            body = await self._complaint_body(response)
            raise self.complained(complaint.read(body))
        if kind.startswith("text/html"):
            raise ModelRejected(
                f"{self.endpoint.provider} answered with a web page at {self.endpoint.url}.",
                provider=self.endpoint.provider,
                remedy="Check base_url: it should end in the version of the API, such as /v1.",
            )

    async def _refused(self, response: httpx2.Response) -> ModelError:
        found = complaint.read(await self._complaint_body(response))
        return from_status(
            self.endpoint.provider,
            response.status_code,
            self.endpoint.scrub(found.said),
            code=found.name,
            retry_after=retry_after(response.headers, time.time()),
            key_name=self.endpoint.key_name,
        )

    async def _complaint_body(self, response: httpx2.Response) -> bytes:
        try:
            return await _read_some(response, LONGEST_COMPLAINT)
        except httpx2.HTTPError:
            return b""  # the status says enough

    def _broken(self, error: httpx2.HTTPError) -> ReplyBroken:
        if isinstance(error, httpx2.TimeoutException):
            what = f"sent nothing for {self._idle:g} s"
        else:
            what = f"broke off the connection ({self.endpoint.scrub(_reason(error))})"
        return ReplyBroken(f"{self.endpoint.provider} {what}.", provider=self.endpoint.provider, remedy="Try again.")

    def _unreachable(self, error: httpx2.HTTPError | httpx2.InvalidURL) -> ModelError:
        provider, url = self.endpoint.provider, self.endpoint.url
        reason = self.endpoint.scrub(_reason(error))
        unavailable = functools.partial(ModelUnavailable, provider=provider)
        match error, _root(error):
            case httpx2.ConnectTimeout(), _:
                return unavailable(
                    f"{provider} did not take the connection at {url} within {CONNECT_TIMEOUT:g} s.",
                    remedy="Check base_url and the network.",
                )
            case httpx2.TimeoutException(), _:
                return unavailable(f"{provider} sent nothing for {self._idle:g} s.", remedy="Try again.")
            case httpx2.ProxyError(), _:
                return unavailable(
                    f"The proxy on the way to {provider} failed ({reason}).", remedy="Check HTTPS_PROXY and NO_PROXY."
                )
            case _, ssl.SSLEOFError():
                return unavailable(f"{provider} broke off the TLS handshake at {url}.", remedy="Try again.")
            case _, ssl.SSLError():  # a certificate does not get better by asking again
                return ModelRejected(
                    f"The TLS connection to {provider} at {url} failed ({reason}).",
                    provider=provider,
                    remedy="Check the server's certificate; SSL_CERT_FILE names further authorities to trust.",
                )
            case _, ConnectionRefusedError():
                return unavailable(
                    f"{provider} refused the connection at {url}.", remedy="Is the server running there?"
                )
            case _, socket.gaierror():
                return unavailable(
                    f"The address of {provider} at {url} was not found.", remedy="Check base_url and the network."
                )
            case ((httpx2.NetworkError() | httpx2.RemoteProtocolError()), _):
                return unavailable(
                    f"{provider} broke off the connection before it answered ({reason}).", remedy="Try again."
                )
            case _:
                return ModelRejected(
                    f"The request to {provider} at {url} could not be sent ({reason}).",
                    provider=provider,
                    remedy="Check base_url.",
                )


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """The header's seconds, or the seconds until its date; None if it is neither."""
    written = headers.get("retry-after", "").strip()
    if not written:
        return None
    if written.replace(".", "", 1).isdecimal():
        return float(written)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(written).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def warm(base_url: str) -> None:
    """Loads what the library itself puts off until the first request."""
    for module in ("httpcore2", "anyio._backends._asyncio", "anyio.streams.tls", "httpcore2._backends.anyio"):
        importlib.import_module(module)
    with contextlib.suppress(ConfigError):  # whoever creates the model will be told
        network.tls_for(base_url or "https:", os.environ)


async def _read_some(response: httpx2.Response, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in response.aiter_bytes():
        pieces.append(piece[: limit - size])
        size += len(piece)
        if size >= limit:
            break
    return b"".join(pieces)


async def _drain(events: AsyncGenerator[list[ServerEvent]]) -> None:
    """Reads past the last event, so that the connection can be used again; only a moment, the reply is complete."""
    with contextlib.suppress(TimeoutError, ModelError):
        async with asyncio.timeout(DRAIN_TIMEOUT):
            async for _ in events:
                pass


def _causes(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    step: BaseException | None = error
    while step is not None and step not in chain:
        chain.append(step)
        step = step.__cause__ or step.__context__
    return chain


def _root(error: BaseException) -> BaseException:
    """The most telling of the exceptions behind a transport error."""
    telling = (ssl.SSLError, ConnectionRefusedError, socket.gaierror)
    return next((cause for cause in _causes(error) if isinstance(cause, telling)), error)


def _reason(error: BaseException) -> str:
    return next((text for cause in _causes(error) if (text := str(cause).strip())), type(error).__name__)
