"""`crow run`, as a program: its output, its exit codes, and what it leaves behind (nothing)."""

import json
import re
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

from crow.cli.answer_keys import APART
from crow.messages import StopReason
from tests.config import support
from tests.config.support import CROW, Terminal, crow, environment, write_config
from tests.support.editor import SURROUNDINGS
from tests.support.patience import DEADLINE, eventually
from tests.support.warm import warm
from tests.support.window import Window

HELLO = (
    '{ thought = "A greeting." }, { text = "Hello **there**!" }, { usage = { input_tokens = 7, output_tokens = 3 } }'
)
LOOK_OUTSIDE = '{ call = "read", arguments = { path = "../secret.txt" } }'
TOUCH = '{ call = "terminal", arguments = { command = "touch f1" } }'
WAIT = '{ text = "Once upon a time " }, { wait = 3600 }'


def play(user: Path, *replies: str) -> Path:
    """Sets up a model that gives these replies, and a folder to work in."""
    write_config(user, 'model = "play/it"\n[providers.play]\ntype = "scripted"\nscript = "script.toml"\n')
    (user / "crow" / "script.toml").write_text("".join(f"[[reply]]\nevents = [{reply}]\n" for reply in replies))
    (user / "secret.txt").write_text("the treasure is in the nest\n")
    project = user / "project"
    project.mkdir()
    return project


def processes_of(user: Path) -> list[int]:
    """Everything that still runs with this user's CROW_HOME: the program and its agent."""
    mark = f"CROW_HOME={user / 'crow'}".encode()
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue  # it ended while we looked, or is not ours
    return found


def wait_until_nothing_runs(user: Path) -> None:
    eventually(lambda: not processes_of(user), "the end of all that was started")


def run(user: Path, *arguments: str, stdin: str = "", **extra: str) -> subprocess.CompletedProcess[str]:
    said = crow(user, "run", "--cwd", str(user / "project"), *arguments, stdin=stdin, **extra)
    assert processes_of(user) == []
    return said


def without_times(output: str) -> str:
    return re.sub(r" · [\d.]+ s\b", "", output)


# --- what is printed


