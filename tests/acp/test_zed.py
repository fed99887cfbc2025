"""Whole conversations with an editor that behaves as Zed does, and finds nothing to complain of.

See `tests/support/zed.py` for what it demands. That it does complain is shown at the end of this file.
"""

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.editor import Json, chose
from tests.support.scripts import DONE, call, edit, reply, run
from tests.support.terminals import Terminals, wait_until_gone
from tests.support.zed import Thread, Zed


@pytest.fixture
def open_zed(open_editor: Any) -> Callable[..., Zed]:
    """An editor with a session in it; the person allows what is asked, if the test does not say otherwise."""

    def start(script: str, *, answer: str = "once", **options: Any) -> Zed:
        zed = open_editor(Zed, script=script + DONE, permit=lambda request: chose(answer), **options)
        zed.new_session()
        return zed

    return start


def told(zed: Zed) -> list[str]:
    """The results that the model has been given."""
    return [message["text"] for message in zed.model_requests()[-1]["messages"] if message["role"] == "tool"]


def methods(zed: Zed) -> list[str]:
    """What Crow asked of the editor, in order. A command's output may be looked at while it runs: that is left out."""
    asked = [message for message in zed.received if "method" in message and "id" in message]
    answers = {entry.message["id"]: entry.message for entry in zed.conversation if "result" in entry.message}
    wanted = (
        message["method"]
        for message in asked
        if message["method"] != "terminal/output" or "exitStatus" in answers[message["id"]]["result"]
    )
    return [method for method, _ in itertools.groupby(wanted)]  # a look may find that it has just ended


def diffs(content: list[Json]) -> list[Json]:
    return [item for item in content if item["type"] == "diff"]


# --- files


@pytest.mark.rule("R95", "R103", "R121", "R122")
def test_an_edit_is_shown_asked_about_and_made_in_the_buffer(open_zed):
    zed = open_zed(reply(edit("a.py", "two", "2")))
    path = zed.workspace / "a.py"
    path.write_text("one\ntwo\n")
    assert zed.prompt("change it") == {"stopReason": "end_turn"}
    assert path.read_text() == "one\n2\n"
    [(id, shown)] = zed.thread.calls.items()
    change = {"type": "diff", "path": str(path), "oldText": "one\ntwo\n", "newText": "one\n2\n"}
    assert diffs(zed.permissions[0]["toolCall"]["content"]) == [change]
    assert zed.thread.shown(id) == [change]
    assert (zed.thread.shown_title(id), shown["kind"], shown["status"]) == (
        "Edit a.py +1 −1",  # noqa: RUF001 -- a minus sign
        "edit",
        "completed",
    )
    assert methods(zed)[-4:] == [
        "session/request_permission",
        "fs/read_text_file",  # the person may have typed meanwhile
        "fs/write_text_file",
        "fs/read_text_file",  # the editor may have formatted it
    ]


@pytest.mark.rule("R105")
def test_a_rejected_edit_changes_nothing_and_is_told_to_the_model(open_zed):
    zed = open_zed(reply(edit("a.py", "two", "2")), answer="reject")
    path = zed.workspace / "a.py"
    path.write_text("one\ntwo\n")
    assert zed.prompt("change it") == {"stopReason": "end_turn"}
    assert path.read_text() == "one\ntwo\n"
    assert "fs/write_text_file" not in methods(zed)
    [shown] = zed.thread.calls.values()
    assert shown["status"] == "rejected"
    assert told(zed) == ["Not done: permission was asked for, and refused."]


@pytest.mark.rule("R93", "R122")
def test_a_new_file_in_a_new_folder(open_zed):
    zed = open_zed(reply(call("write", path="src/new/a.py", content="one\n")))
    assert zed.prompt("write it") == {"stopReason": "end_turn"}
    path = zed.workspace / "src/new/a.py"
    assert path.read_text() == "one\n"
    [id] = zed.thread.calls
    [change] = zed.thread.shown(id)
    assert change.get("oldText") is None
    assert change["newText"] == "one\n"
    assert "fs/write_text_file" in methods(zed)


