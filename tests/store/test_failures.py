"""When nothing can be stored: the person is told why and what to do, and nothing that is stored is harmed."""

import asyncio
import os
import random
import re
import shutil
import subprocess
import sys
import time

import pytest

from crow.errors import CrowError, StorageFailed
from crow.events import Before, CallStarted, FileBackedUp, TextDelta, TurnStarted
from crow.store import store as store_module
from crow.store.records import Pending
from crow.store.store import open_store
from tests.support.databases import database
from tests.support.disks import fill_up
from tests.support.folders import open_to_others
from tests.support.patience import DEADLINE
from tests.support.store import say, turn, with_store

DAMAGES = int(os.environ.get("CROW_STORE_DAMAGES", "60"))
SAID_TO_BE_FULL = 135
"""A damage of which SQLite says that the disk is full."""

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")

BIG = [FileBackedUp(f"c{number}", "/p/a", Before(os.urandom(20_000).hex())) for number in range(40)]


def assert_told(failure, path, cause, remedy):
    assert str(path / "sessions.db") in failure.message
    assert cause in failure.message
    assert remedy in failure.remedy


def test_a_full_disk_is_named_and_what_waits_is_stored_in_order_once_there_is_room(small_disk):
    filler = small_disk / "filler"

    async def talk(store):
        await say(store, "before")
        session = await store.create("s", "/p", [])
        session.add(TextDelta("m1", "kept"))
        await session.store_all()
        fill_up(filler)
        session.add(CallStarted("c0"))
        for event in BIG[:15]:
            session.add(event)
        for _ in range(2):
            with pytest.raises(StorageFailed) as failure:
                await session.store_all(full=True)
            assert_told(failure.value, small_disk, "the disk is full", "Free some space")
        assert len(await store.events("before")) == 4
        assert await store.events("s") == [TextDelta("m1", "kept"), CallStarted("c0")]
        assert len((await store.page(None, "", 9)).entries) == 1
        filler.unlink()
        session.add(CallStarted("c1"))
        await session.store_all()

    with_store(small_disk, talk)
    events = with_store(small_disk, lambda store: store.events("s", former_texts=True))
    assert events == [TextDelta("m1", "kept"), CallStarted("c0"), *BIG[:15], CallStarted("c1")]


def test_a_disk_that_is_full_from_the_start_is_named(small_disk):
    with_store(small_disk, lambda store: say(store, "s"))
    fill_up(small_disk / "filler")
    with pytest.raises(StorageFailed) as failure:
        with_store(small_disk, lambda store: store.create("t", "/p", []))
    assert_told(failure.value, small_disk, "the disk is full", "Free some space")
    (small_disk / "filler").unlink()
    assert with_store(small_disk, lambda store: store.events("s")) == list(turn("t1", "hello"))


def test_what_could_not_be_stored_is_tried_again_by_itself(tmp_path):
    """The file may not grow; deleting a session from elsewhere makes room in it."""

    async def fill(store):
        await say(store, "big", os.urandom(400_000).hex())

    with_store(tmp_path, fill)
    pages = os.path.getsize(tmp_path / "sessions.db") // 4096

    async def talk(store):
        session = await store.create("s", "/p", [])
        session.add(BIG[0])
        with pytest.raises(StorageFailed) as failure:
            await session.store_all()
        assert_told(failure.value, tmp_path, "the disk is full", "kept in memory")
        elsewhere = open_store(str(tmp_path))
        await elsewhere.delete("big")
        started = time.monotonic()
        while not await elsewhere.events("s", former_texts=True):
            await asyncio.sleep(0.05)
            assert time.monotonic() < started + DEADLINE, "never tried again"
        await elsewhere.close()
        await session.store_all()
        return await store.events("s", former_texts=True)

    assert with_store(tmp_path, talk, max_pages=pages) == [BIG[0]]


