"""A turn of `crow chat` is stopped, the chat is left, suspended or killed, and all is tidy afterwards."""

import os
import re
import signal
import sys
from pathlib import Path

import pytest

from tests.cli.chat_support import (
    AS_A_SHELL_LEAVES_IT,
    DONE,
    INPUT,
    STATUS,
    STOP_COUNTS_ON,
    altered_crow,
    chat,
    command_of,
    talk_to,
    wait_for_question,
)
from tests.cli.test_run import HELLO, LOOK_OUTSIDE, WAIT, play, processes_of, wait_until_nothing_runs
from tests.config.support import CROW
from tests.support.patience import DEADLINE
from tests.support.puppet import Puppet
from tests.support.scripts import run as run_command
from tests.support.window import Window


@pytest.mark.parametrize("key", ["escape", "ctrl-c"])
def test_a_turn_is_stopped_and_the_second_time_leaves(tmp_path: Path, key: str) -> None:
    play(tmp_path, WAIT, HELLO)
    with chat(tmp_path, program=altered_crow(tmp_path, STOP_COUNTS_ON)) as window:
        window.type("tell me")
        window.press("enter")
        window.wait_until("Once upon a time")
        window.press(key)
        window.wait_for_rows("Once upon a time", "", "■ cancelled", "", INPUT, "Press again to quit", STATUS)
        assert window.ended_by(key) == 0
        assert window.is_restored
    wait_until_nothing_runs(tmp_path)


