"""Finds where a session lives: at an owner, to each of which a relay has one link, or here, where it is claimed."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

from crow.acp.owner_link import TRY_AGAIN, LinkUser, NobodyListens, OwnerLink, connect, silent
from crow.errors import SessionElsewhere
from crow.rpc.connection import ConnectionLost

ANSWER_TIMEOUT = 5.0
"""Seconds that an owner gets to answer `initialize`; also how long one that has just ended is looked after."""

Opened = TypeVar("Opened")
Claimed = TypeVar("Claimed")


class SessionReleased(Exception):
    """The session no longer lives in the process that was asked for it."""


class OwnerLinks:
    """The links of one relay, which is their user."""

    def __init__(self, user: LinkUser) -> None:
        self.initialize_params = b"{}"
        """The parameters of `initialize` for links that are made from now on."""
        self._user = user
        self._loop = asyncio.get_running_loop()
        self._links: dict[str, asyncio.Task[OwnerLink]] = {}
        """By the owners' tokens."""

    async def find_home(
        self,
        open_at: Callable[[OwnerLink], Awaitable[Opened]],
        claim: Callable[[], Awaitable[Claimed]],
        there: SessionElsewhere | None = None,
        *,
        gone: SessionElsewhere | None = None,
    ) -> Opened | Claimed:
        """Opens a session where it lives, or claims it where it does not: whichever comes first, as owners may end at
        any moment. `there` is tried first, if it is given; `gone` has ended and is not tried.

        `open_at` may raise SessionReleased or ConnectionLost, and `claim` SessionElsewhere: then the other is tried.
        RpcError if the process in which the session lives does not answer.
        """
        deadline = self._loop.time() + ANSWER_TIMEOUT
        while True:
            if there is not None:
                # Of a process that has just ended the lock is free a moment later than its socket.
                if gone is None or there.owner != gone.owner:
                    with contextlib.suppress(NobodyListens, SessionReleased, ConnectionLost):
                        return await open_at(await self.link_to(there, deadline))
                if self._loop.time() > deadline:
                    raise silent(there)
                await asyncio.sleep(TRY_AGAIN)
            try:
                return await claim()
            except SessionElsewhere as elsewhere:
                there = elsewhere

    def forget(self, link: OwnerLink) -> None:
        self._links.pop(link.there.owner, None)

    async def close(self) -> None:
        links, self._links = list(self._links.values()), {}
        for task in links:
            task.cancel()
        made = await asyncio.gather(*links, return_exceptions=True)
        await asyncio.gather(*(link.close() for link in made if isinstance(link, OwnerLink)))

    async def link_to(self, there: SessionElsewhere, deadline: float) -> OwnerLink:
        """The link to an owner, which is made if there is none. Raises what `connect` does."""
        task = self._links.get(there.owner)
        if task is None:
            connecting = connect(there, self.initialize_params, self._user, deadline)
            task = self._links[there.owner] = self._loop.create_task(connecting)
        try:
            return await asyncio.shield(task)
        except BaseException:
            if task.done() and self._links.get(there.owner) is task:
                del self._links[there.owner]
            raise