def test_a_session_that_is_deleted_before_it_could_be_created_stays_deleted(small_disk, monkeypatch):
    """It would be created when that is tried the next time."""
    with_store(small_disk, lambda store: say(store, "before"))
    monkeypatch.setattr(store_module, "CREATE_AGAIN", 0.2)
    filler = small_disk / "filler"
    fill_up(filler)

    async def talk(store):
        session = store.create_later("s", "/p", [])
        for event in turn("t1", "hello"):
            session.add(event)
        with pytest.raises(StorageFailed):
            await session.store_all()
        filler.unlink()
        await store.delete("s")
        passed = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(2 * 0.2, passed.set_result, None)
        await passed

    with_store(small_disk, talk)
    assert [entry.id for entry in with_store(small_disk, lambda store: store.page(None, "", 9)).entries] == ["before"]


def test_closing_on_a_full_disk_says_so(tmp_path):
    async def talk(store):
        session = await store.create("s", "/p", [])
        for event in BIG:
            session.add(event)

    with pytest.raises(StorageFailed, match="disk is full"):
        with_store(tmp_path, talk, max_pages=20)
    assert with_store(tmp_path, lambda store: store.events("s", former_texts=True)) == []


def test_no_more_is_held_in_memory_than_a_limit_and_nothing_follows_a_gap():
    pending = Pending(1, 1, 0, largest=1000)
    pending.take([TextDelta(f"m{number}", "x" * 500) for number in range(3)], 1)
    pending.forget()  # what comes while nothing waits is taken, however much it is
    pending.take([TextDelta("m3", "x" * 300)], 1)
    pending.take([TextDelta(f"m{number}", "x" * 300) for number in range(4, 9)], 1)
    assert 1 < len(pending.rows) < 4
    rows = list(pending.rows)
    with pytest.raises(StorageFailed, match="session s ") as failure:
        pending.check_whole("s")
    assert "Load the session again" in failure.value.remedy
    pending.take([CallStarted("c1")], 1)
    assert pending.rows == rows


def test_a_session_that_lost_something_can_be_loaded_again(tmp_path):
    with_store(tmp_path, lambda store: say(store, "big", os.urandom(400_000).hex()))
    pages = os.path.getsize(tmp_path / "sessions.db") // 4096

    async def talk(store):
        session = await store.create("s", "/p", [])
        session.pending._largest = 100_000
        for event in BIG[:5]:
            session.add(event)
            with pytest.raises(StorageFailed, match="disk is full"):
                await session.store_all()
        await store.delete("big")
        for _ in range(2):
            with pytest.raises(StorageFailed, match="was lost"):
                await session.store_all()
        again = await store.claim("s")
        again.add(CallStarted("c"))
        await again.store_all()
        return await store.events("s", former_texts=True)

    assert with_store(tmp_path, talk, max_pages=pages) == [*BIG[:2], CallStarted("c")]


AS_SOMEONE_ELSE = """
import asyncio, os, sys
from crow.store.store import open_store
import crow.store.database, crow.store.sessions
asyncio.run(asyncio.to_thread(int))
os.setgroups([]); os.setgid(65534); os.setuid(65534)
async def main():
    store = open_store(sys.argv[1])
    for asking in (store.create("new", "/p", []), store.claim("s"), store.events("s"), store.page(None, "", 5)):
        try:
            print("done", await asking)
        except Exception as error:
            print(type(error).__name__, error)
    await store.close()
asyncio.run(main())
"""


@as_root
@pytest.mark.parametrize("filled", [True, False])
def test_a_folder_that_may_only_be_read_is_named(tmp_path, filled):
    open_to_others(tmp_path)
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    if filled:
        with_store(home, lambda store: say(store, "s"))
        for path in home.rglob("*"):
            path.chmod(0o755)
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    done = subprocess.run(
        [sys.executable, "-c", AS_SOMEONE_ELSE, str(home)], capture_output=True, text=True, timeout=DEADLINE
    )
    assert done.stderr == ""
    *writing, events, page = done.stdout.splitlines()
    for line in writing:
        assert line.startswith(f"StorageFailed Cannot save sessions to {home}/sessions.db"), line
        assert "permission denied" in line or "read-only" in line
        assert "set CROW_HOME" in line
    assert events.startswith("done [TurnStarted(" if filled else "SessionUnknown There is no session s.")
    assert page.startswith("done Page(entries=(SessionEntry(id='s'" if filled else "done Page(entries=()")
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


