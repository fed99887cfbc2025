"""The tests' own way to run in several processes: nothing that goes wrong in one of them is lost."""

import os
import re
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parent.parent
TESTS = """
import os, signal, sys

import pytest

@pytest.mark.parametrize("number", range(20))
def test_fine(number, tmp_path):
    assert os.listdir(tmp_path) == []

def test_wrong():
    print("said", 6 * 7)
    assert 1 + 1 == 3

@pytest.mark.skip(reason="not today")
def test_skipped():
    pass

def test_killed():
    os.kill(os.getpid(), signal.SIGKILL)

def test_leaves():
    os._exit(3)
"""


def test_each_test_is_reported_once_and_those_whose_process_died_as_failures(tmp_path):
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "tests.plugin", "-c", os.devnull, "--rootdir", tmp_path, tmp_path]
    ran = subprocess.run(
        [*command, "-q", "-ra", "--processes", "3"],
        cwd=PROJECT,
        env={**os.environ, "CROW_COLD_STARTS": "1", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert re.search(r"^3 failed, 20 passed, 1 skipped in", ran.stdout, re.MULTILINE), ran.stdout + ran.stderr
    assert "assert (1 + 1) == 3" in ran.stdout
    assert ran.stdout.count("said 42") == 1
    assert "The process that ran this test ended with SIGKILL." in ran.stdout
    assert "The process that ran this test ended with exit code 3." in ran.stdout
    assert ran.returncode == 1
