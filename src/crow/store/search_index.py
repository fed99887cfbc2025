"""The full-text index of what was said in sessions, in a file beside the store's own: brought up to date when somebody
searches, and purged of what is deleted.

Everything in it can be made anew from the store, so that it is a file of its own: no start and no turn waits for it, an
older Crow need not know it, and one of another version, or a damaged one, is thrown away. It is written session by
session, each in one step, by whichever process is asked to search.
"""

# ruff: noqa: S608 -- what is put into the statements here are our own constants

import contextlib
import os
import re
import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple

from crow.errors import IndexDamaged, StorageFailed
from crow.events import CommandGiven, Event, SentText, TextDelta, UserSaid
from crow.store.base import INDEX_NAME, Match, MatchPart, SessionEntry
from crow.store.contents import reading_pieces
from crow.store.failures import file_address, storage_failed
from crow.store.queries import ENTRY, ROW, clean, entry_of
from crow.store.records import Row, events_of

VERSION = 2
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
    "CREATE VIRTUAL TABLE texts USING fts5 (text)",
    f"PRAGMA user_version = {VERSION}",
)
_HITS = """
SELECT key, session, place FROM texts JOIN places ON key = texts.rowid
WHERE texts MATCH ? ORDER BY texts.rowid DESC LIMIT ?
"""
_SNIPPET = "SELECT snippet(texts, 0, ?, ?, '…', ?) FROM texts WHERE texts MATCH ? AND rowid = ?"
_LISTED = "SELECT key, id, title FROM sessions WHERE listed = 1"
_ENDED = "SELECT COALESCE(MAX(seq), 0) FROM records WHERE session = ? AND tag = 'turn_ended'"
"""What a running turn says is indexed once the turn has ended: a message is indexed whole."""
_SAID = f"""
SELECT {ROW} FROM records
WHERE session = ? AND seq > ? AND seq <= ? AND tag IN ('user_said', 'command_given', 'text_delta') ORDER BY seq
"""


class _Indexed(NamedTuple):
    """How much of a session is in the index."""

    seq: int = 0
    title: str = ""


class SearchIndex:
    """`reading` gives one view of the store's file. Raises StorageFailed, and IndexDamaged if it is worth another
    try."""

    def __init__(self, home: str, reading: Callable[[], AbstractContextManager[sqlite3.Connection]]) -> None:
        self._path = os.path.join(home, INDEX_NAME)
        self._reading = reading

    # --- searching

    def search(self, query: str, limit: int) -> list[Match]:
        """The sessions that have all words of the query in one text, or in the title: those first, then the newest. The
        words are words, whatever they look like, and may be the beginnings of longer ones."""
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
            return [_match(index, wanted, entry, *best[entry.id]) for entry in entries[:limit]]

    def _entries(self, ids: Iterable[str]) -> Iterator[SessionEntry]:
        """Those that are still there: another Crow may have deleted one without knowing of the index."""
        with self._reading() as connection:
            query = f"SELECT {ENTRY} FROM sessions WHERE id = ? AND listed = 1"
            rows = [connection.execute(query, (id,)).fetchone() for id in ids]
        return (entry_of(row) for row in rows if row is not None)

    # --- keeping it up to date

    def behind(self) -> list[str]:
        """The sessions of which something is not indexed yet, the newest first. What no session is any longer is
        removed."""
        with self._opened("BEGIN") as index:
            known = {id: _Indexed(*rest) for id, *rest in index.execute("SELECT id, seq, title FROM indexed")}
        with self._reading() as connection:
            listed = connection.execute(f"{_LISTED} ORDER BY updated DESC").fetchall()
            now = {id: _Indexed(connection.execute(_ENDED, (key,)).fetchone()[0], title) for key, id, title in listed}
        if gone := known.keys() - now.keys():
            self._forget(gone)
        return [id for id, state in now.items() if known.get(id) != state]

    def add(self, session_id: str) -> None:
        """Brings one session up to date, in one step."""
        with self._opened("BEGIN IMMEDIATE") as index, self._reading() as connection:
            # Looked at now that nobody else writes to the index: who deletes the session waits for us, or has done it.
            row = connection.execute(f"{_LISTED} AND id = ?", (session_id,)).fetchone()
            if row is None:
                return
            key, id, title = row
            found = index.execute("SELECT seq, title FROM indexed WHERE id = ?", (id,)).fetchone()
            known, last = _Indexed(*(found or ())), connection.execute(_ENDED, (key,)).fetchone()[0]
            if title != known.title:
                _remove(index, "session = ? AND place = 'title'", id)
                _insert(index, id, "title", [title])
            rows = [Row(*said) for said in connection.execute(_SAID, (key, known.seq, last))]
            with contextlib.suppress(StorageFailed):  # a damaged one is not found by its words
                _insert(index, id, "text", _texts_in(events_of(rows, id, reading_pieces(connection, {}))))
            index.execute("INSERT OR REPLACE INTO indexed (id, seq, title) VALUES (?, ?, ?)", (id, last, title))

    def delete(self, session_id: str) -> None:
        """No word of the session is left in the file."""
        if os.path.exists(self._path):
            self._forget([session_id])

    def _forget(self, ids: Iterable[str]) -> None:
        with self._opened("BEGIN IMMEDIATE") as index:
            for id in ids:
                _remove(index, "session = ?", clean(id))
                index.execute("DELETE FROM indexed WHERE id = ?", (clean(id),))
            if sqlite3.sqlite_version_info < FORGETS_AT_ONCE:
                index.execute("INSERT INTO texts (texts) VALUES ('optimize')")

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
        for table in ("texts", "places", "indexed"):
            index.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in _TABLES:
            index.execute(statement)
        if sqlite3.sqlite_version_info >= FORGETS_AT_ONCE:
            index.execute("INSERT INTO texts (texts, rank) VALUES ('secure-delete', 1)")
    index.execute("COMMIT")


def _insert(index: sqlite3.Connection, session: str, place: str, texts: Iterable[str]) -> None:
    for text in texts:
        if text.strip():
            row = index.execute("INSERT INTO places (session, place) VALUES (?, ?)", (session, place))
            words = (row.lastrowid, _indexable(text.translate(_WITHOUT_MARKS)))
            index.execute("INSERT INTO texts (rowid, text) VALUES (?, ?)", words)


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


def _match(index: sqlite3.Connection, wanted: str, entry: SessionEntry, key: int, place: str) -> Match:
    length = UNSPACED_SNIPPET if _BREAK in wanted else SNIPPET
    [snippet] = index.execute(_SNIPPET, (_BEGIN, _END, length, wanted, key)).fetchone()
    parts: list[MatchPart] = []
    for piece in snippet.replace(_BREAK, "").split(_BEGIN):
        hit, ended, rest = piece.partition(_END)
        parts += [MatchPart(hit, hit=True), MatchPart(rest, hit=False)] if ended else [MatchPart(piece, hit=False)]
    where = "title" if place == "title" else "text"
    return Match(entry, where, tuple(part for part in parts if part.text))
