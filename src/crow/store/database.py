"""Opens the store's SQLite file, to write or only to read: transactions, locks, its version, and when an older file is
migrated.
"""

import contextlib
import os
import sqlite3
import stat
from collections.abc import Generator

import msgspec

from crow.config.home import create_folder, wait_for_lock
from crow.disk import network_file_system
from crow.errors import ConfigError, StorageFailed
from crow.store.base import LayoutOutdated
from crow.store.failures import (
    KEPT,
    READ,
    damaged,
    file_address,
    gone,
    may_only_be_read,
    no_plain_file,
    not_ours,
    opened_by_another,
    storage_failed,
    written_by_a_newer_crow,
)
from crow.store.layout import APPLICATION_ID, LAYOUT, Layout, copy_path, run_statements

LOCK_TIMEOUT = 6.0
"""Seconds that a write waits for another process's: a little longer than until the person is told of the wait."""

SMALLEST = 512
"""Bytes of a database's smallest page."""

LARGEST_LOG = 4 * 1024 * 1024
"""Bytes that the file beside the database keeps once what is in it has been moved there."""
_QUICK, _SURE = "NORMAL", "FULL"
"""How `synchronous` a write is: what must survive a power cut waits for the disk."""
_INCREMENTAL = 2
"""The `auto_vacuum` with which a file can become smaller again."""


class Database:
    """The file, open for writing; used on one thread. Raises StorageFailed, and no error of SQLite or of the system."""

    def __init__(
        self, path: str, *, layout: Layout = LAYOUT, max_pages: int | None = None, lock_timeout: float = LOCK_TIMEOUT
    ) -> None:
        self.path = path
        self.network = network_file_system(os.path.dirname(path))
        """The kind of the network file system that the file lies on; empty if it lies on none."""
        self._layout = layout
        self._patience = lock_timeout
        with self.translated_errors(), self._opening_alone():
            _make_file(path)
            self._refuse_what_we_cannot_read()
            self._connection = self._connect()
            try:
                if _is_new(self._connection):
                    self._connection.execute(f"PRAGMA auto_vacuum = {_INCREMENTAL}")
                self._choose_journal()
                if max_pages is not None:
                    self._connection.execute(f"PRAGMA max_page_count = {max_pages}")
                self._bring_up_to_date()
                self._identity = _identity(path)
            except BaseException:
                self._connection.close()
                raise

    @contextlib.contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """One view of the file, whatever other processes write meanwhile."""
        with self.translated_errors(), self._transaction("BEGIN"):
            yield self._connection

    @contextlib.contextmanager
    def writing(self, *, full: bool = False) -> Generator[sqlite3.Connection]:
        """All or nothing. `full`: this and everything before it also survives a power cut."""
        with self.translated_errors():
            if _identity(self.path) != self._identity:
                raise gone(self.path)
            if full:
                self._connection.execute(f"PRAGMA synchronous = {_SURE}")
            try:
                with self._transaction("BEGIN IMMEDIATE"):
                    # Another process may have brought the file to a newer layout while this one runs.
                    self._check_version(self._connection)
                    yield self._connection
            finally:
                if full:
                    self._connection.execute(f"PRAGMA synchronous = {self._usual}")

    def vacuum(self, pages: int = 0) -> bool:
        """Gives the room of what was deleted back to the disk: all of it, or so many pages. Whether there are more. The
        files stay as they are if others are in the way.
        """
        more = False
        with contextlib.suppress(sqlite3.Error):
            if _pragma(self._connection, "auto_vacuum") != _INCREMENTAL:
                self._connection.execute(f"PRAGMA auto_vacuum = {_INCREMENTAL}")
                self._connection.execute("VACUUM")
            # `execute` would take its first step only, which is a page.
            self._connection.executescript(f"PRAGMA incremental_vacuum({pages})")
            more = pages > 0 and _pragma(self._connection, "freelist_count") > 0
            if not more:
                # Who reads just now is not waited for: the next one that checkpoints does it.
                self._connection.execute("PRAGMA busy_timeout = 0")
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._connection.execute(f"PRAGMA busy_timeout = {round(self._patience * 1000)}")
        return more

    def close(self) -> None:
        with self.translated_errors():
            self._connection.close()

    @contextlib.contextmanager
    def translated_errors(self) -> Generator[None]:
        """Whatever fails inside becomes StorageFailed."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise storage_failed(self.path, error) from error
        except (UnicodeDecodeError, msgspec.MsgspecError) as error:
            raise damaged(self.path) from error  # nothing that Crow wrote reads like this
        except ConfigError as error:
            raise StorageFailed(error.message, remedy="Set CROW_HOME to a folder that you may write to.") from error

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Generator[None]:
        self._connection.execute(begin)
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            # After some errors SQLite has rolled back by itself.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    # --- opening

    @contextlib.contextmanager
    def _opening_alone(self) -> Generator[None]:
        """One process at a time: SQLite does not wait by itself when two make the same new file, or change its mode."""
        create_folder(os.path.dirname(self.path))
        descriptor = os.open(f"{self.path}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            if not wait_for_lock(descriptor, self._patience):
                raise opened_by_another(self.path)
            yield
        finally:
            os.close(descriptor)

    def _connect(self, *, read_only: bool = False) -> sqlite3.Connection:
        return _connect(self.path, "mode=ro" if read_only else "mode=rw", self._patience)

    def _refuse_what_we_cannot_read(self) -> None:
        """Looks without the right to write, so that a file which is not for us stays as it is."""
        if not stat.S_ISREG(os.stat(self.path).st_mode):
            raise no_plain_file(self.path)
        if 0 < os.path.getsize(self.path) < SMALLEST:
            raise not_ours(self.path)  # SQLite would take it for an empty one, and write over it
        if not os.access(self.path, os.W_OK):
            raise may_only_be_read(self.path)  # before SQLite makes files beside it that may only be read, too
        _let_write(self.path)
        with contextlib.closing(self._connect(read_only=True)) as connection:
            if _is_new(connection):
                return
            self._check_version(connection)

    def _check_version(self, connection: sqlite3.Connection) -> int:
        return _version_in(connection, self.path, self._layout.version, KEPT)

    def _choose_journal(self) -> None:
        """A write-ahead log, or what takes its place on a network. Its writes are safe only if each is waited for."""
        self._usual = _SURE if self.network else _QUICK
        self._connection.execute(f"PRAGMA journal_mode = {'TRUNCATE' if self.network else 'WAL'}")
        self._connection.execute(f"PRAGMA journal_size_limit = {LARGEST_LOG}")
        self._connection.execute(f"PRAGMA synchronous = {self._usual}")

    def _bring_up_to_date(self) -> None:
        is_old = not _is_new(self._connection)
        if is_old and self._check_version(self._connection) == self._layout.version:
            return
        with self._transaction("BEGIN IMMEDIATE"):
            # Looked at again now that nobody else can write: another process may have done it meanwhile.
            if _is_new(self._connection):
                run_statements(self._connection, self._layout.create)
                self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            else:
                self._migrate(self._check_version(self._connection))
            self._connection.execute(f"PRAGMA user_version = {self._layout.version}")
        if is_old:
            self.vacuum()

    def _migrate(self, found: int) -> None:
        if found == self._layout.version:
            return
        self._keep_copy(found)
        for version in range(found, self._layout.version):
            self._layout.upgrades[version](self._connection)

    def _keep_copy(self, version: int) -> None:
        """The file as it is stays, as a copy beside it. A second connection reads it: the first one holds the lock."""
        copy = copy_path(self.path, version)
        unfinished = f"{copy}.tmp"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unfinished)
        _make_file(unfinished)
        with contextlib.closing(self._connect(read_only=True)) as source:
            source.execute("VACUUM INTO ?", (unfinished,))  # without the room that deleted sessions have left
        os.replace(unfinished, copy)


def _make_file(path: str) -> None:
    """Readable by its owner only. SQLite gives the files beside it the same rights."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def _let_write(path: str) -> None:
    """The files beside the database may have been made when it could only be read, and have its rights of that time."""
    for beside in (f"{path}-wal", f"{path}-shm"):
        with contextlib.suppress(OSError):
            mode = os.lstat(beside).st_mode
            if stat.S_ISREG(mode) and not mode & stat.S_IWUSR:
                os.chmod(beside, 0o600)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _version_in(connection: sqlite3.Connection, path: str, known: int, tried: str) -> int:
    """The version of the layout in the file. StorageFailed if the file is not a store, or of a newer version."""
    if _pragma(connection, "application_id") != APPLICATION_ID:
        raise not_ours(path, tried)
    found = _pragma(connection, "user_version")
    if found < 1:
        raise damaged(path, tried)
    if found > known:
        raise written_by_a_newer_crow(path, found, known, tried)
    return found


