"""The tables of the store's file, how a file of an older version is migrated, and the copies which that leaves."""

# ruff: noqa: S608 -- what is put into the statements here are our own constants

import contextlib
import logging
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

import msgspec

from crow.store.contents import LONG_FORMER_TEXT, drop_uses, store_contents
from crow.store.records import repacked

logger = logging.getLogger(__name__)

APPLICATION_ID = 0x43726F77
"""Marks the file as ours: the letters of Crow."""

_ROWS = """
CREATE TABLE {name} (
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    version INTEGER NOT NULL,
    tag TEXT NOT NULL,
    optional INTEGER NOT NULL,
    time INTEGER NOT NULL,
    body TEXT NOT NULL,
    packed INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (session, seq)
);
"""
"""The table of a session's records, and the one of the former texts of its files."""
SESSIONS = """
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    cwd TEXT NOT NULL,
    roots TEXT NOT NULL,
    title TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    listed INTEGER NOT NULL,
    running INTEGER NOT NULL,
    owner TEXT NOT NULL,
    epoch INTEGER NOT NULL
);
CREATE INDEX sessions_by_time ON sessions (updated DESC, id DESC) WHERE listed = 1;
CREATE INDEX sessions_by_folder ON sessions (cwd, updated DESC, id DESC) WHERE listed = 1;
"""
RECORDS = SESSIONS + _ROWS.format(name="records") + _ROWS.format(name="former_texts")
CONTENTS = """
CREATE TABLE contents (
    key INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    data BLOB NOT NULL
);
CREATE TABLE uses (
    session INTEGER NOT NULL,
    content INTEGER NOT NULL,
    PRIMARY KEY (session, content)
) WITHOUT ROWID;
CREATE INDEX uses_by_content ON uses (content, session);
"""
SPENDING = """
CREATE TABLE spending (
    day TEXT NOT NULL,
    unit TEXT NOT NULL,
    amount REAL NOT NULL,
    PRIMARY KEY (day, unit)
) WITHOUT ROWID;
"""

Upgrade = Callable[[sqlite3.Connection], None]
"""Makes the next version of a file of this one, in the transaction that it is called in."""


class Layout(msgspec.Struct, frozen=True):
    version: int
    create: str
    """The statements that make a new file."""
    upgrades: Mapping[int, Upgrade] = MappingProxyType({})
    """The upgrade of a file of each version to the next one."""


def run_statements(connection: sqlite3.Connection, statements: str) -> None:
    """One by one: `executescript` would commit first."""
    statement = ""
    for line in statements.splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""


def _from_1_to_2(connection: sqlite3.Connection) -> None:
    """The long texts move out of the records, and are packed."""
    run_statements(connection, CONTENTS)
    for table in ("records", "former_texts"):
        connection.execute(f"ALTER TABLE {table} ADD COLUMN packed INTEGER NOT NULL DEFAULT 0")
        _repack(connection, table)


def _repack(connection: sqlite3.Connection, table: str) -> None:
    long_ones = connection.execute(
        f"SELECT session, seq, tag FROM {table} WHERE length(body) >= ? AND typeof(body) = 'text'", (LONG_FORMER_TEXT,)
    ).fetchall()
    for session, seq, tag in long_ones:
        place = (session, seq)
        [body] = connection.execute(f"SELECT body FROM {table} WHERE session = ? AND seq = ?", place).fetchone()
        contents: dict[str, bytes] = {}
        shorter = repacked(body, tag, contents)
        if contents:
            store_contents(connection, session, contents, {})
            connection.execute(
                f"UPDATE {table} SET body = ?, packed = 1 WHERE session = ? AND seq = ?", (shorter, *place)
            )


def _from_2_to_3(connection: sqlite3.Connection) -> None:
    """What is spent on a day is added up from now on."""
    run_statements(connection, SPENDING)


LAYOUT = Layout(
    version=3,
    create=RECORDS + CONTENTS + SPENDING,
    upgrades=MappingProxyType({1: _from_1_to_2, 2: _from_2_to_3}),
)


# --- copies of the file, which an upgrade leaves beside it: what is deleted goes from them too


def copy_path(path: str, version: int) -> str:
    """Where the file stays as it was before it was brought to a layout newer than this version."""
    base, extension = os.path.splitext(path)
    return f"{base}.v{version}{extension}"


def remove_session(connection: sqlite3.Connection, key: int, most: int = -1) -> bool:
    """Removes the rows of a session, in a file of any layout: all of them, or so many of each kind. Whether there are
    more; if not, the session is gone."""
    removed = [
        connection.execute(
            f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table} WHERE session = ? LIMIT ?)", (key, most)
        ).rowcount
        for table in ("records", "former_texts")
    ]
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'contents'").fetchone():
        removed.append(drop_uses(connection, key, most))
    if most in removed:
        return True
    connection.execute("DELETE FROM sessions WHERE key = ?", (key,))
    return False


def delete_from_copies(path: str, session_id: str) -> None:
    """Deletes the session from every copy, and gives back the room. A copy that cannot be written stays as it is."""
    for copy in _copies(path):
        try:
            with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as connection:
                row = connection.execute("SELECT key FROM sessions WHERE id = ?", (session_id,)).fetchone()
                if row is not None:
                    connection.execute("BEGIN IMMEDIATE")
                    remove_session(connection, row[0])
                    connection.execute("COMMIT")
                    connection.execute("VACUUM")
        except (sqlite3.Error, OSError) as error:
            logger.warning("a session was not deleted from %s: %s", copy, error)


def _copies(path: str) -> Iterator[str]:
    folder, name = os.path.split(path)
    base, extension = os.path.splitext(name)
    is_copy = re.compile(rf"{re.escape(base)}\.v\d+{re.escape(extension)}")
    with contextlib.suppress(OSError):
        yield from (os.path.join(folder, other) for other in os.listdir(folder) if is_copy.fullmatch(other))
