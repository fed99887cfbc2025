"""The file and its transactions."""

import sqlite3

import pytest

from crow.errors import StorageFailed
from crow.store.database import Database
from tests.support.store import say, turn, with_store

NORMAL, FULL = 1, 2


def test_only_what_must_survive_a_power_cut_waits_for_the_disk(tmp_path):
    database = Database(str(tmp_path / "sessions.db"))

    def how(*, full):
        with database.writing(full=full) as connection:
            return connection.execute("PRAGMA synchronous").fetchone()[0]

    assert [how(full=False), how(full=True), how(full=False)] == [NORMAL, FULL, NORMAL]
    with pytest.raises(StorageFailed), database.writing(full=True) as connection:
        connection.execute("SELECT * FROM nowhere")
    assert how(full=False) == NORMAL
    database.close()


def test_a_transaction_that_fails_leaves_nothing(tmp_path):
    database = Database(str(tmp_path / "sessions.db"))
    with pytest.raises(StorageFailed), database.writing() as connection:  # noqa: PT012
        connection.execute("INSERT INTO records VALUES (1, 1, 1, 'x', 0, 0, '', 0)")
        connection.execute("SELECT * FROM nowhere")
    with database.reading() as connection:
        assert connection.execute("SELECT count(*) FROM records").fetchone() == (0,)
    database.close()


def test_a_folder_may_have_any_name(tmp_path):
    home = tmp_path / "50% of #1? ä&mode=ro"
    with_store(home, lambda store: say(store, "s"))
    assert (home / "sessions.db").is_file()
    assert with_store(home, lambda store: store.events("s")) == list(turn("t1", "hello"))


def test_a_file_that_another_program_has_locked_is_named(tmp_path):
    path = str(tmp_path / "sessions.db")
    database = Database(path, lock_timeout=0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StorageFailed, match=f"{path}: .*locked") as failure, database.writing():
        pass
    assert "Close the program" in failure.value.remedy
    other.close()
    with database.writing():
        pass
    database.close()
