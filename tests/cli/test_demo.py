"""`crow demo`: the whole show without a terminal, its manners in one, and the script behind *Try without a key*."""

import contextlib
import os
import re
import sys
from pathlib import Path

import pytest

from crow.cli.demo import LAST_SCENE, SCENES
from crow.model import catalog, scripted
from crow.model.scripted import Say
from tests.cli.test_run import processes_of, wait_until_nothing_runs
from tests.config import support
from tests.config.support import CROW, Terminal, crow


def temporary(tmp_path: Path) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    return folder


TESTS_PASS = """\
✓ python3 test_nest.py · exit 0 · TIME
  │ pass hedge > nest
  │ pass hill > nest
  │ pass field > hedge > nest
  │ pass river > hill > nest
  │ 4 of 4 ways are the shortest
"""

FIXING = f"""\
▸ A test fails. Can you fix it?

… I want to see it fail before I change anything.

Plan · 0 of 4 done
  ◐ See the test fail
  ☐ Find out why
  ☐ Fix it
  ☐ See it pass

? Permission needed: python3 test_nest.py
  y  Allow once
  a  Allow `python3 test_nest.py` for this session
  p  Allow `python3 test_nest.py` in this project
  n  Reject
  → Allow `python3 test_nest.py` for this session (answered by the demo)

✗ python3 test_nest.py · exit 1 · TIME
  │ pass hedge > nest
  │ pass hill > nest
  │ FAIL field > river > hill > nest
  │      expected: field > hedge > nest
  │ pass river > hill > nest
  │ 3 of 4 ways are the shortest

From the field it goes around by the river. What decides which way to follow?

Plan · 1 of 4 done
  ☑ See the test fail
  ◐ Find out why

✓ Search "way_home" · 3 matches in 2 files
✓ Read nest.py · 19 lines

`ways.pop()` takes the path found **last**, so the search goes deep before it goes wide. The first one is the \
shortest.

Plan · 2 of 4 done
  ☑ Find out why
  ◐ Fix it

? Permission needed: Edit nest.py
  nest.py · +1 −1
        \"""The places on the shortest way to the nest, both ends included.\"""
        ways = [[start]]
        while ways:
  -         way = ways.pop()
  +         way = ways.pop(0)  # the oldest is the shortest
            if way[-1] == "nest":
                return way
            ways += [[*way, place] for place in NEIGHBOURS[way[-1]]]
  y  Allow once
  a  Allow edits of nest.py for this session
  p  Allow edits of nest.py in this project
  n  Reject
  → Allow once (answered by the demo)

✓ Edit nest.py +1 −1

Plan · 3 of 4 done
  ☑ Fix it
  ◐ See it pass

{TESTS_PASS}
Plan · 4 of 4 done
  ☑ See it pass

Fixed: one line in `nest.py`. You had allowed the tests for this session, so the second run did not ask.

✓ done"""  # noqa: RUF001 -- a minus sign

REFUSED = """\
There is a `build` folder. I would remove it:

? Permission needed: rm -rf build
  REASON
  y  Allow once
  a  Allow `rm -rf build` for this session
  p  Allow `rm -rf build` in this project
  n  Reject
  → Reject (answered by the demo)

✗ rm -rf build · rejected

Then I will only look. That needs no permission.

✓ Find build/** · 2 found

Two old logs, nothing else. A rejection is a result like any other, so I carry on.

✓ done"""


PLANNED = """\
In plan mode I only look. I would change one line:

? Permission needed: Carry out the plan
  1. In `nest.py`, take the newest way: `pop()` is cheaper than `pop(0)`.
  y  Yes, and ask before each change
  a  Yes, and edit files without asking
  n  Reject
  → Yes, and edit files without asking (answered by the demo)

✓ Carry out the plan · Plan approved; the mode is now edit.
✓ Edit nest.py +1 −1
"""  # noqa: RUF001 -- a minus sign

TAKEN_BACK = """\
  -         way = ways.pop()
  +         way = ways.pop(0)  # the oldest is the shortest
            if way[-1] == "nest":
                return way
            ways += [[*way, place] for place in NEIGHBOURS[way[-1]]]

"""


def without_chance(output: str, folder: Path) -> str:
    """The same on every machine: no times, no name of the throw-away folder, and no reasons, which are not ours."""
    output = re.sub(rf"{folder}/crow-demo-\w+", "DEMO", output)
    output = re.sub(r"(exit \d+ · )[\d.]+ s", r"\1TIME", output)
    output = re.sub(r"^(✓ (?:Search|Read|Find|Edit) .*?) · [\d.]+ s$", r"\1", output, flags=re.MULTILINE)
    return re.sub(r"^  [^ \d].*\.\n(?=  y  )", "  REASON\n", output, flags=re.MULTILINE)


