"""When a client over HTTP has left: it said so, or it asked for nothing for so long that its session is over.

The library ends the session in both cases and tells nobody. So whoever keeps something for a client learns it here,
by the same clock: it runs while no request of the session is being answered, and no stream of it is open.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from crow.mcp.serving.server import SESSION_ID

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


def with_farewells(app: App, has_left: Callable[[str], None], longest_silence: float) -> App:
    """The app, with somebody who is told the session's id of each client that has left."""
    presences: dict[str, _Presence] = {}

    def is_gone(session_id: str) -> None:
        presences.pop(session_id).end()
        has_left(session_id)

    async def served(scope: Message, receive: Receive, send: Send) -> None:
        session_id = _session_id(scope)
        if not session_id:
            await app(scope, receive, send)
            return
        if session_id not in presences:
            presences[session_id] = _Presence(longest_silence, lambda: is_gone(session_id))
        presence = presences[session_id]
        presence.begin()
        try:
            await app(scope, receive, send)
        finally:
            presence.finish()
        if scope["method"] == "DELETE" and session_id in presences:
            is_gone(session_id)

    return served


class _Presence:
    """One session: how many of its requests are under way, and the clock that runs while there are none."""

    def __init__(self, longest_silence: float, is_over: Callable[[], None]) -> None:
        self._longest_silence = longest_silence
        self._is_over = is_over
        self._under_way = 0
        self._ended = False
        self._clock: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        self._under_way += 1
        self._stop_clock()

    def finish(self) -> None:
        self._under_way -= 1
        if not self._under_way and not self._ended:
            self._clock = asyncio.get_running_loop().call_later(self._longest_silence, self._is_over)

    def end(self) -> None:
        self._ended = True
        self._stop_clock()

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None


def values(scope: Message, name: str) -> list[bytes]:
    """Of the header of this name, each time that it was sent."""
    return [value for header, value in scope["headers"] if header == name.encode()]


def _session_id(scope: Message) -> str:
    """Empty for a request that belongs to no session, such as the one that opens it."""
    if scope["type"] != "http":
        return ""
    found = values(scope, SESSION_ID)
    return found[0].decode("latin-1") if found else ""
