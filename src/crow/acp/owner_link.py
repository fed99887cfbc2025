"""A relay's connection to the process that owns a session: connecting to its socket, comparing versions, and asking
what its sessions do.

Whoever connects sends `initialize` first: both say which Crow they are, and the older of two that do not understand
each other says so. Nothing is changed by then.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec

from crow import __version__
from crow.acp import crow_meta, wire
from crow.errors import CrowError, SessionElsewhere
from crow.live.attach_socket import LONGEST_RELAYED_LINE, peer_of
from crow.rpc import jsonrpc
from crow.rpc.connection import Connection, ConnectionLost
from crow.rpc.jsonrpc import ErrorCode, Notification, Request, Response, RpcError
from crow.store.base import Living
from crow.store.owners import process_of
from crow.timeouts import timeout_at
from crow.visible import one_line

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

LARGEST_ENVIRON = 256 * 1024
"""Bytes of an environment that is sent; without one, that of the owner is used."""
TRY_AGAIN = 0.05
"""Seconds between two tries at a process that begins or ends at this moment."""

QUIET = 3.0
"""Seconds without a line from an owner that something is awaited of, after which it is asked for a sign."""
SIGN_TIMEOUT = 2.0
"""Seconds that it has to give one, before the person is told that it does not answer."""

_UPDATE = b'{"jsonrpc":"2.0","method":"session/update",'
"""How a line begins that is an update and nothing else: as `jsonrpc.write_notification` writes it."""


class NobodyListens(Exception):
    """There is no socket where one was said to be, or nobody who accepts connections."""


class LinkUser:
    """Who is told what comes through a link; this one ignores all of it."""

    def pass_update(self, link: "OwnerLink", line: bytes) -> None:
        """An update, as the line that came."""

    def take(self, link: "OwnerLink", message: Request | Notification) -> None:
        """Anything else that the owner wants."""

    def throttle(self, link: "OwnerLink") -> None:
        """Called after each line: may pause the link."""

    def lost(self, link: "OwnerLink") -> None:
        """The owner has gone. Called before anyone who waits for its answers is told that there will be none."""


class OwnerLink(Connection):
    def __init__(self, peer: socket.socket, there: SessionElsewhere, user: LinkUser) -> None:
        super().__init__(peer.fileno(), peer.fileno(), {}, {})
        self.there = there
        self.questions: dict[bytes, bytes] = {}
        """The owner's requests that are not answered yet: its ids, and those under which they were passed on."""
        self.is_paused = False
        self._is_watched = False
        self._lines_received = 0
        self.has_ended = False
        self._peer = peer
        self._user = user
        self.divert = self._hand_over
        self.limit_lines(LONGEST_RELAYED_LINE)
        self._input.start()

    @property
    def process(self) -> int:
        """The owner's, as the system knows it, and not as anybody says."""
        return peer_of(self._peer)[0]

    async def close(self) -> None:
        self.has_ended = True
        await super().close()
        self._peer.close()

    def receive(self, line: bytes | None) -> None:
        self._lines_received += 1
        if line is None or not line.startswith(_UPDATE):
            super().receive(line)
        else:
            self._read(lambda: self._user.pass_update(self, line), "an update")
        self._user.throttle(self)

    def _read(self, take: Callable[[], None], what: str) -> None:
        try:
            take()
        except (msgspec.MsgspecError, UnicodeError) as error:
            logger.warning("%s of another Crow could not be read: %s", what, error)

    @property
    def is_awaited(self) -> bool:
        """Whether the owner has been asked for something that it has not answered."""
        return bool(self._waiting)

    async def watch(self, session_id: str, tell: Callable[[], None]) -> None:
        """Looks for signs of life for as long as the owner is asked for something; calls `tell` when it gives none."""
        if self._is_watched:
            return
        self._is_watched, is_told = True, False
        try:
            while not self.has_ended:
                before = self._lines_received
                await asyncio.sleep(QUIET)
                if self._lines_received == before and not self.is_paused:
                    self.pass_on("session/status", wire.SessionRequest(session_id=session_id), lambda _: None)
                    await asyncio.sleep(SIGN_TIMEOUT)
                is_silent = self._lines_received == before and not (self.is_paused or self.has_ended)
                if is_silent and not is_told:
                    tell()
                is_told = is_silent
                if not self.is_awaited:
                    return
        finally:
            self._is_watched = False

    def answer(self, id: bytes, response: Response | None) -> None:
        """Sends the owner the answer to one of its requests; None if there will be none."""
        if self.questions.pop(id, None) is not None and response is not None:
            self.send(jsonrpc.write_response(id, response))

    def _hand_over(self, message: Request | Notification) -> bool:
        self._read(lambda: self._user.take(self, message), message.method[:200])
        return True

    def _settle(self, response: Response) -> None:
        if response.id == b"null" and response.error is not None:
            # What we sent was not even read: that is the answer to whatever we wait for.
            waiting, self._waiting = self._waiting, {}
            for settle in waiting.values():
                settle(response)
        else:
            super()._settle(response)

    def _on_output_lost(self) -> None:
        """What the owner said last may still be unread, such as that it lets go of a session: its end is told there."""

    def _on_end(self) -> None:
        if not self.has_ended:
            self.has_ended = True
            self._user.lost(self)
        super()._on_end()


