"""Pages of the list: newest first, each entry once, from an index."""

import base64

import msgspec
import pytest

from crow.errors import BadCursor
from crow.events import SentText, TurnEnded, TurnStarted, UserSaid
from crow.store import queries
from tests.support.databases import database
from tests.support.store import say, with_store


async def pages(store, cwd=None, size=2):
    found, cursor = [], ""
    while True:
        page = await store.page(cwd, cursor, size)
        found.append([entry.id for entry in page.entries])
        cursor = page.next_cursor
        if not cursor:
            return found


def fill(home, times, cwd="/p"):
    """Sessions with the given times, named after their place in the list."""

    async def talk(store):
        for number, _ in enumerate(times):
            await say(store, f"s{number}", cwd=cwd if number % 2 else "/other")

    with_store(home, talk)
    with database(home / "sessions.db") as connection:
        connection.executemany(
            "UPDATE sessions SET updated = ? WHERE id = ?", [(time, f"s{i}") for i, time in enumerate(times)]
        )
    connection.close()


def test_the_newest_come_first_and_the_last_page_has_no_cursor(tmp_path):
    fill(tmp_path, [30, 10, 20, 50, 40])
    assert with_store(tmp_path, pages) == [["s3", "s4"], ["s0", "s2"], ["s1"]]


def test_a_page_that_is_just_full_has_no_next(tmp_path):
    fill(tmp_path, [1, 2, 3, 4])
    assert with_store(tmp_path, pages) == [["s3", "s2"], ["s1", "s0"]]
    assert with_store(tmp_path / "empty", pages) == [[]]


def test_sessions_of_the_same_moment_are_each_listed_once(tmp_path):
    fill(tmp_path, [7] * 9)
    found = with_store(tmp_path, pages)
    assert [len(page) for page in found] == [2, 2, 2, 2, 1]
    assert [id for page in found for id in page] == sorted((f"s{number}" for number in range(9)), reverse=True)


def test_a_folder_lists_its_own_sessions_only(tmp_path):
    fill(tmp_path, [1, 2, 3, 4, 5, 6, 7])
    assert with_store(tmp_path, lambda store: pages(store, "/p")) == [["s5", "s3"], ["s1"]]
    assert with_store(tmp_path, lambda store: pages(store, "/p/q")) == [[]]


def test_a_folder_is_the_same_by_whatever_way_it_is_reached(tmp_path):
    folder, link = tmp_path / "folder", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)

    async def talk(store):
        for number, cwd in enumerate((folder, link, tmp_path, link, folder)):
            await say(store, f"s{number}", cwd=str(cwd))
        return [await pages(store, str(cwd)) for cwd in (folder, link)], await store.find("s1")

    found, entry = with_store(tmp_path / "home", talk)
    assert found == [[["s4", "s3"], ["s1", "s0"]]] * 2
    assert entry.cwd == str(link)


def test_sessions_that_come_or_move_up_meanwhile_make_no_duplicates(tmp_path):
    fill(tmp_path, range(1, 9))

    async def talk(store):
        seen, cursor = [], ""
        for number in range(5):
            page = await store.page(None, cursor, 2)
            seen.extend(entry.id for entry in page.entries)
            cursor = page.next_cursor
            await say(store, f"new{number}")
            if number == 1:
                old = await store.claim("s0")
                for event in (TurnStarted("t2"), UserSaid("m", (SentText("x"),), ()), TurnEnded("t2", None)):
                    old.add(event)
                await old.store_all()
            if not cursor:
                break
        return seen

    assert with_store(tmp_path, talk) == ["s7", "s6", "s5", "s4", "s3", "s2", "s1"]


def encoded(content, check=b"\0\0\0\0"):
    return base64.urlsafe_b64encode(check + content).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        *("x", "====", "not a cursor", "ä", "\udcff", "0", "A" * 100_000, "AAAA", "AAAAAAAA", "null", "\x00"),
        *(encoded(content) for content in (b"", b"[1]", b'[1,"a"]', b'["1","a"]', b"[" * 9999, b"[1e400,null]")),
    ],
)
def test_a_cursor_that_is_not_ours_is_refused(tmp_path, cursor):
    with pytest.raises(BadCursor):
        with_store(tmp_path, lambda store: store.page(None, cursor, 2))


def test_a_cursor_belongs_to_one_list_and_may_not_be_changed(tmp_path):
    fill(tmp_path, range(1, 9))

    async def talk(store):
        cursor = (await store.page("/p", "", 2)).next_cursor
        assert (await store.page("/p", cursor, 2)).entries
        changed = cursor[:-6] + ("A" if cursor[-6] != "A" else "B") + cursor[-5:]
        for cwd, wrong in (
            (None, cursor),
            ("/other", cursor),
            ("/p", cursor + "A"),
            ("/p", cursor[:-4]),
            ("/p", changed),
        ):
            with pytest.raises(BadCursor):
                await store.page(cwd, wrong, 2)

    with_store(tmp_path, talk)


@pytest.mark.parametrize(
    ("query", "values", "index"),
    [
        (queries.FIRST_PAGE, (51,), "sessions_by_time"),
        (queries.NEXT_PAGE, (9, "s9", 51), "sessions_by_time"),
        (queries.FIRST_PAGE_OF_FOLDER, ("/p", 51), "sessions_by_folder"),
        (queries.NEXT_PAGE_OF_FOLDER, ("/p", 9, "s9", 51), "sessions_by_folder"),
    ],
)
def test_a_page_of_five_thousand_sessions_is_read_from_the_index_in_its_order(tmp_path, query, values, index):
    with_store(tmp_path, lambda store: say(store, "first"))
    with database(tmp_path / "sessions.db") as connection:
        connection.executemany(
            "INSERT INTO sessions SELECT NULL, ?, '/p', '[]', '', ?, ?, 1, 0, '', 1",
            [(f"s{number}", number, number) for number in range(5000)],
        )
        plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}", values))
    connection.close()
    assert f"USING INDEX {index}" in plan
    assert "TEMP B-TREE" not in plan

    page = with_store(tmp_path, lambda store: store.page("/p", "", 50))
    assert [entry.id for entry in page.entries[:2]] == ["first", "s4999"]
    assert len(page.entries) == 50
    assert msgspec.structs.asdict(page)["next_cursor"]


def test_what_another_process_said_or_deleted_is_news_once(tmp_path):
    async def news(store):
        return await store.list_news(None)

    fill(tmp_path, [10, 20, 30])
    seen = with_store(tmp_path, news).seen

    async def change(store):
        await store.delete("s1")
        await say(store, "s9")

    async def compare(store):
        first = await store.list_news(seen)
        return first, await store.list_news(first.seen)

    with_store(tmp_path, change)
    first, second = with_store(tmp_path, compare)
    assert ([entry.id for entry in first.changed], first.deleted) == (["s9"], ("s1",))
    assert (second.changed, second.deleted) == ((), ())
