"""Pages of the list of sessions: newest first, from an index."""

# ruff: noqa: S608 -- what is put into the statements here are our own constants

import sqlite3
from typing import Any

import msgspec

from crow.store.base import Page, SessionEntry
from crow.store.cursors import Place, cursor_for, place_of

ENTRY = "id, cwd, roots, title, created, updated"
"""The columns of an entry."""

_NEWEST_FIRST = "ORDER BY updated DESC, id DESC LIMIT ?"
FIRST_PAGE = f"SELECT {ENTRY} FROM sessions WHERE listed = 1 {_NEWEST_FIRST}"
NEXT_PAGE = f"SELECT {ENTRY} FROM sessions WHERE listed = 1 AND (updated, id) < (?, ?) {_NEWEST_FIRST}"
FIRST_PAGE_OF_FOLDER = f"SELECT {ENTRY} FROM sessions WHERE listed = 1 AND cwd = ? {_NEWEST_FIRST}"
NEXT_PAGE_OF_FOLDER = (
    f"SELECT {ENTRY} FROM sessions WHERE listed = 1 AND cwd = ? AND (updated, id) < (?, ?) {_NEWEST_FIRST}"
)


def read_page(connection: sqlite3.Connection, cwd: str | None, cursor: str, size: int) -> Page:
    """One more than asked for is read, to know whether there is a next page."""
    query, values = _page_query(cwd, place_of(cursor, cwd) if cursor else None)
    rows = connection.execute(query, (*values, size + 1)).fetchall()
    entries = tuple(entry_of(row) for row in rows[:size])
    if len(rows) <= size:
        return Page(entries, "")
    return Page(entries, cursor_for(Place(entries[-1].updated_at, entries[-1].id), cwd))


def entry_of(row: tuple[str, str, str, str, int, int]) -> SessionEntry:
    id, cwd, roots, title, created, updated = row
    return SessionEntry(id, cwd, msgspec.json.decode(roots, type=tuple[str, ...]), title, created, updated)


def _page_query(cwd: str | None, after: Place | None) -> tuple[str, tuple[Any, ...]]:
    match cwd, after:
        case None, None:
            return FIRST_PAGE, ()
        case None, Place():
            return NEXT_PAGE, (after.updated, after.id)
        case str(), None:
            return FIRST_PAGE_OF_FOLDER, (cwd,)
        case _, Place():
            return NEXT_PAGE_OF_FOLDER, (cwd, after.updated, after.id)
