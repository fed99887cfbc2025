"""A disk that is full in the middle of everything: told to the person, nothing lost, and work goes on afterwards."""

import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from crow.events import SentText, UserSaid
from tests.support.disks import fill_up
from tests.support.editor import NOTICES, Editor
from tests.support.histories import said
from tests.support.store import with_store

SLOW = 300.0
"""Seconds for what takes a moment each time 33 MiB are handled, on a machine that has much else to do."""
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


@pytest.fixture
def locked(open_editor: Any) -> Iterator[tuple[Editor, sqlite3.Connection]]:
    """A conversation whose store another program has locked."""
    crow = open_editor(script=HELLO, capabilities=NOTICES, environment={"CROW_PATIENCE": "1"})
    crow.new_session()
    crow.prompt("one")
    with closing(sqlite3.connect(crow.home / "sessions.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield crow, other


def waits(crow: Editor) -> list[str]:
    return [notice for notice in crow.notices if notice.startswith("Waiting for the session to be stored")]


def test_a_wait_for_the_store_is_named_and_the_turn_goes_on_after_it(locked):
    crow, other = locked
    turn = crow.start_prompt("two")
    crow.wait_until(lambda: waits(crow) != [], "a word of the wait")
    other.execute("ROLLBACK")
    assert turn.answer() == {"stopReason": "end_turn"}


def test_a_list_does_not_wait_for_a_turn_that_waits_for_the_store(locked):
    crow, other = locked
    turn = crow.start_prompt("two")
    (entry,) = crow.request("session/list")["sessions"]
    assert entry["sessionId"] == crow.session_id
    assert not turn.done
    other.execute("ROLLBACK")
    assert turn.answer() == {"stopReason": "end_turn"}


def test_a_store_that_stays_locked_is_waited_for_once(locked):
    crow, _ = locked
    assert "another program has locked it" in crow.start_prompt("two").error().message
    assert waits(crow)
    assert waits(crow) == sorted(set(waits(crow)))  # the seconds are counted once


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


def on_small_disk(open_editor: Any, small_disk: Path) -> Editor:
    crow = open_editor(capabilities=NOTICES, environment={"CROW_HOME": str(small_disk)})
    (crow.folder / "script.toml").write_text(HELLO)
    (small_disk / "config.toml").write_text(
        f'model = "s/test"\n[providers.s]\ntype = "scripted"\nscript = "{crow.folder / "script.toml"}"\n'
    )
    return crow


def test_a_session_that_begins_on_a_full_disk_is_stored_once_there_is_room(open_editor, small_disk):
    crow = on_small_disk(open_editor, small_disk)
    fill_up(small_disk / "filler")
    crow.new_session()
    assert crow.prompt("one") == {"stopReason": "end_turn"}
    assert "the disk is full" in crow.notices[0]
    (small_disk / "filler").unlink()
    assert crow.prompt("two") == {"stopReason": "end_turn"}
    crow.close()
    events = with_store(small_disk, lambda store: store.events(crow.session_id))
    assert [event.sent for event in events if isinstance(event, UserSaid)] == [(SentText("one"),), (SentText("two"),)]


def test_what_is_acknowledged_once_there_is_room_survives_a_kill(open_editor, small_disk):
    crow = on_small_disk(open_editor, small_disk)
    fill_up(small_disk / "filler")
    crow.new_session()
    crow.prompt("one")
    (small_disk / "filler").unlink()
    assert crow.prompt("two") == {"stopReason": "end_turn"}
    crow.process.kill()
    events = with_store(small_disk, lambda store: store.events(crow.session_id))
    assert [event.sent for event in events if isinstance(event, UserSaid)] == [(SentText("one"),), (SentText("two"),)]


@pytest.mark.parametrize("number", [0, -1, -(2**31)])
def test_a_damaged_layout_number_costs_the_store_and_no_session(open_editor, number):
    first = open_editor(script=HELLO)
    first.new_session()
    first.prompt("one")
    first.close()
    with closing(sqlite3.connect(first.home / "sessions.db", isolation_level=None)) as store:
        store.execute(f"PRAGMA user_version = {number}")
    crow = open_editor(folder=first.folder, capabilities=NOTICES)
    crow.new_session()
    assert crow.prompt("two") == {"stopReason": "end_turn"}
    assert "it is damaged" in crow.notices[0]
    assert "it is damaged" in crow.start("session/list").error().message


def test_a_session_that_lives_is_joined_though_the_disk_is_full(open_editor, small_disk):
    owner = on_small_disk(open_editor, small_disk)
    session = owner.new_session()
    owner.prompt("one")
    fill_up(small_disk / "filler")
    other, late = (open_editor(environment={"CROW_HOME": str(small_disk)}) for _ in range(2))
    other.load_session(session, cwd=str(owner.workspace))
    assert other.text() == "Hello there."
    other.close()
    owner.close()
    request = {"sessionId": session, "cwd": str(owner.workspace), "mcpServers": []}
    assert "the disk is full" in late.start("session/load", request).error().message


def test_a_cancelled_turn_is_answered_as_cancelled_all_the_same(open_editor):
    crow = open_editor(script=HANGING, capabilities=NOTICES)
    crow.new_session()
    prompt = crow.start_prompt("go")
    crow.wait_for_text("Once")
    fill_disk(crow)
    crow.cancel()
    assert prompt.answer() == {"stopReason": "cancelled"}


def test_what_could_not_be_stored_when_the_editor_left_is_in_the_log(open_editor):
    crow = open_editor(script=HANGING, capabilities=NOTICES)
    crow.new_session()
    crow.start_prompt("go")
    crow.wait_for_text("Once")
    fill_disk(crow)
    assert crow.close() == 0
    assert f"{crow.session_id} (left) was not stored to its end: " in (crow.home / "log" / "crow.log").read_text()


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session/set_mode", {"modeId": "auto"}),
        ("session/set_config_option", {"configId": "mode", "value": "auto"}),
    ],
)
def test_a_mode_that_cannot_be_stored_is_not_in_force(full, open_editor, method, params):
    full.start_prompt("x" * 100_000).error()  # nothing can be stored before this is
    assert full.start(method, {"sessionId": full.session_id, **params}).error().code == -32603
    make_room(full)
    full.prompt("/mode")
    assert "Mode: `ask`" in full.text()
    full.close()
    other = open_editor(folder=full.folder)
    loaded = other.load_session(full.session_id)
    assert loaded["modes"]["currentModeId"] == "ask"


