"""A disk that is full in the middle of everything: told to the person, nothing lost, and work goes on afterwards."""

import resource
from typing import Any

import pytest

from tests.support.editor import NOTICES, Editor
from tests.support.histories import said

HELLO = '[[reply]]\nrepeat = true\nevents = [{ text = "Hello there." }]'
HANGING = '[[reply]]\nrepeat = true\nevents = [{ text = "Once" }, { wait = 60 }]'


def fill_disk(crow: Editor) -> None:
    """No file of Crow's can grow any more."""
    sizes = [path.stat().st_size for path in crow.home.glob("sessions.db*")]
    resource.prlimit(crow.process.pid, resource.RLIMIT_FSIZE, (max(sizes), resource.RLIM_INFINITY))


def make_room(crow: Editor) -> None:
    resource.prlimit(crow.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


@pytest.fixture
def full(open_editor: Any) -> Editor:
    crow = open_editor(script=HELLO, capabilities=NOTICES)
    crow.new_session()
    crow.prompt("one")
    fill_disk(crow)
    return crow


@pytest.mark.rule("R62")
def test_a_turn_that_cannot_be_stored_fails_with_the_reason(full):
    error = full.start_prompt("x" * 100_000).error()
    assert error.code == -32603
    assert str(full.home) in error.message
    assert error.data == {"details": error.message}


def test_once_there_is_room_again_the_session_goes_on_and_nothing_is_missing(full, open_editor):
    full.start_prompt("x" * 100_000).error()
    make_room(full)
    assert full.prompt("three") == {"stopReason": "end_turn"}
    full.close()
    other = open_editor(folder=full.folder)
    other.load_session(full.session_id)
    prompts = [u["content"]["text"] for u in other.updates if u["sessionUpdate"] == "user_message_chunk"]
    assert prompts == ["one", "x" * 100_000, "three"]
    other.prompt("four")
    assert len(said(other.model_requests()[-1]["messages"], "user")) in (3, 4)


def test_a_cancelled_turn_is_answered_as_cancelled_all_the_same(open_editor):
    crow = open_editor(script=HANGING, capabilities=NOTICES)
    crow.new_session()
    prompt = crow.start_prompt("go")
    crow.wait_for_text("Once")
    fill_disk(crow)
    crow.cancel()
    assert prompt.answer() == {"stopReason": "cancelled"}
