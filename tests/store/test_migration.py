"""An older file becomes one of today and is kept as it was; a newer one is left alone."""

import shutil
import sqlite3
import stat

import pytest

from crow.errors import StorageFailed
from crow.store.database import Database
from crow.store.layout import LAYOUT, Layout, run_statements
from tests.support.store import say, turn, with_store

COLOUR = """
ALTER TABLE sessions ADD COLUMN colour TEXT NOT NULL DEFAULT 'red';
CREATE TABLE notes (
    text TEXT -- with; a semicolon
);
"""
IMPOSSIBLE = "DELETE FROM records;\nSELECT 1 FROM nowhere;\n"
NEXT = Layout(
    version=LAYOUT.version + 1,
    create="CREATE TABLE sessions (id TEXT);\n",
    upgrades={LAYOUT.version: lambda connection: run_statements(connection, COLOUR)},
)
BROKEN = Layout(NEXT.version, NEXT.create, {LAYOUT.version: lambda connection: run_statements(connection, IMPOSSIBLE)})


def columns(path, table):
    connection = sqlite3.connect(path)
    try:
        return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    finally:
        connection.close()


def migrate(home, layout=NEXT):
    Database(str(home / "sessions.db"), layout=layout).close()


async def events(store):
    return await store.events("s")


def test_an_older_file_is_brought_up_to_date_and_its_copy_kept(tmp_path):
    with_store(tmp_path, lambda store: say(store, "s"))
    migrate(tmp_path)
    assert "colour" in columns(tmp_path / "sessions.db", "sessions")
    assert columns(tmp_path / "sessions.db", "notes") == ["text"]

    copy = tmp_path / "sessions.v3.db"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert "colour" not in columns(copy, "sessions")
    (tmp_path / "old").mkdir()
    copy.rename(tmp_path / "old" / "sessions.db")
    assert with_store(tmp_path / "old", events) == list(turn("t1", "hello"))


def test_what_is_still_in_the_write_ahead_file_is_in_the_copy_too(tmp_path):
    async def talk(store):
        await say(store, "s")
        assert (tmp_path / "sessions.db-wal").stat().st_size > 0
        migrate(tmp_path)
        with pytest.raises(StorageFailed, match="newer Crow"):
            await store.create("t", "/p", [])

    with_store(tmp_path, talk)
    (tmp_path / "old").mkdir()
    (tmp_path / "sessions.v3.db").rename(tmp_path / "old" / "sessions.db")
    assert with_store(tmp_path / "old", events) == list(turn("t1", "hello"))


def test_a_migration_is_done_once(tmp_path):
    with_store(tmp_path, lambda store: say(store, "s"))
    migrate(tmp_path)
    (tmp_path / "sessions.v3.db").unlink()
    migrate(tmp_path)
    assert not (tmp_path / "sessions.v3.db").exists()


def test_a_migration_that_fails_leaves_the_file_as_it_was(tmp_path):
    with_store(tmp_path, lambda store: say(store, "s"))
    with pytest.raises(StorageFailed, match=r"sessions\.db: "):
        migrate(tmp_path, BROKEN)
    assert with_store(tmp_path, events) == list(turn("t1", "hello"))
    migrate(tmp_path)
    assert "colour" in columns(tmp_path / "sessions.db", "sessions")


def test_a_newer_file_is_refused_in_words_and_left_as_it_is(tmp_path):
    with_store(tmp_path, lambda store: say(store, "s"))
    migrate(tmp_path)
    before = (tmp_path / "sessions.db").read_bytes()
    with pytest.raises(StorageFailed) as failure:
        with_store(tmp_path, events)
    assert f"{tmp_path}/sessions.db: a newer Crow wrote it (layout 4; this one knows up to 3)" in failure.value.message
    assert "Update Crow" in failure.value.remedy
    assert (tmp_path / "sessions.db").read_bytes() == before


def test_a_newer_file_that_was_left_in_the_middle_is_left_so(tmp_path):
    """As after kill -9: what was written last is in the file beside it."""
    killed = tmp_path / "killed"
    killed.mkdir()
    with_store(tmp_path, lambda store: say(store, "s"))
    database = Database(str(tmp_path / "sessions.db"), layout=NEXT)
    with database.writing() as connection:
        connection.execute("UPDATE sessions SET colour = 'blue'")
    for name in ("sessions.db", "sessions.db-wal"):
        shutil.copy(tmp_path / name, killed / name)
    database.close()
    before = {path.name: path.read_bytes() for path in killed.iterdir()}
    with pytest.raises(StorageFailed, match="newer Crow"):
        with_store(killed, events)
    assert {name: (killed / name).read_bytes() for name in before} == before
