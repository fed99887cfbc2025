"""A session's life in the store."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import contextmanager

import pytest

from crow.errors import SessionTaken, SessionUnknown, StorageFailed
from crow.events import (
    Before,
    CallSettled,
    CallStarted,
    CommandGiven,
    FileBackedUp,
    OptionChosen,
    SentText,
    TextDelta,
    TitleChanged,
    TurnEnded,
    TurnStarted,
)
from crow.results import ToolResult
from crow.session.journal import SessionJournal
from crow.store.database import Database
from crow.store.sessions import AT_ONCE, SessionRows
from crow.store.store import open_store
from tests.support.databases import database
from tests.support.patience import DEADLINE
from tests.support.recording import RecordingSink
from tests.support.store import say, turn, with_store, with_two


def test_what_was_kept_is_there_in_the_next_process(tmp_path):
    async def write(store):
        session = await store.create("s", "/p", ["/q", "/r"])
        assert session.id == "s"
        for event in turn("t1", "hello"):
            session.add(event)
        session.add(TitleChanged("Greeting"))
        await session.store_all()

    async def read(store):
        return await store.find("s"), await store.events("s")

    with_store(tmp_path, write)
    entry, events = with_store(tmp_path, read)
    assert (entry.id, entry.cwd, entry.roots, entry.title) == ("s", "/p", ("/q", "/r"), "Greeting")
    assert 1_600_000_000_000 < entry.created_at <= entry.updated_at
    assert events == [*turn("t1", "hello"), TitleChanged("Greeting")]


def test_the_files_are_for_their_owner_only_and_nothing_is_made_before_the_first_use(tmp_path):
    home = tmp_path / "new" / "home"

    async def talk(store):
        assert not home.exists()
        await say(store, "s")
        await store.create("open", "/p", [])
        return {path.name: stat.S_IMODE(path.stat().st_mode) for path in (home, *home.rglob("*"))}

    modes = with_store(home, talk)
    assert {"home", "owners", "sessions.db", "sessions.db-wal", "sessions.db-shm"} < set(modes)
    assert modes.pop("home") == modes.pop("owners") == 0o700
    assert set(modes.values()) == {0o600}


def test_an_unused_store_makes_nothing_and_starts_nothing(tmp_path):
    async def nothing(_):
        return None

    with_store(tmp_path / "home", nothing)
    assert not (tmp_path / "home").exists()


def test_sqlite_is_loaded_with_the_first_use(tmp_path):
    code = """
import asyncio, sys
from crow.session.journal import SessionJournal
from crow.store.store import open_store
async def main():
    store = open_store(sys.argv[1])
    print("sqlite3" in sys.modules)
    await store.create("s", "/p", [])
    print("sqlite3" in sys.modules)
    await store.close()
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == (["False", "True"], "")


def test_text_is_stored_within_a_second_without_being_asked_for(tmp_path):
    async def talk(store):
        session = await store.create("s", "/p", [])
        session.add(TextDelta("m1", "hello"))
        deadline = asyncio.get_running_loop().time() + DEADLINE
        while not count(tmp_path, "records"):
            await asyncio.sleep(0.02)
            assert asyncio.get_running_loop().time() < deadline, "never stored"

    with_store(tmp_path, talk)


def test_closing_stores_what_is_left(tmp_path):
    async def talk(store):
        for name in ("a", "b"):
            (await store.create(name, "/p", [])).add(TextDelta("m1", name))

    with_store(tmp_path, talk)
    assert count(tmp_path, "records") == 2
    assert os.listdir(tmp_path / "owners") == []


def test_after_closing_nothing_can_be_kept(tmp_path):
    async def talk():
        store = open_store(str(tmp_path))
        session = await store.create("s", "/p", [])
        await store.close()
        with pytest.raises(StorageFailed, match="shutting down"):
            await session.store_all()
        await store.close()

    asyncio.run(talk())


def test_a_session_is_read_with_what_was_just_added(tmp_path):
    async def talk(store):
        session = await store.create("s", "/p", [])
        session.add(TextDelta("m1", "a"))
        return await store.events("s")

    assert with_store(tmp_path, talk) == [TextDelta("m1", "a")]


def test_a_journal_that_is_kept_here_tells_of_what_is_stored(tmp_path):
    async def talk(store):
        journal, told = SessionJournal(await store.create("s", "/p", [])), RecordingSink()
        journal.subscribe(told)
        for event in turn("t1", "hello")[:-1]:
            journal.append(event)
        await journal.record(turn("t1", "hello")[-1])
        return told.events, await store.events("s")

    told, stored = with_store(tmp_path, talk)
    assert told == stored == list(turn("t1", "hello"))


