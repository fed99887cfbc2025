"""What a diff of a 20,000-line file costs, beside difflib in the same run: `python bench/diff_bench.py`.

Each case runs in a process of its own, so that its peak memory is its own.
"""

import difflib
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable

from crow.diff import changes, statistics

LINES = 20_000


def numbered(count: int, word: str = "line") -> list[str]:
    return [f"    {word} {number} of a file that someone wrote\n" for number in range(count)]


def replaced(lines: list[str], places: list[int]) -> list[str]:
    chosen = set(places)
    return [f"changed {place}\n" if place in chosen else line for place, line in enumerate(lines)]


def shuffled(lines: list[str]) -> list[str]:
    return random.Random(2).sample(lines, len(lines))


def repeats(kinds: int) -> list[str]:
    dice = random.Random(1)
    return [f"value = {dice.randrange(kinds)}\n" for _ in range(LINES)]


def code() -> list[str]:
    """As code is: half of the lines are like no other, the rest is to be found everywhere."""
    return [
        line
        for number in range(LINES // 4)
        for line in (f"def f{number}():\n", f"    value = {number % 100}\n", f"    return value + {number}\n", "\n")
    ]


def one_percent(lines: list[str]) -> list[str]:
    return replaced(lines, random.Random(3).sample(range(len(lines)), len(lines) // 100))


CASES: dict[str, tuple[Callable[[], list[str]], Callable[[list[str]], list[str]]]] = {
    "1 % changed": (code, one_percent),
    "1 % changed, all unique": (lambda: numbered(LINES), one_percent),
    "every second line": (lambda: numbered(LINES), lambda lines: replaced(lines, list(range(0, LINES, 2)))),
    "every second line of code": (code, lambda lines: replaced(lines, list(range(0, LINES, 2)))),
    "reversed": (lambda: numbered(LINES), lambda lines: lines[::-1]),
    "reversed code": (code, lambda lines: lines[::-1]),
    "all new": (lambda: numbered(LINES), lambda lines: numbered(LINES, "other")),
    "shuffled": (lambda: numbered(LINES), shuffled),
    "shuffled code": (code, shuffled),
    "shuffled, 10 kinds": (lambda: repeats(10), shuffled),
    "shuffled, 200 kinds": (lambda: repeats(200), shuffled),
    "shuffled, 8,000 kinds": (lambda: repeats(8000), shuffled),
    "60,000 lines, 200 kinds": (lambda: repeats(200) * 3, shuffled),
    "line ends changed": (lambda: numbered(LINES), lambda lines: [line.replace("\n", "\r\n") for line in lines]),
    "200,000 lines, 1 %": (lambda: numbered(200_000), one_percent),
}
"""The old lines, and how the new ones are made of them."""


def texts(name: str) -> tuple[str, str]:
    make, change = CASES[name]
    lines = make()
    return "".join(lines), "".join(change(lines))


def measure(name: str) -> None:
    old, new = texts(name)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    found = changes(old, new)
    seconds = time.process_time() - start
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{name:26} {seconds * 1000:8.0f} ms {grown:7.0f} MB  {statistics(old, new)} in {len(found)} places")


def main() -> None:
    for name in list(CASES)[:2]:
        old, new = (text.splitlines(keepends=True) for text in texts(name))
        start = time.process_time()
        difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        print(f"{'difflib: ' + name:26} {(time.process_time() - start) * 1000:8.0f} ms", flush=True)
    for name in CASES:
        subprocess.run([sys.executable, __file__, name], check=True)


if __name__ == "__main__":
    measure(sys.argv[1]) if len(sys.argv) > 1 else main()
