"""`crow run` as a part of a script: what is piped in, what comes out where, what is allowed, which session."""

import contextlib
import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.test_run import HELLO, LOOK_OUTSIDE, play, processes_of
from tests.config.support import CROW, ModelServer, crow, environment, write_config
from tests.support.patience import DEADLINE
from tests.support.warm import warm

CONFIG = 'model = "play/it"\n[providers.play]\ntype = "scripted"\nscript = "script.toml"\nrecord = "sent.jsonl"\n'


def set_up(user: Path, *replies: str) -> Path:
    project = play(user, *replies)
    write_config(user, CONFIG)
    return project


def sent(user: Path) -> list[str]:
    """The texts of what the model was sent last."""
    last = json.loads((user / "crow" / "sent.jsonl").read_text().splitlines()[-1])
    return [json.dumps(message, ensure_ascii=False) for message in last["messages"]]


def run(user: Path, *arguments: str, stdin: str = "", **extra: str) -> subprocess.CompletedProcess[str]:
    said = crow(user, "run", "--cwd", str(user / "project"), *arguments, stdin=stdin, **extra)
    assert processes_of(user) == []
    return said


# --- in


def test_what_is_piped_in_goes_with_the_prompt(tmp_path: Path) -> None:
    set_up(tmp_path, HELLO)
    assert run(tmp_path, "review this", stdin="--- a\n+++ b\n").returncode == 0
    message = sent(tmp_path)[-1]
    assert "review this" in message
    assert "Attached: standard input\\n```\\n--- a\\n+++ b\\n```" in message


def test_an_empty_pipe_and_a_device_add_nothing(tmp_path: Path) -> None:
    set_up(tmp_path, HELLO)
    assert run(tmp_path, "review this", stdin=" \n").returncode == 0
    assert "Attached" not in sent(tmp_path)[-1]
    command = [*warm(CROW), "run", "--cwd", str(tmp_path / "project"), "review this"]
    for device in ("/dev/null", "/dev/zero"):
        with open(device, "rb") as stdin:
            assert subprocess.run(command, env=environment(tmp_path), stdin=stdin, capture_output=True).returncode == 0
        assert "Attached" not in sent(tmp_path)[-1]
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *command], env=environment(tmp_path), capture_output=True
    )
    assert closed.returncode == 0


@pytest.mark.parametrize(
    ("piped", "told"),
    [
        (b"\x7fELF\0\1\2\xff\xfe", "standard input (binary)"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "play/it takes no image"),
        (b"RIFF\x1a\0\0\0WEBPVP8L\xff", "play/it takes no image"),
        (b"ID3\x04\0\0\0\0\0\0\xff", "play/it takes no audio"),
    ],
)
def test_what_is_no_text_is_not_made_to_look_like_one(tmp_path: Path, piped: bytes, told: str) -> None:
    set_up(tmp_path, HELLO)
    command = [*warm(CROW), "run", "--cwd", str(tmp_path / "project"), "look at this"]
    said = subprocess.run(command, env=environment(tmp_path), input=piped, capture_output=True)
    assert said.returncode == 0
    assert "\ufffd" not in sent(tmp_path)[-1]
    assert told in sent(tmp_path)[-1]
    assert told in " ".join((said.stdout + said.stderr).decode().split())


def test_text_in_another_encoding_is_text(tmp_path: Path) -> None:
    set_up(tmp_path, HELLO)
    command = [*warm(CROW), "run", "--cwd", str(tmp_path / "project"), "look at this"]
    for piped in ("Krähe\n".encode("utf-16"), "Krähe\n".encode("latin-1")):
        subprocess.run(command, env=environment(tmp_path), input=piped, capture_output=True, check=True)
        assert "Attached: standard input\\n```\\nKrähe" in sent(tmp_path)[-1]


def test_a_session_is_gone_on_with_in_its_own_folder_alone(tmp_path: Path) -> None:
    set_up(tmp_path, HELLO)
    assert run(tmp_path, "hello").returncode == 0
    (session,) = (entry["id"] for entry in json.loads(crow(tmp_path, "sessions", "list", "--json").stdout))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    said = crow(tmp_path, "run", "--resume", session, "--cwd", str(elsewhere), "hi")
    assert said.returncode == 2
    assert f"this session belongs to {tmp_path / 'project'}. Leave out --cwd" in said.stderr
    (tmp_path / "project").rename(tmp_path / "moved")
    said = crow(tmp_path, "run", "--resume", session, "hi")
    assert said.returncode == 1
    assert "This session's folder is gone" in said.stderr
    assert f"crow sessions show {session}" in said.stderr


