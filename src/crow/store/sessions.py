"""Changes the rows of a session: create, claim, append, fork, delete; refuses what belongs to another process. Runs on
the worker thread; raises CrowErrors only.
"""

# ruff: noqa: S608 -- what is put into the statements here are our own constants

import os
import sqlite3
import time
from collections.abc import Sequence
from typing import NoReturn

import msgspec

from crow.errors import SessionBusy, SessionElsewhere, SessionTaken, StorageFailed
from crow.events import milliseconds_now
from crow.store.base import FILE_NAME
from crow.store.contents import copy_uses, pack_missing, store_contents
from crow.store.database import Database
from crow.store.failures import on_a_network
from crow.store.layout import remove_session
from crow.store.owners import OWNERS_NAME, Owner, ask_to_stop, lives, process_of, report_missing_socket, socket_of
from crow.store.queries import ROW, Queries, changed_paths, clean, key_of, unknown
from crow.store.records import FORMER_TEXT_TAG, Pending

EMPTY_FOR = 24 * 60 * 60 * 1000
"""Milliseconds for which a session in which nothing was said is kept: an editor may come back to it."""

MISSING_FOR = 1.0
"""Seconds that the socket of another process must be missing before that process is told."""

AT_ONCE = 200
"""Rows of each kind, and pages of the file, that a deletion takes in one step: others write between two of them."""

