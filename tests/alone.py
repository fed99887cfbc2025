"""`make alone`: plays the tests that failed in the last run once more, one after the other, with nothing beside them.

More than a few failures are no chance, and a run that was broken off says nothing: nothing is played then.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

MOST = 3
CACHE = Path(".pytest_cache/v")
TESTS_FAILED = 1
"""What pytest ends with after a whole run in which tests failed."""


def main() -> int:
    if _cached("crow/ended") != TESTS_FAILED:
        _say("The last run of the tests was not one that came to its end with failures.")
        return 1
    failed = sorted(_cached("cache/lastfailed") or {})
    if not 0 < len(failed) <= MOST:
        _say(f"{len(failed)} tests have failed. Between 1 and {MOST} would be played once more.")
        return 1
    for name in failed:
        _say(f"Failed beside other tests, and played once more, alone: {name}")
    return subprocess.run([sys.executable, "-m", "pytest", "-q", *failed], check=False).returncode


def _cached(name: str) -> Any:
    path = CACHE / name
    return json.loads(path.read_text()) if path.exists() else None


def _say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
