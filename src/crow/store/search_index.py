"""The full-text index of what was said in sessions, in a file beside the store's own: brought up to date when somebody
searches, and purged of what is deleted.

`Indexing` does so beside everything else; `SearchIndex` is the file.

Everything in it can be made anew from the store, so that it is a file of its own: no start and no turn waits for it, an
older Crow need not know it, and one of another version, or a damaged one, is thrown away. It is written a few sessions
at a time, by whichever process is asked to search; one that was interrupted is gone on with.
"""

# ruff: noqa: S608 -- what is put into the statements here are our own constants

import asyncio
import contextlib
import logging
import os
import re
import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

import msgspec

from crow.errors import BadCursor, IndexDamaged, StorageFailed, StoreSilent
from crow.events import CommandGiven, Event, SentText, TextDelta, UserSaid
from crow.store.base import FILE_NAME, INDEX_NAME, Match, MatchPart, SearchResult, SessionEntry
from crow.store.contents import reading_pieces
from crow.store.database import ReadOnly
from crow.store.failures import file_address, storage_failed
from crow.store.queries import ENTRY, ROW, clean, entry_of
from crow.store.records import Row, events_of
from crow.store.worker import Worker

logger = logging.getLogger(__name__)

VERSION = 3
LOCK_TIMEOUT = 5.0
"""Seconds that one process waits for another's write."""
LONGEST_QUERY = 1000
MOST_WORDS = 32
MOST_HITS = 5000
"""Places that are looked at for one query, the last that were added first."""
SNIPPET = 24
"""Words around a hit."""
UNSPACED_SNIPPET = 60
"""The same where each character counts as a word; SQLite gives 64 at most."""
FORGETS_AT_ONCE = (3, 42, 0)
"""The version of SQLite from which on a full-text index can forget words at once."""

BATCH = 1_000_000
"""Characters of texts that are indexed in one step. A search that comes meanwhile waits for one step at most."""
SMALL = 1000
"""Pages of an index that is rid of what was deleted at once. A larger one is, piece by piece, in the background."""
SLICE = 100
"""Pages that are written in one step of that."""
_STEP = 500
"""Values in one statement."""

_BEGIN, _END = "\x02", "\x03"
"""Around what is found in a snippet."""
_BREAK = "\x04"
"""Ends a word where the text itself has nothing that does."""
_WITHOUT_MARKS = str.maketrans("", "", f"\0{_BEGIN}{_END}{_BREAK}")
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
"""The scripts that put no spaces between words: Thai, Lao, Burmese and Khmer; Japanese and Chinese."""
_AROUND_UNSPACED = re.compile(f"(?=[{_UNSPACED}])|(?<=[{_UNSPACED}])")
_TABLES = (
    "CREATE TABLE indexed (id TEXT PRIMARY KEY, seq INTEGER NOT NULL, title TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE places (key INTEGER PRIMARY KEY, session TEXT NOT NULL, place TEXT NOT NULL)",
    "CREATE INDEX places_by_session ON places (session)",
    "CREATE VIRTUAL TABLE texts USING fts5 (text, prefix = '1 2')",
    "CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    f"PRAGMA user_version = {VERSION}",
)
_HITS = """
SELECT key, session, place FROM texts JOIN places ON key = texts.rowid
WHERE texts MATCH ? ORDER BY texts.rowid DESC LIMIT ?
"""
_SNIPPET = "SELECT rowid, snippet(texts, 0, ?, ?, '…', ?) FROM texts WHERE texts MATCH ?"
_LISTED = "SELECT key, id, title FROM sessions WHERE listed = 1"
_IDS = "SELECT id FROM sessions WHERE listed = 1 ORDER BY updated DESC, id DESC"
LAST_RECORD = "SELECT rowid, session, seq FROM records ORDER BY rowid DESC LIMIT 1"
SAME_RECORD = "SELECT 1 FROM records WHERE rowid = ? AND session = ? AND seq = ?"
NEWS = """
SELECT DISTINCT id FROM records JOIN sessions ON key = session
WHERE records.rowid > ? AND tag IN ('turn_ended', 'title_changed', 'command_given') AND listed = 1
"""
"""The sessions in which something has been said, or that were named anew, since a record was the last one."""
ENDED = """
SELECT COALESCE((SELECT seq FROM records WHERE session = ? AND tag = 'turn_ended' ORDER BY seq DESC LIMIT 1), 0)
"""
"""What a running turn says is indexed once the turn has ended: a message is indexed whole."""
_SAID = f"""
SELECT {ROW} FROM records
WHERE session = ? AND seq > ? AND seq <= ? AND tag IN ('user_said', 'command_given', 'text_delta') ORDER BY seq
"""


