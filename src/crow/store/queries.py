"""Reads stored sessions: one session's events, and the pages of the list of sessions, newest first, by cursor."""

# ruff: noqa: S608 -- what is put into the statements here are our own constants

import base64
import os
import sqlite3
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from crow.errors import BadCursor, SessionUnknown
from crow.events import Event, FileBackedUp
from crow.results import Location
from crow.store.base import FormerFile, ListNews, ListSeen, Mark, Page, SessionEntry
from crow.store.contents import reading_pieces
from crow.store.records import FORMER_TEXT_TAG, Row, events_of

ROW = "seq, version, tag, optional, time, body, packed"
"""The columns of a record."""
ENTRY = "id, cwd, roots, title, created, updated"
"""The columns of an entry."""

_NEWEST_FIRST = "ORDER BY updated DESC, id DESC LIMIT ?"
FIRST_PAGE = f"SELECT {ENTRY} FROM sessions WHERE listed = 1 {_NEWEST_FIRST}"
NEXT_PAGE = f"SELECT {ENTRY} FROM sessions WHERE listed = 1 AND (updated, id) < (?, ?) {_NEWEST_FIRST}"
FIRST_PAGE_OF_FOLDER = f"SELECT {ENTRY} FROM sessions WHERE listed = 1 AND cwd IN (?) {_NEWEST_FIRST}"
NEXT_PAGE_OF_FOLDER = (
    f"SELECT {ENTRY} FROM sessions WHERE listed = 1 AND cwd IN (?) AND (updated, id) < (?, ?) {_NEWEST_FIRST}"
)
BEGINNING_WITH = f"SELECT {ENTRY} FROM sessions WHERE id >= ?1 AND id < ?1 || char(1114111) AND listed = 1"
CHANGED_SINCE = f"SELECT {ENTRY} FROM sessions WHERE listed = 1 AND updated >= ?"
COUNT = "SELECT count(*) FROM sessions WHERE listed = 1"
IDS = "SELECT id FROM sessions WHERE listed = 1"
FOLDERS = "SELECT DISTINCT cwd FROM sessions WHERE listed = 1"


