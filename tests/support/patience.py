"""How long tests wait for what must come, and how they tell a slow Crow from a busy machine."""

import time
from collections.abc import Callable
from pathlib import Path

DEADLINE = 120.0
"""Seconds that only a hang lasts. Whatever a test waits for is given so long, however slow the machine is."""


def calm_clock() -> float:
    """Seconds, without those in which some process of this machine waited for a core or a disk.

    What promises to be prompt is measured with it: whoever is late because others had the cores is not to blame. The
    kernel counts these waits ("pressure stall information"); where it does not, the clock stands still.
    """
    try:
        return time.monotonic() - _stalled("cpu") - _stalled("io")
    except OSError:
        return 0.0


def _stalled(resource: str) -> float:
    some = Path(f"/proc/pressure/{resource}").read_text().partition("\n")[0]
    return int(some.rpartition("total=")[2]) / 1_000_000


def eventually(
    condition: Callable[[], object], what: str = "it", *, within: float = DEADLINE, every: float = 0.01
) -> None:
    """Waits for what nobody tells us about and what can only be looked at; `within` so many calm seconds."""
    end, calm = time.monotonic() + DEADLINE, calm_clock()
    while not condition():
        assert time.monotonic() < end, f"{what} did not come true"
        time.sleep(every)
    assert calm_clock() - calm <= within, f"{what} came true too late"
