"""All that is done with a session's rows. Runs on the worker thread; raises CrowErrors only."""

# ruff: noqa: S608 -- what is put into the statements here are our own constants

import os
import sqlite3
import time
from collections.abc import Sequence
from typing import NoReturn

import msgspec

from crow.errors import SessionBusy, SessionTaken, SessionUnknown, StorageFailed
from crow.events import Event
from crow.store.base import Page, SessionEntry
from crow.store.database import Database
from crow.store.listing import ENTRY, entry_of, read_page
from crow.store.owners import Owner, process_of
from crow.store.pending import Pending
from crow.store.records import IMAGE_TAG, Row, events_of

FILE_NAME = "sessions.db"
OWNERS_NAME = "owners"

_ROW = "seq, version, tag, optional, time, body"
_INSERT_RECORD = f"INSERT INTO records (session, {_ROW}) VALUES (?, ?, ?, ?, ?, ?, ?)"
_INSERT_IMAGE = f"INSERT INTO images (session, {_ROW}) VALUES (?, ?, ?, ?, ?, ?, ?)"
_INSERT_SESSION = """
INSERT INTO sessions (id, cwd, roots, title, created, updated, used, listed, running, owner, epoch)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?, 1)
"""


class Sessions:
    def __init__(self, home: str, *, max_pages: int | None = None) -> None:
        self._database = Database(os.path.join(home, FILE_NAME), max_pages=max_pages)
        self._owners = os.path.join(home, OWNERS_NAME)
        self._owner: Owner | None = None

    # --- making, owning, removing

    def create(self, session_id: str, cwd: str, roots: Sequence[str]) -> Pending:
        owner = self._this_owner()
        with self._database.writing() as connection:
            return self._insert(connection, owner, session_id, cwd, roots)

    def claim(self, session_id: str) -> Pending:
        owner = self._this_owner()
        with self._database.writing() as connection:
            key = self._not_busy(connection, owner, session_id)
            if key is None:
                raise _unknown(session_id)
            connection.execute(
                "UPDATE sessions SET owner = ?, epoch = epoch + 1, running = 0, used = ? WHERE key = ?",
                (owner.token, _now(), key),
            )
            epoch = connection.execute("SELECT epoch FROM sessions WHERE key = ?", (key,)).fetchone()[0]
            return Pending(key, epoch, _last_seq(connection, key))

    def release(self, pending: Pending) -> None:
        """Nobody owns the session after it. Nothing is done if it has another owner already."""
        with self._database.writing() as connection:
            connection.execute(
                "UPDATE sessions SET owner = '', running = 0 WHERE key = ? AND epoch = ?", (pending.key, pending.epoch)
            )

    def fork(self, session_id: str, new_id: str, cwd: str, roots: Sequence[str]) -> Pending:
        owner = self._this_owner()
        with self._database.writing() as connection:
            source = connection.execute(
                "SELECT key, title, listed FROM sessions WHERE id = ?", (_clean(session_id),)
            ).fetchone()
            if source is None:
                raise _unknown(session_id)
            key, title, listed = source
            copy = self._insert(connection, owner, new_id, cwd, roots, title=title, listed=listed)
            for table in ("records", "images"):
                connection.execute(
                    f"INSERT INTO {table} (session, {_ROW}) SELECT ?, {_ROW} FROM {table} WHERE session = ?",
                    (copy.key, key),
                )
            return Pending(copy.key, copy.epoch, _last_seq(connection, copy.key))

    def delete(self, session_id: str) -> bool:
        owner = self._this_owner()
        with self._database.writing() as connection:
            key = self._not_busy(connection, owner, session_id)
            if key is None:
                return False
            connection.execute("DELETE FROM records WHERE session = ?", (key,))
            connection.execute("DELETE FROM images WHERE session = ?", (key,))
            connection.execute("DELETE FROM sessions WHERE key = ?", (key,))
            return True

    # --- writing

    def store(self, session_id: str, pending: Pending, *, full: bool = False) -> None:
        """Stores what waits, all of it or nothing. If the session has another owner by now, it is dropped for good."""
        if not (pending.rows or full or pending.taken):
            return
        with self._database.writing(full=full) as connection:
            self._check_owner(connection, session_id, pending)
            _insert_rows(connection, pending)
            _change_entry(connection, pending)
        pending.forget()

    def set_roots(self, session_id: str, roots: Sequence[str]) -> None:
        with self._database.writing() as connection:
            changed = connection.execute(
                "UPDATE sessions SET roots = ? WHERE id = ?", (_json_of(roots), _clean(session_id))
            )
            if changed.rowcount == 0:
                raise _unknown(session_id)

    # --- reading

    def find(self, session_id: str) -> SessionEntry:
        with self._database.reading() as connection:
            row = connection.execute(
                f"SELECT {ENTRY} FROM sessions WHERE id = ?",
                (_clean(session_id),),
            ).fetchone()
        if row is None:
            raise _unknown(session_id)
        return entry_of(row)

    def events(self, session_id: str, *, images: bool, waiting: Sequence[Row]) -> list[Event]:
        """`waiting`: rows that no disk took yet. They belong to the session all the same."""
        query = f"SELECT {_ROW} FROM records WHERE session = :key"
        if images:
            query += f" UNION ALL SELECT {_ROW} FROM images WHERE session = :key"
        with self._database.reading() as connection:
            key = _key_of(connection, session_id)
            if key is None:
                raise _unknown(session_id)
            rows = [Row(*row) for row in connection.execute(f"{query} ORDER BY seq", {"key": key})]
        rows.extend(row for row in waiting if images or row.tag != IMAGE_TAG)
        return events_of(rows, session_id)

    def page(self, cwd: str | None, cursor: str, size: int) -> Page:
        with self._database.reading() as connection:
            return read_page(connection, cwd, cursor, size)

    def close(self) -> None:
        with self._database.in_words():
            try:
                self._database.close()
            finally:
                if self._owner is not None:
                    self._owner.close()

    # --- who may

    def _this_owner(self) -> Owner:
        if self._owner is None:
            with self._database.in_words():
                self._owner = Owner(self._owners)
        return self._owner

    def _not_busy(self, connection: sqlite3.Connection, owner: Owner, session_id: str) -> int | None:
        """The session's key. SessionBusy if a turn of it runs in another process that lives."""
        row = connection.execute(
            "SELECT key, owner, running FROM sessions WHERE id = ?", (_clean(session_id),)
        ).fetchone()
        if row is None:
            return None
        key, other, running = row
        if running and owner.lives_elsewhere(other):
            since = time.strftime("%H:%M:%S", time.localtime(running / 1000))
            raise SessionBusy(
                f"A turn of this session is running in another Crow (process {process_of(other)}) since {since}.",
                remedy="Wait for its end, cancel it there, or end that process; then try again.",
            )
        return key

    def _check_owner(self, connection: sqlite3.Connection, session_id: str, pending: Pending) -> None:
        row = connection.execute("SELECT owner, epoch FROM sessions WHERE key = ?", (pending.key,)).fetchone()
        token = self._this_owner().token
        if row == (token, pending.epoch):
            return
        pending.taken = True
        pending.forget()
        _refuse_stale(session_id, row, token)

    def _insert(
        self,
        connection: sqlite3.Connection,
        owner: Owner,
        session_id: str,
        cwd: str,
        roots: Sequence[str],
        *,
        title: str = "",
        listed: int = 0,
    ) -> Pending:
        if _key_of(connection, session_id) is not None:
            raise StorageFailed(f"There is a session {session_id} already.", remedy="Choose another id.")
        now = _now()
        row = connection.execute(
            _INSERT_SESSION,
            (_clean(session_id), _clean(cwd), _json_of(roots), title, now, now, now, listed, owner.token),
        )
        return Pending(row.lastrowid or 0, 1, 0)


