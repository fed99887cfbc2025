"""Sends HTTP requests to a provider and streams the answers: credentials, addresses, and errors of the network.

The connections are in `connections`, the limits for silence in `streaming`: no other file of the room knows the HTTP
library.

Importing this module is what costs time; `crow.model.catalog` imports it, with an adapter, only when needed.
"""

import contextlib
import email.utils
import functools
import importlib
import os
import re
import socket
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import httpx2

from crow.config import hosts
from crow.errors import ConfigError, ModelError, ModelRejected, ModelUnavailable, ReplyBroken
from crow.model.connections import Connections, Silence, SilenceLimit, Way, chunks_of, connections_to
from crow.model.credentials import printed_key
from crow.model.endpoint import Endpoint
from crow.model.provider_errors import LONGEST, ReplyErrors, from_status, read
from crow.model.sse import MAX_EVENT, WHOLE, EventDecoder, EventTooLong, ServerEvent
from crow.timeouts import timeout

CONNECT_TIMEOUT = 10.0
SPARE = 1.0
"""Seconds after the limit for silence in which an answer must have begun, however it drips."""
LONGEST_LISTING = 8 * 1024 * 1024
DRAIN_TIMEOUT = 0.1

NOTHING_THERE = (404, 405)
"""What is answered at an address where no method is."""

BLANK = b"\xef\xbb\xbf \t\r\n"
PAGE = re.compile(rb"<[!?a-z]", re.IGNORECASE)
FIELD = re.compile(rb"[a-z]{0,8}:")
"""How a line of a stream begins."""
NO_FIELD_YET = re.compile(rb"[a-z]{1,8}")

NO_TLS = ("WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")
"""How OpenSSL's releases name it that plain HTTP was answered to a TLS handshake."""


