"""`crow chat` in a real terminal: what is on the screen after each thing that a person does."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_run import HELLO, LOOK_OUTSIDE, WAIT, play, processes_of, wait_until_nothing_runs
from tests.config.support import CROW, crow, write_config
from tests.support.patience import DEADLINE
from tests.support.puppet import Puppet
from tests.support.scripts import call, edit, say
from tests.support.scripts import run as run_command
from tests.support.terminals import is_alive, wait_until_gone
from tests.support.window import Window

INPUT = "▸ / for commands, @ for files, Ctrl-D leaves"
STATUS = "ask · play/it"
DONE = '{ text = "All right." }'


def chat(user: Path, *arguments: str, status: str = STATUS, **options) -> Window:
    """A chat that is ready for the first prompt."""
    window = Window(user, "chat", "--cwd", str(user / "project"), *arguments, **options)
    window.wait_until(status)
    return window


def talk_to(agent: Puppet, user: Path) -> Window:
    """The same with an agent that the test plays."""
    window = Window(user, "chat", program=agent.program)
    agent.expect("session/new")
    window.wait_until("ask · their/model")
    return window


def recording(user: Path) -> Path:
    """Lets the model's requests be kept."""
    config = user / "crow" / "config.toml"
    config.write_text(config.read_text() + 'record = "sent.jsonl"\n')
    return user / "crow" / "sent.jsonl"


# --- talking