class Queries:
    """All that can be asked of the store's file. `reading` gives one view of it."""

    def __init__(self, reading: Callable[[], AbstractContextManager[sqlite3.Connection]]) -> None:
        self._reading = reading

    def find(self, session_id: str) -> SessionEntry:
        with self._reading() as connection:
            row = connection.execute(f"SELECT {ENTRY} FROM sessions WHERE id = ?", (clean(session_id),)).fetchone()
            if row is None:
                raise unknown(session_id)
            return entry_of(row)

    def beginning_with(self, beginning: str) -> list[SessionEntry]:
        with self._reading() as connection:
            return [entry_of(row) for row in connection.execute(BEGINNING_WITH, (clean(beginning),))]

    def events(
        self,
        session_id: str,
        *,
        former_texts: bool,
        waiting: Sequence[Row] = (),
        since: Mark | None = None,
        until: Mark | None = None,
    ) -> list[Event]:
        """`waiting`: rows that no disk took yet. They belong to the session all the same."""
        first = 0 if since is None or since.seq is None else since.seq
        last = sys.maxsize if until is None or until.seq is None else until.seq
        section = "session = :key AND seq > :first AND seq <= :last"
        query = f"SELECT {ROW} FROM records WHERE {section}"
        if former_texts:
            query += f" UNION ALL SELECT {ROW} FROM former_texts WHERE {section}"
        with self._reading() as connection:
            key = key_of(connection, session_id)
            if key is None:
                raise unknown(session_id)
            values = {"key": key, "first": first, "last": last}
            rows = [Row(*row) for row in connection.execute(f"{query} ORDER BY seq", values)]
            wanted = (row for row in waiting if first < row.seq <= last)
            rows.extend(row for row in wanted if former_texts or row.tag != FORMER_TEXT_TAG)
            contents = {digest: piece for row in waiting for digest, piece in row.contents.items()}
            events = events_of(rows, session_id, reading_pieces(connection, contents))
        return events if until is None else [*events, *until.previews]

    def former_files(self, session_id: str, waiting: Sequence[Row] = ()) -> list[FormerFile]:
        """Only the first text of each file is put together: there may be many of a file that is changed often."""
        with self._reading() as connection:
            key = key_of(connection, session_id)
            if key is None:
                raise unknown(session_id)
            query = f"SELECT {ROW} FROM former_texts WHERE session = ? ORDER BY seq"
            first: dict[str, Row] = {}
            last_calls: dict[str, str] = {}
            for row in (*(Row(*found) for found in connection.execute(query, (key,))), *waiting):
                if row.tag == FORMER_TEXT_TAG and (named := _files_named_in(row.body)).path:
                    first.setdefault(named.path, row)
                    last_calls[named.path] = named.call_id
            contents = {digest: piece for row in waiting for digest, piece in row.contents.items()}
            events = events_of(first.values(), session_id, reading_pieces(connection, contents))
        return [
            FormerFile(event.path, event.before, last_calls[event.path])
            for event in events
            if isinstance(event, FileBackedUp)
        ]

    def is_running(self, session_id: str) -> bool:
        """Whether a turn of the session runs, or did so when its process was killed."""
        with self._reading() as connection:
            row = connection.execute("SELECT running FROM sessions WHERE id = ?", (clean(session_id),)).fetchone()
            return row is not None and row[0] != 0

    def owners(self) -> dict[str, tuple[str, int]]:
        """The sessions that processes have claimed and not released: the owner's token, and since when a turn runs."""
        with self._reading() as connection:
            rows = connection.execute("SELECT id, owner, running FROM sessions WHERE owner != ''").fetchall()
            return {id: (owner, running) for id, owner, running in rows}

    def spent_on(self, day: str) -> dict[str, float]:
        with self._reading() as connection:
            return dict(connection.execute("SELECT unit, amount FROM spending WHERE day = ?", (day,)).fetchall())

    def page(self, cwd: str | None, cursor: str, size: int) -> Page:
        with self._reading() as connection:
            return _read_page(connection, cwd, cursor, size)

    def list_news(self, before: ListSeen | None, stamp: tuple[int, ...]) -> ListNews:
        with self._reading() as connection:
            since = before or ListSeen()
            rows = connection.execute(CHANGED_SINCE, (since.newest,)).fetchall()
            entries = [
                entry
                for entry in map(entry_of, rows)
                if entry.id not in since.at_newest or entry.updated_at > since.newest
            ]
            newest = max((entry.updated_at for entry in entries), default=since.newest)
            latest = frozenset(entry.id for entry in entries if entry.updated_at == newest)
            ids = since.ids | {entry.id for entry in entries}
            if connection.execute(COUNT).fetchone()[0] != len(ids):
                ids = frozenset(id for (id,) in connection.execute(IDS))
        at_newest = latest | since.at_newest if newest == since.newest else latest
        seen = ListSeen(stamp, newest, at_newest, ids)
        return ListNews(seen) if before is None else ListNews(seen, tuple(entries), tuple(since.ids - ids))


class _FilesNamed(msgspec.Struct):
    """The part of a record that names the files it is about, and is never taken out of it."""

    path: str = ""
    call_id: str = ""
    locations: tuple[Location, ...] = ()


_files_named = msgspec.json.Decoder(_FilesNamed)


def _files_named_in(body: str) -> _FilesNamed:
    """Empty if it cannot be read without the rest: a path of a file that is no UTF-8. One that is damaged is found when
    it is needed."""
    try:
        return _files_named.decode(body)
    except (msgspec.MsgspecError, UnicodeError):
        return _FilesNamed()


