"""How long tests wait for what must come. How soon it comes is measured by the bench alone."""

import time
from collections.abc import Callable

DEADLINE = 120.0
"""Seconds that only a hang lasts. Whatever a test waits for is given so long, however slow the machine is."""


def eventually(condition: Callable[[], object], what: str = "it", *, every: float = 0.01) -> None:
    """Waits for what nobody tells us about and what can only be looked at."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, f"{what} did not come true"
        time.sleep(every)