class _Indexed(NamedTuple):
    """How much of a session is in the index."""

    seq: int = 0
    title: str = ""


class _Last(msgspec.Struct, frozen=True):
    """The last record of the store at one moment: if it is still where it was, all that is new comes after it."""

    rowid: int
    session: int
    seq: int


class Behind(NamedTuple):
    """What the index lacks."""

    ids: list[str]
    """The sessions of which something is not indexed yet, the newest first."""
    last: "_Last | None"
    """The store's last record when it was looked at."""
    sessions: int
    """How many there are."""


class SearchIndex:
    """`reading` gives one view of the store's file. Raises StorageFailed, and IndexDamaged if it is worth another
    try."""

    def __init__(self, home: str, reading: Callable[[], AbstractContextManager[sqlite3.Connection]]) -> None:
        self._path = os.path.join(home, INDEX_NAME)
        self._reading = reading

    # --- searching

    def search(self, query: str, first: int, limit: int) -> list[Match]:
        """The sessions that have all words of the query in one text, or in the title: those first, then the newest. The
        words are words, whatever they look like, and may be the beginnings of longer ones. `first` counts from 0."""
        words = query.translate(_WITHOUT_MARKS)[:LONGEST_QUERY].split()[:MOST_WORDS]
        if not words:
            return []
        wanted = " ".join('"' + _indexable(word).replace('"', '""') + '"*' for word in words)
        with self._opened("BEGIN") as index:
            best: dict[str, tuple[int, str]] = {}
            for key, session, place in index.execute(_HITS, (wanted, MOST_HITS)):
                if session not in best or (place == "title" and best[session][1] != "title"):
                    best[session] = key, place
            entries = sorted(
                self._entries(best), key=lambda entry: (best[entry.id][1] != "title", -entry.updated_at, entry.id)
            )
            page = entries[first : first + limit]
            snippets = _snippets(index, wanted, [best[entry.id][0] for entry in page])
            return [_match(entry, best[entry.id][1], snippets.get(best[entry.id][0], "")) for entry in page]

    def _entries(self, ids: Iterable[str]) -> Iterator[SessionEntry]:
        """Those that are still there: another Crow may have deleted one without knowing of the index."""
        wanted, rows = list(ids), list[Any]()
        with self._reading() as connection:
            for start in range(0, len(wanted), _STEP):
                some = wanted[start : start + _STEP]
                condition = f"id IN ({', '.join('?' * len(some))}) AND listed = 1"
                rows += connection.execute(f"SELECT {ENTRY} FROM sessions WHERE {condition}", some).fetchall()
        return map(entry_of, rows)

    # --- keeping it up to date

    def behind(self) -> Behind:
        """What is not indexed yet. What no session is any longer is removed."""
        with self._opened("BEGIN") as index:
            known = {id for (id,) in index.execute("SELECT id FROM indexed")}
            before = _state(index, "last")
        with self._reading() as connection:
            ids = [id for (id,) in connection.execute(_IDS)]
            row = connection.execute(LAST_RECORD).fetchone()
            last = None if row is None else _Last(*row)
            seen = msgspec.json.decode(before, type=_Last) if before else None
            if seen is not None and connection.execute(SAME_RECORD, msgspec.structs.astuple(seen)).fetchone():
                news = {id for (id,) in connection.execute(NEWS, (seen.rowid,))} | (set(ids) - known)
            else:
                news = self._changed(connection)
        if gone := known - set(ids):
            self._forget(gone)
        return Behind([id for id in ids if id in news], last, len(ids))

    def _changed(self, connection: sqlite3.Connection) -> set[str]:
        """The sessions that are not as the index has them, found by looking at each."""
        with self._opened("BEGIN") as index:
            known = {id: _Indexed(*rest) for id, *rest in index.execute("SELECT id, seq, title FROM indexed")}
        listed = connection.execute(_LISTED).fetchall()
        now = ((id, _Indexed(connection.execute(ENDED, (key,)).fetchone()[0], title)) for key, id, title in listed)
        return {id for id, state in now if known.get(id) != state}

    def add(self, ids: Sequence[str]) -> int:
        """Brings the first of these sessions up to date, in one step: as many as are not much together. How many."""
        done = size = 0
        with self._opened("BEGIN IMMEDIATE") as index, self._reading() as connection:
            for id in ids:
                size += self._add(index, connection, id)
                done += 1
                if size >= BATCH:
                    break
        return done

    def _add(self, index: sqlite3.Connection, connection: sqlite3.Connection, session_id: str) -> int:
        """How many characters were added."""
        # Looked at now that nobody else writes to the index: who deletes the session waits for us, or has done it.
        row = connection.execute(f"{_LISTED} AND id = ?", (session_id,)).fetchone()
        if row is None:
            return 0
        key, id, title = row
        found = index.execute("SELECT seq, title FROM indexed WHERE id = ?", (id,)).fetchone()
        known, last = _Indexed(*(found or ())), connection.execute(ENDED, (key,)).fetchone()[0]
        size = 0
        if title != known.title:
            _remove(index, "session = ? AND place = 'title'", id)
            size += _insert(index, id, "title", [title])
        rows = [Row(*said) for said in connection.execute(_SAID, (key, known.seq, last))]
        with contextlib.suppress(StorageFailed):  # a damaged one is not found by its words
            size += _insert(index, id, "text", _texts_in(events_of(rows, id, reading_pieces(connection, {}))))
        index.execute("INSERT OR REPLACE INTO indexed (id, seq, title) VALUES (?, ?, ?)", (id, last, title))
        return size

    def finish(self, behind: Behind) -> None:
        """All that was lacking has been added: what is new next time comes after the record that was the last one."""
        if behind.last is not None:
            with self._opened("BEGIN IMMEDIATE") as index:
                _set_state(index, "last", msgspec.json.encode(behind.last).decode())

    def delete(self, session_id: str) -> bool:
        """No text of the session is left in the file. Whether `tidy` has still to be called, for its words."""
        return os.path.exists(self._path) and self._forget([session_id])

    def _forget(self, ids: Iterable[str]) -> bool:
        with self._opened("BEGIN IMMEDIATE") as index:
            for id in ids:
                _remove(index, "session = ?", clean(id))
                index.execute("DELETE FROM indexed WHERE id = ?", (clean(id),))
            if sqlite3.sqlite_version_info >= FORGETS_AT_ONCE:
                return False
            if index.execute("PRAGMA page_count").fetchone()[0] <= SMALL:
                index.execute("INSERT INTO texts (texts) VALUES ('optimize')")
                _set_state(index, "tidy", "")
                return False
            _set_state(index, "tidy", "begin")
            return True

    def tidy(self) -> bool:
        """Overwrites a part of the words of what was deleted, which an older SQLite keeps until its pieces of the index
        are merged. Whether there is more to do."""
        if not os.path.exists(self._path):
            return False
        with self._opened("BEGIN IMMEDIATE") as index:
            if not (todo := _state(index, "tidy")):
                return False
            before = index.total_changes
            pages = -SLICE if todo == "begin" else SLICE  # the first one puts all pieces into one merge
            index.execute("INSERT INTO texts (texts, rank) VALUES ('merge', ?)", (pages,))
            more = todo == "begin" or index.total_changes - before >= 2
            _set_state(index, "tidy", "go on" if more else "")
            return more

    # --- the file

    @contextlib.contextmanager
    def _opened(self, begin: str) -> Generator[sqlite3.Connection]:
        """The index, in a transaction. One of another version is made anew; IndexDamaged if it is no database, or no
        longer, and was thrown away."""
        try:
            with contextlib.closing(self._connection()) as index:
                index.execute(begin)
                yield index
                index.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            failed = storage_failed(self._path, error)
            if type(error) is sqlite3.DatabaseError:  # and none of its kinds: the file is damaged
                self._throw_away()
                raise IndexDamaged(failed.message, remedy=failed.remedy) from error
            raise failed from error
        except OSError as error:
            raise storage_failed(self._path, error) from error

    def _throw_away(self) -> None:
        for path in (f"{self._path}-journal", self._path):  # a journal would be played back into the next one
            with contextlib.suppress(OSError):
                os.unlink(path)

    def _connection(self) -> sqlite3.Connection:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        index = sqlite3.connect(
            file_address(self._path, "mode=rw"), uri=True, timeout=LOCK_TIMEOUT, isolation_level=None
        )
        try:
            index.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten
            index.execute("PRAGMA synchronous = NORMAL")  # what a power cut damages is made anew
            if _version(index) != VERSION:
                _make_anew(index)
        except BaseException:
            index.close()
            raise
        return index