@as_root
def test_what_a_killed_process_left_in_the_write_ahead_file_can_be_read_without_writing(tmp_path):
    """The newest of it is nowhere else."""
    open_to_others(tmp_path)
    home = tmp_path / "home"
    home.mkdir(mode=0o755)

    async def talk(store):
        await say(store, "s")
        shutil.copytree(home, tmp_path / "copy")  # as the process would leave it, if it were killed now

    with_store(home, talk)
    copy = tmp_path / "copy"
    assert (copy / "sessions.db-wal").stat().st_size
    for path in (copy, *copy.rglob("*")):
        path.chmod(0o755)
    done = subprocess.run([sys.executable, "-c", AS_SOMEONE_ELSE, str(copy)], capture_output=True, text=True)
    assert "done [TurnStarted(" in done.stdout

    (copy / "sessions.db-shm").unlink()
    done = subprocess.run([sys.executable, "-c", AS_SOMEONE_ELSE, str(copy)], capture_output=True, text=True)
    *_, events, _ = done.stdout.splitlines()
    assert events.startswith(f"StorageFailed Cannot read sessions from {copy}/sessions.db: it cannot be opened.")


# --- files that are not as they should be


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_named_and_not_waited_for(tmp_path, make):
    make(tmp_path / "sessions.db")

    async def talk(store):
        for asking, tried in (
            (store.create("s", "/p", []), "save sessions to"),
            (store.page(None, "", 5), "read sessions from"),
        ):
            with pytest.raises(StorageFailed, match=f"{tried} {tmp_path}/sessions.db: .*folder"):
                await asking

    with_store(tmp_path, talk)


def untouched(home):
    return (home / "sessions.db").read_bytes()


@pytest.mark.parametrize("content", [b"this is a letter, and no database at all\n" * 200, b"\0" * 8192])
def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path, content):
    (tmp_path / "sessions.db").write_bytes(content)
    with pytest.raises(StorageFailed) as failure:
        with_store(tmp_path, lambda store: store.page(None, "", 5))
    assert_told(failure.value, tmp_path, "it is not a database", "Move the file away")
    assert untouched(tmp_path) == content


def test_a_file_too_short_for_a_database_is_left_as_it_is(tmp_path):
    (tmp_path / "sessions.db").write_bytes(b"note to self")
    with pytest.raises(StorageFailed) as failure:
        with_store(tmp_path, lambda store: store.create("s", "/p", []))
    assert_told(failure.value, tmp_path, "it belongs to another program", "Move the file away")
    assert untouched(tmp_path) == b"note to self"


def test_the_database_of_another_program_is_left_as_it_is(tmp_path):
    with database(tmp_path / "sessions.db") as connection:
        connection.execute("CREATE TABLE cookies (name TEXT)")
    connection.close()
    before = untouched(tmp_path)
    with pytest.raises(StorageFailed) as failure:
        with_store(tmp_path, lambda store: store.create("s", "/p", []))
    assert_told(failure.value, tmp_path, "it belongs to another program", "Move the file away")
    assert untouched(tmp_path) == before


def test_a_store_can_be_opened_once_the_damage_is_mended(tmp_path):
    async def talk(store):
        with pytest.raises(StorageFailed):
            await store.create("s", "/p", [])
        (tmp_path / "sessions.db").unlink()
        await store.create("s", "/p", [])

    (tmp_path / "sessions.db").write_bytes(b"no database" * 100)
    with_store(tmp_path, talk)


