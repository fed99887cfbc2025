"""Copies of the store's file that an upgrade has left beside it: what is deleted goes from them too."""

import contextlib
import logging
import os
import re
import sqlite3
from collections.abc import Iterator

from crow.store.contents import drop_uses

logger = logging.getLogger(__name__)


def copy_path(path: str, version: int) -> str:
    """Where the file stays as it was before it was brought to a layout newer than this version."""
    base, extension = os.path.splitext(path)
    return f"{base}.v{version}{extension}"


def remove_session(connection: sqlite3.Connection, key: int) -> None:
    """All rows of the session, in a file of any layout."""
    connection.execute("DELETE FROM records WHERE session = ?", (key,))
    connection.execute("DELETE FROM former_texts WHERE session = ?", (key,))
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'contents'").fetchone():
        drop_uses(connection, key)
    connection.execute("DELETE FROM sessions WHERE key = ?", (key,))


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
