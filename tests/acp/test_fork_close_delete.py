"""Copies of sessions, and the ways in which a session ends."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.editor import Editor, chose
from tests.support.histories import assert_valid, said
from tests.support.scripts import DONE, call, reply, run

HELLO = '[[reply]]\nrepeat = true\nevents = [{ text = "Hello there." }]'
HANGING = '[[reply]]\nwhen = "hang"\nevents = [{ text = "Once" }, { wait = 60 }]\n' + HELLO


def params(crow: Editor, session: str) -> dict[str, Any]:
    return {"sessionId": session, "cwd": str(crow.workspace), "mcpServers": []}


def listed(crow: Editor) -> set[str]:
    return {entry["sessionId"] for entry in crow.request("session/list")["sessions"]}


# --- fork


@pytest.mark.rule("R57")
def test_a_fork_goes_its_own_way_from_the_same_past(open_editor):
    crow = open_editor(script=HELLO)
    source = crow.new_session()
    crow.prompt("My name is Ada.")
    answer = crow.request("session/fork", params(crow, source))
    copy = answer["sessionId"]
    assert copy != source
    assert answer["modes"]["currentModeId"] == "ask"
    assert answer["configOptions"]
    assert crow.updates_of(copy) == []
    crow.prompt("in the copy", session=copy)
    assert said(crow.model_requests()[-1]["messages"], "user") == ["My name is Ada.", "in the copy"]
    crow.prompt("in the source", session=source)
    assert said(crow.model_requests()[-1]["messages"], "user") == ["My name is Ada.", "in the source"]
    assert listed(crow) == {source, copy}


@pytest.mark.rule("R57")
def test_a_fork_in_a_turn_has_what_was_said_by_then_and_leaves_the_turn_alone(open_editor):
    crow = open_editor(script=HANGING)
    source = crow.new_session()
    prompt = crow.start_prompt("hang on")
    crow.wait_for_text("Once")
    copy = crow.request("session/fork", params(crow, source))["sessionId"]
    assert crow.prompt("and now?", session=copy) == {"stopReason": "end_turn"}
    messages = crow.model_requests()[-1]["messages"]
    assert_valid(messages)
    assert said(messages, "user")[0] == "hang on"
    assert said(messages, "assistant")[0] == "Once"
    assert not prompt.done
    crow.cancel(source)
    assert prompt.answer() == {"stopReason": "cancelled"}


@pytest.mark.rule("R57")
def test_a_copy_of_a_running_call_has_it_settled(open_editor):
    crow = open_editor(script=reply(run("sleep 1000"), when="go") + DONE, permit=lambda _: chose("once"))
    source = crow.new_session()
    prompt = crow.start_prompt("go")
    crow.wait_until(lambda: crow.tool_calls(source).get("t1-c1", {}).get("status") == "in_progress", "the command")
    copy = crow.request("session/fork", params(crow, source))["sessionId"]
    crow.load_session(copy)
    assert crow.the_call()["status"] == "failed"
    crow.cancel(source)
    prompt.answer()
    assert crow.tool_calls(source)["t1-c1"]["status"] == "failed"


# --- close


@pytest.mark.rule("R49")
def test_a_closed_session_stays_listed_and_can_be_loaded(open_editor):
    crow = open_editor(script=HELLO)
    session = crow.new_session()
    crow.prompt("hi")
    assert crow.request("session/close", {"sessionId": session}) == {}
    assert listed(crow) == {session}
    assert crow.start_prompt("hi").error().code == -32002
    crow.load_session(session)
    assert crow.prompt("hi again") == {"stopReason": "end_turn"}


@pytest.mark.rule("R49")
def test_closing_in_a_turn_cancels_it_and_ends_its_command(open_editor):
    crow = open_editor(script=reply(run("echo $$ > pid; exec sleep 1000")) + DONE, permit=lambda _: chose("once"))
    session = crow.new_session()
    prompt = crow.start_prompt("go")
    written = crow.workspace / "pid"
    crow.wait_until(lambda: crow.tool_calls().get("t1-c1", {}).get("status") == "in_progress", "the command")
    crow.request("session/close", {"sessionId": session})
    assert prompt.answer() == {"stopReason": "cancelled"}
    assert not written.exists() or not written.read_text() or not _lives(int(written.read_text()))
    other = open_editor(folder=crow.folder)
    other.load_session(session)
    assert other.the_call()["status"] == "failed"


def _lives(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}") and "sleep" in Path(f"/proc/{pid}/cmdline").read_text()


@pytest.mark.rule("R49")
@pytest.mark.parametrize("session", ["no such", ""])
def test_what_is_not_open_cannot_be_closed(open_editor, session):
    crow = open_editor(script=HELLO)
    error = crow.start("session/close", {"sessionId": session}).error()
    assert (error.code, error.data) == (-32002, {"uri": session})


# --- delete


@pytest.fixture
def killed_with_outputs(open_editor: Any, tmp_path: Path) -> tuple[Any, str, Path]:
    """A session whose long output a killed Crow has left, and how to open the next one."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()

    def start(**options: Any) -> Editor:
        return open_editor(
            folder=tmp_path / "shared",
            permit=lambda request: chose("once"),
            environment={"TMPDIR": str(temporary)},
            **options,
        )

    crow = start(script=reply(run("seq 100000")) + DONE)
    session = crow.new_session()
    crow.prompt("count")
    crow.signal(signal.SIGKILL)
    crow.exit_status()
    (output,) = temporary.glob(f"crow-{session}/*.txt")
    return start, session, output