def test_too_much_is_refused(tmp_path: Path) -> None:
    set_up(tmp_path, HELLO)
    said = run(tmp_path, "review this", stdin="x" * (17 << 20))
    assert said.returncode == 2
    assert "16 MB" in said.stderr


def test_a_pipe_that_stays_open_is_named(tmp_path: Path) -> None:
    set_up(tmp_path, HELLO)
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [*warm(CROW), "run", "--cwd", str(tmp_path / "project"), "hello"],
        env=environment(tmp_path),
        stdin=reader,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(reader)
    assert process.stderr
    assert "standard input" in process.stderr.readline()
    os.close(writer)
    assert process.wait(DEADLINE) == 0
    process.stderr.close()


def test_attached_files(tmp_path: Path) -> None:
    set_up(tmp_path, HELLO)
    (tmp_path / "far away ü.txt").write_text("from afar\n")
    assert run(tmp_path, "look", "--attach", str(tmp_path / "far away ü.txt")).returncode == 0
    assert "from afar" in sent(tmp_path)[-1]
    said = run(tmp_path, "look", "--attach", "none.txt")
    assert said.returncode == 2
    assert said.stderr.startswith("crow run: --attach: ")
    assert "none.txt" in said.stderr


# --- out


def test_the_answer_alone_goes_to_a_pipe(tmp_path: Path) -> None:
    project = set_up(
        tmp_path,
        '{ text = "I look.\\n" }, { call = "read", arguments = { path = "a.txt" } }',
        '{ thought = "Hm." }, { text = "all:\\n\\tmake  \\n" }',
    )
    (project / "a.txt").write_text("one\n")
    said = run(tmp_path, "hello")
    assert (said.returncode, said.stdout) == (0, "I look.\n\nall:\n\tmake  \n")
    assert "✓ Read a.txt" in said.stderr
    assert "… Hm." in said.stderr
    assert "✓ done" in said.stderr


def test_thoughts_and_the_answer_in_one_log_do_not_run_into_each_other(tmp_path: Path) -> None:
    set_up(tmp_path, '{ thought = "A greeting." }, { text = "Let me plan." }')
    said = subprocess.run(
        [*warm(CROW), "run", "--cwd", str(tmp_path / "project"), "hello"],
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE,
    )
    assert said.stdout.startswith("… A greeting.\nLet me plan.\n")


def test_quiet_prints_the_final_text_alone(tmp_path: Path) -> None:
    set_up(tmp_path, '{ text = "I look." }, { call = "find", arguments = { pattern = "*" } }', HELLO)
    said = run(tmp_path, "--quiet", "hello")
    assert (said.returncode, said.stdout, said.stderr) == (0, "Hello **there**!\n", "")


def test_quiet_tells_what_went_wrong(tmp_path: Path) -> None:
    set_up(tmp_path, LOOK_OUTSIDE, '{ text = "No" }, { finish = "refusal" }')
    said = run(tmp_path, "--quiet", "hello")
    assert (said.returncode, said.stdout) == (1, "No\n")
    stopped, unanswered = said.stderr.splitlines()[:2]
    assert stopped.endswith("the model refused to answer")
    assert "1 request was rejected" in unanswered


# --- allowed


def test_what_is_allowed_for_one_run(tmp_path: Path) -> None:
    command = '{ call = "terminal", arguments = { command = "echo $((6*7)) $CROW_ALLOW" } }'
    plain = '{ call = "terminal", arguments = { command = "echo fine there" } }'
    set_up(tmp_path, plain, HELLO)
    said = run(tmp_path, "--allow", "terminal:echo fine *", "--allow", "read:/x/**", "hello")
    assert (said.returncode, said.stdout) == (0, "Hello **there**!\n")
    assert "│ fine there" in said.stderr
    assert run(tmp_path, "hello").returncode == 3
    (tmp_path / "crow" / "script.toml").write_text(f"[[reply]]\nevents = [{command}]\n[[reply]]\nevents = [{HELLO}]\n")
    assert run(tmp_path, "--allow", "terminal:echo *", "hello").returncode == 3
    said = run(tmp_path, "--allow", "terminal", "hello")
    assert said.returncode == 0
    assert "│ 42\n" in said.stderr


