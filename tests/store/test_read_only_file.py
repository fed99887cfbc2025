"""A store whose file may only be read: reading leaves nothing beside it, and the remedy helps."""

import os
import subprocess
import sys
import tempfile

import pytest

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")

AS_NOBODY = """
import asyncio, os, sqlite3, sys
from crow.cli.doctor import check_store
from crow.errors import StorageFailed
from crow.store import database, sessions
from crow.store.store import open_store
home, path = sys.argv[1], sys.argv[1] + "/sessions.db"
os.setgroups([]); os.setgid(65534); os.setuid(65534)

async def with_store(work):
    store = open_store(home)
    try:
        return await work(store)
    finally:
        await store.close()

def create(name):
    asyncio.run(with_store(lambda store: store.create(name, "/", ())))

def beside():
    return sorted(name for name in os.listdir(home) if name.startswith("sessions.db-"))

create("one")
os.chmod(path, 0o400)
"""


def said_as_nobody(story: str) -> list[str]:
    with tempfile.TemporaryDirectory() as home:
        os.chown(home, 65534, 65534)
        done = subprocess.run([sys.executable, "-c", AS_NOBODY + story, home], capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


@as_root
def test_reading_it_leaves_nothing_beside_it_and_once_it_may_be_written_it_is():
    story = """
print(asyncio.run(with_store(lambda store: store.find("one"))).id, beside())
os.chmod(path, 0o600)
create("two")
print(asyncio.run(with_store(lambda store: store.find("two"))).id)
"""
    assert said_as_nobody(story) == ["one []", "two"]


@as_root
def test_files_beside_it_that_may_only_be_read_do_not_stay_so():
    """An older Crow, or a viewer of databases, has left them."""
    story = """
viewer = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
viewer.execute("SELECT * FROM sessions").fetchall()
viewer.close()
print(beside())
os.chmod(path, 0o600)
create("two")
print(asyncio.run(with_store(lambda store: store.find("two"))).id)
"""
    assert said_as_nobody(story) == ["['sessions.db-shm', 'sessions.db-wal']", "two"]


@as_root
def test_the_doctor_says_that_it_may_only_be_read():
    story = "print([(check.outcome, check.text) for check in check_store(home)], beside())\n"
    [said] = said_as_nobody(story)
    assert "it is read-only" in said
    assert "failed" in said
    assert said.endswith(" []")
