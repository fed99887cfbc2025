"""One thread that does the store's work, job after job, so that no disk ever keeps the event loop waiting."""

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar

from crow.disk import settle
from crow.errors import StorageFailed

T = TypeVar("T")


class Worker:
    """The thread starts with the first job. It does not keep the program alive: whoever needs its work waits for it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._stopped = False

    @property
    def works(self) -> bool:
        return self._thread is not None and not self._stopped

    def run(self, job: Callable[[], T]) -> "asyncio.Future[T]":
        """Done when the job is, with its result or its exception. Jobs are done in the order in which they came."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        if self._stopped:
            future.set_exception(StorageFailed("Sessions are no longer kept: Crow is ending."))
            return future
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        self._jobs.put(lambda: settle(future, loop, job))
        return future

    def stop(self) -> None:
        """Waits for the jobs that are there."""
        self._stopped = True
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