def test_a_prompt_of_any_size_is_stored_and_can_be_loaded(open_editor):
    crow = open_editor(script=HELLO, capabilities=NOTICES)
    crow.new_session()
    long = Random(1).randbytes(33 * 2**19).hex()
    assert crow.start_prompt(long).answer(SLOW) == {"stopReason": "max_tokens"}
    assert crow.start_prompt("/undo").answer(SLOW) == {"stopReason": "end_turn"}
    assert crow.prompt("and now") == {"stopReason": "end_turn"}
    again = open_editor(script=HELLO, folder=crow.folder)
    again.load_session(crow.session_id, method="session/resume")
    assert again.prompt("go on") == {"stopReason": "end_turn"}
    events = with_store(crow.home, lambda store: store.events(crow.session_id))
    prompts = [event.sent for event in events if isinstance(event, UserSaid)]
    assert prompts == [(SentText(text),) for text in (long, "and now", "go on")]


def test_a_session_that_lost_what_could_not_wait_can_be_loaded_as_it_is_stored(full):
    """More than the memory takes happened while the disk was full: the load that the error advises works."""
    for number in range(2):
        prompt = Random(number).randbytes(33 * 2**19).hex()
        turn = full.start_prompt(prompt)
        assert "Cannot save sessions" in turn.wait(SLOW)["error"]["message"]
    make_room(full)
    error = full.start_prompt("three").error()
    assert "was lost" in error.message
    assert "Load the session again" in error.message
    full.load_session(full.session_id, method="session/resume")
    assert full.prompt("/help") == {"stopReason": "end_turn"}
