"""Starts threads where the system may refuse one, as at a container's limit: what gets none is done by whoever asks for
it."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures.thread import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

NO_MORE = "the system gives no further process or thread"
MAKE_ROOM = "End some programs, or raise the limit: `ulimit -u`, or that of a container's processes."

P = ParamSpec("P")
T = TypeVar("T")


def start_thread(work: Callable[[], None], name: str) -> threading.Thread | None:
    """A thread that keeps no program from ending; None if the system gives none just now."""
    thread = threading.Thread(target=work, name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return None
    return thread


class Pool(ThreadPoolExecutor):
    """The threads of an event loop, for `asyncio.to_thread` and for what looks up names. Slow work beats none: where
    there is no thread at all, the loop does it."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError:
            if self._threads or self._work_queue.empty():
                raise  # it was shut down
        self._work_queue.get_nowait()  # the base class has put it there for a thread that never came
        future = Future[T]()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 -- whoever waits gets it
            future.set_exception(error)
        return future

    def _adjust_thread_count(self) -> None:
        try:
            super()._adjust_thread_count()
        except RuntimeError:
            if not self._threads:
                raise  # else one of those will do it
