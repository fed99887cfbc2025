"""The index for searching in many sessions: what a look for news reads, and a build that was interrupted."""

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from crow.errors import BadCursor
from crow.events import SentText, TextDelta, TitleChanged, TurnEnded, TurnStarted, UserSaid
from crow.messages import StopReason, Text
from crow.store import search_index
from crow.store.database import ReadOnly
from crow.store.queries import BEGINNING_WITH
from crow.store.search_index import ENDED, LAST_RECORD, NEWS, SAME_RECORD, SearchIndex
from crow.store.store import open_store


def said(number: int, words: str) -> list:
    sent = UserSaid(f"m{number}", (SentText(words),), (Text(words),))
    return [
        TurnStarted(f"t{number}"),
        sent,
        TextDelta(f"n{number}", "Yes."),
        TurnEnded(f"t{number}", StopReason.END_TURN),
    ]


def talk(home: Path, *sessions: str, words: str = "a common word") -> None:
    async def run() -> None:
        store = open_store(str(home))
        for session in sessions:
            log = await store.create(session, "/work", ["/work"])
            for event in said(1, f"{words} in {session}"):
                log.add(event)
            await log.release()
        await store.close()

    asyncio.run(run())


def say_more(home: Path, session: str, *events) -> None:
    async def run() -> None:
        store = open_store(str(home))
        log = await store.claim(session)
        for event in events:
            log.add(event)
        await log.release()
        await store.close()

    asyncio.run(run())


def delete(home: Path, session: str) -> None:
    async def run() -> None:
        store = open_store(str(home))
        await store.delete(session)
        await store.close()

    asyncio.run(run())


class Counted(SearchIndex):
    """An index that keeps the statements which it sends to the store's file."""

    def __init__(self, home: Path) -> None:
        store = ReadOnly(str(home / "sessions.db"))
        super().__init__(str(home), store.reading)
        self.statements: list[str] = []
        self._plain = store.reading

    def look(self) -> list[str]:
        """The sessions that lack something."""
        reading = self._plain
        counted = self.statements

        class Traced:
            def __enter__(self):
                self.inner = reading()
                connection = self.inner.__enter__()
                connection.set_trace_callback(counted.append)
                return connection

            def __exit__(self, *error):
                return self.inner.__exit__(*error)

        self._reading = Traced
        counted.clear()
        return self.behind().ids


def index_all(index: SearchIndex) -> None:
    behind = index.behind()
    ids: Sequence[str] = behind.ids
    while ids:
        ids = ids[index.add(ids) :]
    index.finish(behind)


def found(index: SearchIndex, query: str) -> list[str]:
    return sorted(match.entry.id for match in index.search(query, 0, 100))


def test_a_look_for_news_asks_for_no_session_that_has_none(tmp_path):
    names = [f"s{number:03}" for number in range(100)]
    talk(tmp_path, *names)
    index = Counted(tmp_path)
    assert sorted(index.look()) == names
    assert len(index.statements) > 100, "each is looked at while nothing is known"
    index_all(index)
    assert index.look() == []
    few = len(index.statements)
    assert few < 10
    say_more(tmp_path, "s007", *said(2, "more of it"))
    say_more(tmp_path, "s042", TitleChanged("About zebras"))
    assert sorted(index.look()) == ["s007", "s042"]
    assert len(index.statements) == few
    index_all(index)
    assert (found(index, "more"), found(index, "zebra"), index.look()) == (["s007"], ["s042"], [])


def test_what_took_the_place_of_deleted_records_is_not_overlooked(tmp_path):
    talk(tmp_path, "first", "last")
    index = Counted(tmp_path)
    index_all(index)
    delete(tmp_path, "last")
    talk(tmp_path, "other", "another")
    say_more(tmp_path, "first", *said(2, "more of it"))
    assert sorted(index.look()) == ["another", "first", "other"]


def test_a_build_that_was_interrupted_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(search_index, "BATCH", 1)
    names = [f"s{number}" for number in range(5)]
    talk(tmp_path, *names)
    index = Counted(tmp_path)
    first, second, *rest = index.look()
    assert (index.add([first, second, *rest]), index.add([second, *rest])) == (1, 1)
    again = Counted(tmp_path)
    assert found(again, "common") == sorted([first, second])
    assert again.look() == rest
    index_all(again)
    assert found(again, "common") == names


def test_a_search_tells_how_far_it_is_and_gives_its_answers_in_pages(tmp_path, monkeypatch):
    monkeypatch.setattr("crow.store.search_index.NOT_MUCH", -1)  # so that it waits for no session
    monkeypatch.setattr(search_index, "BATCH", 1)
    names = [f"s{number}" for number in range(30)]
    talk(tmp_path, *names)

    async def run() -> None:
        store = open_store(str(tmp_path))
        before = 31
        while (result := await store.search("common", "", 10)).unread:
            assert (result.sessions, result.unread <= before) == (30, True)
            before = result.unread
        assert before < 31, "it was told at least once how many are left"
        pages, cursor = [], ""
        while not pages or cursor:
            page = await store.search("common", cursor, 8)
            pages.append([match.entry.id for match in page.matches])
            cursor = page.next_cursor
        assert [len(page) for page in pages] == [8, 8, 8, 6]
        assert sorted(id for page in pages for id in page) == sorted(names)
        with pytest.raises(BadCursor):
            await store.search("common", "-1", 8)
        await store.close()

    asyncio.run(run())


def test_words_of_what_was_deleted_are_overwritten_piece_by_piece_in_a_large_index(tmp_path, monkeypatch):
    monkeypatch.setattr(search_index, "SMALL", 0)
    monkeypatch.setattr(search_index, "SLICE", 1)
    talk(tmp_path, "kept", "gone", words="unmistakable")
    index = Counted(tmp_path)
    index_all(index)
    is_left = index.delete("gone")
    assert is_left == (b"gone" in (tmp_path / "search.db").read_bytes()), "an older SQLite keeps the words"
    while index.tidy():
        assert found(index, "unmistakable") == ["kept"]
    content = (tmp_path / "search.db").read_bytes()
    assert b"unmistakab" in content
    assert b"gone" not in content


@pytest.mark.parametrize(
    ("query", "values"),
    [(NEWS, (7,)), (LAST_RECORD, ()), (SAME_RECORD, (7, 1, 1)), (ENDED, (1,)), (BEGINNING_WITH, ("ab",))],
)
def test_no_query_goes_through_all_records_or_sessions(tmp_path, query, values):
    talk(tmp_path, "one")
    with sqlite3.connect(tmp_path / "sessions.db") as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}", values)]
    connection.close()
    scans = [step for step in plan if step.startswith("SCAN") and "CONSTANT" not in step]
    assert scans == (["SCAN records"] if query == LAST_RECORD else []), plan  # from its end, one row
