"""The connections to providers: shared by all sessions of the process, and closed when they have been idle for long."""

import asyncio
import contextlib
import ssl
from collections.abc import Generator
from typing import NamedTuple, Self
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import httpx2

import crow

KEEP_ALIVE = 90.0
"""Seconds. A person thinks for longer than the library's 5 s; a new connection costs a TLS handshake."""
MOST_IDLE = 8
"""Connections to one provider that are kept while nobody uses them."""


class Way(NamedTuple):
    """How a provider is reached."""

    url: str
    tls: ssl.SSLContext
    proxy: httpx2.Proxy | None

    @property
    def key(self) -> tuple[object, ...]:
        place = urlsplit(self.url)
        proxy = self.proxy and (str(self.proxy.url), self.proxy.raw_auth)
        return place.scheme, place.netloc.rpartition("@")[2], id(self.tls), proxy


class Connections:
    """Those to one provider. One timer closes them, and no other wakes the process while they are idle."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self._client: httpx2.AsyncClient | None = None
        self._members = 0
        self._requests = 0
        self._timer: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    def join(self) -> Self:
        """To be left by whoever joins."""
        self._members += 1
        return self

    async def leave(self) -> None:
        """The last one to leave closes them."""
        self._members -= 1
        if not self._members:
            _shared[asyncio.get_running_loop()].pop(self._way.key, None)
            self._stop_timer()
            if self._closing is not None:
                await asyncio.wait([self._closing])
            await self._close()

    def client(self) -> httpx2.AsyncClient:
        if self._client is None:
            self._client = httpx2.AsyncClient(
                headers={"user-agent": f"crow/{crow.__version__}", "accept-encoding": "identity"},
                limits=httpx2.Limits(keepalive_expiry=KEEP_ALIVE, max_keepalive_connections=MOST_IDLE),
                verify=self._way.tls,
                proxy=self._way.proxy,
                # Neither .netrc nor anything else from the environment but what is read here.
                trust_env=False,
            )
        return self._client

    @contextlib.contextmanager
    def in_use(self) -> Generator[None]:
        """While a request is sent and answered."""
        self._stop_timer()
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1
            if not self._requests and self._members:
                self._timer = asyncio.get_running_loop().call_later(KEEP_ALIVE, self._expire)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        self._closing = asyncio.get_running_loop().create_task(self._close())

    async def _close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[object, ...], Connections]] = WeakKeyDictionary()


def connections_to(way: Way) -> Connections:
    """Those of the event loop that runs."""
    return _shared.setdefault(asyncio.get_running_loop(), {}).setdefault(way.key, Connections(way))