def _version(index: sqlite3.Connection) -> int:
    return index.execute("PRAGMA user_version").fetchone()[0]


def _make_anew(index: sqlite3.Connection) -> None:
    index.execute("BEGIN IMMEDIATE")
    if _version(index) != VERSION:  # another process may have done it meanwhile
        for table in ("texts", "places", "indexed", "state"):
            index.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in _TABLES:
            index.execute(statement)
        if sqlite3.sqlite_version_info >= FORGETS_AT_ONCE:
            index.execute("INSERT INTO texts (texts, rank) VALUES ('secure-delete', 1)")
    index.execute("COMMIT")


def _state(index: sqlite3.Connection, name: str) -> str:
    found = index.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
    return "" if found is None else found[0]


def _set_state(index: sqlite3.Connection, name: str, value: str) -> None:
    index.execute("INSERT OR REPLACE INTO state (name, value) VALUES (?, ?)", (name, value))


def _insert(index: sqlite3.Connection, session: str, place: str, texts: Iterable[str]) -> int:
    """How many characters were added."""
    size = 0
    for text in texts:
        size += len(text)
        if text.strip():
            row = index.execute("INSERT INTO places (session, place) VALUES (?, ?)", (session, place))
            words = (row.lastrowid, _indexable(text.translate(_WITHOUT_MARKS)))
            index.execute("INSERT INTO texts (rowid, text) VALUES (?, ?)", words)
    return size


