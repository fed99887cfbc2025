"""Where the system gives no further thread or process, as at the limit of a container: Crow works on, says what cannot
be had, and is as before once the limit is gone.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.editor import NOTICES, Editor, chose
from tests.support.folders import open_to_others

ANOTHER = 41_234
"""A user of whom nothing else runs: the limit counts all that a user runs, and holds for everybody but root."""
USUAL = 1_000
AS_ANOTHER = f"""
import ctypes, os, sys
if os.geteuid() == 0:  # and still reads what root alone may read: the interpreter may lie in root's home
    KEEP_CAPABILITIES, VERSION, READ_ALL = 8, 0x20080522, 1 << 2
    system = ctypes.CDLL(None)
    system.prctl(KEEP_CAPABILITIES, 1)
    os.setgroups([]); os.setgid({ANOTHER}); os.setuid({ANOTHER})
    system.capset((ctypes.c_uint32 * 2)(VERSION, 0), (ctypes.c_uint32 * 6)(READ_ALL, READ_ALL))
sys.argv = ["crow", "acp"]
from crow.__main__ import main
sys.exit(main())
"""
SCRIPT = """
[[reply]]
when = "search"
events = [{ call = "search", arguments = { pattern = "needle" } }]
[[reply]]
when = "run"
events = [{ call = "terminal", arguments = { command = "echo done" } }]
[[reply]]
repeat = true
events = [{ text = "Hello." }]
"""


class UnderLimit(Editor):
    def start_process(
        self, stdin: int, stdout: int, stderr: int, folder: Path, variables: dict[str, str], *, cold: bool
    ) -> Any:
        if os.geteuid() == 0:
            open_to_others(folder)
            for path in (folder, self.home, self.workspace, *self.home.iterdir()):
                shutil.chown(path, ANOTHER, ANOTHER)
        return subprocess.Popen(
            [sys.executable, "-c", AS_ANOTHER], stdin=stdin, stdout=stdout, stderr=stderr, cwd=folder, env=variables
        )

    def limit(self, most: int) -> None:
        """How many threads and processes the user may have from now on."""
        user = ANOTHER if os.geteuid() == 0 else None  # who may do so, even where root may not
        subprocess.run(
            ["prlimit", "--pid", str(self.process.pid), f"--nproc={most}:"], user=user, group=user, check=True
        )


PERMISSIVE: Any = {
    "kind": UnderLimit,
    "script": SCRIPT,
    "capabilities": NOTICES,
    "permit": lambda request: chose("once"),
}


@pytest.fixture
def crow(open_editor: Any) -> UnderLimit:
    return open_editor(**PERMISSIVE)


def test_sessions_open_run_and_are_stored_without_a_single_further_thread(crow, open_editor):
    crow.limit(0)
    session = crow.new_session()
    assert crow.prompt("one") == {"stopReason": "end_turn"}
    second = crow.new_session()
    assert crow.prompt("two") == {"stopReason": "end_turn"}
    assert {entry["sessionId"] for entry in crow.request("session/list")["sessions"]} == {session, second}
    assert crow.request("_crow/search", {"query": "one"})["matches"]
    crow.request("session/close", {"sessionId": session})
    crow.load_session(session)
    assert "Hello." in crow.text()
    crow.limit(USUAL)
    assert crow.prompt("three") == {"stopReason": "end_turn"}
    crow.close()
    other = open_editor(UnderLimit, folder=crow.folder)
    other.load_session(session)
    prompts = [u["content"]["text"] for u in other.updates if u["sessionUpdate"] == "user_message_chunk"]
    assert prompts == ["one", "three"]


def test_a_sound_folder_is_never_said_not_to_answer(crow):
    crow.limit(0)
    for _ in range(6):  # more than a folder has threads
        crow.new_session()
        assert crow.prompt("again") == {"stopReason": "end_turn"}
    assert crow.notices == []


@pytest.mark.parametrize("what", ["run", "search"])
def test_what_needs_a_process_says_that_there_is_none_and_what_to_do(open_editor, tmp_path, what):
    ripgrep = tmp_path / "bin/rg"  # not every machine has one, and here none can be started
    ripgrep.parent.mkdir()
    ripgrep.write_text("#!/bin/sh\n")
    ripgrep.chmod(0o755)
    crow = open_editor(**PERMISSIVE, environment={"PATH": f"{ripgrep.parent}:{os.environ['PATH']}"})
    crow.new_session()
    crow.limit(0)
    assert crow.prompt(what) == {"stopReason": "end_turn"}
    [result] = [u for u in crow.updates if u.get("status") == "failed"]
    said = str(result["content"])
    assert "the system gives no further process or thread" in said
    assert "ulimit -u" in said
