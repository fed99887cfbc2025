"""The layout of the store's file, and how an older file becomes a file of today."""

# ruff: noqa: S608 -- what is put into the statements here are our own constants

import sqlite3
from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec

from crow.store.contents import LONG_FORMER_TEXT, store_contents
from crow.store.records import repacked
from crow.store.schema import CONTENTS, RECORDS, SPENDING

Upgrade = Callable[[sqlite3.Connection], None]
"""Makes the next version of a file of this one, in the transaction that it is called in."""


class Layout(msgspec.Struct, frozen=True):
    version: int
    create: str
    """The statements that make a new file."""
    upgrades: Mapping[int, Upgrade] = MappingProxyType({})
    """By version: what makes the next version of a file of this one."""


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
