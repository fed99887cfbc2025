"""`_crow/inbox`: what all living sessions do, wherever they live, for a client that shows them in a list."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.editor import NOTICES, Editor, Json, Later, chose
from tests.support.patience import DEADLINE
from tests.support.scripts import DONE, call, reply, say


class Editors:
    """Editors with one home, each with an agent of its own."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack

    def start(self, name: str, script: str | None = None, **options: Any) -> Editor:
        options = {"capabilities": NOTICES, "client_info": {"name": name, "version": "1"}, **options}
        editor = Editor(self._folder, script=script, **options)
        self._stack.callback(editor.kill)
        return editor


@pytest.fixture
def editors(tmp_path: Path) -> Iterator[Editors]:
    with ExitStack() as stack:
        yield Editors(tmp_path, stack)


class Question:
    """The answer to a permission request, given when the test says so."""

    def __init__(self) -> None:
        self._answered = threading.Event()

    def __call__(self, request: Json) -> Later:
        return Later(lambda: self._answered.wait(DEADLINE) and chose("once"))

    def answer(self) -> None:
        self._answered.set()


def told(editor: Editor, session: str) -> list[Json]:
    """What the editor was told of a session, in order."""
    messages = [message["params"] for message in editor.received if message.get("method") == "_crow/inbox"]
    return [row for params in messages for row in params["sessions"] if row["sessionId"] == session]


def wait_for_state(editor: Editor, session: str, state: str) -> Json:
    def last() -> Json:
        return (told(editor, session) or [{}])[-1]

    editor.wait_until(lambda: last().get("state") == state, f"the state {state}")
    return last()


WRITES = reply(call("write", path="a.txt", content="written\n")) + DONE


def test_a_turn_is_seen_to_run_to_ask_and_to_end(editors):
    question = Question()
    crow = editors.start("zed", WRITES, permit=question)
    session = crow.new_session()
    [row] = crow.request("_crow/inbox")["sessions"]
    assert row | {"since": "", "updatedAt": "", "process": 0} == {
        "sessionId": session,
        "cwd": str(crow.workspace),
        "state": "idle",
        "since": "",
        "updatedAt": "",
        "process": 0,
    }
    prompt = crow.start_prompt("write the file")
    asks = wait_for_state(crow, session, "asks")
    assert (asks["asks"], asks["by"], asks["title"]) == (1, "zed", "write the file")
    question.answer()
    prompt.answer()
    idle = wait_for_state(crow, session, "idle")
    states = [row["state"] for row in told(crow, session)]
    assert [state for at, state in enumerate(states) if states[at - 1 : at] != [state]] == [
        "running",
        "asks",
        "running",
        "idle",
    ]
    assert not {"asks", "by"} & set(idle)
    assert asks["since"] < idle["since"] == idle["updatedAt"]
    crow.request("session/close", {"sessionId": session})
    assert "process" not in wait_for_state(crow, session, "saved")
    crow.close()


def test_sessions_of_other_processes_are_told_of_while_they_live(editors):
    question = Question()
    page = editors.start("page", WRITES)
    assert page.request("_crow/inbox") == {"sessions": []}
    other = editors.start("zed", permit=question)
    session = other.new_session()
    prompt = other.start_prompt("write the file")
    row = wait_for_state(page, session, "asks")
    assert (row["by"], row["title"], row["cwd"]) == ("zed", "write the file", str(other.workspace))
    assert page.request("session/status", {"sessionId": session})["_meta"]["crow"]["process"] == row["process"]
    question.answer()
    prompt.answer()
    wait_for_state(page, session, "idle")
    other.kill()
    wait_for_state(page, session, "saved")
    assert page.request("_crow/inbox") == {"sessions": []}
    page.close()


def test_who_asks_later_is_given_what_lives_elsewhere(editors):
    question = Question()
    owner = editors.start("zed", WRITES, permit=question)
    session = owner.new_session()
    owner.start_prompt("write the file")
    owner.wait_for_call("session/request_permission")
    page = editors.start("page")
    [row] = page.request("_crow/inbox")["sessions"]
    assert (row["sessionId"], row["state"], row["asks"]) == (session, "asks", 1)
    question.answer()
    wait_for_state(page, session, "idle")
    page.close()
    owner.close()


def test_a_session_that_another_process_goes_on_with_lives_there(editors):
    first = editors.start("first", DONE)
    session = first.new_session()
    first.prompt("hello")
    second = editors.start("second")
    second.load_session(session)
    page = editors.start("page")
    [row] = page.request("_crow/inbox")["sessions"]
    before = row["process"]
    first.kill()
    assert second.prompt("go on") == {"stopReason": "end_turn"}
    page.wait_until(lambda: any(row.get("process", before) != before for row in told(page, session)), "its new process")
    wait_for_state(page, session, "idle")
    page.close()
    second.close()


def test_a_deleted_session_is_told_of(editors):
    crow = editors.start("zed", reply(say("Hello.")) + DONE)
    session = crow.new_session()
    crow.prompt("hello")
    crow.request("_crow/inbox")
    watcher = editors.start("page")
    watcher.request("_crow/inbox")
    crow.request("session/delete", {"sessionId": session})
    for editor in (crow, watcher):
        wait_for_state(editor, session, "deleted")
    assert crow.request("_crow/inbox") == {"sessions": []}
    watcher.close()
    crow.close()


def test_a_client_that_does_not_ask_is_told_nothing(editors):
    crow = editors.start("zed", DONE)
    session = crow.new_session()
    other = editors.start("page")
    other.request("_crow/inbox")
    crow.prompt("hello")
    wait_for_state(other, session, "idle")
    assert told(crow, session) == []
    other.close()
    crow.close()
