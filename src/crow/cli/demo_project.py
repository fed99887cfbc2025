"""The throw-away project of `crow demo`: a small real program whose test fails, until somebody mends it."""

import asyncio
import contextlib
import os
import re
import shlex
import sys
import time
from importlib.resources import files
from typing import NamedTuple

from crow.config.discovery import ALLOW, MODE, MODEL
from crow.timeouts import timeout

TESTS = "python3 test_nest.py"
TEST_RUN_TIMEOUT = 20.0
"""Seconds that the project's tests may take."""

NEST = '''\
"""Finds the shortest way home for a bird."""

NEIGHBOURS = {
    "field": ["hedge", "river"],
    "hedge": ["nest"],
    "river": ["hill"],
    "hill": ["nest"],
}


def way_home(start):
    """The places on the shortest way to the nest, both ends included."""
    ways = [[start]]
    while ways:
        way = ways.pop()
        if way[-1] == "nest":
            return way
        ways += [[*way, place] for place in NEIGHBOURS[way[-1]]]
    return []
'''

TEST = '''\
"""Flies every way home once."""

import sys
import time

from nest import way_home

MOMENT = 0.1  # seconds that a flight takes

WAYS = [
    ["hedge", "nest"],
    ["hill", "nest"],
    ["field", "hedge", "nest"],
    ["river", "hill", "nest"],
]

failed = 0
for expected in WAYS:
    time.sleep(MOMENT)
    found = way_home(expected[0])
    failed += found != expected
    mark = "pass" if found == expected else "FAIL"
    print(mark, " > ".join(found), flush=True)
    if found != expected:
        print("     expected:", " > ".join(expected), flush=True)
print(f"{len(WAYS) - failed} of {len(WAYS)} ways are the shortest")
sys.exit(1 if failed else 0)
'''

FILES = {
    "project/README.md": f"# Nest\n\nFinds the shortest way home for a bird.\n\n    {TESTS}\n",
    "project/nest.py": NEST,
    "project/test_nest.py": TEST,
    "project/build/monday.log": "built\n",
    "project/build/tuesday.log": "built again\n",
    "team/style.md": "# Style\n\nNames explain themselves. Comments say why.\n",
    "crow/config.toml": 'model = "demo/script"\n\n[providers.demo]\ntype = "scripted"\nscript = "demo.toml"\n',
}


_TEMPO = re.compile(r"\b(pace|wait|retry_after|MOMENT) = \d+\.\d+")


def furnish(folder: str, *, with_tempo: bool) -> str:
    """Makes the project, its surroundings and the script; returns the project's folder."""
    script = files("crow.cli").joinpath("demo.toml").read_text("utf-8")
    for name, content in {**FILES, "crow/demo.toml": script, "bin/python3": _python3()}.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content if with_tempo else _TEMPO.sub(r"\1 = 0", content))
    os.chmod(os.path.join(folder, "bin/python3"), 0o700)
    return os.path.join(folder, "project")


def _python3() -> str:
    """Some machines have no `python3`, but this very Python is there. It must not take `nest.py` for unchanged, which
    it does by a bytecode file when the edit comes within the same second: so it keeps none."""
    return f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -B "$@"\n'


def environment(folder: str) -> dict[str, str]:
    """Ours, but for the choices that the person made for real work."""
    inherited = {name: value for name, value in os.environ.items() if name not in (MODEL, MODE, ALLOW)}
    path = os.path.join(folder, "bin") + os.pathsep + os.environ.get("PATH", os.defpath)
    return {**inherited, "CROW_HOME": os.path.join(folder, "crow"), "PATH": path}


class TestRun(NamedTuple):
    passed: bool
    output: str
    message: str


async def run_tests(project: str) -> TestRun:
    """Without Crow and without its tools: what the files are now."""
    begun = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-B", "test_nest.py"),
        cwd=project,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with timeout(TEST_RUN_TIMEOUT):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    message = f"exit {process.returncode} · {time.monotonic() - begun:.1f} s"
    return TestRun(process.returncode == 0, output.decode("utf-8", "replace"), message)