def _insert_rows(connection: sqlite3.Connection, pending: Pending) -> None:
    for query, is_image in ((_INSERT_RECORD, False), (_INSERT_IMAGE, True)):
        connection.executemany(
            query,
            [
                (pending.key, row.seq, row.version, row.tag, row.optional, row.time, row.body)
                for row in pending.rows
                if (row.tag == IMAGE_TAG) is is_image
            ],
        )


def _change_entry(connection: sqlite3.Connection, pending: Pending) -> None:
    change = pending.change
    connection.execute(
        """
        UPDATE sessions SET used = ?, title = COALESCE(?, title), updated = COALESCE(?, updated),
            running = COALESCE(?, running), listed = listed OR ?
        WHERE key = ?
        """,
        (
            _now(),
            None if change.title is None else _clean(change.title),
            change.updated,
            change.running,
            change.listed,
            pending.key,
        ),
    )


def _refuse_stale(session_id: str, row: tuple[str, int] | None, token: str) -> NoReturn:
    if row is None:
        raise SessionTaken(f"The session {session_id} was deleted: what happens here is no longer kept.")
    owner, _ = row
    elsewhere = f"in another Crow (process {process_of(owner)})" if owner and owner != token else "elsewhere"
    raise SessionTaken(
        f"The session {session_id} was continued {elsewhere}: what happens here is no longer kept.",
        remedy="Load it again to go on here.",
    )


def _key_of(connection: sqlite3.Connection, session_id: str) -> int | None:
    row = connection.execute("SELECT key FROM sessions WHERE id = ?", (_clean(session_id),)).fetchone()
    return None if row is None else row[0]


def _last_seq(connection: sqlite3.Connection, key: int) -> int:
    return max(
        connection.execute(f"SELECT COALESCE(MAX(seq), 0) FROM {table} WHERE session = ?", (key,)).fetchone()[0]
        for table in ("records", "images")
    )


def _json_of(roots: Sequence[str]) -> str:
    return msgspec.json.encode([_clean(root) for root in roots]).decode()


def _clean(text: str) -> str:
    """SQLite takes no half surrogate pairs."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _now() -> int:
    return time.time_ns() // 1_000_000


def _unknown(session_id: str) -> SessionUnknown:
    return SessionUnknown(f"There is no session {session_id}.", remedy="It may have been deleted; start a new one.")
