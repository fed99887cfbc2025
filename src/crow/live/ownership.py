"""This process as the owner of sessions: when its socket is opened, and how its sessions are handed over to others when
it ends.

Its socket is opened once the first session is there, so that nobody waits for it who opens one.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from crow.errors import CrowError
from crow.live.session import LiveSession
from crow.rpc.connection import Connection
from crow.rpc.jsonrpc import being_released
from crow.threads import start_thread

if TYPE_CHECKING:
    from crow.live.attach_socket import AttachSocket
    from crow.live.host import Host

logger = logging.getLogger(__name__)


class AttachedAgent(Protocol):
    """What serves one connection of another process: an agent with the sessions of this one."""

    def connect(self, reader: int, writer: int) -> Connection: ...

    async def close(self) -> None:
        """The connection is over: what belonged to it is let go of."""
        ...


ServeAttached = Callable[[Callable[[], None], bool], AttachedAgent]
"""Makes the agent of a connection, which calls the function once its client has said who it is. The second says whether
the client is trusted from the beginning."""


class Watcher(Protocol):
    """A connection that may have places in sessions."""

    @property
    def watches(self) -> bool:
        """Whether it has any."""
        ...

    def released(self, session_id: str) -> None:
        """The session no longer lives here."""
        ...


class Ownership:
    """`serve` makes the agents of connections from other processes; without it there are none."""

    def __init__(self, host: "Host", serve: ServeAttached | None) -> None:
        self._host = host
        self._serve = serve
        self._socket: AttachSocket | None = None
        self._opening: asyncio.Task[None] | None = None
        self.watchers: set[Watcher] = set()
        self._is_ending = False
        self._is_closed = False
        # Where the system does not say who connects, nobody may.
        if serve is not None and hasattr(socket, "SO_PEERCRED"):
            host.store.allow_attaching()
            host.store.on_missing_socket(self._check_socket)
        else:
            self._serve = None

    def open_socket(self) -> None:
        """Once, beside everything else. A process without one works, and nobody can attach to it."""
        if self._opening is None and self._serve is not None:
            self._opening = asyncio.ensure_future(self._open(self._serve))

    async def socket_opened(self) -> str:
        """Opens the socket and waits for it; its path, empty if there is none."""
        self.open_socket()
        if self._opening is not None:
            await asyncio.wait([self._opening])
        return "" if self._socket is None else await self._host.store.socket()

    async def _open(self, serve: ServeAttached) -> None:
        from crow.live.attach_socket import AttachSocket, remove_dead_sockets

        store = self._host.store
        try:
            path = await store.socket()
            if not path:
                logger.warning("nobody can attach: there is no folder for a socket that is this user's alone")
                return
            try:
                self._socket = AttachSocket(path, serve, self._host.trusts_newcomers)
            except OSError as error:
                logger.warning("nobody can attach: %s", error)
                await store.withdraw_socket()
            # A thread of its own that nobody waits for.
            start_thread(partial(remove_dead_sockets, os.path.dirname(path)), "crow-sockets")
        except CrowError as error:
            logger.warning("nobody can attach: %s", error)

    def _check_socket(self) -> None:
        if self._opening is not None and self._opening.done() and not self._is_closed:
            self._opening = asyncio.ensure_future(self._renew_socket())

    async def _renew_socket(self) -> None:
        """Listens anew where the socket was removed: whoever is attached already stays."""
        if self._socket is None:
            return
        try:
            if path := await self._host.store.renew_socket():
                logger.warning("the socket was removed, and is made anew: %s", path)
                self._socket.listen_at(path)
        except (CrowError, OSError) as error:
            logger.warning("nobody can attach any more: %s", error)

    async def close(self) -> None:
        self._is_closed = True
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
        if self._socket is not None:
            await self._socket.close()

    # --- the end

    def has_others(self, own: Watcher | None) -> bool:
        """Whether somebody else watches a session."""
        return any(watcher.watches for watcher in self.watchers if watcher is not own)

    def check_accepts_turns(self) -> None:
        if self._is_ending:
            raise being_released()

    async def hand_over(self) -> None:
        """Finishes the turns that run, and begins none. Each session is let go of when it is idle, and whoever watches
        it is told: another process goes on with it then."""
        self._is_ending = True
        await all_ended(*(self._release(live) for live in self._host.live))

    async def _release(self, live: LiveSession) -> None:
        await live.session.until_idle()
        try:
            async with self._host.open_close_lock(live.id):
                if self._host.find(live.id) is live:
                    await self._host.end(live, "handed over")
        finally:
            for watcher in list(self.watchers):
                watcher.released(live.id)


async def all_ended(*ends: Awaitable[object]) -> None:
    """Waits for every one of them. What fails is logged: nobody is left to whom it could be said."""
    for result in await asyncio.gather(*ends, return_exceptions=True):
        if isinstance(result, Exception):
            logger.warning("something did not end as it should", exc_info=result)
