"""Pages of the list of sessions: newest first, from an index."""

# ruff: noqa: S608 -- what is put into the statements here are our own constants

import os
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
FIRST_PAGE_OF_FOLDER = f"SELECT {ENTRY} FROM sessions WHERE listed = 1 AND cwd IN (?) {_NEWEST_FIRST}"
NEXT_PAGE_OF_FOLDER = (
    f"SELECT {ENTRY} FROM sessions WHERE listed = 1 AND cwd IN (?) AND (updated, id) < (?, ?) {_NEWEST_FIRST}"
)
FOLDERS = "SELECT DISTINCT cwd FROM sessions WHERE listed = 1"


def read_page(connection: sqlite3.Connection, cwd: str | None, cursor: str, size: int) -> Page:
    """One more than asked for is read, to know whether there is a next page."""
    folders = None if cwd is None else _spellings(connection, cwd)
    query, values = _page_query(folders, place_of(cursor, cwd) if cursor else None)
    rows = connection.execute(query, (*values, size + 1)).fetchall()
    entries = tuple(entry_of(row) for row in rows[:size])
    if len(rows) <= size:
        return Page(entries, "")
    return Page(entries, cursor_for(Place(entries[-1].updated_at, entries[-1].id), cwd))


def entry_of(row: tuple[str, str, str, str, int, int]) -> SessionEntry:
    id, cwd, roots, title, created, updated = row
    return SessionEntry(id, cwd, msgspec.json.decode(roots, type=tuple[str, ...]), title, created, updated)


def _spellings(connection: sqlite3.Connection, cwd: str) -> list[str]:
    """The same folder under every name by which sessions know it, through links or without."""
    real = os.path.realpath(cwd)
    known = (folder for (folder,) in connection.execute(FOLDERS))
    return [folder for folder in known if folder == cwd or os.path.realpath(folder) == real]


def _page_query(folders: list[str] | None, after: Place | None) -> tuple[str, tuple[Any, ...]]:
    place = () if after is None else (after.updated, after.id)
    if folders is None:
        return NEXT_PAGE if place else FIRST_PAGE, place
    query = NEXT_PAGE_OF_FOLDER if place else FIRST_PAGE_OF_FOLDER
    return query.replace("IN (?)", f"IN ({', '.join('?' * len(folders))})"), (*folders, *place)