def test_the_whole_show_without_a_terminal(tmp_path: Path) -> None:
    folder = temporary(tmp_path)

    said = crow(tmp_path, "demo", TMPDIR=str(folder), CROW_MODEL="not/this", ANTHROPIC_API_KEY="not this either")

    assert (said.returncode, said.stderr) == (0, "")
    shown = without_chance(said.stdout, folder)
    for number, scene in enumerate((*SCENES, LAST_SCENE), start=1):
        assert f"\n{number}. {scene.title}\n" in shown
        assert f"\n▸ {scene.prompt}\n" in shown
    assert FIXING in shown
    assert REFUSED in shown
    assert PLANNED in shown
    assert TAKEN_BACK in shown
    for line in (
        "\nRestored: `nest.py`.\n",
        "! demo answered 503 (Service Unavailable): the model is overloaded. Trying again",
        "over the hills and\n\n■ cancelled",
        f"i Loaded {len(SCENES)} prompts, 12 messages and 10 calls. ",
        "The mode is still `edit`.\n\n▸ Where were we?\n\nYou undid the faster search",
        f"  {CROW} login\n",
        f"  {CROW} setup zed\n",
        f"  {CROW} chat\n",
    ):
        assert line in shown
    assert "nobody hears the rest" not in shown
    assert "no further reply" not in shown
    assert "\x1b" not in shown
    assert os.listdir(folder) == []
    assert processes_of(tmp_path) == []
    assert processes_in(folder) == []
    assert not (tmp_path / "crow").exists()  # the person's own folder is not touched


def processes_in(folder: Path) -> list[str]:
    """Everything that still runs with the demo's folder in its environment: the agent and its commands."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended while we looked, or is not ours
            if os.fsencode(folder) + b"/crow-demo-" in (process / "environ").read_bytes():
                found.append(process.name)
    return found


def program(user: Path, change: str, module: str = "demo") -> str:
    """`crow` with something in the demo changed."""
    path = user / "crow-changed"
    path.write_text(
        f"#!{sys.executable}\nimport sys\nfrom crow.cli import {module}\n{change}\n"
        "from crow.__main__ import main\nsys.exit(main())\n"
    )
    path.chmod(0o755)
    return str(path)


def test_without_utf8_the_signs_are_plain(tmp_path: Path) -> None:
    said = crow(tmp_path, "demo", PYTHONIOENCODING="ascii")
    assert said.returncode == 0
    assert "??" not in said.stdout
    assert "\\u" not in said.stdout
    for line in (
        "\n-----",
        "\n> A test fails. Can you fix it?\n",
        "\n  [~] See the test fail\n  [ ] Find out why\n",
        "\n  [x] See the test fail\n",
        "\n  nest.py - +1 -1\n",
        "\n  +         way = ways.pop(0)  # the oldest",
        "\n  | FAIL field > river > hill > nest\n",
        "\nok Read nest.py - 19 lines",
        "\n! demo answered 503",
    ):
        assert line in said.stdout


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = temporary(tmp_path)
    with Terminal(tmp_path, "demo", TMPDIR=str(folder), TERM="xterm") as terminal:
        terminal.expect("A test fails. Can you fix it?")
        terminal.press(b"\x03")
        assert terminal.ended() == 130
    assert os.listdir(folder) == []
    wait_until_nothing_runs(tmp_path)


def test_whoever_watches_may_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "CROW", program(tmp_path, "demo.COUNTDOWN = 3600", "demo"))
    folder = temporary(tmp_path)
    with Terminal(tmp_path, "demo", TMPDIR=str(folder), TERM="xterm", NO_COLOR="1") as terminal:
        terminal.expect("Permission needed: python3 test_nest.py")
        terminal.expect("Press y a p n, or wait: the demo chooses a")
        terminal.press(b"y")
        terminal.expect("Allow once\r\n")
        terminal.expect("  │ pass hill > nest")  # while it runs
        terminal.expect("✗ python3 test_nest.py · exit 1 · ")
        terminal.expect("  -         way = ways.pop()\r\n")
        terminal.press(b"n")
        terminal.expect("Reject (the model is a script: its next words may not fit)")
        terminal.expect("✗ Edit nest.py")
        terminal.expect("Permission needed: python3 test_nest.py")  # as the first yes was for once
        terminal.press(b"\x03")
        assert terminal.ended() == 130
    assert os.listdir(folder) == []


# --- the script that an editor gets with *Try without a key*


def test_the_script_for_editors_ends_with_a_reply_that_repeats() -> None:
    path = os.path.join(os.path.dirname(catalog.__file__), "demo.toml")
    replies = scripted.load(path)
    assert [reply.repeat for reply in replies] == [False] * (len(replies) - 1) + [True]
    said = "".join(event.text for event in replies[-1].events if isinstance(event, Say))
    assert "script" in said
    assert "crow login" in said


def test_the_script_for_editors_plays_in_any_folder(tmp_path: Path) -> None:
    said = crow(tmp_path, "run", "hello", "--cwd", str(tmp_path), CROW_MODEL="scripted/demo")
    assert said.returncode == 0
    assert "✓ Read " in said.stderr
    assert "crow login" in said.stdout
