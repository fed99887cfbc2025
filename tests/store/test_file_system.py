"""A store on a network file system: noticed, said, and used without a write-ahead log."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from crow.cli import doctor
from crow.cli.doctor import check_store
from crow.disk import network_file_system
from crow.store import database
from crow.store.store import open_store
from tests.support.store import say, turn, with_store, with_two

TABLE = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:1 / / rw,relatime shared:1 - ext4 /dev/root rw
31 27 0:40 / /home rw,relatime shared:2 master:3 - nfs4 server:/home rw,vers=4.2
32 31 254:2 / /home/ann/local rw - ext4 /dev/sda2 rw
33 27 0:41 / /mnt/with\\040blank rw - cifs //server/share rw
34 27 0:42 / /mnt/ssh rw - fuse.sshfs me@host: rw
35 27 0:43 / /mnt/over rw - nfs server:/a rw
36 35 254:3 / /mnt/over rw - xfs /dev/sdb rw
37 27 0:44 / /mnt/windows rw - 9p C: rw
38 27 0:45 / /mnt/photos rw - fuse.gvfsd-fuse gvfsd-fuse rw
no mount at all
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/ann/.crow", "nfs4"),
        ("/home", "nfs4"),
        ("/homes/ann", ""),
        ("/home/ann/local/.crow", ""),
        ("/mnt/with blank/x", "cifs"),
        ("/mnt/ssh/.crow", "fuse.sshfs"),
        ("/mnt/over/x", ""),
        ("/mnt/windows/Users", "9p"),
        ("/mnt/photos", ""),
        ("/", ""),
    ],
)
def test_the_kind_is_that_of_the_mount_that_the_folder_lies_on(tmp_path, folder, kind):
    table = tmp_path / "mountinfo"
    table.write_text(TABLE)
    assert network_file_system(folder, str(table)) == kind


def test_a_disk_of_this_machine_is_none_and_neither_is_what_nobody_can_tell(tmp_path):
    assert network_file_system(str(tmp_path)) == ""
    assert network_file_system(str(tmp_path), str(tmp_path / "nothing")) == ""


@pytest.fixture
def on_nfs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "network_file_system", lambda folder: "nfs4")
    monkeypatch.setattr("crow.cli.doctor.network_file_system", lambda folder: "nfs4")


def mode(home: Path) -> str:
    connection = sqlite3.connect(f"file:{home}/sessions.db?mode=ro", uri=True)
    try:
        return connection.execute("PRAGMA journal_mode").fetchone()[0]
    finally:
        connection.close()


@pytest.mark.usefixtures("on_nfs")
def test_there_is_no_write_ahead_log_and_each_write_waits_for_the_disk(tmp_path):
    async def talk(store):
        await say(store, "s")
        assert not list(tmp_path.glob("*-wal")) + list(tmp_path.glob("*-shm"))
        assert "nfs4" in await store.remark()
        assert await store.remark() == ""  # said once
        return await store.events("s")

    assert with_store(tmp_path, talk) == list(turn("t1", "hello"))
    assert mode(tmp_path) != "wal"
    file = database.Database(str(tmp_path / "sessions.db"))
    with file.writing() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    with file.writing(full=True):
        pass
    with file.writing() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    file.close()


@pytest.mark.usefixtures("on_nfs")
def test_two_stores_on_one_network_folder_see_each_other(tmp_path):
    async def talk(one, two):
        for number in range(10):
            await say(one, f"a{number}")
            await say(two, f"b{number}")
        await one.delete("a0")
        return [entry.id for entry in (await two.page(None, "", 50)).entries]

    assert len(asyncio.run(with_two(tmp_path, talk))) == 19


def test_a_store_with_a_log_that_was_moved_to_a_network_loses_it(tmp_path, monkeypatch):
    with_store(tmp_path, lambda store: say(store, "s"))
    assert mode(tmp_path) == "wal"
    monkeypatch.setattr(database, "network_file_system", lambda folder: "nfs4")
    with_store(tmp_path, lambda store: say(store, "t"))
    assert mode(tmp_path) != "wal"
    assert with_store(tmp_path, lambda store: store.events("s")) == list(turn("t1", "hello"))


@pytest.mark.usefixtures("on_nfs")
def test_doctor_says_so(tmp_path):
    with_store(tmp_path, lambda store: say(store, "s"))
    warning, sound = check_store(str(tmp_path))
    assert (warning.outcome, sound.outcome) == ("warn", "fine")
    assert f"{tmp_path} is on a network file system (nfs4)" in warning.text
    assert "CROW_HOME" in warning.remedy


def test_doctor_checks_a_large_store_in_part_unless_it_is_to_check_all_of_it(tmp_path, monkeypatch):
    with_store(tmp_path, lambda store: say(store, "s"))
    path = tmp_path / "sessions.db"
    with sqlite3.connect(path) as connection:
        connection.executemany(
            "INSERT INTO contents (digest, data) VALUES (?, zeroblob(2000))", ((b"%d" % n,) for n in range(20_000))
        )
    connection.close()
    monkeypatch.setattr(doctor, "SMALL_STORE", 1_000_000)
    [moment] = check_store(str(tmp_path))
    assert (moment.outcome, "the list of " in moment.text) == ("fine", True)
    assert "crow doctor --whole-store" in moment.remedy
    [whole] = check_store(str(tmp_path), whole=True)
    assert (whole.outcome, whole.remedy) == ("fine", "")
    assert whole.text.endswith("is sound: 1 session")


def test_elsewhere_there_is_nothing_to_say(tmp_path):
    async def talk():
        store = open_store(str(tmp_path))
        await say(store, "s")
        remark = await store.remark()
        await store.close()
        return remark

    assert asyncio.run(talk()) == ""
    [sound] = check_store(str(tmp_path))
    assert sound.outcome == "fine"
