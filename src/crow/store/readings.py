"""What can be read of the stored sessions."""

# ruff: noqa: S608 -- what is put into the statements here are our own constants

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

import msgspec

from crow.errors import SessionUnknown
from crow.events import Event
from crow.results import Location
from crow.store.base import Page, SessionEntry
from crow.store.contents import reading_pieces
from crow.store.listing import ENTRY, entry_of, read_page
from crow.store.records import FORMER_TEXT_TAG, Row, events_of

ROW = "seq, version, tag, optional, time, body, packed"
"""The columns of a record."""


class Readings:
    """`reading` gives one view of the file."""

    def __init__(self, reading: Callable[[], AbstractContextManager[sqlite3.Connection]]) -> None:
        self._reading = reading

    def find(self, session_id: str) -> SessionEntry:
        with self._reading() as connection:
            row = connection.execute(f"SELECT {ENTRY} FROM sessions WHERE id = ?", (clean(session_id),)).fetchone()
            if row is None:
                raise unknown(session_id)
            return entry_of(row)

    def events(self, session_id: str, *, former_texts: bool, waiting: Sequence[Row] = ()) -> list[Event]:
        """`waiting`: rows that no disk took yet. They belong to the session all the same."""
        query = f"SELECT {ROW} FROM records WHERE session = :key"
        if former_texts:
            query += f" UNION ALL SELECT {ROW} FROM former_texts WHERE session = :key"
        with self._reading() as connection:
            key = key_of(connection, session_id)
            if key is None:
                raise unknown(session_id)
            rows = [Row(*row) for row in connection.execute(f"{query} ORDER BY seq", {"key": key})]
            rows.extend(row for row in waiting if former_texts or row.tag != FORMER_TEXT_TAG)
            contents = {digest: piece for row in waiting for digest, piece in row.contents.items()}
            return events_of(rows, session_id, reading_pieces(connection, contents))

    def is_running(self, session_id: str) -> bool:
        """Whether a turn of the session runs, or did so when its process was killed."""
        with self._reading() as connection:
            row = connection.execute("SELECT running FROM sessions WHERE id = ?", (clean(session_id),)).fetchone()
            return row is not None and row[0] != 0

    def spent_on(self, day: str) -> dict[str, float]:
        with self._reading() as connection:
            return dict(connection.execute("SELECT unit, amount FROM spending WHERE day = ?", (day,)).fetchall())

    def page(self, cwd: str | None, cursor: str, size: int) -> Page:
        with self._reading() as connection:
            return read_page(connection, cwd, cursor, size)


class _Named(msgspec.Struct):
    """The part of a record that names the files it is about."""

    path: str = ""
    locations: tuple[Location, ...] = ()


_named = msgspec.json.Decoder(_Named)


def changed_paths(connection: sqlite3.Connection, key: int, since: int) -> Iterator[str]:
    """The files that the session was about to change, or said it would, since a moment."""
    query = """
        SELECT body FROM former_texts WHERE session = ?1 AND time >= ?2
        UNION ALL SELECT body FROM records WHERE session = ?1 AND time >= ?2 AND tag = 'call_described'
    """
    for (body,) in connection.execute(query, (key, since)):
        with contextlib.suppress(msgspec.MsgspecError, UnicodeError):  # one that is damaged is found when it is needed
            record = _named.decode(body)
            yield from filter(None, (record.path, *(location.path for location in record.locations)))


def key_of(connection: sqlite3.Connection, session_id: str) -> int | None:
    row = connection.execute("SELECT key FROM sessions WHERE id = ?", (clean(session_id),)).fetchone()
    return None if row is None else row[0]


def clean(text: str) -> str:
    """SQLite takes no half surrogate pairs."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def unknown(session_id: str) -> SessionUnknown:
    return SessionUnknown(f"There is no session {session_id}.", remedy="It may have been deleted; start a new one.")