def _connect(path: str, options: str, lock_timeout: float) -> sqlite3.Connection:
    """`options` are those of a `file:` address."""
    # Used by one thread after the other: the event loop's does the work while the system gives no other.
    address = file_address(path, options)
    return sqlite3.connect(address, uri=True, timeout=lock_timeout, isolation_level=None, check_same_thread=False)


def _is_new(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


class ReadOnly:
    """The file for those who only read: needs no right to write, waits for no write, makes nothing and changes nothing.

    Each reading has a connection of its own, so the file may come, go or be replaced between two of them. Raises
    StorageFailed and LayoutOutdated, and no error of SQLite or of the system.
    """

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
            if _is_new(connection):
                connection.close()
                return _empty()
            if _version_in(connection, self._path, LAYOUT.version, READ) < LAYOUT.version:
                raise LayoutOutdated
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
            return _connect(self._path, "mode=ro&immutable=1", LOCK_TIMEOUT)
        connection = _connect(self._path, "mode=ro", LOCK_TIMEOUT)
        try:
            _is_new(connection)
        except sqlite3.OperationalError as error:
            connection.close()
            may_not_write = error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
            if not may_not_write or _has_content(f"{self._path}-wal"):
                raise
            return _connect(self._path, "mode=ro&immutable=1", LOCK_TIMEOUT)
        except BaseException:
            connection.close()
            raise
        return connection


def _empty() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(LAYOUT.create)
    return connection


def _has_content(path: str) -> bool:
    try:
        return os.stat(path).st_size > 0
    except FileNotFoundError:
        return False
