"""Commands in the terminals of clients that end less than they should, keep less than was printed, or are cancelled."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.editor import TERMINAL, Editor, chose
from tests.support.patience import eventually
from tests.support.scripts import DONE, reply, run
from tests.support.terminals import CarelessTerminal, Terminal, is_alive, wait_until_gone


def opened(
    open_editor, command: str, *, capabilities=TERMINAL, terminal: type[Terminal] = CarelessTerminal, **more: Any
) -> Editor:
    crow = open_editor(
        script=reply(run(command, **more)) + DONE,
        capabilities=capabilities,
        terminal=terminal,
        permit=lambda request: chose("once"),
    )
    crow.new_session()
    return crow


def told(crow: Editor) -> str:
    [text] = [message["text"] for message in crow.model_requests()[-1]["messages"] if message["role"] == "tool"]
    return text


def process_in(path: Path) -> int:
    """The process whose id a command wrote there."""
    return int(path.read_text())


LEAVES_A_CHILD = "sleep 1000 & echo $! > child; "


@pytest.mark.rule("R116")
@pytest.mark.parametrize("how", ["cancel", "time-out", "its own end"])
def test_what_the_clients_kill_leaves_running_is_ended(open_editor, how):
    command = LEAVES_A_CHILD + ("true" if how == "its own end" else "touch begun; wait")
    crow = opened(open_editor, command, timeout=0.5 if how == "time-out" else 600)
    prompt = crow.start_prompt("go")
    if how == "cancel":
        crow.wait_for_call("terminal/wait_for_exit")
        wait_for_file(crow.workspace / "begun")
        crow.cancel()
    prompt.answer()
    wait_until_gone(process_in(crow.workspace / "child"))
    crow.wait_until(lambda: crow.terminals.released == ["terminal-1"], "the release")


def wait_for_file(path: Path) -> None:
    eventually(path.exists, f"the file {path}")


def test_what_ignores_the_request_to_end_is_killed(open_editor):
    stubborn = "(trap '' TERM; echo $BASHPID > child; while :; do sleep 0.05; done) & wait"
    crow = opened(open_editor, stubborn, timeout=0.5)
    crow.prompt("go")
    wait_until_gone(process_in(crow.workspace / "child"))


def test_nobody_else_is_ended(open_editor):
    """Neither another command's process nor one that only looks as if it carried the mark."""
    others = [
        subprocess.Popen(["sleep", "1000"], env=os.environ | variables)
        for variables in ({"CROW_TERMINAL": "0" * 32}, {"OTHER": "CROW_TERMINAL=", "CROW_TERMINAL": ""}, {})
    ]
    try:
        crow = opened(open_editor, LEAVES_A_CHILD + "wait", timeout=0.5)
        crow.prompt("go")
        wait_until_gone(process_in(crow.workspace / "child"))
        assert all(is_alive(other.pid) for other in others)
    finally:
        for other in others:
            other.kill()
            other.wait()


# --- large outputs


def test_both_ends_of_a_large_output_reach_the_model(open_editor):
    crow = opened(open_editor, "seq 1 60000", terminal=Terminal)  # 349 kB
    crow.prompt("go")
    assert told(crow).startswith("1\n2\n3\n")
    assert "kB left out here" in told(crow)
    assert told(crow).endswith("\n59999\n60000\n[exit code 0]")
    assert len(told(crow)) < 31_000


def test_both_ends_of_one_that_the_client_cannot_keep(open_editor):
    """It is looked at while it is printed: the command goes on only when its beginning was fetched."""
    command = "seq 1 20000; until [ -e fetched ]; do sleep 0.02; done; seq 1 900000"
    crow = opened(open_editor, command, terminal=Terminal)

    def output(params):
        answer = crow.terminals.find("terminal/output", params["terminalId"]).output()
        if len(answer["output"]) > 60_000:
            (crow.workspace / "fetched").touch()
        return answer

    crow.answers["terminal/output"] = output
    crow.prompt("go")
    assert told(crow).startswith("1\n2\n3\n")
    assert "what came here was left out by the terminal" in told(crow)
    assert told(crow).endswith("\n899999\n900000\n[exit code 0]")


# --- cancelled


def has_sent(crow: Editor, output: str) -> bool:
    """Whether the client has answered with such an output."""
    return any(output in str(entry.message) for entry in crow.conversation if "result" in entry.message)


@pytest.mark.rule("R70", "R117")
@pytest.mark.parametrize("capabilities", [TERMINAL, {}], ids=["in the client", "here"])
def test_a_cancelled_command_keeps_what_it_printed(open_editor, capabilities):
    command = "echo half of ''it; touch begun; sleep 1000"  # whose own text is not what it prints
    crow = opened(open_editor, command, capabilities=capabilities, terminal=Terminal)
    prompt = crow.start_prompt("go")
    wait_for_file(crow.workspace / "begun")
    if capabilities:  # a machine that is too busy to answer in a moment has answered once before
        crow.wait_until(lambda: has_sent(crow, "half of it"), "a look at the output")
    else:
        crow.wait_until(lambda: "half of it" in str(crow.the_call().get("content")), "its output")
    crow.cancel()
    assert prompt.answer() == {"stopReason": "cancelled"}
    call = crow.the_call()
    assert call["status"] == "failed"
    if capabilities:
        assert call["content"][0] == {"type": "terminal", "terminalId": "terminal-1"}
    else:
        assert "half of it" in call["content"][0]["content"]["text"]
    crow.prompt("what did it say?")
    assert told(crow) == "half of it\n[Interrupted by the user before it was done.]"
    crow.close()
    again = open_editor(folder=crow.folder, capabilities=capabilities)
    again.load_session(crow.session_id)
    [call] = again.tool_calls().values()
    assert "half of it" in call["content"][0]["content"]["text"]
