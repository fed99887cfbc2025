"""A home with 20,000 stored sessions and 3 GB, and what they cost: `crow doctor`, a search, a deletion.

The store is made by Crow's own code, one session; the others are copies of its rows with other words, since 20,000 turns
would take an hour. The words of a text are drawn so that some are in every session and most in a few.
"""

import asyncio
import json
import os
import random
import sqlite3
import subprocess
import time
import uuid

SESSIONS = 20_000
TEXTS = 14
"""Messages in a session."""
WORDS = 180
"""Words of a message."""
OUTPUTS = 25
"""Results of calls in a session, each of its own."""
OUTPUT = 4_500
"""Bytes of such a result."""


def make(home, sessions=SESSIONS):
    """Fills the store of a home that has none."""
    from crow.events import SentText, TextDelta, TurnEnded, TurnStarted, UserSaid
    from crow.messages import StopReason, Text
    from crow.store.store import open_store

    async def one():
        store = open_store(home)
        log = await store.create("template", "/work", ["/work"])
        log.add(TurnStarted("t1"))
        log.add(UserSaid("t1-m1", (SentText("WORDS"),), (Text("WORDS"),)))
        log.add(TextDelta("t1-m2", "WORDS"))
        log.add(TurnEnded("t1", StopReason.END_TURN))
        await log.store_all()
        await log.release()
        await store.close()

    asyncio.run(one())
    draw = random.Random(1)
    vocabulary = [f"{draw.choice(SYLLABLES)}{draw.choice(SYLLABLES)}{number:x}" for number in range(200_000)]
    store = sqlite3.connect(os.path.join(home, "sessions.db"), isolation_level=None)
    store.execute("PRAGMA synchronous = OFF")
    columns = "version, tag, optional, time, body, packed"
    rows = store.execute(f"SELECT {columns} FROM records ORDER BY seq").fetchall()
    begin, end = [row for row in rows if row[1] == "turn_started"], [row for row in rows if row[1] == "turn_ended"]
    said = [row for row in rows if row[1] in ("user_said", "text_delta")]
    assert len(begin) == len(end) == 1, rows
    assert len(said) == 2, rows
    now = time.time_ns() // 1_000_000
    for number in range(sessions):
        if number % 1000 == 0:
            store.execute("BEGIN")
        id = str(uuid.UUID(int=draw.getrandbits(128)))
        cwd = f"/projects/{number % 50}"
        title, when = " ".join(draw.choices(vocabulary[:2000], k=6)), now - number * 60_000
        key = store.execute(
            "INSERT INTO sessions (id, cwd, roots, title, created, updated, listed, running, owner, epoch) "
            "VALUES (?, ?, ?, ?, ?, ?, 1, 0, '', 1)",
            (id, cwd, json.dumps([cwd]), title, when, when),
        ).lastrowid
        records = list(begin)
        for text in range(TEXTS):
            record = said[min(text, 1)]
            words = " ".join([*draw.choices(COMMON, k=WORDS // 2), *draw.choices(vocabulary, k=WORDS // 2)])
            records.append((*record[:4], record[4].replace("WORDS", words).replace("m2", f"m{text + 2}"), 0))
        records += end
        store.executemany(
            f"INSERT INTO records (session, seq, {columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [(key, seq, *record) for seq, record in enumerate(records, 1)],
        )
        for _ in range(OUTPUTS):
            content = store.execute(
                "INSERT INTO contents (digest, data) VALUES (?, ?)", (os.urandom(20), os.urandom(OUTPUT))
            ).lastrowid
            store.execute("INSERT INTO uses (session, content) VALUES (?, ?)", (key, content))
        if number % 1000 == 999 or number == sessions - 1:
            store.execute("COMMIT")
    store.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    store.close()


def measure(crow, home):
    """Seconds of `crow doctor`; milliseconds of a search once all is indexed, the slowest of ten, and of a deletion, by
    `crow sessions delete` of ten of them, less what it takes to find that there is none."""
    from crow.store.queries import FIRST_PAGE
    from crow.store.store import open_store

    environment = {**os.environ, "CROW_HOME": home, "CROW_LOCAL_SERVERS": ""}

    def seconds(*arguments):
        began = time.monotonic()
        subprocess.run([crow, *arguments], check=False, env=environment, capture_output=True)
        return time.monotonic() - began

    async def search():
        store = open_store(home)
        try:
            began = time.monotonic()
            while (await store.search("fix", "", 20)).unread:  # noqa: ASYNC110 -- as a client asks
                await asyncio.sleep(0.2)
            indexed, times = time.monotonic() - began, []
            for query in ("fix", "fix error", "ba", "a", "zi3", "baba3", "test line", "nothing there", "ju f", "run"):
                began = time.monotonic()
                await store.search(query, "", 20)
                times.append(time.monotonic() - began)
            return indexed, max(times)
        finally:
            await store.close()

    doctor = seconds("doctor", "--offline")
    indexed, slowest = asyncio.run(search())
    with sqlite3.connect(os.path.join(home, "sessions.db")) as store:
        ids = [row[0] for row in store.execute(FIRST_PAGE, (10,))]
    store.close()
    deletions = seconds("sessions", "delete", "--yes", *ids) - seconds("sessions", "delete", "--yes", ids[0])
    return {
        "doctor20000_s": doctor,
        "index20000_s": indexed,
        "search20000_ms": slowest * 1000,
        "delete20000_ms": deletions / len(ids) * 1000,
    }


SYLLABLES = ["ba", "co", "du", "fe", "gi", "ho", "ju", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "wu", "zi"]
COMMON = ["the", "a", "of", "to", "and", "in", "is", "that", "for", "it", "as", "with", "file", "test", "line", "error"]
COMMON += ["code", "change", "run", "fix", "add", "use"]