def changed_paths(connection: sqlite3.Connection, key: int, since: int) -> Iterator[str]:
    """The files that the session was about to change, or said it would, since a moment."""
    query = """
        SELECT body FROM former_texts WHERE session = ?1 AND time >= ?2
        UNION ALL SELECT body FROM records WHERE session = ?1 AND time >= ?2 AND tag = 'call_described'
    """
    for (body,) in connection.execute(query, (key, since)):
        named = _files_named_in(body)
        yield from filter(None, (named.path, *(location.path for location in named.locations)))


def key_of(connection: sqlite3.Connection, session_id: str) -> int | None:
    row = connection.execute("SELECT key FROM sessions WHERE id = ?", (clean(session_id),)).fetchone()
    return None if row is None else row[0]


def clean(text: str) -> str:
    """SQLite takes no half surrogate pairs."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def unknown(session_id: str) -> SessionUnknown:
    return SessionUnknown(f"There is no session {session_id}.", remedy="It may have been deleted; start a new one.")


# --- pages of the list


class _Position(msgspec.Struct, frozen=True, array_like=True):
    """The last entry that was shown: the next page begins after it."""

    updated: int
    id: str


def _read_page(connection: sqlite3.Connection, cwd: str | None, cursor: str, size: int) -> Page:
    """Reads one entry more than asked for, to know whether there is a next page."""
    folders = None if cwd is None else _spellings(connection, cwd)
    query, values = _page_query(folders, _position_of(cursor, cwd) if cursor else None)
    rows = connection.execute(query, (*values, size + 1)).fetchall()
    entries = tuple(entry_of(row) for row in rows[:size])
    if len(rows) <= size:
        return Page(entries, "")
    return Page(entries, _cursor_for(_Position(entries[-1].updated_at, entries[-1].id), cwd))


def _spellings(connection: sqlite3.Connection, cwd: str) -> list[str]:
    """The same folder under every name by which sessions know it, through links or without."""
    real = os.path.realpath(cwd)
    known = (folder for (folder,) in connection.execute(FOLDERS))
    return [folder for folder in known if folder == cwd or os.path.realpath(folder) == real]


def _page_query(folders: list[str] | None, after: _Position | None) -> tuple[str, tuple[Any, ...]]:
    position = () if after is None else (after.updated, after.id)
    if folders is None:
        return NEXT_PAGE if position else FIRST_PAGE, position
    query = NEXT_PAGE_OF_FOLDER if position else FIRST_PAGE_OF_FOLDER
    return query.replace("IN (?)", f"IN ({', '.join('?' * len(folders))})"), (*folders, *position)


def entry_of(row: tuple[str, str, str, str, int, int]) -> SessionEntry:
    id, cwd, roots, title, created, updated = row
    return SessionEntry(id, cwd, msgspec.json.decode(roots, type=tuple[str, ...]), title, created, updated)


# --- cursors: where the next page begins, as text that means nothing to anyone else


def _cursor_for(position: _Position, cwd: str | None) -> str:
    content = msgspec.json.encode(position)
    return base64.urlsafe_b64encode(_checksum(content, cwd) + content).decode()


def _position_of(cursor: str, cwd: str | None) -> _Position:
    """BadCursor for everything that `_cursor_for` did not make for the same list."""
    try:
        raw = base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True)
        checksum, content = raw[:4], raw[4:]
        position = msgspec.json.decode(content, type=_Position)
    except ValueError as error:
        raise _bad_cursor() from error
    if checksum != _checksum(content, cwd) or not 0 <= position.updated < 1 << 63:
        raise _bad_cursor()
    return position


def _checksum(content: bytes, cwd: str | None) -> bytes:
    return zlib.crc32(repr(cwd).encode("utf-8", "replace"), zlib.crc32(content)).to_bytes(4, "big")


def _bad_cursor() -> BadCursor:
    return BadCursor("Unknown cursor for this list of sessions.", remedy="List from the beginning.")
