"""Letters of the table in bundles, as the programs read them that are installed here: behind a letter with a value the
rest of the word is that value (a letter read on could be any option), behind one without a value stands the next."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from crow.policy.wildcard import Covered, option_table
from tests.support.patience import DEADLINE

NO_OPTION = "@"
"""No program has it for an option."""
OTHER_NAMES = {"fd": "fdfind", "bat": "batcat"}
SLOW = ("npm", "pnpm", "yarn", "prettier", "pytest", "pip", "docker", "cargo")
"""They take a tenth of a second and more to start."""
NO_BUNDLES = {"xxd": "it looks at the first letter of a word alone", "yarn list": "newer ones have no such command"}


def entries() -> list[object]:
    lettered = [entry for entry in option_table().values() if entry.flags or entry.valued]
    slow = pytest.mark.slow
    return [
        pytest.param(entry, id=entry.program, marks=slow if entry.program.split()[0] in SLOW else ())
        for entry in lettered
    ]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A repository in which whatever is tried finds nothing to do."""
    place = tmp_path_factory.mktemp("bundles")
    (place / "home").mkdir()
    subprocess.run(["git", "init", "-q", "."], cwd=place, check=True)
    return place


class Program:
    def __init__(self, entry: Covered, place: Path) -> None:
        first, *rest = entry.program.split()
        found = shutil.which(first) or shutil.which(OTHER_NAMES.get(first, first))
        if found is None:
            pytest.skip(f"{first} is not installed")
        self._words = [found, *rest]
        self._place = place
        _, lines = self._try(NO_OPTION)
        self._complaint = next((line for line in lines if NO_OPTION in line), lines[0])

    def _try(self, letters: str, *values: str) -> tuple[int, list[str]]:
        """How it ends, and what it writes, as if the word had been the option that there is not."""
        home = str(self._place / "home")
        rust = os.environ.get("RUSTUP_HOME", os.path.expanduser("~/.rustup"))
        run = subprocess.run(
            [*self._words, f"-{letters}", *values],
            cwd=self._place,
            env={"PATH": os.environ["PATH"], "HOME": home, "TERM": "dumb", "RUSTUP_HOME": rust},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=DEADLINE,
            check=False,
        )
        text = run.stdout.decode("utf-8", "replace").replace(f"-{letters}", f"-{NO_OPTION}")
        return run.returncode, [line for line in text.splitlines() if line.strip()] or [""]

    def reads_on_behind(self, letter: str, *values: str) -> bool:
        return self._complaint in self._try(letter + NO_OPTION, *values)[1] and not self.is_unknown(letter)

    def is_unknown(self, letter: str) -> bool:
        lines = self._try(letter)[1]
        return self._complaint in [re.sub(rf"[`']{letter}'", lambda found: found[0][0] + "@'", line) for line in lines]

    def refuses(self, letters: str) -> bool:
        code, lines = self._try(letters + NO_OPTION)
        return self._complaint in lines or code != 0


@pytest.mark.parametrize("entry", entries())
def test_letters_stand_in_bundles_as_the_table_has_it(entry, place):
    program = Program(entry, place)
    assert [letter for letter in entry.valued if program.reads_on_behind(letter, "1")] == []
    if entry.program in NO_BUNDLES:
        return
    letters = entry.flags.translate(str.maketrans("", "", "0123456789"))
    if letters and not program.refuses(letters):
        assert [letter for letter in letters if not program.refuses(letter)] == []


def test_the_probe_notices_a_letter_that_is_read_on(place):
    """A program that reads on behind every letter, as `tree` does: none of them may be listed as one with a value."""
    bad = place / "reads-on"
    bad.write_text('#!/bin/sh\ncase "$1" in *@*) echo "reads-on: what is @?"; exit 1;; esac\n')
    bad.chmod(0o755)
    program = Program(Covered(str(bad)), place)
    assert program.reads_on_behind("x", "1")
    good = place / "takes-it"
    good.write_text('#!/bin/sh\ncase "$1" in -x*) ;; *@*) echo "takes-it: what is @?"; exit 1;; esac\n')
    good.chmod(0o755)
    assert not Program(Covered(str(good)), place).reads_on_behind("x", "1")