def test_going_on_with_a_session_keeps_the_order(tmp_path):
    async def go_on(store):
        session = await store.claim("s")
        session.add(FileBackedUp("t2-c1", "/p/a", None))
        await session.release()
        session = await store.claim("s")
        session.add(CallStarted("t2-c1"))
        await session.store_all()
        return await store.events("s", former_texts=True)

    with_store(tmp_path, lambda store: say(store, "s"))
    events = with_store(tmp_path, go_on)
    assert events == [*turn("t1", "hello"), FileBackedUp("t2-c1", "/p/a", None), CallStarted("t2-c1")]


def test_former_texts_are_not_read_unless_they_are_wanted(tmp_path):
    """Their table may even be damaged: it is not looked at."""

    async def write(store):
        session = await store.create("s", "/p", [])
        session.add(FileBackedUp("c1", "/p/a", Before("x" * 100_000)))
        session.add(CallSettled("c1", ToolResult(True, "done")))
        await session.store_all()

    with_store(tmp_path, write)
    assert (count(tmp_path, "records"), count(tmp_path, "former_texts")) == (1, 1)
    with database(tmp_path / "sessions.db") as connection:
        connection.execute("UPDATE former_texts SET body = 'broken'")
    connection.close()
    assert len(with_store(tmp_path, lambda store: store.events("s"))) == 1
    with pytest.raises(StorageFailed, match="damaged"):
        with_store(tmp_path, lambda store: store.events("s", former_texts=True))


def test_what_is_not_there_is_said_to_be_unknown(tmp_path):
    async def talk(store):
        for asking in (
            store.find("s"),
            store.claim("s"),
            store.events("s"),
            store.set_roots("s", []),
            store.fork("s", "t", "/p", []),
        ):
            with pytest.raises(SessionUnknown, match="no session s"):
                await asking
        await store.delete("s")

    with_store(tmp_path, talk)


def test_an_id_is_given_once(tmp_path):
    async def talk(store):
        await say(store, "s")
        with pytest.raises(StorageFailed, match="already"):
            await store.create("s", "/p", [])
        with pytest.raises(StorageFailed, match="already"):
            await store.fork("s", "s", "/p", [])
        return await store.events("s")

    assert len(with_store(tmp_path, talk)) == 4


def test_the_further_folders_can_be_changed(tmp_path):
    async def talk(store):
        await say(store, "s")
        await store.set_roots("s", ["/ä", "/c"])
        return (await store.find("s")).roots

    assert with_store(tmp_path, talk) == ("/ä", "/c")


def test_names_that_are_no_unicode_do_no_harm(tmp_path):
    async def talk(store):
        session = await store.create("s", "/p/\udcff", ["/\udcfe"])
        session.add(TitleChanged("half \ud83d"))
        await session.store_all()
        return await store.find("s")

    entry = with_store(tmp_path, talk)
    assert (entry.cwd, entry.roots, entry.title) == ("/p/?", ("/?",), "half ?")


# --- fork and delete


def test_a_fork_is_a_copy_that_goes_its_own_way(tmp_path):
    async def talk(store):
        session = await store.create("s", "/p", [])
        for event in (TitleChanged("T"), *turn("t1", "hello"), TurnStarted("t2"), FileBackedUp("c", "/a", None)):
            session.add(event)
        copy = await store.fork("s", "copy", "/other", ["/r"])
        copy.add(TextDelta("t1-m9", "mine"))
        session.add(TextDelta("t2-m1", "theirs"))
        await copy.store_all()
        await session.store_all()
        return (
            await store.events("s", former_texts=True),
            await store.events("copy", former_texts=True),
            await store.find("copy"),
            await store.page(None, "", 10),
        )

    source, copy, entry, page = with_store(tmp_path, talk)
    common = [TitleChanged("T"), *turn("t1", "hello"), TurnStarted("t2"), FileBackedUp("c", "/a", None)]
    assert source == [*common, TextDelta("t2-m1", "theirs")]
    assert copy == [*common, TextDelta("t1-m9", "mine")]
    assert (entry.cwd, entry.roots, entry.title) == ("/other", ("/r",), "T")
    assert {listed.id for listed in page.entries} == {"s", "copy"}


def test_a_fork_of_an_empty_session_is_not_listed(tmp_path):
    async def talk(store):
        await store.create("s", "/p", [])
        await store.fork("s", "copy", "/p", [])
        return await store.page(None, "", 10)

    assert with_store(tmp_path, talk).entries == ()


def test_what_was_deleted_is_gone_and_cannot_come_back(tmp_path):
    async def talk(store):
        session = await store.create("s", "/p", [])
        for event in (*turn("t1", "hello"), FileBackedUp("c", "/a", None)):
            session.add(event)
        await session.store_all()
        await say(store, "other")
        await store.delete("s")
        await store.delete("s")
        session.add(TextDelta("m1", "late"))
        with pytest.raises(SessionTaken, match="deleted"):
            await session.store_all()
        fresh = await store.create("s", "/p", [])
        session.add(TextDelta("m1", "later"))
        with pytest.raises(SessionTaken):
            await session.store_all()
        await fresh.store_all(full=True)
        return await store.events("s"), await store.events("other")

    again, other = with_store(tmp_path, talk)
    assert (again, len(other)) == ([], 4)
    assert (count(tmp_path, "records"), count(tmp_path, "former_texts")) == (4, 0)