def test_outputs_go_with_a_session_that_is_deleted(killed_with_outputs):
    start, session, output = killed_with_outputs
    start().request("session/delete", {"sessionId": session})
    assert not output.parent.exists()


def test_outputs_that_are_gone_after_a_load_are_said_to_be(killed_with_outputs):
    start, session, output = killed_with_outputs
    crow = start(script=reply(call("read", path=str(output))) + DONE)
    crow.load_session(session)
    assert not output.parent.exists()
    crow.prompt("look it up")
    messages = str(crow.model_requests()[-1]["messages"])
    assert f"{output} does not exist. Command output is kept until the session closes" in messages


def test_outputs_of_killed_sessions_are_swept_when_any_session_is_opened(killed_with_outputs):
    start, _, output = killed_with_outputs
    os.utime(output.parent, (1, 1))
    crow = start()
    crow.new_session()
    crow.wait_until(lambda: not output.parent.exists(), "the sweep")


@pytest.mark.rule("R56")
def test_a_deleted_session_is_gone_for_good(open_editor):
    crow = open_editor(script=HELLO)
    session = crow.new_session()
    crow.prompt("hi")
    assert crow.request("session/delete", {"sessionId": session}) == {}
    assert listed(crow) == set()
    assert crow.start_prompt("hi").error().code == -32002
    assert crow.start("session/load", params(crow, session)).error().code == -32002
    assert crow.request("session/delete", {"sessionId": session}) == {}


@pytest.mark.rule("R56")
def test_deleting_what_was_never_there_succeeds(open_editor):
    crow = open_editor(script=HELLO)
    assert crow.request("session/delete", {"sessionId": "no such"}) == {}


@pytest.mark.rule("R56", "R49")
def test_deleting_in_a_turn_cancels_it_first(open_editor):
    crow = open_editor(script=HANGING)
    session = crow.new_session()
    prompt = crow.start_prompt("hang")
    crow.wait_for_text("Once")
    assert crow.request("session/delete", {"sessionId": session}) == {}
    assert prompt.answer() == {"stopReason": "cancelled"}
    assert listed(crow) == set()


@pytest.mark.rule("R56")
def test_a_session_whose_turn_runs_in_another_process_is_not_deleted(open_editor):
    crow = open_editor(script=HANGING)
    session = crow.new_session()
    prompt = crow.start_prompt("hang")
    crow.wait_for_text("Once")
    other = open_editor(folder=crow.folder)
    assert other.start("session/delete", {"sessionId": session}).error().code == -32600
    crow.cancel()
    prompt.answer()
    assert listed(crow) == {session}
