"""What a client offers decides who does the work, and nothing else: the outcome is the same with every client."""

from typing import Any

import pytest

from tests.support.editor import FILES, TERMINAL, ErrorAnswer, Json, chose
from tests.support.patience import eventually
from tests.support.scripts import DONE, call, edit, reply, run
from tests.support.terminals import processes_of
from tests.support.zed import Zed

WORK = reply(call("read", path="a.py")) + reply(edit("a.py", "one", "1")) + reply(run("cat a.py; exit 3")) + DONE
READS, WRITES = {"fs/read_text_file"}, {"fs/write_text_file"}
RUNS = {"terminal/create", "terminal/wait_for_exit", "terminal/output", "terminal/release"}


def work(open_editor: Any, capabilities: Json | None, **options: Any) -> Zed:
    """A file is read and edited and a command is run, with a client of these capabilities."""
    zed = open_editor(Zed, script=WORK, capabilities=capabilities, permit=lambda request: chose("once"), **options)
    (zed.workspace / "a.py").write_text("one\n")
    zed.new_session()
    assert zed.prompt("go") == {"stopReason": "end_turn"}
    return zed


def asked_for(zed: Zed) -> set[str]:
    """The methods of the client that were used, apart from the question for permission."""
    methods = {message["method"] for message in zed.received if "method" in message and "id" in message}
    return methods - {"session/request_permission"}


@pytest.mark.rule("R14", "R20", "R109", "R120", "R122")
@pytest.mark.parametrize(
    ("capabilities", "used"),
    [
        (None, set()),
        ({}, set()),
        ({"fs": None, "terminal": None}, set()),
        ({"fs": {}, "terminal": False}, set()),
        (FILES, READS | WRITES),
        ({"fs": {"readTextFile": True}}, READS),
        ({"fs": {"writeTextFile": True, "readTextFile": False}}, WRITES),
        (TERMINAL, RUNS),
        (FILES | TERMINAL, READS | WRITES | RUNS),
    ],
)
def test_only_what_is_offered_is_used_and_the_outcome_is_the_same(open_editor, capabilities, used):
    zed = work(open_editor, capabilities)
    assert asked_for(zed) == used
    assert (zed.workspace / "a.py").read_text() == "1\n"
    assert [call["status"] for call in zed.thread.calls.values()] == ["completed", "completed", "failed"]
    results = [message["text"] for message in zed.model_requests()[-1]["messages"] if message["role"] == "tool"]
    assert results == ["     1\tone", "Edited a.py (+1 −1).", "1\n[exit code 3]"]  # noqa: RUF001 -- a real minus sign
    assert [request["toolCall"]["title"] for request in zed.permissions] == ["Edit a.py", "cat a.py; exit 3"]


@pytest.mark.rule("R109")
def test_commands_stay_on_this_machine_if_the_user_wants_that(open_editor):
    zed = work(open_editor, FILES | TERMINAL, config="[terminal]\nuse_client = false\n")
    assert asked_for(zed) == READS | WRITES
    assert zed.thread.calls["t1-c3"]["status"] == "failed"


@pytest.mark.rule("R21", "R129")
@pytest.mark.parametrize("elicitation", [None, {}, {"form": None}, {"url": {}}])
def test_a_question_is_a_form_only_if_the_client_says_that_it_has_forms(open_editor, elicitation):
    crow = open_editor(
        Zed,
        script=reply(call("ask", question="Which?", options=["red", "blue"])) + DONE,
        capabilities={"elicitation": elicitation},
    )
    crow.new_session()
    assert crow.prompt("go")["stopReason"] == "end_turn"
    assert asked_for(crow) == set()
    assert crow.permissions == []
    assert crow.text() == "Which?\n1. red\n2. blue"


@pytest.mark.rule("R119")
def test_a_client_that_offers_a_terminal_and_has_none(open_editor):
    """A wrong offer costs nothing: the command runs on this machine."""
    refusal = {"terminal/create": lambda params: ErrorAnswer(-32601, "Method not found")}
    zed = work(open_editor, FILES | TERMINAL, answers=refusal)
    assert asked_for(zed) == READS | WRITES | {"terminal/create"}
    assert "exit 3" in zed.thread.calls["t1-c3"]["content"][0]["content"]["text"]
    assert "The editor has no terminal" in zed.text()


@pytest.mark.rule("R68", "R69", "R70")
@pytest.mark.parametrize("capabilities", [{}, TERMINAL], ids=["here", "in the client"])
def test_a_cancelled_command_is_gone_whoever_runs_it(open_editor, capabilities):
    script = reply(run("echo $$ > pid; sleep 1000 & sleep 1000")) + DONE
    zed = open_editor(Zed, script=script, capabilities=capabilities, permit=lambda request: chose("once"))
    zed.new_session()
    prompt = zed.start_prompt("go")
    zed.wait_until(lambda: any(call["status"] == "in_progress" for call in zed.thread.calls.values()), "the start")
    process = _written(zed)
    zed.cancel()
    assert prompt.answer() == {"stopReason": "cancelled"}
    eventually(lambda: processes_of(process) == [])


def _written(zed: Zed) -> int:
    """The process id that the command wrote when it began."""
    path = zed.workspace / "pid"
    eventually(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())