def _indexable(text: str) -> str:
    """Each character of a script that puts no spaces between words is a word, so that what is searched for is found
    wherever in a sentence it stands."""
    return clean(_AROUND_UNSPACED.sub(_BREAK, text))


def _remove(index: sqlite3.Connection, condition: str, session: str) -> None:
    index.execute(f"DELETE FROM texts WHERE rowid IN (SELECT key FROM places WHERE {condition})", (session,))
    index.execute(f"DELETE FROM places WHERE {condition}", (session,))


def _texts_in(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        match event:
            case UserSaid() | CommandGiven():
                yield "\n".join(block.text for block in event.sent if isinstance(block, SentText))
            case TextDelta():
                yield event.text
            case _:
                pass


def _snippets(index: sqlite3.Connection, wanted: str, keys: Iterable[int]) -> dict[int, str]:
    """The words around the hits, by the text's key. Found in an index of these texts alone: the large one would look
    for the beginnings of words anew for each of them."""
    length = UNSPACED_SNIPPET if _BREAK in wanted else SNIPPET
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as small:
        small.execute("CREATE VIRTUAL TABLE texts USING fts5 (text)")
        for key in keys:
            text = index.execute("SELECT text FROM texts WHERE rowid = ?", (key,)).fetchone()
            small.execute("INSERT INTO texts (rowid, text) VALUES (?, ?)", (key, *text))
        return dict(small.execute(_SNIPPET, (_BEGIN, _END, length, wanted)).fetchall())


def _match(entry: SessionEntry, place: str, snippet: str) -> Match:
    parts: list[MatchPart] = []
    for piece in snippet.replace(_BREAK, "").split(_BEGIN):
        hit, ended, rest = piece.partition(_END)
        parts += [MatchPart(hit, hit=True), MatchPart(rest, hit=False)] if ended else [MatchPart(piece, hit=False)]
    where = "title" if place == "title" else "text"
    return Match(entry, where, tuple(part for part in parts if part.text))


# --- beside everything else

INDEXED_WITHIN = 1.0
"""Seconds that a search waits for what is not indexed yet, if that is not much."""
NOT_MUCH = 100
"""Sessions."""
TIDY_AFTER, TIDY_EVERY = 1.0, 0.05
"""Seconds from a deletion, and between two pieces of a large index that are rid of its words: nobody waits for that,
and whoever searches next goes on with it."""


class Indexing:
    def __init__(self, home: str, silence: Callable[[], StoreSilent]) -> None:
        self._worker = Worker("crow-store-index", silence)
        """Of its own, so that no turn waits for the index."""
        self._index = SearchIndex(home, ReadOnly(os.path.join(home, FILE_NAME)).reading)
        self._indexing: asyncio.Task[None] | None = None
        self._unread = self._all = 0
        """Sessions that are still to be indexed, and all there are."""
        self._tidying: asyncio.Task[None] | None = None

    def close(self) -> None:
        for task in (self._indexing, self._tidying):
            if task is not None:
                task.cancel()
        self._worker.stop()

    async def search(self, query: str, cursor: str, size: int) -> SearchResult:
        if not re.fullmatch(r"\d{0,9}", cursor, re.ASCII):
            raise BadCursor("Unknown cursor for this search.", remedy="Search from the beginning.")
        first = int(cursor or 0)
        try:
            return await self._search(query, first, size)
        except IndexDamaged as damaged:
            logger.warning("the index is made anew: %s", damaged)
            return await self._search(query, first, size)

    async def _search(self, query: str, first: int, size: int) -> SearchResult:
        if self._indexing is None or self._indexing.done():
            behind = await self._worker.run(self._index.behind)
            self._unread, self._all = len(behind.ids), behind.sessions
            self._indexing = asyncio.ensure_future(self._bring_up_to_date(behind))
        if self._unread <= NOT_MUCH:
            await asyncio.wait([self._indexing], timeout=INDEXED_WITHIN)
        matches = await self._worker.run(lambda: self._index.search(query, first, size + 1))
        more = str(first + size) if len(matches) > size else ""
        return SearchResult(matches[:size], more, 0 if self._indexing.done() else self._unread, self._all)

    async def _bring_up_to_date(self, behind: Behind) -> None:
        """A few at a time, so that a search that comes meanwhile waits for these only."""
        ids, is_whole = behind.ids, True
        while ids:
            try:
                done = await self._worker.run(partial(self._index.add, ids))
            except StorageFailed as failed:
                logger.warning("some sessions are not indexed: %s", failed)
                done, is_whole = 1, False
            ids = ids[done:]
            self._unread = len(ids)
        if is_whole and behind.ids:
            await self._worker.run(partial(self._index.finish, behind))
        self._tidy_soon()

    async def delete(self, session_id: str) -> None:
        """No word of the session is left, though the last ones go a moment later."""
        with contextlib.suppress(IndexDamaged):  # then nothing is left at all
            if await self._worker.run(lambda: self._index.delete(session_id)):
                self._tidy_soon()

    def _tidy_soon(self) -> None:
        if self._tidying is not None:
            self._tidying.cancel()
        self._tidying = asyncio.ensure_future(self._tidy())

    async def _tidy(self) -> None:
        await asyncio.sleep(TIDY_AFTER)  # more may be deleted, which comes first
        with contextlib.suppress(StorageFailed):
            while await self._worker.run(self._index.tidy):  # noqa: ASYNC110 -- others get their turn
                await asyncio.sleep(TIDY_EVERY)
