"""The store's file, for who only looks: needs no right to write, waits for no write, makes nothing and changes nothing.

Each look has a connection of its own, so the file may come, go or be replaced between two of them.
"""

import contextlib
import os
import sqlite3
import stat
from collections.abc import Generator

import msgspec

from crow.store.database import PATIENCE, SMALLEST, connect, is_new, pragma
from crow.store.failures import READ, damaged, no_plain_file, not_ours, storage_failed, written_by_a_newer_crow
from crow.store.layout import LAYOUT
from crow.store.schema import APPLICATION_ID, LayoutOutdated


class ReadOnly:
    """Raises StorageFailed and LayoutOutdated, and no error of SQLite or of the system."""

    def __init__(self, path: str) -> None:
        self._path = path

    @contextlib.contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """One view of the file, whatever other processes write meanwhile. Where there is none yet, it is empty."""
        try:
            with contextlib.closing(self._opened()) as connection:
                connection.execute("BEGIN")
                yield connection
        except (sqlite3.Error, OSError) as error:
            raise storage_failed(self._path, error, READ) from error
        except (UnicodeDecodeError, msgspec.MsgspecError) as error:
            raise damaged(self._path, READ) from error  # nothing that Crow wrote reads like this

    def _opened(self) -> sqlite3.Connection:
        size = self._size()
        if size == 0:
            return _empty()
        if size < SMALLEST:
            raise not_ours(self._path, READ)
        connection = self._connected()
        try:
            if is_new(connection):
                connection.close()
                return _empty()
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _size(self) -> int:
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return 0
        if not stat.S_ISREG(status.st_mode):
            raise no_plain_file(self._path, READ)
        return status.st_size

    def _connected(self) -> sqlite3.Connection:
        """SQLite wants to make files beside the database before it reads. Where it may not, and nobody has left any
        there, all there is to read is in the file itself. Beside a file that may only be read it would make such as may
        only be read, too, and leave them there: nobody could write to the database any more."""
        if not os.access(self._path, os.W_OK) and not os.path.exists(f"{self._path}-wal"):
            return connect(self._path, "mode=ro&immutable=1", PATIENCE)
        connection = connect(self._path, "mode=ro", PATIENCE)
        try:
            is_new(connection)
        except sqlite3.OperationalError as error:
            connection.close()
            may_not_write = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
            if not may_not_write or _has_content(f"{self._path}-wal"):
                raise
            return connect(self._path, "mode=ro&immutable=1", PATIENCE)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check(self, connection: sqlite3.Connection) -> None:
        if pragma(connection, "application_id") != APPLICATION_ID:
            raise not_ours(self._path, READ)
        found = pragma(connection, "user_version")
        if found > LAYOUT.version:
            raise written_by_a_newer_crow(self._path, found, LAYOUT.version, READ)
        if found < LAYOUT.version:
            raise LayoutOutdated


def _empty() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(LAYOUT.create)
    return connection


def _has_content(path: str) -> bool:
    try:
        return os.stat(path).st_size > 0
    except FileNotFoundError:
        return False
