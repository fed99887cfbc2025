"""Sessions that live in one process and are joined from others: real processes, each with its own editor."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from crow.store.owners import socket_of
from tests.support.editor import NOTICES, Editor, Json, Later, chose
from tests.support.patience import DEADLINE, eventually
from tests.support.scripts import DONE, call, reply, run, say

GATE = "touch began; while [ ! -e go ]; do sleep 0.02; done; echo passed"
"""A command that waits until the test lets it go."""


class Editors:
    """Editors with one home and one workspace, each with an agent of its own."""

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


def once(request: Json) -> Json:
    return chose("once")


def go(editor: Editor) -> None:
    (editor.workspace / "go").touch()


def has_begun(editor: Editor) -> None:
    eventually((editor.workspace / "began").exists, "the command has begun")


def row(editor: Editor, session: str) -> tuple[str, int, int]:
    with sqlite3.connect(editor.home / "sessions.db") as connection:
        found = connection.execute("SELECT owner, epoch, running FROM sessions WHERE id = ?", (session,)).fetchone()
    return found


def socket_at(editor: Editor, session: str) -> str:
    """Where the process listens in which the session lives, once it does."""
    path = socket_of(str(editor.home / "owners"), row(editor, session)[0])
    eventually(lambda: os.path.exists(path), "the socket")
    return path


def test_a_session_that_lives_elsewhere_is_joined_and_both_see_the_same(editors):
    first = editors.start("first", reply(say("One.")) + reply(say("Two.")) + DONE)
    session = first.new_session()
    first.prompt("hello")
    second = editors.start("second")
    second.load_session(session)
    assert second.text() == "One."
    assert second.prompt("and now?") == {"stopReason": "end_turn"}
    assert second.text() == "One.Two."
    first.wait_for_text("One.Two.")
    said = [update["content"]["text"] for update in first.updates if update["sessionUpdate"] == "user_message_chunk"]
    assert said == ["and now?"]
    assert row(first, session)[0].startswith(f"{first.process.pid}-")
    assert row(first, session)[1] == 1, "nobody else claimed it"
    assert second.close() == 0
    assert first.prompt("once more") == {"stopReason": "end_turn"}
    assert first.close() == 0


def test_a_question_is_answered_where_it_was_not_asked_first(editors):
    release = threading.Event()
    first = editors.start(
        "first",
        reply(call("write", path="a.txt", content="written\n")) + DONE,
        permit=lambda _: Later(lambda: release.wait(DEADLINE) and chose("reject")),
    )
    session = first.new_session()
    turn = first.start_prompt("write it")
    first.wait_for_call("session/request_permission")
    second = editors.start("second", permit=once)
    second.load_session(session)
    assert turn.answer() == {"stopReason": "end_turn"}
    assert (first.workspace / "a.txt").read_text() == "written\n"
    first.wait_for_call("$/cancel_request")
    assert any("second" in notice for notice in first.notices)
    assert second.the_call()["status"] == "completed"
    release.set()
    second.close()
    first.close()
