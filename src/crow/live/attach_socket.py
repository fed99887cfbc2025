"""The unix socket through which other processes attach to the sessions of this one: who may connect, and how many at a
time.

What comes through it is the protocol, served by an agent like the one on standard input. It lies in a folder that
nobody else can enter. A peer must be the same user's. It may be a command that a Crow runs, which could answer the
question whether it may run: so who comes after the first command is not trusted, see `Face.code`.
"""

import asyncio
import contextlib
import logging
import os
import socket
import struct
from collections.abc import Awaitable, Callable

from crow.live.ownership import ServeAttached
from crow.rpc import jsonrpc
from crow.rpc.jsonrpc import ErrorCode, RpcError
from crow.rpc.lines import LONGEST_LINE
from crow.timeouts import timeout

logger = logging.getLogger(__name__)

MOST_ATTACHED = 64
"""Connections at a time of those that have said who they are."""
MOST_UNNAMED = 32
"""Those that have not said yet who they are. If one more comes, the one that has been silent for longest goes."""
QUEUE = 64
"""Connections that the system keeps until they are accepted."""
INITIALIZE_TIMEOUT = 5.0
"""Seconds until a peer must have said who it is."""
LONGEST_RELAYED_LINE = LONGEST_LINE + 4096
"""Bytes of a line after that: one that is passed on may get a longer id, and a word on who passes it on."""
LONGEST_INITIALIZE = 1024 * 1024
"""Bytes of a line, until then."""
CLOSE_TIMEOUT = 1.0
"""Seconds that a peer gets to read the last that it is told."""
NO_DESCRIPTORS = 1.0
"""Seconds until the next look at who waits, if the system has no more descriptors for us."""


class AttachSocket:
    """`serve` makes the agent of a connection. `trusts_newcomers`: whether who connects now is trusted."""

    def __init__(self, path: str, serve: ServeAttached, trusts_newcomers: Callable[[], Awaitable[bool]]) -> None:
        """Listens at the path, which lies in a folder that is this user's alone. OSError if that cannot be done."""
        self._serve = serve
        self._trusts_newcomers = trusts_newcomers
        self._loop = asyncio.get_running_loop()
        self._unnamed: dict[asyncio.Task[None], None] = {}
        self._attached: set[asyncio.Task[None]] = set()
        self._listens = False
        self._path = path
        self._listener = _listener_at(path)
        self._listen()

    def listen_at(self, path: str) -> None:
        """Listens at another path, or anew at the same one. Connections that are there stay. OSError, as above."""
        listener = _listener_at(path)
        self._rest()
        self._listener.close()
        self._path, self._listener = path, listener
        self._listen()

    async def close(self) -> None:
        """Takes the socket away and ends every connection."""
        self._rest()
        self._listener.close()
        with contextlib.suppress(OSError):
            os.unlink(self._path)
        connections = [*self._unnamed, *self._attached]
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    # --- accepting

    def _listen(self) -> None:
        if not self._listens and self._listener.fileno() >= 0:
            self._listens = True
            self._loop.add_reader(self._listener, self._accept)

    def _rest(self) -> None:
        if self._listens:
            self._listens = False
            self._loop.remove_reader(self._listener)

    def _accept(self) -> None:
        try:
            peer, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionError):
            return
        except OSError as error:
            logger.warning("nobody can attach for the moment: %s", error)
            self._rest()
            self._loop.call_later(NO_DESCRIPTORS, self._listen)
            return
        peer.setblocking(False)  # noqa: FBT003 -- the method takes it so
        if len(self._unnamed) >= MOST_UNNAMED:
            oldest = next(iter(self._unnamed))
            del self._unnamed[oldest]
            oldest.cancel()
        task = self._loop.create_task(self._admit(peer))
        self._unnamed[task] = None
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._unnamed.pop(task, None)
        self._attached.discard(task)

    async def _admit(self, peer: socket.socket) -> None:
        with peer:
            try:
                refusal = self._why_refused(peer)
                if not refusal:
                    await self._talk(peer, is_trusted=await self._trusts_newcomers())
                    return
                logger.warning("a connection was refused: %s", refusal)
                with contextlib.suppress(OSError):  # it did not wait for the reason
                    await self._refuse(peer, refusal)
            except ConnectionError:
                pass  # it has gone
            except Exception:
                logger.exception("an attached connection failed")

    async def _refuse(self, peer: socket.socket, refusal: str) -> None:
        """Says why, and waits a moment: whoever still writes when the socket is closed does not get to read it."""
        peer.send(jsonrpc.write_error(b"null", RpcError(ErrorCode.INVALID_REQUEST, refusal)))
        peer.shutdown(socket.SHUT_WR)
        with contextlib.suppress(TimeoutError):
            async with timeout(CLOSE_TIMEOUT):
                while await self._loop.sock_recv(peer, 64 * 1024):
                    pass

    def _why_refused(self, peer: socket.socket) -> str:
        if peer_of(peer)[1] != os.geteuid():
            return "Only programs of the same user can attach."
        if len(self._attached) >= MOST_ATTACHED:
            return f"{MOST_ATTACHED} programs are attached to this Crow (process {os.getpid()}) already."
        return ""

    # --- a connection

    async def _talk(self, peer: socket.socket, *, is_trusted: bool) -> None:
        task = asyncio.current_task()

        def drop() -> None:
            with contextlib.suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)

        deadline = self._loop.call_later(INITIALIZE_TIMEOUT, drop)

        def on_initialize() -> None:
            deadline.cancel()
            if task is not None and self._unnamed.pop(task, ...) is None:
                self._attached.add(task)
            connection.limit_lines(LONGEST_RELAYED_LINE)

        agent = self._serve(on_initialize, is_trusted)
        connection = agent.connect(peer.fileno(), peer.fileno())
        connection.limit_lines(LONGEST_INITIALIZE)
        try:
            await connection.run()
        finally:
            deadline.cancel()
            await agent.close()
            with contextlib.suppress(TimeoutError):
                async with timeout(CLOSE_TIMEOUT):
                    await connection.flushed()
            await connection.close()


def peer_of(peer: socket.socket) -> tuple[int, int]:
    """The process and the user at the other end, as the system knows them from the moment of the connection."""
    credentials = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    process, user, _ = struct.unpack("3i", credentials)
    return process, user


def _listener_at(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.setblocking(False)  # noqa: FBT003 -- the method takes it so
        listener.bind(path)
        os.chmod(path, 0o600)
        listener.listen(QUEUE)
    except BaseException:
        listener.close()
        raise
    return listener


def remove_dead_sockets(folder: str) -> None:
    """Removes what killed processes have left, whose locks nobody sweeps as their home is gone too. Never fails."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            with contextlib.suppress(OSError, ValueError):
                if not _process_lives(int(name.partition("-")[0])) and _nobody_listens(path):
                    os.unlink(path)


def _process_lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _nobody_listens(path: str) -> bool:
    """Also asked, as the process may live where we cannot see it, such as in a container with the same folder."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        peer.setblocking(False)  # noqa: FBT003 -- the method takes it so
        try:
            peer.connect(path)
        except ConnectionRefusedError:
            return True
    return False