def test_a_prompt_is_typed_and_answered(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    with chat(tmp_path) as window:
        window.type("hello")
        window.wait_until("▸ hello")
        window.press("enter")
        window.wait_for_rows(
            "i Crow 0.1.0 in ~/project",
            "",
            "▸ hello",
            "",
            "… A greeting.",
            "",
            "Hello there!",
            "",
            "✓ done (end_turn)",
            "",
            INPUT,
            "ask · play/it · 0% of 100k tokens",
        )
        window.press("ctrl-d")
        assert window.ended() == 0
        assert window.is_restored
        assert window.picture[-2:] == ["", "i Go on with: crow chat --continue"]
        assert INPUT not in window.text
    wait_until_nothing_runs(tmp_path)


def test_a_prompt_can_come_with_the_command(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    with chat(tmp_path, "hello", "there") as window:
        window.wait_until("▸ hello there")
        window.wait_until("Hello there!")


def test_a_prompt_may_have_several_lines(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    sent = recording(tmp_path)
    with chat(tmp_path) as window:
        window.type("one")
        window.press("alt-enter")
        window.type("two")
        window.press("ctrl-j")
        window.type("three\\")
        window.wait_until("  three\\")  # what comes at once with the Enter is taken for a paste
        window.press("enter")
        window.wait_for_rows("  three", "", STATUS)
        window.type("four")
        window.wait_for_rows("▸ one", "  two", "  three", "  four", STATUS)
        window.press("enter")
        window.wait_until("✓ done")
        assert "▸ one\n  two\n  three\n  four\n\n… A greeting." in window.text
    assert '"one\\ntwo\\nthree\\nfour"' in sent.read_text()


def test_what_is_typed_before_the_session_is_there_is_sent_when_it_is(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent:
        del agent.answers["session/new"]
        with Window(tmp_path, "chat", program=agent.program) as window:
            window.wait_for_rows(INPUT, "starting")
            opened = agent.expect("session/new")  # it waits, and the input line is there
            window.type("hello")
            window.wait_until("▸ hello")
            window.press("enter")
            window.wait_for_rows("  queued: hello", INPUT, "↑: take it back", "starting")
            agent.answer(opened, {"sessionId": "s1"})
            assert agent.expect("session/prompt")["params"]["prompt"] == [{"type": "text", "text": "hello"}]


def test_a_paste_of_5000_lines_is_one_prompt(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    sent = recording(tmp_path)
    pasted = "\n".join(f"line {number}: some words that make it longer" for number in range(1, 5001))
    with chat(tmp_path) as window:
        window.type("look: ")
        window.paste(pasted)
        window.wait_until("line 5000: some words that make it longer")
        assert window.picture[-1].startswith("ask")
        assert len(window.picture) <= 24
        window.press("enter")
        window.wait_until("✓ done")
        assert "  line 10: some words that make it longer\n  … 4990 more lines · Ctrl-O\n" in window.text
        window.press("ctrl-o")
        window.wait_until("What you said\n1-16 of 5000")
    request = json.loads(sent.read_text().splitlines()[0])
    assert f"look: {pasted}" in json.dumps(request).encode().decode("unicode_escape")


# --- completion


def test_commands_are_completed(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    with chat(tmp_path) as window:
        window.type("/cont")
        window.wait_for_rows("▸ /cont", "  /context  Shows what fills the model's window, and what was spent", STATUS)
        window.press("tab")
        window.wait_until("▸ /context")
        window.press("enter")
        window.wait_for_rows("▸ /context", STATUS)
        window.press("enter")
        window.wait_until("✓ done")
        assert "System prompt" in window.text


def test_files_and_folders_are_completed(tmp_path: Path) -> None:
    project = play(tmp_path, HELLO)
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    (project / ".gitignore").write_text("hidden\n")
    for name in ("src/nest.py", "src/deep/feather.py", "my notes.txt", "hidden/secret.txt"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(f"what is in {name}\n")
    sent = recording(tmp_path)
    with chat(tmp_path) as window:
        window.type("see @")
        window.wait_for_rows("▸ see @", "  .gitignore", "  my notes.txt", "  src/", STATUS)
        window.type("sr")
        window.wait_for_rows("▸ see @sr", "  src/", "  src/deep/", "  src/deep/feather.py", "  src/nest.py", STATUS)
        window.press("tab", "enter")
        window.wait_until("▸ see @src/")
        window.type("n")
        window.wait_for_rows("▸ see @src/n", "  src/nest.py", STATUS)
        window.press("tab", "enter")
        window.type("and @feath")
        window.wait_for_rows("▸ see @src/nest.py and @feath", "  src/deep/feather.py", STATUS)
        window.press("tab", "enter")
        window.type("and @my")
        window.wait_until("  my notes.txt")
        window.press("tab", "enter")
        window.wait_until('@"my notes.txt"')
        window.press("enter")
        window.wait_until("✓ done")
    for name in ("src/nest.py", "src/deep/feather.py", "my notes.txt"):
        assert f"what is in {name}" in sent.read_text()


def test_what_is_attached_goes_with_the_first_prompt(tmp_path: Path) -> None:
    project = play(tmp_path, HELLO, HELLO)
    picture = b"\x89PNG\r\n\x1a\n" + bytes(30)
    (tmp_path / "sketch.png").write_bytes(picture)
    (project / "notes.txt").write_text("crows are clever\n")
    config = tmp_path / "crow" / "config.toml"
    config.write_text(config.read_text() + 'record = "sent.jsonl"\n[providers.play.models.it]\nimages = true\n')
    files = ("--attach", str(tmp_path / "sketch.png"), "--attach", str(project / "notes.txt"))
    with chat(tmp_path, *files) as window:
        window.wait_for_rows(INPUT, "with sketch.png, notes.txt", STATUS)
        window.type("look")
        window.press("enter")
        window.wait_until("✓ done")
        window.wait_until(INPUT)
    sent = (tmp_path / "crow" / "sent.jsonl").read_text()
    assert "crows are clever" in sent
    assert "image/png" in sent


# --- questions


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
            "  n  Reject",
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


def wait_for_question(window: Window, choice: str = "n  Reject") -> None:
    """Until a question is there, and takes a key; the hint that it does not is drawn before the status line."""

    def takes_a_key() -> bool:
        is_whole = any(model in row for row in window.picture[-1:] for model in ("play/it", "their/model"))
        return is_whole and choice in window.text and "a moment" not in window.text

    window.wait_until(takes_a_key)


def numbered(count: int) -> str:
    return "".join(f"line {number}\n" for number in range(1, count + 1))


def test_a_long_plan_is_shown_in_full_above_the_question(tmp_path: Path) -> None:
    plan = "\n".join(f"{number}. lay twig {number}" for number in range(1, 61))
    play(tmp_path, call("leave_plan", plan=plan), DONE)
    with chat(tmp_path, "--mode", "plan", "go", status="plan · play/it") as window:
        window.wait_until("n  ")
        shown = "\n".join(window.scrollback)
        assert [number for number in range(1, 61) if f"{number}. lay twig {number}\n" not in shown] == []


def test_what_is_being_typed_when_a_question_comes_does_not_answer_it(tmp_path: Path) -> None:
    fault = "from crow.cli.chat import questions; questions.QUIET = 4"
    with Puppet(tmp_path, fault=fault) as agent, talk_to(agent, tmp_path) as window:
        window.type("go")
        window.press("enter")
        agent.expect("session/prompt")
        window.type("only ")
        window.wait_until("▸ only")
        agent.request("session/request_permission", question())
        window.wait_until("a moment: you were typing")
        window.type("y")
        window.wait_for_rows("  y  Yes", "  n  No", "▸ only y", "a moment: you were typing", "ask · their/model")
        window.wait_for_rows("  y  Yes", "  n  No", "▸ only y", "ask · their/model")
        window.press("n")
        answer = agent.next()
        assert answer["result"]["outcome"] == {"outcome": "selected", "optionId": "no"}
        window.wait_until("→ No")
        window.wait_until("▸ only y")


@pytest.mark.parametrize("text", ["please do not", "\x1b[200~y\x1b[201~", "x"])
def test_words_that_begin_like_an_answer_are_none(tmp_path: Path, text: str) -> None:
    project = play(tmp_path, edit("nest.py", "twigs", "feathers"), DONE)
    (project / "nest.py").write_text("twigs\n")
    with chat(tmp_path, "go") as window:
        wait_for_question(window)
        window.type(text)
        window.wait_until("▸ " + re.sub(r"\x1b\[20.~", "", text))
        wait_for_question(window)
        assert "→" not in window.text
        window.press("n")
        window.wait_until("→ Reject")
    assert (project / "nest.py").read_text() == "twigs\n"


def test_a_key_is_an_answer_only_if_no_other_follows_it(tmp_path: Path) -> None:
    fault = "from crow.cli.chat import questions; questions.ALONE = 3600"
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


def question(title: str = "Dig here") -> dict:
    options = [
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ]
    return {"sessionId": "s1", "toolCall": {"toolCallId": "c1", "title": title}, "options": options}


# --- stopping and leaving


@pytest.mark.parametrize("key", ["escape", "ctrl-c"])
def test_a_turn_is_stopped_and_the_second_time_leaves(tmp_path: Path, key: str) -> None:
    play(tmp_path, WAIT, HELLO)
    with chat(tmp_path) as window:
        window.type("tell me")
        window.press("enter")
        window.wait_until("Once upon a time")
        window.press(key)
        window.wait_for_rows("Once upon a time", "", "■ cancelled", "", INPUT, "again: leave", STATUS)
        assert window.ended_by(key) == 0
        assert window.is_restored
    wait_until_nothing_runs(tmp_path)


def test_a_stop_is_forgotten_after_a_while(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    with chat(tmp_path) as window:
        window.type("something")
        window.press("ctrl-c")
        window.wait_for_rows(INPUT, "again: leave", STATUS)
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


AS_A_SHELL_LEAVES_IT = """
import os, sys, termios, tty
before = termios.tcgetattr(0)
tty.setraw(0)
print("ready", flush=True)
os.read(0, 1)
termios.tcsetattr(0, termios.TCSANOW, before)
from crow.__main__ import main
sys.exit(main())
"""
"""A `crow` that begins after something was typed at a shell, whose terminal is not one of whole lines."""


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


def command_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


# --- messages that wait


def test_a_message_is_queued_taken_back_and_sent_after_the_turn(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("first")
        window.press("enter")
        first = agent.expect("session/prompt")
        window.type("second")
        window.wait_for_rows("▸ second", "Enter, Tab: after this turn", "ask · their/model")
        window.press("tab")
        window.type("third")
        window.press("enter")  # this agent knows no steering
        window.wait_for_rows("  queued: second", "  queued: third", INPUT, "↑: take it back", "ask · their/model")
        window.press("up")
        window.wait_for_rows("  queued: second", "▸ third", "Enter, Tab: after this turn", "ask · their/model")
        window.press("ctrl-u")
        agent.answer(first, {"stopReason": "end_turn"})
        assert agent.expect("session/prompt")["params"]["prompt"][0]["text"] == "second"
        window.wait_until(lambda: "▸ second" in window.text and "queued" not in window.text)


def test_after_a_stop_what_waits_is_held(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("first")
        window.press("enter")
        first = agent.expect("session/prompt")
        window.type("second")
        window.press("tab")
        window.wait_until("queued: second")
        window.press("escape")
        agent.expect("session/cancel")
        agent.answer(first, {"stopReason": "cancelled"})
        window.wait_until("■ cancelled")
        window.wait_until("Enter: send it now · ↑: take it back")
        window.press("enter")
        assert agent.expect("session/prompt")["params"]["prompt"][0]["text"] == "second"


@pytest.mark.parametrize("code", [-32600, -32002])
def test_a_prompt_that_was_not_taken_waits(tmp_path: Path, code: int) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("hello")
        window.press("enter")
        agent.refuse(agent.expect("session/prompt"), code, "A turn of Zed's is running.")
        window.wait_for_rows(
            "✗ A turn of Zed's is running.",
            "",
            "  queued: hello",
            INPUT,
            "Enter: send it now · ↑: take it back",
            "ask · their/model",
        )
        window.press("enter")
        assert agent.expect("session/prompt")["params"]["prompt"][0]["text"] == "hello"


def test_a_prompt_that_failed_is_told(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("hello")
        window.press("enter")
        agent.refuse(agent.expect("session/prompt"), -32603, "The provider\x1b[2J hung up.")
        window.wait_for_rows("✗ The provider␛[2J hung up.", "", INPUT, "ask · their/model")


def test_what_was_not_sent_can_be_had_back(tmp_path: Path) -> None:
    play(tmp_path, WAIT)
    with chat(tmp_path, "go") as window:
        window.wait_until("Once upon a time")
        window.type("queued thing")
        window.press("tab")
        window.wait_until("queued: queued thing")
        window.type("half a thou")
        window.wait_until("half a thou")
        window.process.send_signal(signal.SIGTERM)
        window.ended()
    with chat(tmp_path) as window:
        window.press("up")
        window.wait_until("▸ half a thou")
        window.press("up")
        window.wait_until("▸ queued thing")


# --- steering

STEERING = {"_meta": {"steering": {"supported": True, "idleBehavior": "promptRequired"}}}


AT_ONCE = "conversation.STEERING_DELAY = 0"
IN_A_WHILE = "conversation.STEERING_DELAY = 3600"


def test_enter_steers_the_running_turn_and_tab_queues(tmp_path: Path) -> None:
    with Puppet(tmp_path, STEERING, fault=AT_ONCE) as agent, talk_to(agent, tmp_path) as window:
        window.type("first")
        window.press("enter")
        agent.expect("session/prompt")
        agent.say("Working on it.")
        window.wait_until("Working on it.")
        window.type("faster")
        window.wait_until("Enter: into this turn · Tab: after it")
        window.press("enter")
        steering = agent.expect("_session/steering")
        assert steering["params"]["prompt"] == [{"type": "text", "text": "faster"}]
        window.wait_until("  goes into this turn: faster")
        agent.answer(steering, {"outcome": "injected"})
        window.wait_until("Working on it.\n\n▸ faster")
        window.wait_until(lambda: "goes into this turn" not in window.text)
        window.type("afterwards")
        window.press("tab")
        window.wait_until("  queued: afterwards")


def test_a_command_does_not_go_into_the_running_turn(tmp_path: Path) -> None:
    with Puppet(tmp_path, STEERING, fault=AT_ONCE) as agent, talk_to(agent, tmp_path) as window:
        agent.update(
            sessionUpdate="available_commands_update",
            availableCommands=[{"name": "context", "description": "How full"}],
        )
        window.type("first")
        window.press("enter")
        first = agent.expect("session/prompt")
        window.type("/contexts is no command")
        window.wait_until("Enter: into this turn · Tab: after it")
        window.press("ctrl-u")
        window.type("/context ")
        window.wait_until("Enter, Tab: after this turn")
        window.press("enter")
        window.wait_until("  queued: /context")
        agent.answer(first, {"stopReason": "end_turn"})
        assert agent.next()["params"]["prompt"][0]["text"].strip() == "/context"


def test_the_model_gets_what_was_said_into_its_turn(tmp_path: Path) -> None:
    project = play(tmp_path, run_command("until test -e go; do sleep 0.05; done"), HELLO)
    sent = recording(tmp_path)
    with chat(tmp_path, "--mode", "auto", "wait for it", status="auto · play/it") as window:
        window.wait_until("test -e go")
        window.type("and hurry")
        window.press("enter")
        window.wait_until("  goes into this turn: and hurry")
        window.press("enter")
        window.wait_until("▸ wait for it\n\n▸ and hurry\n")
        (project / "go").touch()
        window.wait_until("✓ done")
        assert window.text.index("▸ and hurry") < window.text.index("✓ until test") < window.text.index("Hello there!")
    first, second = sent.read_text().splitlines()
    assert "and hurry" not in first
    assert "and hurry" in second


def test_what_was_said_into_a_turn_that_is_stopped_waits(tmp_path: Path) -> None:
    play(tmp_path, run_command("sleep 3600"), HELLO)
    with chat(tmp_path, "--mode", "auto", "wait for it", status="auto · play/it") as window:
        window.wait_until(" sleep 3600")
        window.type("and hurry")
        window.press("enter")
        window.wait_until("  goes into this turn: and hurry")
        window.press("enter")
        window.wait_until("▸ wait for it\n\n▸ and hurry\n")
        window.press("escape")
        window.wait_until("■ cancelled")
        window.wait_for_rows("  queued: and hurry", INPUT, "Enter: send it now · ↑: take it back", "auto · play/it")


def test_steering_is_taken_back_before_it_is_sent(tmp_path: Path) -> None:
    with Puppet(tmp_path, STEERING, fault=IN_A_WHILE) as agent, talk_to(agent, tmp_path) as window:
        window.type("first")
        window.press("enter")
        agent.expect("session/prompt")
        window.type("faster")
        window.press("enter")
        window.wait_for_rows(
            "  goes into this turn: faster", INPUT, "Enter: send it now · ↑: take it back", "ask · their/model"
        )
        window.press("up")
        window.wait_until("▸ faster")
        assert "goes into" not in window.text
        window.type(", please")
        window.press("enter")
        window.wait_until("  goes into this turn: faster, please")
        window.press("enter")  # now
        assert agent.next()["params"]["prompt"] == [{"type": "text", "text": "faster, please"}]


def test_steering_that_the_agent_has_not_taken_is_withdrawn(tmp_path: Path) -> None:
    with Puppet(tmp_path, STEERING, fault=AT_ONCE) as agent, talk_to(agent, tmp_path) as window:
        window.type("first")
        window.press("enter")
        agent.expect("session/prompt")
        window.type("faster")
        window.press("enter")
        steering = agent.expect("_session/steering")
        window.wait_until("  goes into this turn: faster")
        window.press("up")
        assert agent.expect("$/cancel_request")["params"] == {"requestId": steering["id"]}
        window.wait_until("▸ faster")
        assert "goes into" not in window.text


@pytest.mark.parametrize("fault", [AT_ONCE, IN_A_WHILE])
def test_steering_that_no_turn_takes_becomes_a_prompt(tmp_path: Path, fault: str) -> None:
    with Puppet(tmp_path, STEERING, fault=fault) as agent, talk_to(agent, tmp_path) as window:
        window.type("first")
        window.press("enter")
        first = agent.expect("session/prompt")
        window.type("faster")
        window.press("enter")
        window.wait_until("  goes into this turn: faster")
        agent.answer(first, {"stopReason": "end_turn"})
        agent.answer(agent.expect("_session/steering"), {"outcome": "promptRequired", "reason": "noRunningTurn"})
        assert agent.expect("session/prompt")["params"]["prompt"][0]["text"] == "faster"


@pytest.mark.parametrize("failed", [False, True])
def test_what_a_turn_did_not_take_in_waits(tmp_path: Path, failed: bool) -> None:
    with Puppet(tmp_path, STEERING, fault=AT_ONCE) as agent, talk_to(agent, tmp_path) as window:
        window.type("first")
        window.press("enter")
        first = agent.expect("session/prompt")
        window.type("faster")
        window.press("enter")
        taken = {"outcome": "injected", "_meta": {"steering": {"messageId": "m7"}}}
        agent.answer(agent.expect("_session/steering"), taken)
        left = {"leftOver": [{"messageId": id, "text": "a word"} for id in ("m7", "somebody else's")]}
        if failed:
            agent.refuse(first, -32603, "The provider hung up.", {"details": "It hung up.", "steering": left})
        else:
            agent.answer(first, {"stopReason": "cancelled", "_meta": {"steering": left}})
        window.wait_until("  queued: faster")
        window.wait_until("Enter: send it now")
        assert "a word" not in window.text


# --- other clients


def state(
    agent: Puppet, word: str, by: str = "", faces: tuple[str, ...] = ("crow-chat", "Zed"), **more: object
) -> None:
    agent.notify("_crow/state", {"sessionId": "s1", "state": word, "by": by, "faces": list(faces), **more})


def test_another_clients_turn_is_shown(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, Window(tmp_path, "chat", program=agent.program) as window:
        hello = agent.expect("initialize")["params"]
        assert hello["_meta"]["crow"] == {"choices": True, "state": True}
        assert hello["clientInfo"]["name"] == "crow-chat"
        agent.expect("session/new")
        window.wait_until("ask · their/model")
        state(agent, "running", by="Zed")
        agent.say("from the other window", "user_message_chunk", "m2")
        agent.say("I am on it.", message="m3")
        window.wait_until("Zed is at work · ask")
        window.wait_until("▸ from the other window\n\nI am on it.")
        window.type("later")
        window.press("enter")
        window.wait_until("queued: later")
        state(agent, "idle")
        assert agent.expect("session/prompt")["params"]["prompt"][0]["text"] == "later"
        window.wait_until(lambda: "Zed is at work" not in window.text)


def test_a_prompt_that_came_second_leaves_the_other_turn_to_be_stopped(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("mine")
        window.press("enter")
        mine = agent.expect("session/prompt")
        state(agent, "running", by="Zed")
        agent.refuse(mine, -32600, "A turn is already running in this session, begun in Zed.")
        window.wait_until("Zed is at work · ask")
        window.wait_until("queued: mine")
        window.press("escape")
        agent.expect("session/cancel")


@pytest.mark.parametrize(
    ("ended", "shown", "goes_on"),
    [
        ({"stopReason": "end_turn"}, "✓ done", True),
        ({"stopReason": "end_turn", "leftOpen": "question"}, "✓ waiting for your answer", False),
        ({"stopReason": "cancelled"}, "■ cancelled", False),
        ({"error": "The provider hung up."}, "✗ The provider hung up.", False),
    ],
)
def test_the_end_of_another_clients_turn_is_shown(
    tmp_path: Path, ended: dict[str, str], shown: str, goes_on: bool
) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        state(agent, "running", by="Zed")
        window.wait_until("Zed is at work · ask")
        window.type("later")
        window.press("enter")
        window.wait_until("queued: later")
        state(agent, "idle", ended={"turn": "t1", **ended})
        window.wait_until(shown)
        if goes_on:
            assert agent.expect("session/prompt")["params"]["prompt"][0]["text"] == "later"
        else:
            window.wait_until("Enter: send it now")
            assert "queued: later" in window.text


def test_a_watcher_that_stops_a_turn_sees_its_end(tmp_path: Path) -> None:
    play(tmp_path, run_command("sleep 3600"), HELLO)
    with chat(tmp_path, "--mode", "auto", "wait for it", status="auto · play/it") as first:
        first.wait_until(" sleep 3600")
        with chat(tmp_path, "--continue", status="crow-chat is at work") as second:
            second.wait_until(" sleep 3600")
            second.press("escape")
            for window in (second, first):
                window.wait_until("■ cancelled")


def test_what_a_watcher_said_into_a_turn_that_is_stopped_waits_at_the_watcher(tmp_path: Path) -> None:
    (play(tmp_path, run_command("sleep 3600"), HELLO) / "nest.py").touch()
    with chat(tmp_path, "--mode", "auto", "wait for it", status="auto · play/it") as first:
        first.wait_until(" sleep 3600")
        with chat(tmp_path, "--continue", status="crow-chat is at work") as second:
            for said in ("use tabs", "see @nest.py"):
                second.type(said)
                second.press("enter")
                second.wait_until(f"  goes into this turn: {said}")
                second.press("enter")
                second.wait_until(f"▸ {said}\n")
            second.press("escape")
            second.wait_for_rows(
                "  queued: use tabs",
                "  queued: see @nest.py",
                INPUT,
                "Enter: send it now · ↑: take it back",
                "auto · play/it",
            )
            first.wait_until("■ cancelled")
            first.wait_for_rows("", INPUT, "auto · play/it")
            assert "queued" not in first.text


def test_two_terminals_share_one_session(tmp_path: Path) -> None:
    project = play(tmp_path, edit("nest.py", "twigs", "feathers"), DONE, HELLO)
    (project / "nest.py").write_text("twigs\n")
    with chat(tmp_path, "soften it") as first:
        wait_for_question(first)
        with chat(tmp_path, "--continue", status="crow-chat is at work") as second:
            wait_for_question(second)
            assert "▸ soften it\n" in second.text
            assert "  + feathers\n" in second.text
            second.press("y")
            second.wait_until("All right.\n\n✓ done")
            second.wait_for_rows("", INPUT, STATUS)
            first.wait_until("  → answered elsewhere\n\ni Allowed in crow-chat (2): Edit nest.py\n")
            first.wait_until("✓ done")
            second.type("and from here")
            second.press("enter")
            first.wait_until("▸ and from here\n\n… A greeting.\n\nHello there!")
            second.wait_until("✓ done")
            second.press("ctrl-d")
            assert second.ended() == 0
        with Window(tmp_path, "chat", "--cwd", str(project), "--resume") as third:
            third.wait_until("soften it · idle")
        first.press("ctrl-d")
        assert first.ended() == 0
    assert (project / "nest.py").read_text() == "feathers\n"
    wait_until_nothing_runs(tmp_path)


def test_a_question_that_was_answered_elsewhere_vanishes(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("x")
        window.press("enter")
        agent.expect("session/prompt")
        asked = agent.request("session/request_permission", question())
        window.wait_until("  y  Yes")
        agent.notify("$/cancel_request", {"requestId": asked})
        agent.update(sessionUpdate="notice", severity="info", title="Allowed in Zed.")
        window.wait_until("i Allowed in Zed.")
        assert "  y  Yes" not in window.text
        assert "→ answered elsewhere" in window.text
        window.type("y")  # goes to the input again
        window.wait_until("▸ y")


def test_an_agent_that_others_watch_is_left_alive(tmp_path: Path) -> None:
    with Puppet(tmp_path, stays=True) as agent:
        with talk_to(agent, tmp_path) as window:
            window.type("x")
            window.press("enter")
            agent.expect("session/prompt")
            state(agent, "running", by="crow-chat")
            agent.say("Working.")
            window.wait_until("Working.")
            window.press("ctrl-d")
            assert window.ended() == 0
        (process,) = (pid for pid in processes_of(tmp_path) if "stays" in command_of(pid))
        assert is_alive(process)
    wait_until_gone(process)


# --- loading


def test_a_conversation_goes_on(tmp_path: Path) -> None:
    project = play(tmp_path, edit("nest.py", "twigs", "feathers"), HELLO, DONE)
    (project / "nest.py").write_text("twigs\n")
    with chat(tmp_path, "soften it") as window:
        wait_for_question(window)
        window.press("y")
        window.wait_until("✓ done")
        window.press("ctrl-d")
        assert window.ended() == 0
    with chat(tmp_path, "--continue") as window:
        window.wait_for_rows(
            "i Crow 0.1.0 in ~/project",
            "",
            "▸ soften it",
            "",
            "✓ Edit nest.py +1 −1",  # noqa: RUF001 -- a minus sign
            "  nest.py · +1 −1",  # noqa: RUF001 -- a minus sign
            "  - twigs",
            "  + feathers",
            "",
            "… A greeting.",
            "",
            "Hello there!",
            "",
            "i Going on with: soften it",
            "",
            INPUT,
            "ask · play/it · 0% of 100k tokens",
        )
        window.type("more")
        window.press("enter")
        window.wait_until("▸ more")
        window.wait_until("✓ done")


def test_a_session_is_picked_from_a_list_with_a_search(tmp_path: Path) -> None:
    play(tmp_path, DONE)
    for prompt in ("build a nest", "find a worm", "build a tower"):
        assert crow(tmp_path, "run", "--cwd", str(tmp_path / "project"), prompt).returncode == 0
    with Window(tmp_path, "chat", "--cwd", str(tmp_path / "project"), "--resume") as window:
        window.wait_until("search:")
        rows = [re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "…", row) for row in window.picture]
        assert rows == ["> …  build a tower", "  …  find a worm", "  …  build a nest", "", "search:"]
        window.type("build")
        window.wait_until(lambda: "worm" not in window.text)
        window.press("down", "enter")
        window.wait_until("Going on with: build a nest")
        assert "▸ build a nest" in window.text


def test_crow_run_has_the_same_list(tmp_path: Path) -> None:
    play(tmp_path, DONE)
    for prompt in ("build a nest", "find a worm"):
        assert crow(tmp_path, "run", "--cwd", str(tmp_path / "project"), prompt).returncode == 0
    with Window(tmp_path, "run", "--cwd", str(tmp_path / "project"), "--resume", "and another one") as window:
        window.wait_until("search:")
        window.type("nest")
        window.wait_until(lambda: "worm" not in window.text)
        window.press("enter")
        window.wait_until("Going on with: build a nest")
        assert window.ended() == 0
    with Window(tmp_path, "run", "--cwd", str(tmp_path / "project"), "--resume", "and another one") as window:
        window.wait_until("search:")
        window.press("escape")
        assert window.ended() == 1
    assert "No conversation was chosen." in window.text


def test_only_the_last_prompts_of_a_long_conversation_are_drawn(tmp_path: Path) -> None:
    def load(_: dict) -> dict:
        for number in range(40):
            agent.say(f"prompt {number}", "user_message_chunk", f"u{number}")
            agent.say(f"reply {number}", message=f"a{number}")
        return {}

    play(tmp_path, HELLO)
    assert crow(tmp_path, "run", "--cwd", str(tmp_path / "project"), "hello").returncode == 0
    with Puppet(tmp_path) as agent:
        agent.answers["session/load"] = load
        arguments = ("chat", "--cwd", str(tmp_path / "project"), "--continue")
        with Window(tmp_path, *arguments, program=agent.program) as window:
            agent.expect("session/load")
            window.wait_until("Going on with")
            text = "\n".join(window.scrollback)
            assert "10 earlier prompts are not shown: crow sessions show" in text
            assert "prompt 9\n" not in text
            assert "▸ prompt 10\n\nreply 10\n" in text


# --- the window


def test_long_outputs_are_folded_and_unfolded(tmp_path: Path) -> None:
    play(tmp_path, run_command("seq 1 60"), DONE)
    with chat(tmp_path, "--mode", "auto", status="auto · play/it") as window:
        window.type("count")
        window.press("enter")
        window.wait_until("✓ done")
        assert "  │ … 50 lines before · Ctrl-O\n  │ 51\n" in window.text
        assert "  12\n" not in window.text
        window.press("ctrl-o")
        window.wait_until("\nseq 1 60\n1-16 of 60 · ")
        assert "  1\n  2\n" in window.text
        assert "  16\n" in window.text
        window.press("page-down", "down")
        window.wait_until("\nseq 1 60\n17-32 of 60")
        window.press("ctrl-o")
        window.wait_for_rows("", INPUT, "auto · play/it")
        assert "  20\n" not in window.text
        window.press("ctrl-o")
        window.wait_until("1-16 of 60")
        window.press("enter")  # all of it, to stay
        window.wait_until("  60\n\n▸")
        assert [row for row in window.scrollback if row == "  12"] == ["  12"]


def test_what_is_unfolded_names_its_call(tmp_path: Path) -> None:
    text = "\n".join(f"twig {number}" for number in range(80))
    play(tmp_path, f"{call('write', path='nest.txt', content=text)}, {run_command('seq 1 60')}", DONE)
    with chat(tmp_path, "--mode", "auto", "go", status="auto · play/it") as window:
        window.wait_until("✓ done")
        window.press("ctrl-o")
        window.wait_until("\nseq 1 60\n1-")
        window.press("left")
        window.wait_until("\nWrite nest.txt +80 ")
        window.press("enter")
        window.wait_until(lambda: any(row.startswith("▾ Write nest.txt +80 ") for row in window.scrollback))


def test_shift_tab_changes_the_mode(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    with chat(tmp_path) as window:
        window.press("shift-tab")
        window.wait_for_rows(INPUT, "edit · play/it")


def test_no_mode_is_put_into_effect_on_the_way_to_another(tmp_path: Path) -> None:
    fault = "conversation.MODE_DELAY = 3600"
    with Puppet(tmp_path, fault=fault) as agent, talk_to(agent, tmp_path) as window:
        for mode in ("edit", "plan"):
            window.press("shift-tab")
            window.wait_until(f"ask → {mode} · their/model")
        window.type("x")
        window.press("enter")  # it counts for the prompt
        changed = agent.next()
        assert (changed["method"], changed["params"]["value"]) == ("session/set_config_option", "plan")
        agent.answer(changed, {"configOptions": []})
        assert agent.next()["method"] == "session/prompt"


@pytest.mark.parametrize("columns", [40, 30])
def test_a_narrow_window_is_readable(tmp_path: Path, columns: int) -> None:
    text = "Crows are very clever birds that use tools, plan ahead and remember faces for years."
    project = play(tmp_path, f"{say(text)}, {edit('nest.py', 'twigs', 'feathers')}", DONE)
    (project / "nest.py").write_text("twigs\n")
    with chat(tmp_path, "tell", columns=columns, lines=20, status="ask") as window:
        window.wait_until("n  Reject")
        words = " ".join("\n".join(window.scrollback).split())
        assert text in words
        assert "Allow edits of nest.py for this session" in words
        assert "ask · play/it" in window.picture[-1]


def test_the_window_is_resized_in_the_middle_of_a_stream(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("go")
        window.press("enter")
        prompt = agent.expect("session/prompt")
        agent.say("Before that there were\nsome lines\nand now a line that grows word by word ")
        window.wait_until("word by word")
        # What is drawn for 80 columns and read after the resize is not to be told from what was there before: all of
        # it has to be there, the row that comes with the next tick too. From then on only the seconds change.
        window.wait_until(" writing")
        window.wait_until(lambda: window.picture[-2:] == [INPUT, "ask · their/model"])
        window.resize(40, 24)
        window.wait_until("▸ / for commands, @ for files, Ctrl-D…\n")
        agent.say("until it is longer than the window is now, which is not much.\n")
        window.wait_until("which is not much.")
        window.resize(90, 24)
        window.wait_until(INPUT)
        agent.say("And the end.")
        agent.answer(prompt, {"stopReason": "end_turn"})
        window.wait_for_rows(
            "▸ go",
            "",
            "Before that there were",
            "some lines",
            "and now a line that grows word by word",
            "until it is longer than the window is",
            "now, which is not much.",
            "And the end.",
            "",
            "✓ done (end_turn)",
            "",
            INPUT,
            "ask · their/model",
        )


def test_nothing_that_others_wrote_reaches_the_terminal_as_it_is(tmp_path: Path) -> None:
    hostile = "red \x1b[31m clear \x1b[2J title \x1b]0;owned\x07 bidi \u202e\u2066 c1 \x9b31m bell \x07 tag \U000e0041."
    visible = "red ␛[31m clear ␛[2J title ␛]0;owned␇ bidi ⟨U+202E⟩"
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("go")
        window.press("enter")
        agent.expect("session/prompt")
        agent.say(hostile)
        window.wait_until(visible)
        command = {"name": "evil\x1b[2J", "description": hostile}
        agent.update(sessionUpdate="available_commands_update", availableCommands=[command])
        agent.update(sessionUpdate="tool_call", toolCallId="c1", title=hostile, kind="execute", status="in_progress")
        window.wait_until("title ⟨U+001B⟩]0;owned")
        state(agent, "running", by=hostile)
        agent.request("session/request_permission", question(hostile))
        wait_for_question(window, "n  No")
        window.press("n")
        agent.next()
        window.type("/ev")
        window.wait_until("/evil⟨U+001B⟩[2J")
    for sequence in (b"\x1b[31m", b"\x1b[2J", b"\x1b]0;", b"\x07", "\u202e".encode(), "\x9b".encode()):
        assert sequence not in window.written


def test_without_colours(tmp_path: Path) -> None:
    project = play(tmp_path, edit("nest.py", "twigs", "feathers"), HELLO)
    (project / "nest.py").write_text("twigs\n")
    with chat(tmp_path, "go", NO_COLOR="1") as window:
        wait_for_question(window)
        window.press("y")
        window.wait_until("Hello **there**!")
        window.wait_until("✓ done")
    assert not colours_in(window.written)


def test_colours_are_the_terminals_own_and_the_background_is_left_alone(tmp_path: Path) -> None:
    """So it can be read on a light background as well as on a dark one."""
    project = play(tmp_path, edit("nest.py", "twigs", "feathers"), HELLO)
    (project / "nest.py").write_text("twigs\n")
    with chat(tmp_path, "go", TERM="xterm-256color", XTERM_VERSION="1") as window:
        wait_for_question(window)
        window.press("y")
        window.wait_until("✓ done")
    assert colours_in(window.written) == {31, 32, 33, 35, 36} & colours_in(window.written) != set()


def colours_in(written: bytes) -> set[int]:
    codes = {int(code) for codes in re.findall(rb"\x1b\[([0-9;]+)m", written) for code in codes.split(b";")}
    return {code for code in codes if code >= 30}


# --- terminals that can do little, and none


def test_a_dumb_terminal_is_talked_to_line_by_line(tmp_path: Path) -> None:
    play(tmp_path, HELLO, LOOK_OUTSIDE, DONE)
    with Window(tmp_path, "chat", "--cwd", str(tmp_path / "project"), TERM="dumb") as window:
        window.wait_for_rows(">")
        window.type("hello\n")
        window.wait_for_rows(
            "> hello", "… A greeting.", "", "Hello **there**!", "", "✓ done (end_turn) · 10 of 100,000 tokens", "", ">"
        )
        window.type("look\n")
        window.wait_until("n  Reject\n  →")
        window.type("n\n")
        window.wait_until("  → n\n    Reject\n")
        window.wait_for_rows("All right.", "", "✓ done (end_turn)", "", ">")
        window.press("ctrl-d")
        assert window.ended() == 0
    assert b"\x1b" not in window.written
    wait_until_nothing_runs(tmp_path)


def test_a_turn_is_stopped_in_a_dumb_terminal(tmp_path: Path) -> None:
    play(tmp_path, WAIT)
    with Window(tmp_path, "chat", "--cwd", str(tmp_path / "project"), TERM="dumb") as window:
        window.wait_for_rows(">")
        window.type("go\n")
        window.wait_until("Once upon a time")
        window.press("ctrl-c")
        window.wait_until("■ cancelled")
        assert window.ended_by("ctrl-c") == 0
    wait_until_nothing_runs(tmp_path)


def test_a_dumb_terminal_goes_on_with_a_conversation(tmp_path: Path) -> None:
    play(tmp_path, DONE)
    for prompt in ("build a nest", "find a worm"):
        assert crow(tmp_path, "run", "--cwd", str(tmp_path / "project"), prompt).returncode == 0
    with Window(tmp_path, "chat", "--cwd", str(tmp_path / "project"), "--resume", TERM="dumb") as window:
        window.wait_until("Which [1]:")
        assert window.picture[:2] == ["   1  find a worm", "   2  build a nest"]
        window.type("2\n")
        window.wait_for_rows("▸ build a nest", "", "All right.", "", "i Going on with: build a nest", "", ">")
    assert b"\x1b" not in window.written


@pytest.mark.parametrize("stdin", ["", "hello\n"])
def test_without_a_terminal_it_says_what_to_use(tmp_path: Path, stdin: str) -> None:
    said = crow(tmp_path, "chat", stdin=stdin)
    assert (said.returncode, said.stdout) == (2, "")
    assert "crow run" in said.stderr
    assert said.stderr.count("\n") == 1


# --- bare crow


def test_bare_crow_in_a_terminal_is_a_conversation_once_a_model_is_set_up(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    with Window(tmp_path) as window:
        window.wait_until(STATUS)
        window.type("hello")
        window.press("enter")
        window.wait_until("✓ done")


def test_bare_crow_says_what_to_do_before_that(tmp_path: Path) -> None:
    with Window(tmp_path) as window:
        assert window.ended() == 0
    assert "login" in window.text
    write_config(tmp_path, "mode = 1\n")
    with Window(tmp_path) as window:
        assert window.ended() == 1
    assert "config   broken" in window.text


def test_status_says_it_always(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    with Window(tmp_path, "status") as window:
        assert window.ended() == 0
    assert "play/it (from the config file)" in window.text


def test_without_a_model_it_ends_with_what_to_do(tmp_path: Path) -> None:
    with Window(tmp_path, "chat") as window:
        assert window.ended() == 1
        assert window.is_restored
    assert "crow login" in window.text
    assert "Go on with" not in window.text


# --- history and attention


def test_history_is_kept_for_each_project(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    (tmp_path / "other").mkdir()
    with chat(tmp_path) as window:
        window.type("of this project")
        window.press("enter")
        window.wait_until("✓ done")
    with Window(tmp_path, "chat", "--cwd", str(tmp_path / "other")) as window:
        window.wait_until(STATUS)
        window.press("up")
        window.type("of the other")
        window.wait_until("▸ of the other")
        window.press("enter")
        window.wait_until("✓ done")
    with chat(tmp_path) as window:
        window.press("up")
        window.wait_until("▸ of this project")
        window.press("up", "down")
        window.wait_for_rows(INPUT, STATUS)
    files = list((tmp_path / "crow" / "history").iterdir())
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600, 0o600]


def test_what_was_typed_before_is_searched(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    with chat(tmp_path) as window:
        for text in ("build a nest", "find a worm"):
            window.type(text)
            window.press("ctrl-c")
            window.wait_until(INPUT)
        window.type("\x12nest")
        window.wait_for_rows("▸ build a nest", "search in history: nest", STATUS)
        window.press("escape")
        window.wait_for_rows("▸ build a nest", STATUS)


@pytest.mark.parametrize(
    ("setting", "sequence"), [("bell", b"\x07"), ("desktop", b"\x1b]9;Crow is done.\x1b\\"), ("off", b"")]
)
def test_the_end_of_a_turn_calls_the_person(tmp_path: Path, setting: str, sequence: bytes) -> None:
    play(tmp_path, HELLO)
    config = tmp_path / "crow" / "config.toml"
    config.write_text(config.read_text() + f'[chat]\nnotify = "{setting}"\nnotify_after = 0\n')
    with chat(tmp_path) as window:
        window.type("hello")
        window.press("enter")
        window.wait_until("✓ done")
        window.press("ctrl-d")
        window.ended()
    if sequence:
        assert window.written.count(sequence) == 1
    else:
        assert b"\x07" not in window.written
        assert b"\x1b]" not in window.written


def test_nobody_is_called_who_is_there(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    config = tmp_path / "crow" / "config.toml"
    config.write_text(config.read_text() + "[chat]\nnotify_after = 3600\n")
    with chat(tmp_path) as window:
        window.type("hello")
        window.press("enter")
        window.wait_until("✓ done")
    assert b"\x07" not in window.written