_INSERT_RECORD = f"INSERT INTO records (session, {ROW}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_FORMER_TEXT = f"INSERT INTO former_texts (session, {ROW}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_SESSION = """
INSERT INTO sessions (id, cwd, roots, title, created, updated, listed, running, owner, epoch)
VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, 1)
"""


class SessionRows:
    def __init__(
        self, home: str, *, max_pages: int | None = None, stoppable: bool = False, attachable: bool = False
    ) -> None:
        """`stoppable`: this process has a handler for the signal, which reads `requests`. `attachable`: it will listen
        at `socket`."""
        self._stoppable = stoppable
        self._attachable = attachable
        self._database = Database(os.path.join(home, FILE_NAME), max_pages=max_pages)
        self._owners = os.path.join(home, OWNERS_NAME)
        self._owner: Owner | None = None
        self._missing_since: dict[str, float] = {}
        """When the socket of an owner was first found to be missing."""
        self._has_room = False
        """Whether something was deleted whose room was not given back."""
        self.files_cut_off: tuple[str, ...] = ()
        """The files that were being changed by processes that were killed, known from the first session on."""
        self.queries = Queries(self._database.reading)

    @property
    def remark(self) -> str:
        """What the person should know of where the store lies; empty if there is nothing to say."""
        network = self._database.network
        return " ".join(on_a_network(os.path.dirname(self._database.path), network)) if network else ""

    # --- making, owning, removing

    def create(self, session_id: str, cwd: str, roots: Sequence[str]) -> Pending:
        owner = self._this_owner()
        with self._database.writing() as connection:
            return self._insert(connection, owner, session_id, cwd, roots)

    def create_for(self, pending: Pending, session_id: str, cwd: str, roots: Sequence[str]) -> None:
        """Creates the session for rows that wait already."""
        created = self.create(session_id, cwd, roots)
        pending.key, pending.epoch = created.key, created.epoch

    def claim(self, session_id: str) -> Pending:
        owner = self._this_owner()
        with self._database.writing() as connection:
            self._not_elsewhere(connection, owner, session_id)
            key = self._not_busy(connection, owner, session_id)
            if key is None:
                raise unknown(session_id)
            connection.execute(
                "UPDATE sessions SET owner = ?, epoch = epoch + 1, running = 0 WHERE key = ?", (owner.token, key)
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
                "SELECT key, title, listed FROM sessions WHERE id = ?", (clean(session_id),)
            ).fetchone()
            if source is None:
                raise unknown(session_id)
            key, title, listed = source
            copy = self._insert(connection, owner, new_id, cwd, roots, title=title, listed=listed)
            for table in ("records", "former_texts"):
                connection.execute(
                    f"INSERT INTO {table} (session, {ROW}) SELECT ?, {ROW} FROM {table} WHERE session = ?",
                    (copy.key, key),
                )
            copy_uses(connection, key, copy.key)
            return Pending(copy.key, copy.epoch, _last_seq(connection, copy.key))

    def begin_deletion(self, session_id: str) -> int | None:
        """From now on there is no such session. The key of its rows, which `go_on_deleting` removes; if this process is
        killed before, the next one purges them, as those of any session in which nothing was said."""
        owner = self._this_owner()
        with self._database.writing() as connection:
            key = self._not_busy(connection, owner, session_id)
            if key is not None:
                connection.execute(
                    "UPDATE sessions SET id = ?, listed = 0, running = 0, created = 0, owner = '' WHERE key = ?",
                    (f"deleted/{key}", key),
                )
            return key

    def go_on_deleting(self, key: int) -> bool:
        """Removes some of the rows. Whether there are more."""
        with self._database.writing() as connection:
            self._has_room = True
            return remove_session(connection, key, AT_ONCE)

    def give_back_room(self) -> bool:
        """Gives some of the room of what was deleted back to the disk. Whether there is more."""
        self._has_room = self._database.vacuum(AT_ONCE)
        return self._has_room

    # --- stopping

    def ask_to_stop(self, session_id: str) -> str:
        """Asks the process in which a turn of the session runs to cancel it. That process; empty if no turn runs."""
        with self._database.reading() as connection:
            row = connection.execute(
                "SELECT owner, running FROM sessions WHERE id = ?", (clean(session_id),)
            ).fetchone()
        if row is None:
            raise unknown(session_id)
        owner, running = row
        with self._database.translated_errors():
            if not running or not lives(self._owners, owner):
                return ""
            if not ask_to_stop(self._owners, owner, session_id):
                raise cannot_be_asked(process_of(owner))
        return process_of(owner)

    def requests(self) -> list[str]:
        """The ids of the sessions that this process has been asked to stop since the last time."""
        with self._database.translated_errors():
            return self._owner.requests() if self._owner is not None else []

    # --- being attached to

    def socket(self) -> str:
        return self._this_owner().socket

    def renew_socket(self) -> str:
        with self._database.translated_errors():
            return self._owner.renew_socket() if self._owner is not None else ""

    def withdraw_socket(self) -> None:
        with self._database.translated_errors():
            self._this_owner().withdraw_socket()

    # --- writing

    def store(self, session_id: str, pending: Pending, *, full: bool = False) -> None:
        """Stores what waits, all of it or nothing. If the session has another owner by now, it is dropped for good."""
        if not (pending.rows or full or pending.taken):
            return
        contents = pending.contents()
        if contents:
            with self._database.reading() as connection:
                pack_missing(connection, contents, pending.packed)
        with self._database.writing(full=full) as connection:
            self._check_owner(connection, session_id, pending)
            _insert_rows(connection, pending)
            store_contents(connection, pending.key, contents, pending.packed)
            _change_entry(connection, pending)
        pending.forget()

    def set_roots(self, session_id: str, roots: Sequence[str]) -> None:
        with self._database.writing() as connection:
            changed = connection.execute(
                "UPDATE sessions SET roots = ? WHERE id = ?", (_json_of(roots), clean(session_id))
            )
            if changed.rowcount == 0:
                raise unknown(session_id)

    def close(self) -> None:
        with self._database.translated_errors():
            try:
                if self._has_room:
                    self._database.vacuum()
                self._database.close()
            finally:
                if self._owner is not None:
                    self._owner.close()

    # --- who may

    def _this_owner(self) -> Owner:
        if self._owner is None:
            with self._database.translated_errors():
                self._owner = Owner(self._owners, stoppable=self._stoppable, attachable=self._attachable)
            self.files_cut_off = self._files_cut_off(self._owner)
            self._purge(self._owner)
        return self._owner

    def _files_cut_off(self, owner: Owner) -> tuple[str, ...]:
        """The files that turns were about when their process was killed: what they wrote last may be half done."""
        with self._database.reading() as connection:
            running = connection.execute("SELECT key, owner, running FROM sessions WHERE running != 0").fetchall()
            paths: dict[str, None] = {}
            for key, other, since in running:
                if not owner.lives_elsewhere(other):
                    paths.update(dict.fromkeys(changed_paths(connection, key, since)))
        return tuple(paths)

    def _purge(self, owner: Owner) -> None:
        """Removes the sessions in which nothing was ever said, a day later, unless somebody has them open."""
        with self._database.reading() as connection:
            empty = connection.execute(
                "SELECT key, owner FROM sessions WHERE listed = 0 AND created < ?", (milliseconds_now() - EMPTY_FOR,)
            ).fetchall()
        left = [(key, other) for key, other in empty if not owner.lives_elsewhere(other)]
        for key, other in left:
            more = True
            while more:
                with self._database.writing() as connection:
                    # Somebody may have taken it, or said something in it, since we looked.
                    query = "SELECT 1 FROM sessions WHERE key = ? AND owner = ? AND listed = 0"
                    is_left = connection.execute(query, (key, other)).fetchone()
                    more = is_left is not None and remove_session(connection, key, AT_ONCE)

    def _not_elsewhere(self, connection: sqlite3.Connection, owner: Owner, session_id: str) -> None:
        """SessionElsewhere if the session lives in another process that can be attached to, busy or not."""
        row = connection.execute("SELECT owner FROM sessions WHERE id = ?", (clean(session_id),)).fetchone()
        if row is not None and owner.lives_elsewhere(row[0]) and (path := socket_of(self._owners, row[0])):
            self._check_socket_of(row[0], path)
            raise SessionElsewhere(row[0], process_of(row[0]), path)

    def _check_socket_of(self, owner: str, socket: str) -> None:
        """Lets an owner know that its socket is missing; not one that has just begun, or is about to end."""
        if os.path.lexists(socket):
            self._missing_since.pop(owner, None)
        elif time.monotonic() - self._missing_since.setdefault(owner, time.monotonic()) > MISSING_FOR:
            del self._missing_since[owner]
            report_missing_socket(self._owners, owner)

    def _not_busy(self, connection: sqlite3.Connection, owner: Owner, session_id: str) -> int | None:
        """The session's key. SessionBusy if a turn of it runs in another process that lives."""
        row = connection.execute(
            "SELECT key, owner, running FROM sessions WHERE id = ?", (clean(session_id),)
        ).fetchone()
        if row is None:
            return None
        key, other, running = row
        if running and owner.lives_elsewhere(other):
            since = time.strftime("%H:%M:%S", time.localtime(running / 1000))
            raise SessionBusy(
                f"This session has been running in another Crow (process {process_of(other)}) since {since}.",
                remedy=f"Wait until it is done, cancel it there, or run `crow sessions stop {session_id}`.",
            )
        return key

    def _check_owner(self, connection: sqlite3.Connection, session_id: str, pending: Pending) -> None:
        query = "SELECT owner, epoch FROM sessions WHERE key = ? AND id = ?"
        row = connection.execute(query, (pending.key, clean(session_id))).fetchone()
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
        if key_of(connection, session_id) is not None:
            raise StorageFailed(f"Session {session_id} already exists.", remedy="Choose another id.")
        now = milliseconds_now()
        row = connection.execute(
            _INSERT_SESSION,
            (clean(session_id), clean(cwd), _json_of(roots), title, now, now, listed, owner.token),
        )
        return Pending(row.lastrowid or 0, 1, 0)


def cannot_be_asked(process: str) -> SessionBusy:
    return SessionBusy(
        f"The Crow in which the turn runs (process {process}) cannot be asked to stop it: "
        "it is on another machine, or another user's.",
        remedy="End that process.",
    )


def _insert_rows(connection: sqlite3.Connection, pending: Pending) -> None:
    for query, is_former_text in ((_INSERT_RECORD, False), (_INSERT_FORMER_TEXT, True)):
        connection.executemany(
            query,
            [
                (pending.key, row.seq, row.version, row.tag, row.optional, row.time, row.body, row.packed)
                for row in pending.rows
                if (row.tag == FORMER_TEXT_TAG) is is_former_text
            ],
        )


def _change_entry(connection: sqlite3.Connection, pending: Pending) -> None:
    change = pending.change
    connection.executemany(
        "INSERT INTO spending (day, unit, amount) VALUES (?, ?, ?) "
        "ON CONFLICT (day, unit) DO UPDATE SET amount = amount + excluded.amount",
        [(day, clean(unit), amount) for (day, unit), amount in change.spent.items()],
    )
    connection.execute(
        """
        UPDATE sessions SET title = COALESCE(?, NULLIF(title, ''), ?, ''), updated = COALESCE(?, updated),
            running = COALESCE(?, running), listed = listed OR ?
        WHERE key = ?
        """,
        (
            None if change.title is None else clean(change.title),
            None if change.command is None else clean(change.command),
            change.updated,
            change.running,
            change.listed,
            pending.key,
        ),
    )


def _refuse_stale(session_id: str, row: tuple[str, int] | None, token: str) -> NoReturn:
    if row is None:
        raise SessionTaken(f"Session {session_id} was deleted: nothing more is saved here.")
    owner, _ = row
    elsewhere = f"in another Crow (process {process_of(owner)})" if owner and owner != token else "elsewhere"
    raise SessionTaken(
        f"Session {session_id} was continued {elsewhere}: nothing more is saved here.",
        remedy="Load it again to continue here.",
    )


def _last_seq(connection: sqlite3.Connection, key: int) -> int:
    return max(
        connection.execute(f"SELECT COALESCE(MAX(seq), 0) FROM {table} WHERE session = ?", (key,)).fetchone()[0]
        for table in ("records", "former_texts")
    )


def _json_of(roots: Sequence[str]) -> str:
    return msgspec.json.encode([clean(root) for root in roots]).decode()