def test_a_large_session_is_deleted_in_steps_between_which_others_are_stored(tmp_path, monkeypatch):
    changes: list[int] = []
    writing = Database.writing

    @contextmanager
    def counted(database, *, full=False):
        with writing(database, full=full) as connection:
            before = connection.total_changes
            yield connection
            changes.append(connection.total_changes - before)

    async def talk(store):
        large, other = await store.create("large", "/p", []), await store.create("other", "/p", [])
        for number in range(10 * AT_ONCE):
            large.add(TextDelta(f"m{number}", "hello"))
        await large.release()
        monkeypatch.setattr(Database, "writing", counted)
        deletion = asyncio.ensure_future(store.delete("large"))
        await asyncio.sleep(0)
        other.add(TextDelta("m1", "hello"))
        await other.store_all()
        assert not deletion.done()
        await deletion

    with_store(tmp_path, talk)
    assert len(changes) > 10
    assert max(changes) <= AT_ONCE + 1
    assert count(tmp_path, "records") == 1


def test_a_deletion_that_was_cut_off_is_ended_by_the_next_process(tmp_path):
    with_store(tmp_path, lambda store: say(store, "s"))
    sessions = SessionRows(str(tmp_path))
    sessions.begin_deletion("s")
    sessions.close()
    assert count(tmp_path, "records") > 0
    with_store(tmp_path, lambda store: store.create("t", "/p", []))
    assert (count(tmp_path, "records"), count(tmp_path, "sessions")) == (0, 1)


# --- the list's view


def test_an_empty_session_is_removed_after_a_day_unless_somebody_has_it_open(tmp_path):
    async def fill(store):
        await say(store, "old")
        for id in ("empty", "young"):
            await (await store.create(id, "/p", [])).release()

    async def talk(one, two):
        await one.create("open", "/p", [])
        with database(tmp_path / "sessions.db") as connection:
            connection.execute("UPDATE sessions SET created = created - 100000000 WHERE id != 'young'")
        connection.close()
        await two.create("new", "/p", [])  # its first write sweeps
        for id in ("old", "young", "open", "new"):
            assert (await two.find(id)).id == id
        with pytest.raises(SessionUnknown):
            await two.find("empty")

    with_store(tmp_path, fill)
    asyncio.run(with_two(tmp_path, talk))


def test_who_reads_does_not_wait_for_a_write_that_is_held_up(tmp_path):
    async def talk(store):
        await say(store, "s")
        other = sqlite3.connect(tmp_path / "sessions.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        writing = asyncio.ensure_future(store.create("new", "/p", []))
        page = await store.page(None, "", 5)
        events = await store.events("s")
        assert not writing.done()
        other.execute("ROLLBACK")
        other.close()
        await writing
        return [entry.id for entry in page.entries], events

    assert with_store(tmp_path, talk) == (["s"], list(turn("t1", "hello")))


def test_looking_makes_nothing(tmp_path):
    async def look(store):
        with pytest.raises(SessionUnknown):
            await store.find("s")
        return await store.page(None, "", 5)

    assert with_store(tmp_path / "home", look).entries == ()
    assert not (tmp_path / "home").exists()


def test_only_sessions_in_which_something_was_said_are_listed(tmp_path):
    async def talk(store):
        await store.create("empty", "/p", [])
        chosen = await store.create("chosen", "/p", [])
        chosen.add(OptionChosen("mode", "plan"))
        await chosen.store_all()
        command = await store.create("command", "/p", [])
        command.add(CommandGiven("m1", (SentText("/help"),)))
        await command.store_all()
        await say(store, "said")
        return {entry.id for entry in (await store.page(None, "", 10)).entries}

    assert with_store(tmp_path, talk) == {"command", "said"}


def test_the_time_of_a_session_changes_with_its_turns_only(tmp_path):
    async def talk(store):
        session = await store.create("s", "/p", [])
        times = [(await store.find("s")).updated_at]
        for events in (
            [TurnStarted("t1")],
            [TextDelta("m", "x")],
            [TurnEnded("t1", None)],
            [OptionChosen("mode", "x")],
        ):
            await asyncio.sleep(0.003)
            for event in events:
                session.add(event)
            await session.store_all()
            times.append((await store.find("s")).updated_at)
        return times

    made, started, text, ended, chosen = with_store(tmp_path, talk)
    assert made < started == text < ended == chosen


def count(home, table):
    connection = sqlite3.connect(f"file:{home}/sessions.db?mode=ro", uri=True)
    try:
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    finally:
        connection.close()
