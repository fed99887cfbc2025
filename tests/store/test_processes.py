"""Processes that are killed, and processes that use one store at once: what was acknowledged is there, once, in order.

CROW_STORE_SECONDS says how long they share one, CROW_STORE_KILLS how many are killed, CROW_STORE_SEED is the chance.
"""

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from crow.events import CallStarted
from tests.support.patience import DEADLINE
from tests.support.store import say, with_store
from tests.support.store_worker import SHARED

ROOT = Path(__file__).parent.parent.parent
SECONDS = float(os.environ.get("CROW_STORE_SECONDS", "2"))
KILLS = int(os.environ.get("CROW_STORE_KILLS", "8"))
SEED = os.environ.get("CROW_STORE_SEED", "1")


def start(*arguments, stdout: int | IO[bytes] = subprocess.PIPE):
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.store_worker", *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


def marks_of(events):
    return [event.call_id for event in events if isinstance(event, CallStarted)]


def test_what_was_acknowledged_survives_kill_9(tmp_path):
    chance = random.Random(SEED)
    acknowledged = {}
    for kill in range(KILLS):
        child = start("keep", tmp_path, f"s{kill}")
        assert child.stdout is not None
        with child:
            lines = [child.stdout.readline() for _ in range(chance.choice([1, 2, 10, 50, 200]))]
            time.sleep(chance.random() * 0.004)
            child.send_signal(signal.SIGKILL)
            # Lines that were still in the pipe were acknowledged too.
            lines += child.stdout.read().splitlines()
            acknowledged[f"s{kill}"] = int(lines[-1])

    async def numbers(store):
        return {name: marks_of(await store.events(name)) for name in acknowledged}

    for name, stored in with_store(tmp_path, numbers).items():
        assert stored == [str(number) for number in range(1, len(stored) + 1)]
        assert len(stored) >= acknowledged[name]


def test_processes_that_share_sessions_lose_nothing_and_write_nothing_after_they_lost_one(tmp_path):
    """Three work side by side; a fourth is killed and started anew all the time."""

    async def make(store):
        for session_id in SHARED:
            await say(store, session_id)

    home = tmp_path / "home"
    with_store(home, make)
    outputs = itertools.count()

    def work():
        number = next(outputs)
        with open(tmp_path / f"acknowledged{number}", "wb") as file:
            return start("share", home, f"p{number}", f"{SEED}-{number}", tmp_path / "stop", stdout=file)

    def have_met():
        """They have worked side by side, the victims too, however slow the machine is."""
        written = [path.read_bytes().count(b"\n") for path in tmp_path.glob("acknowledged*")]
        return sum(written) > 100 and sum(map(bool, written)) > 4

    end = time.monotonic() + SECONDS
    steady = [work() for _ in range(3)]
    chance = random.Random(SEED)
    for longest in itertools.count(1):
        if time.monotonic() > end and have_met():
            break
        victim = work()
        time.sleep(0.3 + longest / 4 * chance.random())
        victim.kill()
        assert victim.communicate(timeout=DEADLINE)[1] == b""
    (tmp_path / "stop").touch()
    for process in steady:
        assert (process.communicate(timeout=DEADLINE)[1], process.returncode) == (b"", 0)

    acknowledged = [line.split() for path in tmp_path.glob("acknowledged*") for line in path.read_text().splitlines()]

    async def read(store):
        return {name: marks_of(await store.events(name)) for name in {session for session, _ in acknowledged}}

    stored = with_store(home, read)
    for session, mark in acknowledged:
        assert mark in stored[session], f"{mark} of {session} is lost"
    for session, marks in stored.items():
        assert len(set(marks)) == len(marks)
        writers = [writer for writer, _ in itertools.groupby(mark.rpartition("/")[0] for mark in marks)]
        assert len(set(writers)) == len(writers), f"a stale owner wrote to {session}"
        for _, numbers in itertools.groupby(marks, key=lambda mark: mark.rpartition("/")[0]):
            in_order = [int(mark.rpartition("/")[2]) for mark in numbers]
            assert in_order == sorted(in_order)
    writers = {mark.partition("/")[0] for marks in stored.values() for mark in marks}
    assert len(writers) > 3, "they hardly met"


def test_processes_that_open_a_new_store_at_the_same_time_all_can(tmp_path):
    for attempt in range(3):
        children = [start("new", tmp_path / str(attempt), f"s{number}") for number in range(6)]
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
        for child in children:
            assert child.stdin is not None
            child.stdin.write(b"go\n")
            child.stdin.flush()
        for child in children:
            assert (child.communicate(timeout=DEADLINE)[1], child.returncode) == (b"", 0)