@pytest.mark.parametrize("rule", ["", "terminal:", ":x", "web_fetch:https://example.com/", "mcp__a__b:c"])
def test_a_rule_that_makes_no_sense(tmp_path: Path, rule: str) -> None:
    set_up(tmp_path, HELLO)
    said = run(tmp_path, "--allow", rule, "hello")
    assert said.returncode == 2
    assert said.stderr.startswith("crow run: --allow: ")


@pytest.mark.parametrize("rule", ["Bahs(ls *)", "Bash(ls)", "bash:ls", "termnal:ls", "Terminal"])
def test_a_misspelt_tool_is_named_with_the_nearest(tmp_path: Path, rule: str) -> None:
    set_up(tmp_path, HELLO)
    said = run(tmp_path, "--allow", rule, "hello")
    assert said.returncode == 2
    assert f'"{rule.partition(":")[0]}"' in said.stderr
    assert '(did you mean "terminal"?)' in said.stderr


def test_a_deny_rule_beats_what_is_allowed(tmp_path: Path) -> None:
    set_up(tmp_path, '{ call = "terminal", arguments = { command = "echo fine" } }', HELLO)
    write_config(tmp_path, CONFIG + '[[permission.rules]]\ntool = "terminal"\ncommand = "echo *"\ndecision = "deny"\n')
    said = run(tmp_path, "--allow", "terminal:echo *", "hello")
    assert "✗ " in said.stderr
    assert "│ fine" not in said.stderr


# --- sessions and models


def test_going_on_with_a_session(tmp_path: Path) -> None:
    set_up(tmp_path, HELLO)
    said = run(tmp_path, "--continue", "more")
    assert said.returncode == 1
    assert "No sessions in" in said.stderr
    assert run(tmp_path, "the first thing").returncode == 0
    said = run(tmp_path, "--continue", "--mode", "plan", "the second thing")
    assert said.returncode == 0
    assert "the first thing" in said.stderr
    messages = sent(tmp_path)
    assert "the first thing" in "".join(messages[:-1])
    assert "the second thing" in messages[-1]
    entries = json.loads(crow(tmp_path, "sessions", "--json").stdout)
    assert len(entries) == 1
    assert run(tmp_path, "--resume", entries[0]["id"][:14], "the third thing").returncode == 0
    assert "the first thing" in "".join(sent(tmp_path)[:-1])
    assert "No session" in run(tmp_path, "--resume", "abcdef", "x").stderr
    for words in (("zzz", "hello"), ("zzz",)):  # a word is an id, whatever it looks like
        said = run(tmp_path, "--resume", *words)
        assert said.returncode == 1
        assert "'zzz'" in said.stderr
        assert "crow sessions list" in said.stderr
    said = run(tmp_path, "--resume", "what was it?")
    assert said.returncode == 2
    assert "crow sessions" in said.stderr


def test_a_model_without_its_provider(tmp_path: Path) -> None:
    set_up(tmp_path, HELLO)
    with ModelServer("alpha", "vendor/beta") as one, ModelServer("alpha", "gamma") as two:
        servers = "".join(
            f'[providers.{name}]\ntype = "openai"\nbase_url = "{server.url}"\n'
            for name, server in (("a", one), ("b", two))
        )
        write_config(tmp_path, servers)
        assert run(tmp_path, "--model", "gamma", "hello").stdout == "Hi\n"
        assert run(tmp_path, "--model", "vendor/beta", "hello").stdout == "Hi\n"
        assert (one.asked[-1]["model"], two.asked[-1]["model"]) == ("vendor/beta", "gamma")
        said = run(tmp_path, "--model", "alpha", "hello")
        assert said.returncode == 1
        assert "a/alpha, b/alpha" in said.stderr
        said = run(tmp_path, "--json", "--model", "delta", "hello")
        assert "delta" in json.loads(said.stdout)["error"]["message"]


# --- asking


