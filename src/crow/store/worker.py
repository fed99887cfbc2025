"""The store's one thread, which does its jobs one after the other, and notices a disk that no longer answers."""

import asyncio
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from crow.disk import settle
from crow.errors import StorageFailed, StoreSilent
from crow.threads import start_thread

T = TypeVar("T")

SILENT_AFTER = 10.0
"""Seconds without any sign of life of the thread after which whoever waits for it is told of the silence."""
POLL_INTERVAL = 1.0
"""Seconds between two looks for such a sign, while somebody waits."""


class Worker:
    """The thread starts with the first job. It does not keep the program alive: whoever needs its work waits for it.
    While the system gives no thread, jobs are done at once, by whoever brings them.

    A file system that no longer answers holds the thread for as long as it likes. Whoever waits gets an error then;
    the jobs stay, and are done once it answers.
    """

    def __init__(self, name: str, silence: Callable[[], StoreSilent]) -> None:
        self._name = name
        self._silence = silence
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._used = self._stopped = False
        self._waited_for: set[asyncio.Future[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._done = 0
        """Jobs. Counted by the thread."""
        self._clock: int | None = None
        """The clock of the thread's CPU time. A job that takes long is no silence while it spends some."""
        self._last_sign: object = None
        self._last_sign_at = 0.0
        self._silent = False

    @property
    def works(self) -> bool:
        return self._used and not self._stopped

    def run(self, job: Callable[[], T], within: float | None = None) -> "asyncio.Future[T]":
        """Done when the job is, with its result or its exception. Jobs are done in the order in which they came.

        StoreSilent if the thread hangs, or if the job is not done within so many seconds; it is done later then.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        if self._stopped:
            future.set_exception(StorageFailed("Sessions are no longer saved: Crow is shutting down."))
            return future
        self._used = True
        if self._thread is None:
            self._thread = start_thread(self._work, self._name)
        if self._thread is None:
            settle(future, loop, job)
            return future
        self._watch(future, loop)
        if within is not None:
            timer = loop.call_later(within, self._give_up, future)
            future.add_done_callback(lambda _: timer.cancel())
        self._jobs.put(lambda: settle(future, loop, job))
        return future

    def stop(self) -> None:
        """Waits for the jobs that are there, unless the thread hangs."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._thread is None:
            return
        self._jobs.put(None)
        while self._thread.is_alive() and not self._silent:
            self._thread.join(POLL_INTERVAL)
            self._look_for_a_sign(time.monotonic())

    def _work(self) -> None:
        if hasattr(time, "pthread_getcpuclockid"):  # not everywhere: there a job may take ten seconds
            self._clock = time.pthread_getcpuclockid(threading.get_ident())
        while (job := self._jobs.get()) is not None:
            job()
            self._done += 1

    # --- its silence, seen on the event loop

    def _watch(self, future: "asyncio.Future[Any]", loop: asyncio.AbstractEventLoop) -> None:
        self._waited_for.add(future)
        future.add_done_callback(self._waited_for.discard)
        if self._timer is None:
            if not self._silent:
                self._last_sign_at = time.monotonic()
            self._timer = loop.call_later(POLL_INTERVAL, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._look_for_a_sign(time.monotonic())
        if self._silent:
            for future in list(self._waited_for):
                self._give_up(future)
        self._timer = loop.call_later(POLL_INTERVAL, self._look, loop) if self._waited_for else None

    def _look_for_a_sign(self, now: float) -> None:
        sign = self._done, self._spent()
        if sign != self._last_sign:
            self._last_sign, self._last_sign_at = sign, now
        self._silent = now - self._last_sign_at >= SILENT_AFTER

    def _give_up(self, future: "asyncio.Future[Any]") -> None:
        if not future.done():
            future.set_exception(self._silence())
            future.exception()  # whoever waited may have gone

    def _spent(self) -> float:
        try:
            return 0.0 if self._clock is None else time.clock_gettime(self._clock)
        except OSError:  # the thread has ended
            return 0.0
