"""Runs file work on threads beside the event loop, with a time limit, so that a file system that hangs holds up nobody
else.

A call to a file system that no longer answers, such as that of a server that has gone, does not return, and nothing
can end it. So each folder has few threads of its own to lose: whoever waits for one is told after a while, can be
cancelled at any time, and nobody else's file work is held up. The threads keep no program from ending. Where the
system gives no thread, the event loop does the work itself.
"""

import asyncio
import contextlib
import os
import re
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from crow.errors import FileSystemSilent
from crow.paths import shown
from crow.threads import start_thread

FILE_WORK_TIMEOUT = 30.0
"""Seconds that file work gets, the wait for a thread included, before whoever wants it is told of the silence."""
HUNG_FILE_WORK_TIMEOUT = 1.0
"""The same, where every thread of the folder hangs already."""
THREADS = 4
"""Calls for one folder that may be under way, or hang, at the same time."""
_MOST_IDLE = 4
"""Threads that are kept for the next work, of whichever folder."""

T = TypeVar("T")


class Disk:
    """The file work for one folder and what lies below it."""

    def __init__(self, folder: str, threads: int = THREADS) -> None:
        self._folder = folder
        self._most = threads
        self._lock = threading.Lock()
        self._waiting: deque[_Work[Any]] = deque()
        self._running: set[_Work[Any]] = set()
        self._threads = 0

    async def run(self, work: Callable[[], T], patience: float = FILE_WORK_TIMEOUT) -> T:
        """The result of file work, or its exception; FileSystemSilent after that many seconds without either.

        Whoever is cancelled does not wait for the thread; work that has not begun by then is never begun.
        """
        wanted = _Work(work, asyncio.get_running_loop())
        patience = HUNG_FILE_WORK_TIMEOUT if self._hangs() else patience
        self._begin(wanted)
        try:
            await asyncio.wait([wanted.future], timeout=patience)
            if not wanted.future.done():
                raise silence_of(self._folder)
            return wanted.future.result()
        finally:
            wanted.future.cancel()

    def _begin(self, wanted: "_Work[Any]") -> None:
        with self._lock:
            self._waiting.append(wanted)
            if self._threads == self._most:
                return
            self._threads += 1
        if _on_a_thread(self._work):
            return
        with self._lock:
            if self._threads > 1:  # another one of the folder's has it, once it is free
                self._threads -= 1
                return
        self._work()

    def _work(self) -> None:
        while (wanted := self._next()) is not None:
            wanted.do()
            with self._lock:
                self._running.discard(wanted)

    def _next(self) -> "_Work[Any] | None":
        with self._lock:
            while self._waiting:
                wanted = self._waiting.popleft()
                if not wanted.future.done():
                    self._running.add(wanted)
                    return wanted
            self._threads -= 1
            return None

    def _hangs(self) -> bool:
        """Whether every thread is busy with something that nobody waits for any longer."""
        with self._lock:
            return len(self._running) == self._most and all(work.future.done() for work in self._running)


class _Work(Generic[T]):
    def __init__(self, work: Callable[[], T], loop: asyncio.AbstractEventLoop) -> None:
        self.future: asyncio.Future[T] = loop.create_future()
        self._work = work
        self._loop = loop

    def do(self) -> None:
        settle(self.future, self._loop, self._work)


def settle(future: "asyncio.Future[T]", loop: asyncio.AbstractEventLoop, work: Callable[[], T]) -> None:
    """Does work on the calling thread and hands its result or exception to a future of another thread's loop."""
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001 -- whoever waits gets it
        _tell(loop, future, future.set_exception, error)
    else:
        _tell(loop, future, future.set_result, result)


def _tell(
    loop: asyncio.AbstractEventLoop, future: "asyncio.Future[Any]", tell: Callable[[Any], None], outcome: object
) -> None:
    def tell_unless_done() -> None:
        if not future.done():
            tell(outcome)

    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
        loop.call_soon_threadsafe(tell_unless_done)


def silence_of(folder: str) -> FileSystemSilent:
    return FileSystemSilent(
        f"The file system of {shown(folder)} does not respond.",
        remedy="If it is on another machine or a removable disk, check that it is still connected.",
    )


# --- threads

_idle: list["SimpleQueue[Callable[[], None]]"] = []


def _on_a_thread(work: Callable[[], None]) -> bool:
    """Runs work on a thread that is idle, or on a new one; False if the system gives none."""
    try:
        jobs = _idle.pop()
    except IndexError:
        jobs = SimpleQueue[Callable[[], None]]()
        if start_thread(partial(_serve, jobs), "crow-disk") is None:
            return False
    jobs.put(work)
    return True


def _serve(jobs: "SimpleQueue[Callable[[], None]]") -> None:
    while True:
        jobs.get()()
        if len(_idle) >= _MOST_IDLE:
            return
        _idle.append(jobs)


# --- file systems of networks
#
# SQLite's write-ahead log needs memory that processes share. On a network file system two machines do not share it, and
# on some not even two processes of one machine: a log is then damaged without a word. There the store is used with a
# rollback journal, which needs nothing but locks.

NETWORK = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "coda", "9p", "ceph", "lustre", "gpfs", "beegfs"),
        *("ocfs2", "gfs2", "orangefs", "pvfs2", "vboxsf", "prl_fs", "vmhgfs", "davfs", "webdav", "afpfs", "panfs"),
    }
)
NETWORK_PROGRAMS = frozenset(
    {
        *("sshfs", "rclone", "s3fs", "gcsfuse", "goofys", "davfs", "davfs2", "glusterfs", "cephfs", "curlftpfs"),
        *("vmhgfs-fuse", "juicefs", "mfs", "nfs", "smbnetfs", "blobfuse", "blobfuse2"),
    }
)
"""File systems in user space have the name of their program."""


def network_file_system(folder: str, table: str = "/proc/self/mountinfo") -> str:
    """The name of the network file system that the folder lies on; empty if it is none, or nobody can tell."""
    try:
        with open(table, encoding="utf-8", errors="surrogateescape") as file:
            kind = _kind_at(os.path.realpath(folder), file.read())
    except OSError:
        return ""
    return kind if kind in NETWORK or kind.removeprefix("fuse.") in NETWORK_PROGRAMS else ""


def _kind_at(path: str, table: str) -> str:
    """The kind of the mount that the path lies on: the last one of those with the longest way in common with it."""
    found, longest = "", -1
    for line in table.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(" "), after.partition(" ")[0]
        if len(fields) > 4:
            point = re.sub(r"\\([0-7]{3})", lambda escape: chr(int(escape[1], 8)), fields[4])
            if len(point) >= longest and (path + "/").startswith(point.rstrip("/") + "/"):
                found, longest = kind, len(point)
    return found
