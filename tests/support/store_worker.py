"""A process that uses the store hard, for the tests that start several of them or kill them.

`python -m tests.support.store_worker keep HOME SESSION` stores numbered records, one after the other, and prints the
number of each as soon as it is kept. `… new HOME SESSION` makes a session when it is told to. `… share HOME NAME SEED
SECONDS` does random things with sessions that other such processes use too, and prints `SESSION MARK` for each record
that is kept.

A mark is `NAME/CLAIM/NUMBER`: who wrote it, in which of its claims, and a number that grows.
"""

import asyncio
import contextlib
import os
import random
import sys

from crow.errors import SessionBusy, SessionTaken
from crow.events import CallStarted, SentText, TextDelta, TurnEnded, TurnStarted, UserSaid
from crow.store.base import EventLog, SessionStore
from crow.store.store import open_store

SHARED = [f"shared{number}" for number in range(6)]


def tell(text: str) -> None:
    os.write(1, f"{text}\n".encode())


async def keep(home: str, session_id: str) -> None:
    session = await open_store(home).create(session_id, "/p", [])
    number = 0
    while True:
        number += 1
        session.add(TextDelta(f"m{number}", "some words " * (number % 50)))
        session.add(CallStarted(str(number)))
        await session.store_all(full=number % 10 == 0)
        tell(str(number))


async def new(home: str, session_id: str) -> None:
    """Waits for a word from outside, so that several can begin at the same moment."""
    tell("ready")
    sys.stdin.readline()
    store = open_store(home)
    await store.create(session_id, "/p", [])
    await store.close()


async def share(home: str, name: str, seed: str, stop: str) -> None:
    """Works until there is a file of that name."""
    chance = random.Random(seed)
    store = open_store(home)
    busy = Busy(store, name, chance)
    while not os.path.exists(stop):
        await chance.choice([busy.claim, busy.write, busy.write, busy.write, busy.turn, busy.look, busy.fork])()
    await store.close()


class Busy:
    def __init__(self, store: SessionStore, name: str, chance: random.Random) -> None:
        self.store = store
        self.name = name
        self.chance = chance
        self.open: dict[str, tuple[EventLog, int]] = {}
        self.claims = 0
        self.number = 0

    def hold(self, session_id: str, session: EventLog) -> None:
        self.claims += 1
        self.open[session_id] = session, self.claims

    async def claim(self) -> None:
        session_id = self.chance.choice(SHARED)
        with contextlib.suppress(SessionBusy):
            self.hold(session_id, await self.store.claim(session_id))

    async def write(self) -> None:
        """Some records, some of them without waiting. That the session was taken is found out now or later."""
        if not self.open:
            return
        session_id, (session, claim) = self.chance.choice(list(self.open.items()))
        marks: list[str] = []
        for _ in range(self.chance.randint(1, 5)):
            self.number += 1
            marks.append(f"{self.name}/{claim}/{self.number}")
            session.add(CallStarted(marks[-1]))
        if self.chance.random() < 0.2:
            return
        await self.store_all(session_id, session, marks)

    async def turn(self) -> None:
        if not self.open:
            return
        session_id, (session, _) = self.chance.choice(list(self.open.items()))
        session.add(TurnStarted("t"))
        session.add(UserSaid("m", (SentText("hello"),), ()))
        if await self.store_all(session_id, session, []):
            await asyncio.sleep(self.chance.random() * 0.02)
            await self.write()
            session.add(TurnEnded("t", None))
            await self.store_all(session_id, session, [], full=True)

    async def store_all(self, session_id: str, session: EventLog, marks: list[str], *, full: bool = False) -> bool:
        try:
            await session.store_all(full=full)
        except SessionTaken:
            # Once in a while the old handle is used again, as a turn does that has not heard of it yet.
            if self.chance.random() < 0.5:
                self.open.pop(session_id, None)
            return False
        for mark in marks:
            tell(f"{session_id} {mark}")
        return True

    async def look(self) -> None:
        await self.store.page("/p", "", 5)
        await self.store.events(self.chance.choice(SHARED))

    async def fork(self) -> None:
        if self.chance.random() < 0.1:
            self.claims += 1
            new_id = f"fork-{self.name}-{self.claims}"
            self.hold(new_id, await self.store.fork(self.chance.choice(SHARED), new_id, "/p", []))


if __name__ == "__main__":
    asyncio.run({"keep": keep, "new": new, "share": share}[sys.argv[1]](*sys.argv[2:]))