class Http(ReplyErrors):
    """Requests to one provider, over connections that all who ask it share. To be closed at the end."""

    def __init__(self, endpoint: Endpoint, *, idle: float, environ: Mapping[str, str], first: float = 0) -> None:
        """`idle` is the longest silence in seconds, `first` that before an answer begins, if it is another."""
        super().__init__(endpoint)
        self._idle = idle
        self._first = first or idle
        self._has_answered = False
        """There is a server at the address: when it cannot be reached, it may be back soon."""
        self._timeout = httpx2.Timeout(max(self._first, idle), read=self._first, connect=CONNECT_TIMEOUT)
        self._auth = httpx2.BasicAuth(*endpoint.login) if endpoint.login else httpx2.USE_CLIENT_DEFAULT
        tls = hosts.tls_for(endpoint.url.partition(":")[0], environ)
        self._way = Way(endpoint.url, tls, hosts.proxy_for(endpoint.url, environ))
        self._connections: Connections | None = None

    async def close(self) -> None:
        connections, self._connections = self._connections, None
        if connections is not None:
            await connections.leave()

    @contextlib.asynccontextmanager
    async def post(self, path: str, body: bytes) -> AsyncGenerator[AsyncGenerator[list[ServerEvent]]]:
        """Sends a request and gives the events of its answer, in a list for each chunk that arrives."""
        async with self._answer("POST", path, body) as response:
            events = self._events(response)
            try:
                yield events
                await _drain(events)
            finally:
                await events.aclose()

    async def get(self, path: str) -> bytes:
        return await self._read_body("GET", path)

    async def ask(self, path: str, body: bytes) -> bytes:
        """The answer to a request that is answered at once."""
        return await self._read_body("POST", path, body)

    async def _read_body(self, method: str, path: str, body: bytes | None = None) -> bytes:
        async with self._answer(method, path, body) as response:
            try:
                with SilenceLimit(self._first):
                    return await _read_some(response, LONGEST_LISTING)
            except httpx2.HTTPError as error:
                raise self._broken(error) from error

    @contextlib.asynccontextmanager
    async def _answer(self, method: str, path: str, body: bytes | None = None) -> AsyncGenerator[httpx2.Response]:
        with self._joined().in_use():
            async with self._answered(method, path, body) as response:
                yield response

    def _joined(self) -> Connections:
        self._connections = self._connections or connections_to(self._way).join()
        return self._connections

    @contextlib.asynccontextmanager
    async def _answered(self, method: str, path: str, body: bytes | None) -> AsyncGenerator[httpx2.Response]:
        response = await self._send(method, path, body)
        try:
            if response.status_code == 401 and self.endpoint.key_command:
                await response.aclose()
                await self.read_key(again=True)  # the one that was printed before may have expired
                response = await self._send(method, path, body)
            if response.status_code != 200:
                error = await self._refused(response)
                response = await self._send_elsewhere(response, error, method, path, body)
            yield response
        finally:
            await response.aclose()

    async def _send(self, method: str, path: str, body: bytes | None) -> httpx2.Response:
        if self.lacks_key:
            await self.read_key()
        client = self._joined().client()
        headers = {**self.endpoint.headers, **self.endpoint.credentials()}
        if body:
            headers["content-type"] = "application/json"
        try:
            address = self.endpoint.address(path)
            request = client.build_request(method, address, content=body, headers=headers, timeout=self._timeout)
            with SilenceLimit(self._first + SPARE) as silence:
                silence.end()
                request.extensions["trace"] = _asked(silence.begin)
                response = await client.send(request, auth=self._auth, stream=True)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self._unreachable(error) from error
        self._has_answered = True
        return response

    @property
    def lacks_key(self) -> bool:
        """Whether a command has to print the key first, which may take a while."""
        return bool(self.endpoint.key_command) and not self.endpoint.key

    async def read_key(self, *, again: bool = False) -> None:
        key = await printed_key(self.endpoint.provider, self.endpoint.key_command, again=again)
        self.endpoint = replace(self.endpoint, key=key)

    async def _send_elsewhere(
        self, response: httpx2.Response, error: ModelError, method: str, path: str, body: bytes | None
    ) -> httpx2.Response:
        """Tries the other address that may be meant, if it was the address; raises the error if that was no better."""
        guessed = self.endpoint
        # One who knows that there is no such model was found at the right address.
        if response.status_code not in NOTHING_THERE or not guessed.other_url or "model" in error.said.lower():
            raise error
        self.endpoint = replace(guessed, url=guessed.other_url, other_url="")
        try:
            second = await self._send(method, path, body)
        except ModelError:
            self.endpoint = guessed
            raise error from None
        await response.aclose()
        if second.status_code in NOTHING_THERE:
            self.endpoint = guessed
            await second.aclose()
            raise error
        if second.status_code != 200:
            failure = await self._refused(second)
            await second.aclose()
            raise failure
        return second

    async def _events(self, response: httpx2.Response) -> AsyncGenerator[list[ServerEvent]]:
        decoder = EventDecoder()
        silence = SilenceLimit(self._first)
        try:
            async with contextlib.aclosing(chunks_of(response, silence)) as chunks:
                beginning = await _beginning(chunks)
                match beginning.lstrip(BLANK)[:1]:
                    case b"{" | b"[" | b'"':
                        yield self._documents(beginning + await _rest(chunks, MAX_EVENT - len(beginning)))
                        return
                    case b"" | b"<":
                        beginning += await _rest(chunks, LONGEST)
                        self._expect_no_page(response, beginning)
                    case _:
                        beginning = await self._expect_no_text(response, beginning, chunks)
                # What keeps a connection alive is no beginning of a reply.
                while not (events := decoder.feed(beginning)):
                    if not (beginning := await anext(chunks, b"")):
                        break
                if events:
                    yield events
                silence.allow(self._idle)
                async for chunk in chunks:
                    if events := decoder.feed(chunk):
                        yield events
        except httpx2.HTTPError as error:
            raise self._broken(error) from error
        except EventTooLong as error:
            raise self.unreadable("an endless event") from error
        if events := decoder.end():
            yield events

    def _documents(self, body: bytes) -> list[ServerEvent]:
        """An answer of JSON, whatever it calls itself: one document, or a line for each event."""
        if len(body) >= MAX_EVENT:
            raise EventTooLong
        lines = [line for line in body.strip(BLANK).splitlines() if line.strip()]
        if len(lines) > 1 and all(line.startswith(b"{") and line.rstrip().endswith(b"}") for line in lines):
            return [ServerEvent(b"", line) for line in lines]
        return [ServerEvent(WHOLE, body.strip(BLANK))]

    # --- what went wrong

    def _expect_no_page(self, response: httpx2.Response, body: bytes) -> None:
        """Some servers answer 200 with a web page at a wrong address."""
        called_page = response.headers.get("content-type", "").startswith("text/html")
        if called_page or PAGE.match(body.lstrip(BLANK)):
            raise self.wrong_place("a web page")

    async def _expect_no_text(self, response: httpx2.Response, beginning: bytes, chunks: AsyncIterator[bytes]) -> bytes:
        """Some answer 200 with a few words, such as "Ollama is running". Returns the beginning, perhaps with more."""
        kind = response.headers.get("content-type", "")
        if not kind.startswith(("text/", "application/json")) or kind.startswith("text/event-stream"):
            return beginning
        while NO_FIELD_YET.fullmatch(beginning.lstrip(BLANK)) and (chunk := await anext(chunks, b"")):
            beginning += chunk
        if FIELD.match(beginning.lstrip(BLANK)):
            return beginning
        raise self.wrong_place("something that is not a reply", beginning + await _rest(chunks, LONGEST))

    async def _refused(self, response: httpx2.Response) -> ModelError:
        found = read(await self._error_body(response), self.endpoint.scrub)
        return from_status(
            self.endpoint.provider,
            response.status_code,
            found.said,
            code=found.name,
            retry_after=retry_after(response.headers, time.time()),
            key_name=self.endpoint.key_name,
            window=found.window,
            written=found.written,
            silence_is_overflow=self.endpoint.silence_is_overflow,
        )

    async def _error_body(self, response: httpx2.Response) -> bytes:
        try:
            with SilenceLimit(self._first):
                return await _read_some(response, LONGEST)
        except httpx2.HTTPError:
            return b""  # the status says enough

    def _broken(self, error: httpx2.HTTPError) -> ReplyBroken:
        if isinstance(error, httpx2.TimeoutException):
            what = f"sent nothing for {self._silence(error):g} s"
        else:
            what = f"closed the connection ({self.endpoint.scrub(_reason(error))})"
        return ReplyBroken(f"{self.endpoint.provider} {what}.", provider=self.endpoint.provider, remedy="Try again.")

    def _unreachable(self, error: httpx2.HTTPError | httpx2.InvalidURL) -> ModelError:
        provider, url = self.endpoint.provider, self.endpoint.shown_url
        reason = self.endpoint.scrub(_reason(error))
        unavailable = functools.partial(ModelUnavailable, provider=provider)
        match error, _root(error):
            case httpx2.ConnectTimeout(), _:
                return unavailable(
                    f"{provider} did not accept the connection at {url} within {CONNECT_TIMEOUT:g} s.",
                    remedy="Check base_url and the network.",
                )
            case Silence(), _:
                return unavailable(
                    f"{provider} did not start to answer within {self._first:g} s.", remedy=self._silence_remedy
                )
            case httpx2.TimeoutException(), _:
                return unavailable(
                    f"{provider} sent nothing for {self._silence(error):g} s.", remedy=self._silence_remedy
                )
            case httpx2.ProxyError(), _:
                return unavailable(
                    f"The proxy on the way to {provider} failed ({reason}).", remedy="Check HTTPS_PROXY and NO_PROXY."
                )
            case _, ssl.SSLError() as failure:
                return self._without_tls(failure, reason)
            case _, ConnectionRefusedError():
                return unavailable(
                    f"{provider} refused the connection at {url}.",
                    remedy="Is the server running there?",
                    is_lasting=not self._has_answered,
                )
            case _, socket.gaierror():
                return unavailable(
                    f"The address of {provider} at {url} was not found.",
                    remedy="Check base_url and the network.",
                    is_lasting=not self._has_answered,
                )
            case ((httpx2.NetworkError() | httpx2.RemoteProtocolError()), _):
                return unavailable(
                    f"{provider} closed the connection before it answered ({reason}).", remedy="Try again."
                )
            case _:
                return ModelRejected(
                    f"The request to {provider} at {url} could not be sent ({reason}).",
                    provider=provider,
                    remedy="Check base_url.",
                )

    def _silence(self, error: BaseException) -> float:
        return error.seconds if isinstance(error, Silence) else self._first

    @property
    def _silence_remedy(self) -> str:
        if self._first == self._idle:
            return "Try again."
        return "Send less at once, or raise `first_token` in [limits]."

    def _without_tls(self, failure: ssl.SSLError, reason: str) -> ModelError:
        """What is said of a TLS handshake that failed. A certificate does not get better by asking again."""
        provider, url = self.endpoint.provider, self.endpoint.shown_url
        if isinstance(failure, ssl.SSLEOFError):
            return ModelUnavailable(
                f"{provider} aborted the TLS handshake at {url}.", provider=provider, remedy="Try again."
            )
        if failure.reason in NO_TLS:
            return ModelRejected(
                f"{provider} does not speak TLS at {url}.",
                provider=provider,
                remedy=f"Use http in base_url: {url.replace('https:', 'http:', 1)}",
            )
        return ModelRejected(
            f"The TLS connection to {provider} at {url} failed ({reason}).",
            provider=provider,
            remedy="Check the server's certificate. To trust another certificate authority, set SSL_CERT_FILE.",
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
        hosts.tls_for(base_url.partition(":")[0] or "https", os.environ)


def _asked(then: Callable[[], None]) -> Callable[[str, Any], Awaitable[None]]:
    """Calls `then` once a request has been sent: from then on, an answer is waited for."""

    async def trace(what: str, _: Any) -> None:
        if what.endswith("send_request_body.complete"):
            then()

    return trace


async def _read_some(response: httpx2.Response, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in response.aiter_bytes():
        pieces.append(piece[: limit - size])
        size += len(piece)
        if size >= limit:
            break
    return b"".join(pieces)


async def _beginning(chunks: AsyncIterator[bytes]) -> bytes:
    """The first bytes that are more than blank, and the chunk they came in; nothing if none come."""
    pieces = b""
    async for chunk in chunks:
        pieces += chunk
        if len(pieces) > LONGEST or pieces.lstrip(BLANK):
            break
    return pieces


async def _rest(chunks: AsyncIterator[bytes], limit: int) -> bytes:
    pieces: list[bytes] = []
    async for chunk in chunks:
        pieces.append(chunk)
        limit -= len(chunk)
        if limit <= 0:
            break
    return b"".join(pieces)


async def _drain(events: AsyncGenerator[list[ServerEvent]]) -> None:
    """Reads past the last event, so that the connection can be used again; only a moment, the reply is complete."""
    with contextlib.suppress(TimeoutError, ModelError):
        async with timeout(DRAIN_TIMEOUT):
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