@pytest.mark.rule("R121", "R122")
def test_a_file_with_windows_line_ends_keeps_them(open_zed):
    """Its buffer has line feeds only, so what the editor shows is not what is on disk."""
    zed = open_zed(reply(call("read", path="a.txt")) + reply(edit("a.txt", "two", "2")))
    path = zed.workspace / "a.txt"
    path.write_bytes(b"one\r\ntwo\r\nthree\r\n")
    assert zed.prompt("change it") == {"stopReason": "end_turn"}
    assert path.read_bytes() == b"one\r\n2\r\nthree\r\n"


@pytest.mark.rule("R121")
def test_what_format_on_save_made_of_a_text_is_known_to_the_next_edit(open_zed):
    zed = open_zed(reply(edit("a.py", "two", "2   ")) + reply(edit("a.py", "2\nthree", "2\n3  ")))
    zed.buffers.format = lambda text: re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    path = zed.workspace / "a.py"
    path.write_text("one\ntwo\nthree\n")
    assert zed.prompt("change it") == {"stopReason": "end_turn"}
    assert path.read_text() == "one\n2\n3\n"
    first, second = told(zed)
    assert "saved" in first
    assert "saved" in second
    first_call, second_call = zed.thread.calls.values()
    assert first_call["content"][0]["newText"] == "one\n2\nthree\n"
    assert (second_call["content"][0]["oldText"], second_call["content"][0]["newText"]) == (
        "one\n2\nthree\n",
        "one\n2\n3\n",
    )


@pytest.mark.rule("R121")
def test_unsaved_text_of_the_person_is_what_is_changed(open_zed):
    zed = open_zed(reply(edit("a.py", "two", "2")))
    path = zed.workspace / "a.py"
    path.write_text("one\ntwo\n")
    zed.buffers.typed(str(path), lambda text: text + "typed and not saved\n")
    assert zed.prompt("change it") == {"stopReason": "end_turn"}
    assert path.read_text() == "one\n2\ntyped and not saved\n"


@pytest.mark.rule("R124")
def test_outside_the_project_the_editor_refuses_and_the_disk_is_used(open_zed, tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text("one\n")
    zed = open_zed(reply(call("read", path=str(outside))) + reply(edit(str(outside), "one", "two")))
    assert zed.prompt("change it") == {"stopReason": "end_turn"}
    assert outside.read_text() == "two\n"
    asked = [request["toolCall"]["title"] for request in zed.permissions]
    assert asked == [f"Read {outside}", f"Read {outside} before changing it", f"Edit {outside}"]


# --- commands


@pytest.mark.rule("R109", "R112", "R116", "R117", "R118")
@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        ("echo out; echo err >&2", "completed", "out\nerr\n[exit code 0]"),
        ("echo out; exit 3", "failed", "out\n[exit code 3]"),
        ("echo out; kill -9 $$", "failed", "out\n[killed by SIGKILL]"),
        ("true", "completed", "(no output)\n[exit code 0]"),
        ("read answer || echo nobody is there", "completed", "nobody is there\n[exit code 0]"),
    ],
)
def test_a_command_runs_in_the_editors_terminal(open_zed, command, status, words):
    zed = open_zed(reply(run(command)))
    assert zed.prompt("run it") == {"stopReason": "end_turn"}
    [(id, shown)] = zed.thread.calls.items()
    assert (shown["kind"], shown["status"]) == ("execute", status)
    assert zed.thread.shown(id) == [{"type": "terminal", "terminalId": "terminal-1"}]
    assert command in zed.thread.shown_title(id)
    assert told(zed) == [words]
    assert methods(zed)[-4:] == ["terminal/create", "terminal/wait_for_exit", "terminal/output", "terminal/release"]


@pytest.mark.rule("R115", "R116", "R118")
def test_a_command_that_takes_too_long_is_killed_and_what_it_printed_is_kept(open_zed):
    zed = open_zed(reply(run("echo begun; sleep 1000", timeout=1)))
    assert zed.prompt("run it") == {"stopReason": "end_turn"}
    [(id, shown)] = zed.thread.calls.items()
    assert shown["status"] == "failed"
    terminal, words = zed.thread.shown(id)
    assert terminal == {"type": "terminal", "terminalId": "terminal-1"}
    assert "timed out after 1 s" in words["content"]["text"]
    assert told(zed) == ["begun\n[timed out after 1 s]"]
    assert methods(zed)[-4:] == ["terminal/wait_for_exit", "terminal/kill", "terminal/output", "terminal/release"]


