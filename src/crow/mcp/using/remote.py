"""Talking to a server over HTTP: the streamable kind, and the older one with server-sent events."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectSendStream
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from crow.config.settings import McpServerSettings
from crow.mcp.using.failures import ServerFailed
from crow.mcp.using.tapped import Tap

CONNECT = 10.0
"""Seconds that a connection may take; how long an answer may take is the caller's to say."""
UNAUTHORISED = 401
NOT_FOUND = 404


def checked_url(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise ServerFailed("its address does not begin with http:// or https://", lasting=True)
    return url


def has_own_key(settings: McpServerSettings) -> bool:
    """Whether the configuration says how it lets itself in: then there is nothing to log in to."""
    return any(name.lower() == "authorization" for name in settings.headers)


class Remote:
    """A transport: connected while it is entered. `on_end` is told when the server no longer sends, or forgot us."""

    def __init__(
        self,
        settings: McpServerSettings,
        auth: httpx2.Auth | None,
        tap: Tap,
        on_unauthorised: Callable[[], None],
        on_end: Callable[[ServerFailed], None],
    ) -> None:
        self._settings = settings
        self._auth = auth
        self._tap = tap
        self._on_unauthorised = on_unauthorised
        self._on_end = on_end
        self._entered = self._transport()
        self._leaving = False

    async def __aenter__(self) -> tuple[Any, Any]:
        return await self._entered.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._entered.__aexit__(kind, error, trace)

    @asynccontextmanager
    async def _transport(self) -> AsyncGenerator[tuple[Any, Any]]:
        async with self._connected() as (messages, outgoing), anyio.create_task_group() as tasks:
            to_us, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            tasks.start_soon(self._pass_on, messages, to_us)
            try:
                yield incoming, outgoing
            finally:
                self._leaving = True
                tasks.cancel_scope.cancel()
                for stream in (to_us, incoming, messages, outgoing):
                    stream.close()

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[tuple[Any, Any]]:
        url, headers = checked_url(self._settings.url), dict(self._settings.headers)
        if self._settings.type == "sse":
            async with sse_client(url, headers, CONNECT, httpx_client_factory=self._http, auth=self._auth) as streams:
                yield streams
            return
        limits = httpx2.Timeout(CONNECT, read=None)
        http = self._http(headers, limits, self._auth)
        async with http, streamable_http_client(url, http_client=http) as streams:
            yield streams

    def _http(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        # Redirects are followed by the library, within the same origin.
        return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, event_hooks={"response": [self._look]})

    async def _look(self, response: httpx2.Response) -> None:
        if response.status_code == UNAUTHORISED:
            self._on_unauthorised()
        is_ours = response.request.method == "POST" and response.url == self._settings.url
        if response.status_code == NOT_FOUND and is_ours:
            # Most likely it was started anew, and knows nothing of us.
            self._on_end(ServerFailed("it answered with HTTP status 404"))

    async def _pass_on(self, messages: Any, to_us: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        failure = ServerFailed("it ended the connection")
        try:
            async for message in messages:
                self._tap.take(message)
                await to_us.send(message)
        except ServerFailed as failed:
            failure = failed
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return
        if not self._leaving:
            self._on_end(failure)
        to_us.close()