async def connect(there: SessionElsewhere, initialize_params: bytes, user: LinkUser, deadline: float) -> OwnerLink:
    """A link to an owner that has answered `initialize`, which is sent with these parameters.

    NobodyListens; ConnectionLost if the owner ends meanwhile; RpcError if it will not have us, or does not answer by
    the deadline.
    """
    try:
        async with timeout_at(deadline):
            link = OwnerLink(await _connected(there.socket), there, user)
            try:
                answer = await link.request("initialize", crow_meta.added(initialize_params, _own_facts()), msgspec.Raw)
                _check_version(crow_meta.read_in(wire.RelayFacts, answer), there)
            except BaseException:
                await link.close()
                raise
    except TimeoutError:
        raise silent(there) from None
    except OSError as error:
        raise NobodyListens from error
    return link


async def _connected(path: str) -> socket.socket:
    """A connection to the socket at that path; OSError if nobody listens there."""
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        peer.setblocking(False)  # noqa: FBT003 -- the method takes it so
        while True:
            try:
                peer.connect(path)
            except BlockingIOError:  # its queue is full; there is no way to be told when it no longer is
                await asyncio.sleep(TRY_AGAIN)
            else:
                return peer
    except BaseException:
        peer.close()
        raise


def _own_facts() -> wire.ClientFacts:
    """What a relay adds to its editor's `initialize`."""
    return wire.ClientFacts(
        attach=wire.ATTACH_VERSION,
        version=__version__,
        process=os.getpid(),
        environ=_own_environ(),
    )


def _own_environ() -> dict[str, str]:
    """So that commands of a session that is opened there run as they would here. Any bytes can be in it."""
    environ = {name.decode("latin-1"): value.decode("latin-1") for name, value in os.environb.items()}
    return environ if sum(len(name) + len(value) for name, value in environ.items()) <= LARGEST_ENVIRON else {}


def environ_of(facts: wire.ClientFacts) -> dict[str, str]:
    """The environment that a relay has sent; empty if it has not."""
    try:
        return {
            os.fsdecode(name.encode("latin-1")): os.fsdecode(value.encode("latin-1"))
            for name, value in facts.environ.items()
        }
    except UnicodeEncodeError:
        return {}


