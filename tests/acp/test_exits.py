"""When the client goes, so does Crow: quietly, with the right status, and whatever it was waiting for."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.editor import SILENCE, chose, clean_environment
from tests.support.new_files import watched
from tests.support.patience import DEADLINE, eventually
from tests.support.warm import CROW

HANGING = '[[reply]]\nrepeat = true\nevents = [{ text = "Once" }, { wait = 600 }]'


@pytest.mark.rule("R11")
def test_the_end_of_input_ends_an_idle_agent(open_editor):
    crow = open_editor(script=HANGING)
    crow.new_session()
    crow.hang_up()
    crow.exit_status()
    assert crow.close() == 0


@pytest.mark.rule("R11", "R69")
def test_the_end_of_input_in_a_turn_ends_the_turn_first(open_editor):
    crow = open_editor(script=HANGING)
    crow.new_session()
    prompt = crow.start_prompt("go")
    crow.wait_for_text("Once")
    crow.hang_up()
    assert crow.exit_status() == 0
    assert prompt.answer() == {"stopReason": "cancelled"}
    assert crow.close() == 0


@pytest.mark.rule("R11")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "in a turn"])
def test_a_signal_ends_it_cleanly(open_editor, number, busy):
    crow = open_editor(script=HANGING)
    crow.new_session()
    if busy:
        prompt = crow.start_prompt("go")
        crow.wait_for_text("Once")
    crow.signal(number)
    crow.exit_status()
    if busy:
        assert prompt.answer() == {"stopReason": "cancelled"}
    assert crow.close() == 128 + number


def test_it_outlives_the_terminal_if_it_was_started_so(tmp_path):
    process = subprocess.Popen(
        ["nohup", CROW, "acp"],
        env={"CROW_HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin
    assert process.stdout
    for id in (1, 2):
        line = b'{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"protocolVersion":1}}\n'
        process.stdin.write(line % id)
        process.stdin.flush()
        assert process.stdout.readline().startswith(b'{"jsonrpc":"2.0","id":%d,"result":' % id)
        process.send_signal(signal.SIGHUP)
    process.stdin.close()
    assert process.wait(DEADLINE) == 0
    process.stdout.close()


LONG = "[limits]\nreply = 64\n"
"""A reply may have so many MiB."""


@pytest.mark.rule("R11")
@pytest.mark.parametrize("way", ["end of input", "SIGTERM"])
def test_an_end_in_the_middle_of_a_write_leaves_nothing_half_done(open_editor, tmp_path, way):
    text = "x" * 3_000_000
    calls = ", ".join(
        f'{{ call = "write", arguments = {{ path = "{number}.txt", content = "{text}" }} }}' for number in range(4)
    )
    crow = open_editor(script=f"[[reply]]\nevents = [{calls}]", config=LONG, permit=lambda request: chose("once"))
    folder = tmp_path / "empty"
    folder.mkdir()
    crow.new_session(folder)
    with watched(folder) as files:
        crow.start_prompt("go")
        files.wait_for(".tmp")
    if way == "SIGTERM":
        crow.signal(signal.SIGTERM)
    else:
        crow.hang_up()
    assert crow.close() == (128 + signal.SIGTERM if way == "SIGTERM" else 0)
    for path in folder.iterdir():
        assert not path.name.endswith(".tmp")
        assert path.read_text() == text


@pytest.mark.rule("R11")
def test_the_end_of_input_while_the_person_is_being_asked(open_editor):
    script = '[[reply]]\nevents = [{ call = "read", arguments = { path = "/etc/hostname" } }]'
    crow = open_editor(script=script, permit=lambda request: SILENCE)
    crow.new_session()
    prompt = crow.start_prompt("go")
    crow.wait_for_call("session/request_permission")
    crow.hang_up()
    assert crow.exit_status() == 0
    assert prompt.answer() == {"stopReason": "cancelled"}


@pytest.mark.rule("R11")
def test_a_client_that_stopped_reading_and_hangs_up(open_editor):
    crow = open_editor(script=f'[[reply]]\nevents = [{{ text = "Ready. {"word " * 300_000}" }}]')
    crow.new_session()
    crow.start_prompt("go")
    crow.wait_for_text("Ready.")
    crow.stop_reading()
    crow.hang_up()
    assert crow.exit_status() == 0
    half = [problem for problem in crow._problems if problem.startswith("output ends in the middle of a line")]
    assert crow._problems == half, "the line that was being written when the client left stays half, and nothing else"
    crow._problems.clear()


CLIENT = """
import os, subprocess, sys, time
crow = subprocess.Popen([sys.argv[1], "acp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
crow.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\\n')
crow.stdin.flush()
crow.stdout.readline()
print(crow.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.rule("R11")
def test_a_client_that_is_killed_takes_crow_with_it(tmp_path: Path):
    environment = clean_environment(tmp_path, tmp_path)
    client = subprocess.Popen([sys.executable, "-c", CLIENT, CROW], stdout=subprocess.PIPE, env=environment)
    assert client.stdout is not None
    with client.stdout:
        crow = int(client.stdout.readline())
        assert is_running(crow)
        client.kill()
        client.wait()
        eventually(lambda: not is_running(crow), "the end of the agent")


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@pytest.mark.rule("R11")
def test_a_client_that_closes_only_its_reading_end(open_editor):
    """With nobody to hear it, Crow notices at its next word, and leaves."""
    crow = open_editor(script='[[reply]]\nevents = [{ text = "a b c d e f g h", pace = 50 }]')
    crow.new_session()
    crow.start_prompt("go")
    crow.wait_for_text("a")
    crow.stop_reading()
    crow.wait_until(lambda: True, "")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, crow._from_crow)
    os.close(null)
    crow.read_on()
    assert crow.process.wait(DEADLINE) == 0


@pytest.mark.rule("R3")
def test_a_folder_that_cannot_be_written_costs_only_the_log(open_editor, tmp_path):
    crow = open_editor(environment={"CROW_HOME": "/proc/nowhere"})
    crow.send_line(b"nonsense that would be logged")
    crow.request("authenticate", {"methodId": "crow-demo"})
    crow.new_session()
    assert crow.close() == 0