@pytest.mark.rule("R68", "R69", "R70", "R116")
def test_a_cancel_in_a_running_command(open_zed):
    zed = open_zed(reply(run("sleep 1000 & sleep 1000")))
    prompt = zed.start_prompt("run it")
    zed.wait_for_call("terminal/wait_for_exit")
    zed.cancel()
    assert prompt.answer() == {"stopReason": "cancelled"}
    zed.wait_for_call("terminal/release")
    zed.wait_until(lambda: zed.terminals.released == ["terminal-1"], "the release")
    [shown] = zed.thread.calls.values()
    assert shown["status"] == "failed"
    assert zed.terminals.leftovers() == []


@pytest.mark.rule("R72", "R149")
def test_a_cancel_withdraws_the_wait_for_the_exit(open_zed):
    """Zed answers a request that is withdrawn; nothing is left open on either side."""
    zed = open_zed(reply(run("sleep 1000")))
    prompt = zed.start_prompt("run it")
    waiting = zed.wait_for_call("terminal/wait_for_exit")
    zed.cancel()
    assert prompt.answer() == {"stopReason": "cancelled"}
    zed.wait_until(
        lambda: any(entry.message.get("id") == waiting["id"] for entry in zed.conversation if entry.sender == "editor"),
        "the answer to the wait",
    )


@pytest.mark.rule("R116")
def test_a_command_in_the_background_is_read_and_stopped(open_zed):
    script = (
        reply(run("echo ready; sleep 1000", background=True))
        + reply(call("terminal_read", id="b1"))
        + reply(call("terminal_stop", id="b1"))
    )
    zed = open_zed(script)
    assert zed.prompt("serve it") == {"stopReason": "end_turn"}
    begun, read, stopped = told(zed)
    assert " b1" in begun
    assert "ready" in begun
    assert read.startswith("ready")
    assert "still running" in read
    assert "SIGKILL" in stopped
    assert [call["status"] for call in zed.thread.calls.values()] == ["completed"] * 3
    zed.wait_until(lambda: zed.terminals.released == ["terminal-1"], "the release")


@pytest.mark.rule("R49", "R116")
def test_closing_the_session_ends_a_command_in_the_background(open_zed):
    zed = open_zed(reply(run("echo $$ > pid; sleep 1000", background=True)))
    assert zed.prompt("serve it") == {"stopReason": "end_turn"}
    process = int((zed.workspace / "pid").read_text())
    assert zed.terminals.released == []
    zed.request("session/close", {"sessionId": zed.session_id})
    zed.wait_until(lambda: zed.terminals.released == ["terminal-1"], "the release")
    wait_until_gone(process)


@pytest.mark.rule("R111")
def test_a_command_that_prints_more_than_the_editor_keeps(open_zed):
    zed = open_zed(reply(run("seq 1 200000; echo the end")))
    assert zed.prompt("run it") == {"stopReason": "end_turn"}
    [words] = told(zed)
    assert len(words) < 40_000
    assert words.startswith("1\n2\n3\n")
    assert "MB left out here" in words
    assert words.endswith("the end\n[exit code 0]")


# --- the rest


@pytest.mark.rule("R125")
def test_a_plan_is_shown_and_ticked_off(open_zed):
    steps = [{"content": "look", "status": "in_progress", "priority": "high"}, {"content": "mend"}]
    ticked = [{"content": "look", "status": "completed", "priority": "high"}, {"content": "mend"}]
    zed = open_zed(reply(call("plan", entries=steps)) + reply(call("plan", entries=ticked)))
    assert zed.prompt("plan it") == {"stopReason": "end_turn"}
    assert [(entry["content"], entry["status"]) for entry in zed.thread.plan] == [
        ("look", "completed"),
        ("mend", "pending"),
    ]