def test_a_damaged_page_is_named_and_the_sessions_on_other_pages_load(tmp_path):
    async def fill(store):
        for name in ("first", "broken", "last"):
            session = await store.create(name, "/p", [])
            for number in range(60):
                session.add(TextDelta(f"m{number}", f"<{name}>" * 200))
            await session.store_all()

    with_store(tmp_path, fill)
    content = bytearray(untouched(tmp_path))
    middle = content.index(b"<broken>", len(content) // 2 - 40_000) // 4096 * 4096
    for page in range(middle, middle + 5 * 4096, 4096):
        content[page : page + 64] = b"\xff" * 64
    (tmp_path / "sessions.db").write_bytes(content)

    async def talk(store):
        with pytest.raises(StorageFailed) as failure:
            await store.events("broken")
        assert_told(failure.value, tmp_path, "it is damaged", "put back a copy")
        assert len(await store.events("first")) == len(await store.events("last")) == 60
        await say(store, "new")
        return await store.events("new")

    assert with_store(tmp_path, talk) == list(turn("t1", "hello"))


def test_a_damaged_first_page_is_named_and_the_file_left_as_it_is(tmp_path):
    with_store(tmp_path, lambda store: say(store, "s"))
    content = bytearray(untouched(tmp_path))
    content[100:2000] = os.urandom(1900)
    (tmp_path / "sessions.db").write_bytes(content)
    with pytest.raises(StorageFailed) as failure:
        with_store(tmp_path, lambda store: store.events("s"))
    assert_told(failure.value, tmp_path, "it is damaged", "It was left as it is")
    assert untouched(tmp_path) == content


@pytest.mark.parametrize("seed", sorted({*range(DAMAGES), SAID_TO_BE_FULL}))
def test_whatever_the_damage_it_is_said_in_words(tmp_path, seed):
    """Bytes anywhere in the file are replaced: each request works, or fails with a sentence that names it."""

    async def fill(store):
        for number in range(5):
            await say(store, f"s{number}", "words " * 300)

    with_store(tmp_path, fill)
    chance = random.Random(seed)
    content = bytearray(untouched(tmp_path))
    for _ in range(chance.choice([1, 1, 3, 30])):
        start, length = chance.randrange(len(content)), chance.choice([1, 2, 8, 64, 5000])
        content[start : start + length] = chance.randbytes(len(content[start : start + length]))
    (tmp_path / "sessions.db").write_bytes(content)

    async def talk():
        failures: list[CrowError] = []
        store = open_store(str(tmp_path))
        for number in range(5):
            for asking in (
                store.find(f"s{number}"),
                store.events(f"s{number}", former_texts=True),
                store.page(None, "", 3),
                store.claim(f"s{number}"),
                store.fork(f"s{number}", f"f{number}", "/p", []),
                store.delete(f"s{number}"),
            ):
                await failure_of(asking, failures)
        await failure_of(store.close(), failures)
        return failures

    for failure in asyncio.run(talk()):
        names_it = str(tmp_path / "sessions.db") in failure.message or re.search(r"[Ss]ession [sf]\d", failure.message)
        assert names_it, failure
        assert failure.message.endswith("."), failure
        assert failure.remedy, failure
        assert "full" not in failure.message, failure


async def failure_of(asking, failures):
    try:
        await asking
    except CrowError as failure:
        failures.append(failure)


def test_a_file_that_was_taken_away_is_missed(tmp_path):
    async def talk(store):
        session = await store.create("s", "/p", [])
        shutil.move(tmp_path / "sessions.db", tmp_path / "elsewhere.db")
        session.add(TurnStarted("t1"))
        with pytest.raises(StorageFailed) as failure:
            await session.store_all()
        assert_told(failure.value, tmp_path, "moved, removed or replaced", "Put sessions.db back")
        shutil.move(tmp_path / "elsewhere.db", tmp_path / "sessions.db")
        await session.store_all()
        return await store.events("s")

    assert with_store(tmp_path, talk) == [TurnStarted("t1")]
