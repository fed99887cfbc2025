"""How much work is done, counted and not timed: the same number on every machine, however busy it is."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Work:
    lines = 0
    """The lines of Python that have run."""

    def follow(self, frame: FrameType, event: str, argument: Any) -> "Callable[..., Any]":
        self.lines += event == "line"
        return self.follow


@contextmanager
def counted() -> Iterator[Work]:
    """Counts the lines of Python that run inside, on this thread and on those that are started.

    What a library does in C counts as the one line that calls it: a pattern that goes back is not seen here, but then
    the test does not come to an end.
    """
    work, before = Work(), sys.gettrace()
    threading.settrace(work.follow)
    sys.settrace(work.follow)
    try:
        yield work
    finally:
        sys.settrace(before)
        threading.settrace(before)  # pyright: ignore[reportArgumentType] -- None if nobody traced before


def lines_run(function: Callable[[], object]) -> int:
    with counted() as work:
        function()
    return work.lines