class Shell:
    """A shell line in a terminal of its own."""

    def __init__(self, user: Path, line: str) -> None:
        take = (
            "import fcntl,os,sys,termios; fcntl.ioctl(0,termios.TIOCSCTTY,0); "
            "os.execv('/bin/sh',['sh','-c',sys.argv[1]])"
        )
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", take, line],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env=environment(user, TERM="xterm", NO_COLOR="1"),
        )
        os.close(slave)
        self.output = ""

    def expect(self, text: str) -> None:
        deadline = time.monotonic() + DEADLINE
        while text not in self.output:
            ready, _, _ = select.select([self._master], [], [], max(0, deadline - time.monotonic()))
            piece = b""
            with contextlib.suppress(OSError):
                piece = os.read(self._master, 65536) if ready else b""
            assert piece, f"{text!r} did not come; the terminal shows:\n{self.output}"
            self.output += piece.decode(errors="replace")

    def press(self, key: bytes) -> None:
        os.write(self._master, key)

    def close(self) -> int:
        with contextlib.suppress(OSError):
            while piece := os.read(self._master, 65536):
                self.output += piece.decode(errors="replace")
        code = self.process.wait(DEADLINE)
        os.close(self._master)
        return code


@pytest.mark.parametrize(
    "line",
    [
        "echo this | {crow} run --cwd {project} hello > {out}",
        "{crow} run --cwd {project} hello > {out} < /dev/null",
        "{crow} run --cwd {project} hello 2> {out}",
        "echo this | {crow} run --quiet --cwd {project} hello > {out}",
        "echo this | TERM=dumb {crow} run --cwd {project} hello",
    ],
)
def test_whatever_is_redirected_the_terminal_is_asked(tmp_path: Path, line: str) -> None:
    project = set_up(tmp_path, LOOK_OUTSIDE, HELLO)
    shell = Shell(tmp_path, line.format(crow=CROW, project=project, out=tmp_path / "out"))
    shell.expect("? Permission needed: Read")
    shell.expect("  y  Allow once")
    shell.expect("→ ")
    shell.press(b"y")
    assert shell.close() == 0
    assert "Allow once" in shell.output.partition("→ ")[2]


def test_a_job_in_the_background_is_not_stopped_by_its_question(tmp_path: Path) -> None:
    project = set_up(tmp_path, LOOK_OUTSIDE, HELLO)
    shell = Shell(tmp_path, f"set -m; {CROW} run --cwd {project} hello < /dev/null & wait $!; echo ended $?")
    shell.expect("ended 3")
    assert shell.close() == 0


# --- what is left to be answered

ASK = '{ call = "ask", arguments = { question = "Which colour?", options = ["red", "blue"] } }'
READ = '{ call = "read", arguments = { path = "a.txt" } }'


@pytest.mark.parametrize("options", [(), ("--quiet",)])
def test_a_question_of_the_model_comes_with_how_to_answer_it(tmp_path: Path, options: tuple[str, ...]) -> None:
    set_up(tmp_path, ASK)
    said = run(tmp_path, *options, "paint it")
    assert said.returncode == 0
    assert said.stdout == "Which colour?\n1. red\n2. blue\n"
    assert said.stderr.count('Answer with: crow run --continue "…"') == 1
    assert "Which colour?" not in said.stderr


@pytest.mark.parametrize("options", [(), ("--quiet",)])
def test_a_turn_that_went_round_in_circles_is_said_to_have_done_so(tmp_path: Path, options: tuple[str, ...]) -> None:
    project = set_up(tmp_path, *[READ] * 6)
    (project / "a.txt").write_text("one\n")
    said = run(tmp_path, *options, "read it")
    assert said.returncode == 1
    assert "same call" in said.stderr


def test_in_a_log_of_both_streams_each_thing_begins_on_a_line_of_its_own(tmp_path: Path) -> None:
    project = set_up(tmp_path, f'{{ text = "Let me look." }}, {READ}', '{ text = "It is one." }')
    (project / "a.txt").write_text("one\n")
    command = [*warm(CROW), "run", "--cwd", str(project), "read it"]
    with (tmp_path / "log").open("w+") as log:
        done = subprocess.run(
            command, env=environment(tmp_path), stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False
        )
        log.seek(0)
        lines = [line for line in log.read().splitlines() if line]
    assert done.returncode == 0
    assert [lines[0], lines[2]] == ["Let me look.", "It is one."]
    assert lines[1].startswith("✓ Read a.txt")
    assert lines[3].startswith("✓ done")
    said = run(tmp_path, "read it")
    assert said.stdout == "Let me look.\n\nIt is one.\n", "as it was written, where only the answer goes"