def facts_for(meta: object) -> wire.RelayFacts:
    """What a Crow that attaches is told of this one; RpcError if it may not, or if it wants more than this one knows.

    A client that is no Crow says nothing of versions, and needs nothing but the protocol.
    """
    facts = crow_meta.read(wire.ClientFacts, meta)
    if facts.attach > wire.ATTACH_VERSION:
        said = (
            f"The session lives in an older Crow (process {os.getpid()}, version {__version__}) to which version "
            f"{one_line(facts.version, 40)} cannot attach: restart the program that it belongs to."
        )
        raise RpcError(ErrorCode.INVALID_REQUEST, said)
    return wire.RelayFacts(attach=wire.ATTACH_VERSION, version=__version__, process=os.getpid())


def _check_version(owner: wire.RelayFacts, there: SessionElsewhere) -> None:
    if owner.attach > wire.ATTACH_VERSION:
        said = (
            f"The session lives in a newer Crow (process {there.process}, version {owner.version[:40]}) to which this "
            f"one (version {__version__}) cannot attach: restart this program."
        )
        raise RpcError(ErrorCode.INVALID_REQUEST, said, {"details": said})


def silent(there: SessionElsewhere) -> RpcError:
    said = (
        f"Another Crow (process {there.process}) runs this session and does not answer. Nothing was changed. "
        "End that process, then load the session again."
    )
    return RpcError(ErrorCode.INTERNAL_ERROR, said, {"details": said})


# --- asking without attaching

STATUS_TIMEOUT = 1.0
"""Seconds that an owner gets to say what a session does, before the store is believed."""
ASK_TIMEOUT = 5.0
"""Seconds that one gets to answer a single request."""
ASKING = b'{"protocolVersion":1,"clientInfo":{"name":"crow"}}'


async def statuses_of(living: Mapping[str, Living]) -> dict[str, wire.StatusFacts]:
    """What sessions do that live in other processes, by id: as those say, or else as far as the store knows."""
    by_owner: dict[str, list[str]] = {}
    for id, there in living.items():
        by_owner.setdefault(there.owner, []).append(id)
    answers = await asyncio.gather(*(_ask(living[ids[0]], ids) for ids in by_owner.values()))
    found = {id: _stored_facts(there) for id, there in living.items()}
    for answer in answers:
        found |= answer
    return found


def _stored_facts(there: Living) -> wire.StatusFacts:
    return wire.StatusFacts(state="running" if there.running_since else "idle", process=int(there.process))


async def _ask(there: Living, session_ids: Iterable[str]) -> dict[str, wire.StatusFacts]:
    """What a process says of its sessions. Those that it does not tell of in time are left out."""
    found: dict[str, wire.StatusFacts] = {}
    if not there.socket:
        return found
    deadline = asyncio.get_running_loop().time() + STATUS_TIMEOUT
    with contextlib.suppress(NobodyListens, ConnectionLost, RpcError, TimeoutError):
        owner = SessionElsewhere(there.owner, there.process, there.socket)
        link = await connect(owner, ASKING, LinkUser(), deadline)
        try:
            async with timeout_at(deadline):
                for session_id in session_ids:
                    params = wire.SessionRequest(session_id=session_id)
                    answer = await link.request("session/status", params, wire.SessionStatusResponse)
                    if answer.meta is not None:
                        found[session_id] = answer.meta.crow
        finally:
            await link.close()
    return found


async def ask_owner(owner: str, path: str, method: str, params: object, result: type[Result]) -> Result:
    """What a process answers to one request at its socket. CrowError if it cannot be asked, or refuses."""
    deadline = asyncio.get_running_loop().time() + ASK_TIMEOUT
    there = SessionElsewhere(owner, process_of(owner), path)
    try:
        async with timeout_at(deadline):
            link = await connect(there, ASKING, LinkUser(), deadline)
            try:
                return await link.request(method, params, result)
            finally:
                await link.close()
    except (NobodyListens, ConnectionLost, TimeoutError):
        said = f"The Crow of process {there.process} does not answer."
        raise CrowError(said, remedy="End that process.") from None
    except RpcError as error:
        raise CrowError(error.message) from None
