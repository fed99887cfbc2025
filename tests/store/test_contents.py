"""Long texts are stored once, in pieces and packed; and the room they took is given back."""

import asyncio
import base64
import random
import sqlite3
import zlib
from pathlib import Path

import msgspec
import pytest

from crow.errors import StorageFailed
from crow.events import Before, CallSettled, CommandGiven, FileBackedUp, SentMedia, SentText, TextDelta, UserSaid
from crow.messages import Image, Text
from crow.results import TextBlock, ToolResult
from crow.store.contents import LARGEST, LONG, pieces, put_back, take_out
from crow.store.database import Database
from crow.timeouts import timeout
from tests.support.databases import database
from tests.support.patience import DEADLINE
from tests.support.store import say, turn, with_store

WORDS = [f"word{number * 7919 % 10007:05d}" for number in range(2000)]


def prose(seed: int, size: int) -> str:
    """Lines of words, as many characters as asked for."""
    chance = random.Random(seed)
    lines = (" ".join(chance.choices(WORDS, k=8)) for _ in range(size // 70))
    return "\n".join(lines)[:size]


def size_of(home: Path) -> int:
    return sum(path.stat().st_size for path in home.glob("sessions*"))


def rows(home: Path, query: str) -> list[tuple]:
    connection = sqlite3.connect(f"file:{home}/sessions.db?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


# --- cutting


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"x" * 1_000_000,
        b"\n" * 1_000_000,
        random.Random(1).randbytes(1_000_000),
        base64.b64encode(random.Random(2).randbytes(1_000_000)),
        prose(3, 1_000_000).encode(),
        b'{"a":[1,2,3]},' * 80_000,
    ],
    ids=["empty", "one letter", "line ends", "random", "base64", "prose", "one line"],
)
def test_the_pieces_are_the_text(text):
    cut = list(pieces(text))
    assert b"".join(cut) == text
    assert max(map(len, cut)) <= LARGEST


@pytest.mark.parametrize(
    "text",
    [
        prose(4, 3_000_000),
        base64.b64encode(random.Random(5).randbytes(2_000_000)).decode(),
        "".join(f'{{"id":{number},"name":"{WORDS[number % 2000]}"}},' for number in range(80_000)),
        prose(6, 3_000_000).replace("\n", "\r\n"),
    ],
    ids=["prose", "base64", "one line", "crlf"],
)
def test_an_insertion_changes_the_pieces_around_it_only(text):
    before = set(pieces(text.encode()))
    for place in (0, 17, len(text) // 3, len(text) - 1):
        after = list(pieces((text[:place] + "something new" + text[place:]).encode()))
        changed = [piece for piece in after if piece not in before]
        assert sum(map(len, changed)) < 5 * LARGEST


def test_long_texts_are_taken_out_and_put_back_wherever_they_are():
    long = "ä\udcff" * LONG
    value = {"a": ["short", long, {"b": long, "c": None}], "d": 1, "e": True}
    contents: dict[str, bytes] = {}
    shorter = take_out(value, contents)
    assert long not in str(shorter)
    assert put_back(shorter, contents.__getitem__) == value


# --- storing


def test_many_edits_of_a_large_file_take_little_room_and_deleting_gives_it_back(tmp_path):
    text = prose(7, 5_000_000)
    packed_once = len(zlib.compress(text.encode()))

    async def edit(store):
        session = await store.create("s", "/p", [])
        former, chance = text, random.Random(8)
        expected = []
        for number in range(40):
            event = FileBackedUp(f"c{number}", "/p/a", Before(former))
            expected.append(event)
            session.add(event)
            await session.store_all(full=True)
            place = chance.randrange(len(former))
            former = f"{former[:place]} edit {number} {former[place + 10 :]}"
        await session.release()
        assert await store.events("s", former_texts=True) == expected

    with_store(tmp_path, lambda store: say(store, "other"))
    empty = size_of(tmp_path)
    with_store(tmp_path, edit)
    assert size_of(tmp_path) < 3 * packed_once
    with_store(tmp_path, lambda store: store.delete("s"))
    assert size_of(tmp_path) < empty + 100_000


def test_the_room_is_given_back_while_the_store_goes_on(tmp_path):
    async def talk(store):
        session = await store.create("s", "/p", [])
        for number in range(5):
            session.add(FileBackedUp("c", "/p/a", Before(prose(number, 4_000_000))))
            await session.store_all(full=True)
        large = size_of(tmp_path)
        await session.release()
        await store.delete("s")
        await say(store, "t")
        async with timeout(DEADLINE):
            while size_of(tmp_path) >= large / 10:  # noqa: ASYNC110 -- it is given back a little at a time
                await asyncio.sleep(0.01)
        return large, size_of(tmp_path)

    large, small = with_store(tmp_path, talk)
    assert small < large / 10


def test_an_attachment_is_stored_once(tmp_path):
    data = base64.b64encode(random.Random(9).randbytes(3_000_000)).decode()

    async def talk(store):
        for id in ("s", "t"):
            session = await store.create(id, "/p", [])
            sent = (SentText("look"), SentMedia("image", data, "image/png"))
            session.add(UserSaid("m1", sent, (Text("look"), Image(data, "image/png"))))
            session.add(CommandGiven("m2", sent))
            await session.store_all(full=True)
            await session.release()
        return await store.events("s")

    said, given = with_store(tmp_path, talk)
    assert said.parts[1].data == said.sent[1].data == given.sent[1].data == data
    assert size_of(tmp_path) < 1.1 * 3_000_000


def test_what_two_sessions_share_stays_until_the_second_is_deleted(tmp_path):
    text = prose(10, 200_000)

    async def talk(store):
        session = await store.create("s", "/p", [])
        for event in (*turn("t1", "hello"), FileBackedUp("c", "/a", Before(text))):
            session.add(event)
        await (await store.fork("s", "copy", "/p", [])).release()
        await session.release()
        await store.delete("s")
        copied = await store.events("copy", former_texts=True)
        assert copied[-1] == FileBackedUp("c", "/a", Before(text))
        assert rows(tmp_path, "SELECT count(*) FROM contents") != [(0,)]
        await store.delete("copy")

    with_store(tmp_path, talk)
    assert rows(tmp_path, "SELECT (SELECT count(*) FROM contents), (SELECT count(*) FROM uses)") == [(0, 0)]


def test_what_no_disk_took_yet_is_read_with_its_long_texts(tmp_path):
    result = CallSettled("c", ToolResult(True, "x" * 100_000, "done", (TextBlock("y" * 100_000),)))

    async def talk(store):
        session = await store.create("s", "/p", [])
        other = sqlite3.connect(tmp_path / "sessions.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        session.add(result)
        with pytest.raises(StorageFailed, match="locked"):
            await session.store_all()
        read = await store.events("s")
        other.execute("ROLLBACK")
        other.close()
        await session.store_all()
        return read, await store.events("s")

    assert with_store(tmp_path, talk) == ([result], [result])


@pytest.mark.parametrize(
    "damage", ["DELETE FROM contents", "UPDATE contents SET data = x'00'", "UPDATE contents SET data = 1"]
)
def test_a_piece_that_cannot_be_read_is_a_damaged_record_of_its_session_alone(tmp_path, damage):
    async def write(store):
        await say(store, "t")
        session = await store.create("s", "/p", [])
        session.add(TextDelta("m1", "x" * 100_000))
        await session.release()

    with_store(tmp_path, write)
    with database(tmp_path / "sessions.db") as connection:
        connection.execute(damage)
    connection.close()
    with pytest.raises(StorageFailed, match=r'Session s is damaged: record 1 \("text_delta"\) cannot be read'):
        with_store(tmp_path, lambda store: store.events("s"))
    assert with_store(tmp_path, lambda store: store.events("t")) == list(turn("t1", "hello"))


# --- a file of layout 1

OLD = Path(__file__).with_name("layout_1.sql").read_text()
OLD_ID = "01234567890a-00112233445566aa"


def make_old(home: Path, *more: tuple[int, str]) -> None:
    """A store of layout 1, with further former texts."""
    with database(home / "sessions.db") as connection:
        connection.executescript(OLD)
        connection.executemany(
            "INSERT INTO former_texts VALUES (1, ?, 1, 'file_changing', 0, 1, ?)",
            more,
        )
    connection.close()


def test_a_store_of_layout_1_is_read_with_all_that_is_in_it(tmp_path):
    make_old(tmp_path)

    async def talk(store):
        return await store.events(OLD_ID, former_texts=True), (await store.page(None, "", 5)).entries

    events, [entry] = with_store(tmp_path, talk)
    assert (entry.id, entry.title, entry.cwd) == (OLD_ID, "rename it", "/project")
    former = [event.before and event.before.text for event in events if isinstance(event, FileBackedUp)]
    assert former == ["material = 'twig'\n# ä\n", "material = 'branch'\n# ä\n", None]
    said = [event for event in events if isinstance(event, UserSaid)]
    assert [event.sent[0] for event in said] == [SentText("rename it"), SentText("look"), SentText("outside")]
    picture = said[1].sent[1]
    assert isinstance(picture, SentMedia)
    assert said[1].parts[1] == Image(picture.data, "image/png")
    assert len(events) == 52


def test_the_long_texts_of_an_older_store_are_packed_and_the_room_given_back(tmp_path):
    text = prose(11, 3_000_000)
    events = [FileBackedUp("c", "/p/a", Before(f"{number}{text}")) for number in range(10)]
    bodies = [msgspec.json.encode(event).decode() for event in events]
    make_old(tmp_path, *((100 + number, body) for number, body in enumerate(bodies)))
    before = size_of(tmp_path)
    read = with_store(tmp_path, lambda store: store.events(OLD_ID, former_texts=True))
    assert read[-10:] == events
    assert (tmp_path / "sessions.db").stat().st_size < before / 15
    assert (tmp_path / "sessions.v1.db").stat().st_size < 1.05 * before

    with_store(tmp_path, lambda store: store.delete(OLD_ID))
    assert size_of(tmp_path) < 300_000
    assert b"rename it" not in b"".join(path.read_bytes() for path in tmp_path.glob("sessions*"))


def test_the_copy_that_an_upgrade_keeps_has_no_room_for_what_was_deleted(tmp_path):
    make_old(tmp_path, (100, "x" * 3_000_000))
    with database(tmp_path / "sessions.db") as connection:
        connection.execute("DELETE FROM former_texts WHERE seq = 100")
    connection.close()
    Database(str(tmp_path / "sessions.db")).close()
    assert (tmp_path / "sessions.v1.db").stat().st_size < 200_000


def test_a_record_of_an_older_store_that_is_damaged_stays_as_it_is(tmp_path):
    make_old(tmp_path, (100, "{" * 100_000))
    with pytest.raises(StorageFailed, match="record 100"):
        with_store(tmp_path, lambda store: store.events(OLD_ID, former_texts=True))
    assert len(with_store(tmp_path, lambda store: store.events(OLD_ID))) == 49