@pytest.mark.rule("R129", "R134")
def test_a_question_is_a_form(open_zed):
    zed = open_zed(
        reply(call("ask", question="Which colour?", options=["red", "blue"])),
        answers={"elicitation/create": lambda params: {"action": "accept", "content": {"answer": "blue"}}},
    )
    assert zed.prompt("paint it") == {"stopReason": "end_turn"}
    assert told(zed) == ["The user answered: blue"]


@pytest.mark.rule("R88", "R100")
def test_several_calls_of_one_reply(open_zed):
    zed = open_zed(
        reply(
            call("read", path="a.py"),
            call("read", path="b.py"),
            edit("a.py", "one", "1"),
            run("cat a.py"),
            call("no_such_tool"),
        )
    )
    for name in ("a.py", "b.py"):
        (zed.workspace / name).write_text("one\n")
    assert zed.prompt("do it all") == {"stopReason": "end_turn"}
    statuses = [call["status"] for call in zed.thread.calls.values()]
    assert statuses == ["completed", "completed", "completed", "completed", "failed"]
    assert told(zed)[3] == "1\n[exit code 0]"


def test_a_new_prompt_after_a_cancel_is_taken_at_once(open_zed):
    """Zed cancels the turn itself when the person sends the next prompt, and waits for its end."""
    zed = open_zed(reply(run("sleep 1000"), when="first"))
    first = zed.start_prompt("first")
    zed.wait_for_call("terminal/wait_for_exit")
    zed.cancel()
    assert zed.prompt("second") == {"stopReason": "end_turn"}
    assert first.answer() == {"stopReason": "cancelled"}


# --- the editor is really strict


UPDATE = {"sessionUpdate": "tool_call_update", "toolCallId": "c1"}
CALL = {"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "Run"}
SHOWS = {"content": [{"type": "terminal", "terminalId": "terminal-1"}]}


@pytest.fixture
def terminals(tmp_path: Path):
    terminals = Terminals({"PATH": "/usr/bin:/bin"})
    terminals.create({"command": "sleep", "args": ["1000"], "cwd": str(tmp_path), "outputByteLimit": 100})
    yield terminals
    terminals.end()


@pytest.mark.parametrize(
    ("updates", "complaint"),
    [
        ([UPDATE], "Tool call not found"),
        ([CALL, UPDATE | {"content": [{"type": "terminal", "terminalId": "terminal-9"}]}], "not there"),
        ([CALL, UPDATE | SHOWS, "release", UPDATE | SHOWS], "not there"),
        ([CALL, UPDATE | {"status": "completed"}, UPDATE | {"status": "in_progress"}], "went from completed"),
        ([CALL | {"title": "two\nlines"}], "several lines"),
    ],
)
def test_it_complains_of_updates_that_zed_would_not_show(terminals, updates, complaint):
    thread, complaints = Thread(terminals), []
    for update in updates:
        if update == "release":
            terminals.release("terminal-1")
        else:
            complaints += thread.take(update)
    assert len(complaints) == 1
    assert complaint in complaints[0]


def test_it_complains_of_a_permission_for_an_unknown_call_and_of_calls_left_open(terminals):
    thread = Thread(terminals)
    assert list(thread.ask({"toolCallId": "c1", "title": "Run"})) == ["permission asked for an unknown call c1"]
    assert list(thread.take(CALL)) == []
    assert list(thread.turn_ended("end_turn")) == ["c1 is still pending at the end of the turn (end_turn)"]


def test_content_is_replaced_whole(terminals):
    thread = Thread(terminals)
    text = {"type": "content", "content": {"type": "text", "text": "one"}}
    assert list(thread.take(CALL | {"content": [text, text]})) == []
    assert list(thread.take(UPDATE | SHOWS)) == []
    assert thread.shown("c1") == SHOWS["content"]


def test_it_complains_of_terminals_that_are_not_there_or_not_let_go(terminals):
    assert terminals.leftovers() == ["terminal-1 was never released", "processes of terminal-1 are still there"]
    terminals.release("terminal-1")
    assert terminals.leftovers() == []
    with pytest.raises(Exception, match="terminal-1"):
        terminals.release("terminal-1")
    assert terminals.complaints == ["terminal/release of terminal-1, which was released"]
