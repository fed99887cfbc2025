"""A heartbeat on the event loop of a real `crow acp`: how long it was held at most, in seconds of the processor.

Wall time would tell more of the machine than of Crow. What threads do beside the loop counts as well, since a thread
that does not let go of the interpreter stops the loop as surely as anything that runs on it.
"""

import json
import time
from pathlib import Path
from typing import Any

BEAT = """
import os, sys, time

if sys.argv[0].endswith("/crow"):
    import asyncio.base_events

    run_forever = asyncio.base_events.BaseEventLoop.run_forever
    told = os.open(os.environ["HEARTBEAT"], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def run_with_heartbeat(loop):
        last = time.process_time(), time.perf_counter()

        def beat():
            nonlocal last
            now = time.process_time(), time.perf_counter()
            # What threads do at the same time counts for the processor, but holds up nobody.
            gap = min(now[0] - last[0], now[1] - last[1])
            if gap > 0.01:
                os.write(told, f"{gap:.4f}\\n".encode())
            last = now
            loop.call_later(0.002, beat)

        loop.call_later(0.002, beat)
        run_forever(loop)

    asyncio.base_events.BaseEventLoop.run_forever = run_with_heartbeat
"""
_TEXT = "a line of some length\n" * 50_000


def slowness() -> float:
    """How much longer the same work takes here and now than on an idle machine of today, at least 1: neighbours that
    share its caches make a processor slower, and that is not the loop's fault."""
    best = min(_seconds_of_work() for _ in range(3))
    return max(1.0, best / 0.012)


def _seconds_of_work() -> float:
    began = time.process_time()
    for _ in range(4):
        lines = _TEXT.split("\n")
        json.dumps(lines[:5000])
    return time.process_time() - began


class Heartbeat:
    """Given to an editor before it starts, and asked when it has gone through something."""

    def __init__(self, folder: Path) -> None:
        (folder / "sitecustomize.py").write_text(BEAT)
        self._told = folder / "heartbeat.txt"
        self._seen = 0
        self.environment = {"PYTHONPATH": str(folder), "HEARTBEAT": str(self._told)}

    def begin(self, crow: Any) -> None:
        """Forgets what came before: how long the loop was held, and how much memory was used at most."""
        try:
            Path(f"/proc/{crow.process.pid}/clear_refs").write_text("5")
            self._before = crow.memory()
        except PermissionError:
            self._before = 2**62  # only root may look into an agent: for others there is nothing to compare
        self._seen = self._told.stat().st_size if self._told.exists() else 0

    def longest_gap(self) -> float:
        """Seconds of processor time between two beats at most, since it began."""
        if not self._told.exists():
            return 0.0
        with self._told.open("rb") as file:
            file.seek(self._seen)
            return max(map(float, file.read().split()), default=0.0)

    def memory_used(self, crow: Any) -> int:
        """Bytes beyond those of the beginning, at the worst moment."""
        for line in Path(f"/proc/{crow.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 - self._before
        raise AssertionError("Crow is gone")
