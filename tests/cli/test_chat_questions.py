"""Questions in `crow chat`: what is shown above them, and which keys are an answer."""

import re
import time
from pathlib import Path

import pytest

from crow.cli.answer_keys import ALONE, APART, QUIET
from tests.cli.chat_support import (
    DONE,
    INPUT,
    STATUS,
    chat,
    numbered,
    question,
    recording,
    talk_to,
    wait_for_question,
)
from tests.cli.test_run import play
from tests.support.puppet import Puppet
from tests.support.scripts import call, edit

TOUCH = call("terminal", command="touch f1")


def test_a_key_answers_a_question_with_the_change_above_it(tmp_path: Path) -> None:
    project = play(tmp_path, edit("nest.py", "twigs", "feathers"), DONE)
    (project / "nest.py").write_text("twigs\n")
    with chat(tmp_path) as window:
        window.type("soften it")
        window.press("enter")
        window.wait_for_rows(
            "? Permission needed: Edit nest.py",
            "  nest.py · +1 −1",  # noqa: RUF001 -- a minus sign
            "  - twigs",
            "  + feathers",
            "",
            "  y  Allow once",
            "  a  Allow edits of nest.py for this session",
            "  p  Allow edits of nest.py in this project",
            "  n  Reject · Tab: give a reason",
            STATUS,
        )
        window.press("enter", "up", "y")
        window.wait_until("✓ done")
        assert "  + feathers\n  → Allow once\n\n✓ Edit nest.py" in window.text
    assert (project / "nest.py").read_text() == "feathers\n"


def test_a_long_change_is_shown_in_full_above_the_question(tmp_path: Path) -> None:
    play(tmp_path, f"{{ call = 'write', arguments = {{ path = 'a.txt', content = '''{numbered(200)}''' }} }}", DONE)
    with chat(tmp_path) as window:
        window.type("go")
        window.press("enter")
        wait_for_question(window)
        shown = [row for row in window.scrollback if row.startswith("  + line ")]
        assert shown == [f"  + line {number}" for number in range(1, 201)]
        window.press("n")
        window.wait_until("→ Reject")


def test_a_long_plan_is_shown_in_full_above_the_question(tmp_path: Path) -> None:
    plan = "\n".join(f"{number}. lay twig {number}" for number in range(1, 61))
    play(tmp_path, call("leave_plan", plan=plan), DONE)
    with chat(tmp_path, "--mode", "plan", "go", status="plan · play/it") as window:
        window.wait_until("n  ")
        shown = "\n".join(window.scrollback)
        assert [number for number in range(1, 61) if f"{number}. lay twig {number}\n" not in shown] == []


QUIET_ONCE_TOLD = """
import os
from crow.cli import answer_keys
class UntilTold(float):
    def __sub__(self, since):
        return -1.0 if os.path.exists({told!r}) else 0.01
answer_keys.QUIET = UntilTold()
"""
"""A pause in typing that is long enough once a file is there, and not before, however slow the machine is."""


def test_what_is_being_typed_when_a_question_comes_does_not_answer_it(tmp_path: Path) -> None:
    told = tmp_path / "quiet"
    fault = QUIET_ONCE_TOLD.format(told=str(told))
    with Puppet(tmp_path, fault=fault) as agent, talk_to(agent, tmp_path) as window:
        window.type("go")
        window.press("enter")
        agent.expect("session/prompt")
        window.type("only ")
        window.wait_until("▸ only")
        agent.request("session/request_permission", question())
        window.wait_until("n  No")
        window.type("y")
        hint = "Enter or Tab: queue · To answer: Ctrl-U, then y/n"
        window.wait_for_rows("  y  Yes", "  n  No", "▸ only y", hint, "ask · their/model")
        window.press("ctrl-u")
        window.wait_for_rows("  y  Yes", "  n  No", INPUT, "Keys ignored while you were typing", "ask · their/model")
        told.touch()
        window.wait_for_rows("  y  Yes", "  n  No", "ask · their/model")
        window.press("n")
        answer = agent.next()
        assert answer["result"]["outcome"] == {"outcome": "selected", "optionId": "no"}
        window.wait_until("→ No")


