"""Who may write a session: one process at a time. An idle one is taken over, a running one is not."""

import asyncio
import os
import subprocess
import sys

import pytest

from crow.errors import SessionBusy, SessionTaken
from crow.events import TextDelta, TurnEnded, TurnStarted
from crow.messages import StopReason
from crow.store.owners import Owner
from tests.support.patience import DEADLINE
from tests.support.store import turn, with_store, with_two

END = TurnEnded("t1", StopReason.END_TURN)

RUNS_A_TURN = """
import asyncio, sys
from crow.events import TurnStarted
from crow.store.store import open_store
async def main():
    session = await open_store(sys.argv[1]).create("s", "/p", [])
    session.add(TurnStarted("t1"))
    await session.store_all()
    print("running", flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


def in_two(home, talk):
    return asyncio.run(with_two(home, talk))


def test_an_idle_session_is_taken_over_and_the_old_owner_can_write_nothing_more(tmp_path):
    async def talk(one, two):
        old = await one.create("s", "/p", [])
        for event in turn("t1", "hello"):
            old.add(event)
        await old.store_all()
        old.add(TextDelta("m", "not stored yet"))
        new = await two.claim("s")
        with pytest.raises(SessionTaken, match=f"another Crow \\(process {os.getpid()}\\)") as taken:
            await old.store_all()
        assert "Load it again" in taken.value.remedy
        for _ in range(2):
            old.add(TextDelta("m", "later still"))
            with pytest.raises(SessionTaken):
                await old.store_all(full=True)
            with pytest.raises(SessionTaken):
                await old.store_all()
        new.add(TextDelta("t2-m1", "mine"))
        await new.store_all()
        return await two.events("s"), await one.events("s")

    ours, theirs = in_two(tmp_path, talk)
    assert ours == theirs == [*turn("t1", "hello"), TextDelta("t2-m1", "mine")]


def test_a_running_session_is_refused_and_the_person_told_where_it_runs(tmp_path):
    async def talk(one, two):
        session = await one.create("s", "/p", [])
        session.add(TurnStarted("t1"))
        await session.store_all()
        for asking in (two.claim("s"), two.delete("s")):
            with pytest.raises(SessionBusy, match=rf"process {os.getpid()}\) since \d\d:\d\d:\d\d") as busy:
                await asking
            assert "Wait until it is done" in busy.value.remedy
        await two.fork("s", "copy", "/p", [])
        session.add(END)
        await session.store_all()
        await two.claim("s")

    in_two(tmp_path, talk)


def test_the_owner_itself_may_claim_a_session_that_runs(tmp_path):
    async def talk(store):
        old = await store.create("s", "/p", [])
        old.add(TurnStarted("t1"))
        new = await store.claim("s")
        old.add(TextDelta("m", "late"))
        with pytest.raises(SessionTaken, match="continued elsewhere"):
            await old.store_all()
        new.add(END)
        await new.store_all()
        return await store.events("s")

    assert with_store(tmp_path, talk) == [TurnStarted("t1"), END]


@pytest.mark.parametrize("way", ["kill", "terminate"])
def test_what_a_dead_process_left_running_is_taken_over(tmp_path, way):
    child = subprocess.Popen([sys.executable, "-c", RUNS_A_TURN, str(tmp_path)], stdout=subprocess.PIPE)
    assert child.stdout is not None

    async def refused(store):
        with pytest.raises(SessionBusy, match=f"process {child.pid}"):
            await store.claim("s")

    async def taken_over(store):
        session = await store.claim("s")
        session.add(END)
        await session.store_all()
        return await store.events("s")

    with child.stdout:
        assert child.stdout.readline() == b"running\n"
        with_store(tmp_path, refused)
        assert any(name.startswith(f"{child.pid}-") for name in os.listdir(tmp_path / "owners"))
        getattr(child, way)()
        child.wait(DEADLINE)
    assert with_store(tmp_path, taken_over) == [TurnStarted("t1"), END]
    assert os.listdir(tmp_path / "owners") == []


def test_a_released_session_is_nobodys(tmp_path):
    async def talk(one, two):
        session = await one.create("s", "/p", [])
        session.add(TurnStarted("t1"))
        await session.release()
        session.add(END)
        with pytest.raises(SessionTaken):
            await session.store_all()
        await (await two.claim("s")).release()
        session.add(END)
        with pytest.raises(SessionTaken):
            await session.release()
        return await two.events("s")

    assert in_two(tmp_path, talk) == [TurnStarted("t1")]


def test_releasing_what_another_process_took_leaves_it_to_that_process(tmp_path):
    async def talk(one, two):
        old = await one.create("s", "/p", [])
        new = await two.claim("s")
        await old.release()
        new.add(END)
        await new.store_all()
        return await two.events("s")

    assert in_two(tmp_path, talk) == [END]


def test_the_files_of_dead_owners_are_swept_and_those_of_the_living_stay(tmp_path):
    living = Owner(str(tmp_path))
    (tmp_path / "1-dead").touch()
    other = Owner(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == sorted([living.token, other.token])
    assert other.lives_elsewhere(living.token)
    assert not other.lives_elsewhere(other.token)
    assert not other.lives_elsewhere("1-dead")
    assert not other.lives_elsewhere("")
    living.close()
    assert not other.lives_elsewhere(living.token)
    other.close()
    assert os.listdir(tmp_path) == []