def test_a_prompt_is_answered_in_plain_text(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    said = run(tmp_path, "hello")
    assert (said.returncode, said.stdout) == (0, "Hello **there**!\n")
    assert without_times(said.stderr) == "… A greeting.\n\n✓ done · 10 of 100,000 tokens\n"


@pytest.mark.parametrize("arguments", [("-",), ()])
def test_the_prompt_can_come_from_standard_input(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    play(tmp_path, HELLO)
    write_config(
        tmp_path,
        'model = "play/it"\n[providers.play]\ntype = "scripted"\nscript = "script.toml"\nrecord = "sent.jsonl"\n',
    )
    assert run(tmp_path, *arguments, stdin="first line\nsecond line\n").returncode == 0
    assert "first line\\nsecond line" in (tmp_path / "crow" / "sent.jsonl").read_text()


def test_json_prints_the_messages_and_nothing_else(tmp_path: Path) -> None:
    play(tmp_path, LOOK_OUTSIDE, HELLO)
    said = run(tmp_path, "--json", "hello")
    assert said.returncode == 3
    lines: list[dict[str, Any]] = [json.loads(line) for line in said.stdout.splitlines()]
    kinds = [
        line.get("update", {}).get("sessionUpdate") or ("options" if "options" in line else "end") for line in lines
    ]
    kinds = [kind for kind in kinds if kind not in SURROUNDINGS]
    assert kinds[0] == "tool_call"
    assert kinds.count("options") == 1
    assert "agent_thought_chunk" in kinds
    assert lines[-1]["stopReason"] == "end_turn"
    assert "rejected" in said.stderr.splitlines()[0]
    assert ": Read " in said.stderr.splitlines()[0]


def test_words_without_quotes_are_one_prompt(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    write_config(
        tmp_path,
        'model = "play/it"\n[providers.play]\ntype = "scripted"\nscript = "script.toml"\nrecord = "sent.jsonl"\n',
    )
    assert run(tmp_path, "say", "hello", "--mode", "ask").returncode == 0
    assert '"say hello"' in (tmp_path / "crow" / "sent.jsonl").read_text()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_without_utf8_the_signs_are_plain(tmp_path: Path, encoding: str) -> None:
    play(tmp_path, LOOK_OUTSIDE, '{ thought = "Hm…" }, { text = "“Hello” — there!" }')
    said = run(tmp_path, "hello", PYTHONIOENCODING=encoding)
    assert said.returncode == 3
    assert "?" not in said.stderr.replace("? Permission needed", "")
    assert "\n  -> rejected" in said.stderr
    assert "FAIL Read " in said.stderr
    assert "... Hm...\n" in said.stderr
    assert said.stdout == '"Hello" - there!\n'
    assert "ok done" in said.stderr


def test_json_tells_an_error_too(tmp_path: Path) -> None:
    play(tmp_path, '{ text = "Half" }, { fail = { status = 400, message = "no such model" } }')
    said = run(tmp_path, "--json", "hello")
    assert said.returncode == 1
    last = json.loads(said.stdout.splitlines()[-1])
    assert "no such model" in last["error"]["message"]
    assert isinstance(last["error"]["code"], int)
    assert "no such model" in said.stderr
    said = run(tmp_path, "--json", "--model", "nobody/nothing", "hello")
    assert "nobody" in json.loads(said.stdout.splitlines()[-1])["error"]["message"]


def test_without_a_terminal_what_would_ask_is_rejected(tmp_path: Path) -> None:
    play(tmp_path, LOOK_OUTSIDE, HELLO)
    said = run(tmp_path, "hello")
    assert said.returncode == 3
    assert "? Permission needed: Read " in said.stderr
    assert "\n  → rejected" in said.stderr
    assert "✗ Read " in said.stderr
    assert "--mode" in said.stderr.splitlines()[-1]
    assert "treasure" not in said.stdout + said.stderr


def test_model_and_mode_reach_the_agent(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    said = run(tmp_path, "--model", "nobody/nothing", "--mode", "plan", "hello")
    assert said.returncode == 1
    assert "nobody" in said.stderr


# --- how it ends


@pytest.mark.parametrize("reason", ["max_tokens", "refusal"])
def test_another_stop_is_exit_code_1(tmp_path: Path, reason: str) -> None:
    play(tmp_path, f'{{ text = "No" }}, {{ finish = "{reason}" }}')
    said = run(tmp_path, "hello")
    assert (said.returncode, said.stdout) == (1, "No\n")
    assert f"■ stopped: {StopReason(reason).why}" in said.stderr


def test_an_error_is_one_line(tmp_path: Path) -> None:
    play(tmp_path, '{ text = "Half an answer" }, { fail = { status = 400, message = "no\\n\\u001b[31msuch model" } }')
    said = run(tmp_path, "hello")
    assert said.returncode == 1
    assert said.stdout == "Half an answer\n"
    assert said.stderr.startswith("crow: ")
    assert "400 (Bad Request)" in said.stderr
    assert (said.stderr.count("\n"), "\x1b" in said.stderr) == (1, False)


def test_without_a_model_it_says_what_to_do(tmp_path: Path) -> None:
    said = crow(tmp_path, "run", "hello")
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr.startswith("crow: ")
    assert "crow login" in said.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no prompt"),
        (("  ",), "no prompt"),
        (("--cwd", "/no/such/folder", "hello"), "/no/such/folder is not a folder"),
        (("--mode", "yolo", "hello"), "invalid choice"),
    ],
)
def test_wrong_usage_is_exit_code_2(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    said = crow(tmp_path, "run", *arguments)
    assert (said.returncode, said.stdout) == (2, "")
    assert words in said.stderr


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_reader_that_leaves_ends_it_quietly(tmp_path: Path, options: tuple[str, ...]) -> None:
    play(
        tmp_path, '{ text = "first line\\n" }, ' + '{ text = "more and more\\n", pace = 1 }, ' * 200 + "{ wait = 3600 }"
    )
    process = subprocess.Popen(
        [*warm(CROW), "run", *options, "hello"],
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout
    assert process.stderr
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(DEADLINE) == 1
    assert process.stderr.read() == b""
    process.stderr.close()
    wait_until_nothing_runs(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_leaves_no_agent_behind(tmp_path: Path, number: signal.Signals) -> None:
    play(tmp_path, WAIT)
    process = subprocess.Popen(
        [*warm(CROW), "run", "--json", "hello"],
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    assert process.stdout
    assert process.stdout.readline()
    process.send_signal(number)
    code = process.wait(DEADLINE)
    *_, last = [b"{}", *process.stdout]
    process.stdout.close()
    assert ("error" in json.loads(last)) == (number != signal.SIGKILL)
    assert code == (-number if number == signal.SIGKILL else 128 + number)
    wait_until_nothing_runs(tmp_path)


def test_who_is_started_to_ignore_that_the_terminal_goes_works_on(tmp_path: Path) -> None:
    play(tmp_path, '{ text = "Once" }, { wait = 1 }, { text = " upon a time." }')
    process = subprocess.Popen(
        ["nohup", CROW, "run", "--json", "hello"],
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout
    assert process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    *_, last = process.stdout
    process.stdout.close()
    assert json.loads(last)["stopReason"] == "end_turn"
    assert process.wait(DEADLINE) == 0


# --- in a terminal


def test_ctrl_c_cancels_the_turn(tmp_path: Path) -> None:
    play(tmp_path, WAIT)
    with Terminal(tmp_path, "run", "hello", TERM="xterm") as terminal:
        terminal.expect("Once upon a")
        terminal.press(b"\x03")
        assert terminal.ended() == 130
        assert "■ cancelled" in terminal.output
    assert processes_of(tmp_path) == []


@pytest.mark.parametrize(
    ("key", "answer", "mark"), [(b"y", "Allow once", "✓"), (b"2", "Reject", "✗"), (b"\x04", "rejected", "✗")]
)
def test_a_key_answers_a_question(tmp_path: Path, key: bytes, answer: str, mark: str) -> None:
    play(tmp_path, LOOK_OUTSIDE, HELLO)
    with Terminal(tmp_path, "run", "--cwd", str(tmp_path / "project"), "hello", TERM="xterm", NO_COLOR="1") as terminal:
        terminal.expect("? Permission needed: Read")
        terminal.expect("  y  Allow once")
        terminal.expect("→ ")
        terminal.press(b"\x1b[A")  # an arrow changes nothing
        terminal.press(key)
        terminal.expect(answer)
        terminal.expect(f"{mark} Read")
        terminal.expect("Hello")
        assert terminal.ended() == 0


@pytest.mark.parametrize("text", ["maybe a folder", "ya", "q", "y\r"])
def test_what_is_typed_at_once_answers_no_question(tmp_path: Path, text: str) -> None:
    project = play(tmp_path, TOUCH, HELLO)
    with Window(tmp_path, "run", "--cwd", str(project), "hello") as window:
        window.wait_until("n  Reject\n  →")
        window.type(text)
        window.wait_until("→ Keys ignored while you were typing")
        window.type("y")  # nor does what follows it
        window.wait_until(lambda: window.picture[-1] == "  →")
        window.press("n")
        window.wait_until("→ Reject")
        window.ended()
    assert not (project / "f1").exists()


def test_what_is_typed_while_a_question_appears_does_not_answer_it(tmp_path: Path) -> None:
    project = play(tmp_path, TOUCH, HELLO)
    patient = tmp_path / "crow-patient"
    patient.write_text(
        f"#!{sys.executable}\nimport sys\nfrom crow.cli import answer_keys\nanswer_keys.QUIET = 3\n"
        "from crow.__main__ import main\nsys.exit(main())\n"
    )
    patient.chmod(0o755)
    with Window(tmp_path, "run", "--cwd", str(project), "hello", program=str(patient)) as window:
        window.wait_until("n  Reject")
        assert "→" not in window.text
        window.type("y")
        window.wait_until(lambda: window.picture[-1] == "  →")
        window.press("n")
        window.wait_until("→ Reject")
        window.ended()
    assert not (project / "f1").exists()


@pytest.mark.parametrize("key", ["backspace", "escape"])
def test_an_answer_that_lasts_is_confirmed_with_enter(tmp_path: Path, key: str) -> None:
    project = play(tmp_path, TOUCH, HELLO)
    with Window(tmp_path, "run", "--cwd", str(project), "hello") as window:
        window.wait_until("n  Reject\n  →")
        window.press("a")
        window.wait_until("→ Enter: Allow `touch …` for this session · Backspace: cancel")
        window.press(key)
        window.wait_until(lambda: window.picture[-1] == "  →")
        window.press("a")
        window.wait_until("→ Enter: Allow `touch …` for this session · Backspace: cancel")
        time.sleep(APART)  # as a person would
        window.press("enter")
        window.wait_until("→ Allow `touch …` for this session")
        window.ended()
    assert (project / "f1").exists()


def test_ctrl_c_while_a_question_is_open(tmp_path: Path) -> None:
    play(tmp_path, LOOK_OUTSIDE, HELLO)
    with Terminal(tmp_path, "run", "--cwd", str(tmp_path / "project"), "hello", TERM="xterm") as terminal:
        terminal.expect("→ ")
        terminal.press(b"\x03")
        assert terminal.ended() == 130
        assert "■ cancelled" in terminal.output
    assert processes_of(tmp_path) == []


def test_a_dumb_terminal_gets_plain_text(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    with Terminal(tmp_path, "run", "hello", TERM="dumb") as terminal:
        assert terminal.ended() == 0
        assert without_times(terminal.output) == (
            "… A greeting.\r\n\r\nHello **there**!\r\n\r\n✓ done · 10 of 100,000 tokens\r\n"
        )


# --- an agent that does not listen

DEAF_AGENT = """
import json, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    request = json.loads(line)
    if request.get("method") in ("initialize", "session/new"):
        result = {"protocolVersion": 1, "sessionId": "s1"}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
    elif request.get("method") == "session/prompt":
        chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "ready "}}
        params = {"sessionId": "s1", "update": chunk}
        print(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}), flush=True)
"""


@pytest.fixture
def crow_with_a_deaf_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same program, but its agent ignores `session/cancel`, and it waits for the turn's end as long as told."""
    agent = tmp_path / "deaf.py"
    agent.write_text(DEAF_AGENT)
    program = tmp_path / "crow-deaf"
    program.write_text(
        f"#!{sys.executable}\n"
        "import os, sys\n"
        "from crow.cli import interactive_client, run\n"
        f"run.AGENT = ({sys.executable!r}, {str(agent)!r})\n"
        "interactive_client.LAST_WAIT = float(os.environ['LAST_WAIT'])\n"
        "from crow.__main__ import main\n"
        "sys.exit(main())\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(support, "CROW", str(program))
    return tmp_path


def test_a_second_ctrl_c_leaves_at_once(crow_with_a_deaf_agent: Path) -> None:
    with Terminal(crow_with_a_deaf_agent, "run", "hello", TERM="xterm", LAST_WAIT="3600") as terminal:
        terminal.expect("ready")
        terminal.press(b"\x03")
        terminal.expect("stopping")
        terminal.press(b"\x03")
        assert terminal.ended() == 130
    wait_until_nothing_runs(crow_with_a_deaf_agent)


def test_a_turn_that_does_not_stop_is_left(crow_with_a_deaf_agent: Path) -> None:
    with Terminal(crow_with_a_deaf_agent, "run", "hello", TERM="xterm", LAST_WAIT="0.05") as terminal:
        terminal.expect("ready")
        terminal.press(b"\x03")
        assert terminal.ended() == 130
    wait_until_nothing_runs(crow_with_a_deaf_agent)


def test_the_terminal_is_left_as_it_was(tmp_path: Path) -> None:
    """Keys are echoed again after a question: the shell behind us needs that."""
    play(tmp_path, LOOK_OUTSIDE, HELLO)
    with Terminal(tmp_path, "run", "--cwd", str(tmp_path / "project"), "hello", TERM="xterm") as terminal:
        before = termios.tcgetattr(terminal._master)
        terminal.expect("→ ")
        assert termios.tcgetattr(terminal._master)[3] != before[3]
        terminal.press(b"n")
        terminal.expect("Hello")
        assert termios.tcgetattr(terminal._master)[3] == before[3]
        assert terminal.ended() == 0


def test_a_model_that_repeats_itself_with_nobody_to_ask_is_no_success(tmp_path):
    project = play(tmp_path, *['{ call = "read", arguments = { path = "a.txt" } }'] * 7)
    (project / "a.txt").write_text("one\n")
    said = run(tmp_path, "read it")
    assert said.returncode == 1
    assert "ran 5 times with the same result" in said.stdout
    assert "stopped: the same call kept repeating" in said.stderr


def test_waiting_for_the_person_leaves_no_lines(tmp_path: Path) -> None:
    play(tmp_path, LOOK_OUTSIDE, '{ wait = 1.0 }, { text = "Hello" }')
    extra = {"TERM": "xterm", "NO_COLOR": "1", "CROW_PATIENCE": "0.1"}
    with Terminal(tmp_path, "run", "--cwd", str(tmp_path / "project"), "hello", **extra) as terminal:
        terminal.expect("→ ")
        time.sleep(1)  # longer than the agent's patience: there is nothing to be seen of its waiting
        terminal.press(b"y")
        terminal.expect("Hello")
        assert terminal.ended() == 0
    assert "Waiting for" not in terminal.output


def test_what_fills_the_window_can_be_read_in_a_terminal_and_in_a_pipe(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    with Terminal(tmp_path, "run", "/context", TERM="xterm", NO_COLOR="1") as terminal:
        assert terminal.ended() == 0
    piped = crow(tmp_path, "run", "/context").stdout
    for output in (terminal.output.replace("\r\n", "\n"), piped):
        assert "|" not in output
        assert re.search(r"\n *System prompt +[\d,]+  █+\n", output)


# --- budgets

SPENDS = "{ usage = { input_tokens = 60, output_tokens = 0 } }"
PRICED = """
[providers.play.models.it]
price_input = 1000.0
price_output = 1000.0
[budget]
turn = "0.10 USD"
"""


def play_dear(user: Path) -> None:
    play(user, *(f'{SPENDS}, {{ call = "read", arguments = {{ path = "{name}.txt" }} }}' for name in "abc"), HELLO)
    config = user / "crow" / "config.toml"
    config.write_text(config.read_text() + PRICED)


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_a_budget_that_is_used_up_stops_it_with_words_where_nobody_can_be_asked(
    tmp_path: Path, quiet: tuple[str, ...]
) -> None:
    play_dear(tmp_path)
    said = run(tmp_path, *quiet, "read them")
    assert said.returncode == 1
    assert "budget" in said.stderr
    assert 'crow run --continue "go on"' in said.stderr
    assert quiet or "0.12 USD" in said.stderr.partition("■ stopped")[0]
    assert quiet or "0.12 USD" in said.stderr.partition("■ stopped")[2]
    if not quiet:
        assert "0.24 USD" in run(tmp_path, "--continue", "go on").stderr  # the script begins afresh


@pytest.mark.parametrize(("key", "code"), [(b"1", 0), (b"3", 1), (b"\x04", 1)])
def test_in_a_terminal_a_key_says_how_to_go_on(tmp_path: Path, key: bytes, code: int) -> None:
    play_dear(tmp_path)
    with Terminal(tmp_path, "run", "--cwd", str(tmp_path / "project"), "read", TERM="xterm", NO_COLOR="1") as terminal:
        terminal.expect("? The budget of this turn, 0.10 USD, is used up: 0.12 USD so far. How do you")
        terminal.expect("  1  Continue with 0.10 USD more")
        terminal.expect("  3  Stop")
        terminal.expect("→ ")
        terminal.press(key)
        terminal.expect("Hello" if code == 0 else "stopped: budget used up")
        assert terminal.ended() == code