def test_a_stop_that_comes_with_the_enter_is_not_lost(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("first")
        window.wait_until("▸ first")
        window.type("\r\x03")  # in one piece, as over a slow line
        window.wait_until("  queued: first")
        window.wait_until("Enter: send now")  # the second Ctrl-C would leave no longer
        window.press("enter")
        prompt = agent.expect("session/prompt")
        window.press("ctrl-c")
        agent.expect("session/cancel")
        agent.answer(prompt, {"stopReason": "cancelled"})
        window.wait_until("■ cancelled")


LEAVES_BETWEEN_TWO_WORDS = """
import asyncio
from crow.cli.chat.application import Chat
async def _how_to_go_on(chat):
    def line():
        return chat._screen.rest, chat.renderer.held
    before = line()
    while line() == before:
        await asyncio.sleep(0.01)
    return "crow chat --continue"
Chat._how_to_go_on = _how_to_go_on
"""
"""It takes as long to find out how to go on as the model needs for its next word."""


def test_a_word_that_comes_while_one_leaves_stays_in_its_line(tmp_path: Path) -> None:
    words = " ".join(f"w{number}" for number in range(100))
    play(tmp_path, f'{{ text = "{words}", pace = 200 }}')
    with chat(tmp_path, program=altered_crow(tmp_path, LEAVES_BETWEEN_TWO_WORDS), columns=160) as window:
        window.type("tell me")
        window.press("enter")
        window.wait_until("w0 w1")
        window.press("ctrl-d")
        assert window.ended() == 0
        said, *rest = window.picture[-3:]
    assert rest == ["", "i To continue: crow chat --continue"]
    assert said.startswith("w0 w1")


def test_a_stop_is_forgotten_after_a_while(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    with chat(tmp_path) as window:
        window.type("something")
        window.press("ctrl-c")
        window.wait_until(lambda: b"Press again to quit" in window.written)  # perhaps it is gone when it is read
        window.wait_for_rows(INPUT, STATUS)
        window.press("up")  # what was typed is not lost
        window.wait_until("▸ something")
        window.press("ctrl-d")  # no end: there is something on the line
        window.press("ctrl-u", "ctrl-d")
        assert window.ended() == 0


def test_a_question_is_stopped_with_its_turn(tmp_path: Path) -> None:
    play(tmp_path, LOOK_OUTSIDE, HELLO)
    with chat(tmp_path) as window:
        window.type("look")
        window.press("enter")
        wait_for_question(window)
        window.press("ctrl-c")
        window.wait_until("■ cancelled")
        assert "  → cancelled" in window.text


def test_a_command_is_told_how_wide_its_output_is_shown(tmp_path: Path) -> None:
    play(tmp_path, f"{run_command('stty size <&1')}", DONE)
    with chat(tmp_path, "--mode", "auto", columns=90, status="auto") as window:
        window.type("how wide?")
        window.press("enter")
        window.wait_until("│ 40 86")


def test_what_was_typed_before_is_sent_by_its_enter_and_else_a_draft(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    slow = tmp_path / "slow"
    slow.write_text(f"#!{sys.executable}\n{AS_A_SHELL_LEAVES_IT}")
    slow.chmod(0o755)
    with Window(tmp_path, "chat", "--cwd", str(tmp_path / "project"), program=str(slow)) as window:
        window.wait_until("ready")
        window.type("!hello\rhalf typed")
        window.wait_until("Hello there!\n\n✓ done")
        window.wait_for_rows("▸ half typed", STATUS + " · 0% of 100k tokens")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_everything_tidy(tmp_path: Path, number: signal.Signals) -> None:
    play(tmp_path, WAIT)
    with chat(tmp_path, "tell me") as window:
        window.wait_until("Once upon a time")
        window.process.send_signal(number)
        assert window.ended() == 128 + number
        assert window.is_restored
    wait_until_nothing_runs(tmp_path)


def test_a_terminal_that_goes_away_leaves_nothing_behind(tmp_path: Path) -> None:
    play(tmp_path, WAIT)
    with chat(tmp_path, "tell me") as window:
        window.wait_until("Once upon a time")
        window.close()
        assert window.process.wait(DEADLINE) != 0
    wait_until_nothing_runs(tmp_path)
    log = tmp_path / "crow" / "log" / "crow.log"
    assert not log.exists() or "Traceback" not in log.read_text()


def test_ctrl_z_leads_to_the_shell_and_fg_back(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    with Window(tmp_path, "--norc", "-i", program="/bin/bash", LC_ALL="C.UTF-8", PS1="shell: ") as window:
        window.wait_until("shell:")
        window.type(f"{CROW} chat\n")
        window.wait_until(STATUS)
        window.type("hel")
        window.wait_until("▸ hel")
        window.press("ctrl-z")
        window.wait_until("Stopped")
        window.type("echo back $((40 + 2))\n")
        window.wait_until("back 42")
        window.type("fg\n")
        window.wait_for_rows("▸ hel", STATUS)
        window.type("lo")
        window.wait_until("▸ hello")
        window.press("enter")
        window.wait_until("✓ done")


@pytest.mark.parametrize("prompt", ["", "tell me"])
def test_an_agent_that_is_killed_is_told_in_one_sentence(tmp_path: Path, prompt: str) -> None:
    play(tmp_path, WAIT)
    with chat(tmp_path, prompt) as window:
        window.wait_until("Once upon a time" if prompt else INPUT)
        (agent,) = (pid for pid in processes_of(tmp_path) if pid != window.process.pid and "acp" in command_of(pid))
        os.kill(agent, signal.SIGKILL)
        assert window.ended() == 1
        assert window.is_restored
        said = "crow: The agent was ended by SIGKILL in the middle of the conversation."
        assert window.picture[-1] == said
        assert "Traceback" not in window.text
        assert bool(prompt) == any("crow chat --resume " in row for row in window.picture)
    wait_until_nothing_runs(tmp_path)


def test_a_failure_of_our_own_is_one_line_and_leaves_the_terminal_tidy(tmp_path: Path) -> None:
    fault = "conversation.Conversation.update = lambda self, update: 1 / 0"
    with Puppet(tmp_path, fault=fault) as agent, talk_to(agent, tmp_path) as window:
        window.type("go")
        window.press("enter")
        agent.expect("session/prompt")
        agent.say("boom")
        assert window.ended() == 1
        assert window.is_restored
        assert "Traceback" not in window.text
        assert "crow: unexpected ZeroDivisionError: division by zero (details in" in " ".join(window.picture)
    assert "ZeroDivisionError" in (tmp_path / "crow" / "log" / "crow.log").read_text()


def test_what_is_typed_before_the_input_line_is_there_is_sent(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    window = Window(tmp_path, "chat", "--cwd", str(tmp_path / "project"))
    window.type("hello\r")
    with window:
        window.wait_until("✓ done")
        assert "▸ hello\n" in window.text


# --- how to go on


def goodbye(window: Window) -> str:
    """Leaves the chat: its last line."""
    window.press("ctrl-d")
    assert window.ended() == 0
    return window.picture[-1]


def test_the_way_back_that_is_named_leads_to_this_conversation(tmp_path: Path) -> None:
    project = play(tmp_path, DONE)
    within = tmp_path / "crow-within"
    start = f"import os, sys; os.chdir({str(project)!r}); from crow.__main__ import main; sys.exit(main())"
    within.write_text(f"#!{sys.executable}\n{start}\n")
    within.chmod(0o755)
    with Window(tmp_path, "chat", "build a nest", program=str(within)) as first:
        first.wait_until("✓ done")
        with Window(tmp_path, "chat", "lay an egg", program=str(within)) as second:
            second.wait_until("✓ done")
            assert re.fullmatch(r"i To continue: crow chat --resume [\w-]+", goodbye(first))
            assert goodbye(second) == "i To continue: crow chat --continue"


def test_a_session_that_was_deleted_is_said_to_be_with_what_to_do(tmp_path: Path) -> None:
    with Puppet(tmp_path, {"sessionCapabilities": {"status": {}}}) as agent, talk_to(agent, tmp_path) as window:
        window.type("are you there?")
        window.press("enter")
        prompt = agent.expect("session/prompt")
        agent.refuse(prompt, -32002, "There is no session 's1'")
        agent.refuse(agent.expect("session/status"), -32002, "There is no session 's1'")
        window.wait_until("✗ This session was deleted. Start a new one: crow chat")
        window.wait_until("▸ are you there?\nask")  # what was typed is not lost
        window.press("ctrl-u", "ctrl-d")
        assert window.ended() == 0
        assert "Go on with" not in window.text
