"""Standard input and output belong to the protocol, whatever else runs in the process and whatever they are."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.editor import clean_environment, read_message
from tests.support.patience import DEADLINE
from tests.support.warm import CROW

HELLO = '[[reply]]\nrepeat = true\nevents = [{ text = "Hello there." }]'

NOISE = """
import os, subprocess, sys, threading, time, warnings
if sys.argv[0].endswith("/crow"):
    first = os.fstat(0)

    def make_noise():
        while os.path.samestat(os.fstat(0), first):  # until the agent has taken its streams for itself
            time.sleep(0.001)
        time.sleep(0.02)
        # A child that shouts and that would eat every request it can get at.
        subprocess.Popen(["/bin/sh", "-c", "echo NOISE from a child; cat >&2; echo NOISE again"])
        while True:
            print("NOISE printed", flush=True)
            os.write(1, b'{"jsonrpc":"2.0","id":1,"result":"NOISE"}\\n')
            sys.__stdout__.write("NOISE written")
            sys.stdout.buffer.write(b"NOISE in bytes")
            warnings.warn("NOISE warned")
            time.sleep(0.005)

    threading.Thread(target=make_noise, daemon=True).start()
"""


@pytest.mark.rule("R2", "R4", "R1")
def test_nothing_that_is_printed_reaches_the_client_and_no_child_steals_a_request(open_editor, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(NOISE)
    crow = open_editor(
        script=HELLO, environment={"PYTHONPATH": str(tmp_path)}, initialize=False, may_write_to_stderr=True
    )
    for _ in range(50):
        crow.initialize()
    for _ in range(10):
        crow.new_session()
        assert crow.prompt("hi") == {"stopReason": "end_turn"}
        assert crow.text() == "Hello there."
    assert not any(b"NOISE" in line for line in crow.lines)
    assert crow.close() == 0
    noise = (tmp_path / "editor-0" / "stderr.txt").read_text()
    assert all(words in noise for words in ("NOISE printed", "NOISE from a child", "NOISE again", '"NOISE"'))


@pytest.mark.rule("R1", "R23")
def test_what_comes_in_one_piece_with_the_first_request_and_the_end_is_all_answered(tmp_path):
    """Most of the program is loaded after `initialize` was answered: what arrives meanwhile waits, and is not lost."""
    messages = [
        ("initialize", {"protocolVersion": 1}),
        ("session/list", {}),
        ("session/prompt", {"sessionId": "nobody", "prompt": [{"type": "text", "text": "hi"}]}),
        ("nonsense", {}),
    ]
    lines = [json.dumps({"jsonrpc": "2.0", "id": id, "method": m, "params": p}) for id, (m, p) in enumerate(messages)]
    environment = clean_environment(tmp_path / "home", tmp_path)
    done = subprocess.run([CROW, "acp"], input="\n".join(lines).encode() + b"\n", env=environment, capture_output=True)
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    assert sorted(answers) == [0, 1, 2, 3]
    assert answers[1]["result"] == {"sessions": []}
    assert [answers[id]["error"]["code"] for id in (2, 3)] == [-32002, -32601]
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.rule("R1", "R2")
def test_standard_error_stays_silent(open_editor):
    crow = open_editor(script=HELLO)
    crow.new_session()
    crow.send_line(b"nonsense")
    crow.notify("unheard/of")
    crow.prompt("hi")
    assert crow.close() == 0
    assert (crow.workspace.parent / "stderr.txt").read_text() == ""


def start(folder: Path, **streams: Any) -> "subprocess.Popen[Any]":
    (folder / "config.toml").write_text('[providers.s]\ntype = "scripted"\nscript = "s.toml"\n[providers.s.models.m]\n')
    (folder / "s.toml").write_text(HELLO)
    return subprocess.Popen([CROW, "acp"], env=clean_environment(folder, folder), stderr=subprocess.PIPE, **streams)


def requests(folder: Path) -> bytes:
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
        {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": str(folder), "mcpServers": []}},
        {"jsonrpc": "2.0", "id": 3, "method": "nonsense"},
    ]
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def answers(lines: bytes) -> dict[Any, str]:
    messages = [read_message(line) for line in lines.splitlines()]
    assert all(isinstance(message, dict) for message in messages), messages
    found = [message for message in messages if isinstance(message, dict) and "method" not in message]
    return {message["id"]: next(key for key in ("result", "error") if key in message) for message in found}


@pytest.mark.rule("R1")
def test_files_as_input_and_output(tmp_path):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(requests(tmp_path))
    with source.open("rb") as stdin, target.open("wb") as stdout:
        crow = start(tmp_path, stdin=stdin, stdout=stdout)
        _, stderr = crow.communicate(timeout=DEADLINE)
    assert (crow.returncode, stderr) == (0, b"")
    seen = answers(target.read_bytes())
    assert (seen[1], seen[3]) == ("result", "error")
    assert 2 in seen


@pytest.mark.rule("R1")
@pytest.mark.parametrize("kind", ["one socket", "a terminal"])
def test_one_thing_as_both_input_and_output(tmp_path, kind):
    if kind == "one socket":
        ours, theirs = (end.detach() for end in socket.socketpair())
    else:
        import tty

        ours, theirs = os.openpty()
        tty.setraw(theirs)
    crow = start(tmp_path, stdin=theirs, stdout=theirs)
    os.close(theirs)
    os.write(ours, requests(tmp_path))
    received = b""
    while received.count(b"\n") < 3:
        received += os.read(ours, 65536)
    seen = answers(received)
    assert seen == {1: "result", 2: "result", 3: "error"}
    os.close(ours)
    _, stderr = crow.communicate(timeout=DEADLINE)
    assert (b"editors start it" in stderr) == (kind == "a terminal")
    assert crow.returncode in (0, 129)  # a terminal that goes away hangs up


@pytest.mark.rule("R1")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-"])
def test_a_missing_stream_is_said_and_not_waited_for(tmp_path, closed):
    done = subprocess.run(
        ["/bin/sh", "-c", f'"{CROW}" acp {closed}'],
        env=clean_environment(tmp_path, tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=DEADLINE,
    )
    assert done.stdout == b""
    assert done.returncode in (0, 1)
    assert b"Traceback" not in done.stderr


TAKE = """
import os, sys
from crow.cli import process
os.close(2)
reader, writer = process.take_streams()
null = os.stat(os.devnull)
same = [os.path.samestat(os.fstat(number), null) for number in (0, 1, 2)]
os.write(writer, b"%d %d %s" % (reader > 2, writer > 2, str(same).encode()))
"""


@pytest.mark.rule("R2", "R4")
def test_without_a_standard_error_its_number_does_not_fall_to_the_protocol(tmp_path):
    """Otherwise whatever complains would write into the client's stream."""
    done = subprocess.run([sys.executable, "-c", TAKE], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert done.stdout == b"1 1 [True, True, True]"


@pytest.mark.rule("R2")
def test_a_missing_standard_error_is_no_obstacle(tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_bytes(requests(tmp_path))
    done = subprocess.run(
        ["/bin/sh", "-c", f'"{CROW}" acp < "{source}" 2>&-'],
        env=clean_environment(tmp_path, tmp_path),
        capture_output=True,
        timeout=DEADLINE,
    )
    assert answers(done.stdout)[1] == "result"
    assert done.returncode == 0
