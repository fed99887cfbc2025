"""What was stored is the same when it is read again; what cannot be read is never lost in silence."""

import json

import pytest

from crow.errors import StorageFailed
from crow.events import (
    CallPreviewed,
    CallRequested,
    CallSettled,
    FileBackedUp,
    TextDelta,
    ThoughtDelta,
    TurnEnded,
)
from crow.results import Location, TextBlock, ToolResult
from crow.store.records import Pending, events_of, row_of
from tests.support.databases import database
from tests.support.store import ONE_OF_EACH, every_event, say, with_store


def stored(*events, pieces=None):
    """The events as they come back when they were stored together, or in several pieces."""
    pending = Pending(1, 1, 0)
    for piece in pieces or [events]:
        pending.take(piece, 1000)
    return events_of(pending.rows, "s", pending.contents().__getitem__), pending.rows


def test_every_event_has_a_sample():
    assert {type(event) for event in ONE_OF_EACH} == every_event()


@pytest.mark.parametrize("event", [event for event in ONE_OF_EACH if event.stored], ids=lambda e: type(e).__name__)
def test_an_event_comes_back_as_it_was(event):
    row = row_of(event, 7, 1234)
    assert events_of([row], "s", dict(row.contents).__getitem__) == [event]
    assert (row.seq, row.time, row.version) == (7, 1234, 1)
    assert json.loads(row.body)["event"] == row.tag


def test_a_whole_session_comes_back_in_order(tmp_path):
    async def talk(store):
        session = await store.create("s", "/p", [])
        for event in ONE_OF_EACH:
            session.add(event)
        await session.store_all()
        return await store.events("s", former_texts=True), await store.events("s")

    whole, without_images = with_store(tmp_path, talk)
    expected = [event for event in ONE_OF_EACH if event.stored]
    preview = next(event for event in expected if isinstance(event, CallPreviewed))
    expected[expected.index(preview)] = CallPreviewed(preview.call_id, preview.title, preview.locations)
    assert whole == expected
    assert without_images == [event for event in expected if not isinstance(event, FileBackedUp)]


def test_a_file_name_that_is_no_utf8_comes_back_as_it_was():
    event = FileBackedUp("t1-c1", "/p/\udcff.txt", None)
    assert stored(event)[0] == [event]


# --- text


def test_text_that_was_said_at_once_is_one_record():
    events, rows = stored(
        *(TextDelta("m1", word) for word in "abc"), ThoughtDelta("m1", "d", "x"), TextDelta("m2", "e")
    )
    assert events == [TextDelta("m1", "abc"), ThoughtDelta("m1", "d", "x"), TextDelta("m2", "e")]
    assert len(rows) == 3


def test_text_that_was_stored_in_pieces_is_one_event_again():
    events, rows = stored(pieces=[[TextDelta("m1", "a"), TextDelta("m1", "b")], [TextDelta("m1", "c")]])
    assert events == [TextDelta("m1", "abc")]
    assert len(rows) == 2


def test_thoughts_of_two_providers_are_not_joined():
    thoughts = [ThoughtDelta("m1", "a", "one"), ThoughtDelta("m1", "b", "two")]
    assert stored(*thoughts)[0] == thoughts


def test_what_is_said_around_a_call_stays_around_it():
    around = [TextDelta("m1", "a"), CallRequested("c1", "read", "{}"), TextDelta("m1", "b")]
    assert stored(*around)[0] == around


# --- previews


def test_of_previews_the_last_is_stored_with_what_the_others_said():
    place = (Location("/p/a.py"),)
    request, result = CallRequested("c1", "edit", "{}"), CallSettled("c2", ToolResult(False, "no"))
    events, _ = stored(
        pieces=[
            [CallPreviewed("c1", "Edit", place), CallPreviewed("c2", "Run")],
            [CallPreviewed("c1", "", (), (TextBlock("new"),)), request, result],
        ]
    )
    assert events == [CallPreviewed("c1", "Edit", place), request, CallPreviewed("c2", "Run"), result]


def test_a_preview_of_a_call_that_never_came_is_not_stored():
    end = TurnEnded("t1", None)
    assert stored(CallPreviewed("c1", "Edit"), end, CallRequested("c1", "x", ""))[0] == [
        end,
        CallRequested("c1", "x", ""),
    ]


# --- what cannot be read


def change(home, statement):
    with database(home / "sessions.db") as connection:
        assert connection.execute(statement).rowcount == 1
    connection.close()


async def read(store):
    return await store.events("s")


@pytest.mark.parametrize(
    "edit",
    ["version = 2", "tag = 'dream_dreamt', body = '{\"event\":\"dream_dreamt\"}'"],
)
def test_a_record_of_a_newer_version_is_refused_in_words_unless_it_may_be_left_out(tmp_path, edit):
    with_store(tmp_path, lambda store: say(store, "s"))
    change(tmp_path, f"UPDATE records SET {edit} WHERE seq = 3")
    with pytest.raises(StorageFailed, match=r"newer .*: record 3") as failure:
        with_store(tmp_path, read)
    assert "update Crow" in failure.value.remedy
    change(tmp_path, "UPDATE records SET optional = 1 WHERE seq = 3")
    assert [type(event).__name__ for event in with_store(tmp_path, read)] == ["TurnStarted", "UserSaid", "TurnEnded"]


@pytest.mark.parametrize("body", ["{", "", "{}", '{"event":"text_delta"}', '{"event":"nothing"}', "[" * 100_000, "7"])
def test_a_damaged_record_is_named_and_other_sessions_load(tmp_path, body):
    async def two(store):
        await say(store, "s")
        await say(store, "other")

    with_store(tmp_path, two)
    change(tmp_path, f"UPDATE records SET body = '{body}' WHERE seq = 3 AND session = 1")
    with pytest.raises(StorageFailed, match=r"Session s .*record 3 \(\"text_delta\"\)"):
        with_store(tmp_path, read)
    assert len(with_store(tmp_path, lambda store: store.events("other"))) == 4


def test_a_field_that_a_later_crow_added_does_no_harm(tmp_path):
    with_store(tmp_path, lambda store: say(store, "s"))
    change(tmp_path, """UPDATE records SET body = json_set(body, '$.colour', 'red') WHERE seq = 3""")
    assert TextDelta("t1-m2", "HELLO") in with_store(tmp_path, read)


def test_what_is_passing_leaves_no_record(tmp_path):
    async def talk(store):
        session = await store.create("s", "/p", [])
        for event in ONE_OF_EACH:
            if not event.stored:
                session.add(event)
        await session.store_all(full=True)
        return await store.events("s", former_texts=True)

    assert with_store(tmp_path, talk) == []
