"""The connections to providers, which all sessions of the process share, and how their answers are read.

They are closed when they have been idle for long. An answer is read chunk by chunk: with a limit for silence, and not
too often where many are read.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Generator
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


# --- reading an answer

FEW_STREAMS = 25
READS_A_SECOND = 4_500
"""Of all streams together, once they are more than a few."""


class Silence(httpx2.ReadTimeout):
    def __init__(self, seconds: float) -> None:
        super().__init__(f"nothing for {seconds:g} s")
        self.seconds = seconds


class SilenceLimit:
    """The longest silence that a stream may keep: one timer for all of its chunks, as one for each costs a fifth more.

    Raises Silence out of its `with` block when the limit expires while a chunk is awaited.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._since: float | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancels_before = 0
        self._timer: asyncio.TimerHandle | None = None
        self._expired = False

    def allow(self, seconds: float) -> None:
        """Another limit from here on; none if the stream has ended, as there is nothing left to wait for."""
        self._seconds = seconds
        if self._timer:
            self._timer.cancel()
            self._look()

    def begin(self) -> None:
        """A chunk is awaited from now on."""
        self._since = self._loop.time()

    def end(self) -> None:
        """A chunk has come; whoever works on it may take as long as it takes."""
        self._since = None

    def __enter__(self) -> Self:
        self._task = asyncio.current_task()
        self._cancels_before = self._task.cancelling() if self._task else 0
        self.begin()
        self._look()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._expired and self._task and self._task.uncancel() <= self._cancels_before:
            raise Silence(self._seconds) from error

    def _look(self) -> None:
        now = self._loop.time()
        due = (now if self._since is None else self._since) + self._seconds
        if due > now:
            self._timer = self._loop.call_at(due, self._look)
        elif self._task:
            self._expired = True
            self._task.cancel()


class _ReadPace:
    """How often streams are read while there are many of them.

    A read costs several times what a token does, and with two hundred streams each round of the event loop would be so
    long that a cancel, which takes a dozen of them, came after most of a second. What waits meanwhile comes with the
    next read. Few streams are read at once.
    """

    def __init__(self) -> None:
        self._streams = 0
        self.gap = 0.0
        """Seconds to wait after a read."""

    def __enter__(self) -> None:
        self._count(1)

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._count(-1)

    def _count(self, change: int) -> None:
        self._streams += change
        self.gap = self._streams / READS_A_SECOND if self._streams > FEW_STREAMS else 0.0


_PACE = _ReadPace()


class _LoopStep:
    """Whether the event loop has gone on since `begin`, as it does with every read from a socket."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.is_over = True

    def begin(self) -> None:
        self.is_over = False
        self._loop.call_soon(self._end)

    def _end(self) -> None:
        self.is_over = True


async def chunks_of(response: httpx2.Response, silence: SilenceLimit) -> AsyncGenerator[bytes]:
    # The library would start a timer for each chunk.
    response.request.extensions["timeout"]["read"] = None
    encoded = "content-encoding" in response.headers  # asked for none, but a proxy may know better
    source = response.aiter_bytes() if encoded else response.aiter_raw()
    async with contextlib.aclosing(source):
        step = _LoopStep()
        with silence, _PACE:
            async for chunk in source:
                silence.end()
                yield chunk
                if _PACE.gap and step.is_over:  # else the chunk came with the read before
                    await asyncio.sleep(_PACE.gap)
                    step.begin()
                silence.begin()