@pytest.mark.parametrize("text", ["please do not", "\x1b[200~y\x1b[201~", "x"])
def test_words_that_begin_like_an_answer_are_none(tmp_path: Path, text: str) -> None:
    project = play(tmp_path, edit("nest.py", "twigs", "feathers"), DONE)
    (project / "nest.py").write_text("twigs\n")
    with chat(tmp_path, "go") as window:
        wait_for_question(window)
        window.type(text)
        window.wait_until("▸ " + re.sub(r"\x1b\[20.~", "", text))
        assert "→" not in window.text
        window.press("ctrl-u")
        wait_for_question(window)
        window.press("n")
        window.wait_until("→ Reject")
    assert (project / "nest.py").read_text() == "twigs\n"


def test_a_key_is_an_answer_only_if_no_other_follows_it(tmp_path: Path) -> None:
    fault = "from crow.cli import answer_keys; answer_keys.ALONE = 3600"
    with Puppet(tmp_path, fault=fault) as agent, talk_to(agent, tmp_path) as window:
        window.type("go")
        window.press("enter")
        agent.expect("session/prompt")
        agent.request("session/request_permission", question())
        wait_for_question(window, "n  No")
        window.type("y")
        window.type("es, but")
        window.wait_until("▸ yes, but")
        window.press("escape")
        assert agent.next()["method"] == "session/cancel"  # no answer has come before it


def test_while_a_message_is_typed_no_letter_answers_however_slowly_it_comes(tmp_path: Path) -> None:
    play(tmp_path, TOUCH, DONE)
    sent = recording(tmp_path)
    with chat(tmp_path, "go") as window:
        wait_for_question(window)
        window.type("make it a folder")
        window.wait_until("▸ make it a folder")
        wait(QUIET + ALONE)  # what is checked is that nothing happens
        for key in (" ", "a", "n", "y"):
            window.type(key)
            wait(ALONE + 0.1)
        window.wait_until("▸ make it a folder any")
        window.press("backspace")
        window.wait_until(
            "▸ make it a folder an\nEnter: add to this turn · Tab: queue · To answer: Ctrl-U, then y/a/p/n"
        )
        window.press("enter")
        window.wait_until("\n▸ make it a folder an\n\n  y  Allow once")  # the question stays open
        wait_for_question(window)
        window.press("n")
        window.wait_until("? touch f1\n  → Reject")
        window.wait_until("✓ done")
    assert "make it a folder an" in sent.read_text()
    assert not (tmp_path / "project" / "f1").exists()


def wait(seconds: float) -> None:
    time.sleep(seconds)


def test_what_lasts_is_confirmed_with_enter(tmp_path: Path) -> None:
    project = play(tmp_path, TOUCH, TOUCH, DONE)
    with chat(tmp_path, "go") as window:
        wait_for_question(window)
        window.press("a")
        window.wait_until("Enter: Allow `touch …` for this session · Backspace: cancel")
        wait(QUIET + ALONE)
        assert "→" not in window.text
        window.press("backspace")
        wait_for_question(window)
        window.type("actually")
        window.wait_until("▸ actually")
        window.press("ctrl-u")
        wait_for_question(window)
        window.press("a")
        window.wait_until("Enter: Allow `touch …` for this session · Backspace: cancel")
        wait(APART)
        window.press("enter")
        window.wait_until("→ Allow `touch …` for this session")
        window.wait_until("✓ done")
    assert (project / "f1").exists()


def test_enter_confirms_nothing_that_came_at_once(tmp_path: Path) -> None:
    project = play(tmp_path, TOUCH, DONE)
    with chat(tmp_path, "go") as window:
        wait_for_question(window)
        window.type("a\r")
        window.wait_until("Enter: Allow `touch …` for this session · Backspace: cancel")
        window.press("escape")  # no longer about the turn, but about the key
        wait_for_question(window)
        window.press("n")
        window.wait_until("→ Reject")
    assert not (project / "f1").exists()


def test_a_rejection_can_have_a_reason(tmp_path: Path) -> None:
    play(tmp_path, TOUCH, DONE)
    sent = recording(tmp_path)
    with chat(tmp_path, "go") as window:
        wait_for_question(window, "n  Reject · Tab: give a reason")
        window.press("tab")
        window.wait_until("reason ▸\nEnter: reject with this reason · Esc: back")
        window.press("escape")
        wait_for_question(window)
        window.press("tab")
        window.wait_until("reason ▸")
        window.type("make it a folder")
        window.press("enter")
        window.wait_until("→ Reject: make it a folder")
        window.wait_until("✓ done")
    assert "permission was refused, with these words: make it a folder" in sent.read_text()
