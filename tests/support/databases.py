"""SQLite files, as a test looks into them or changes them."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


@contextmanager
def database(path: Path) -> Iterator[sqlite3.Connection]:
    """Commits and closes at the end; the connection's own `with` leaves it open."""
    with closing(sqlite3.connect(path)) as connection, connection:
        yield connection
