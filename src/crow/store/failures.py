"""Puts into words for a person what SQLite or the system says when the store cannot be used: full, damaged, locked, of
a newer version.
"""

import contextlib
import errno
import os
import sqlite3

from crow.config.home import reason
from crow.errors import StorageFailed, StoreSilent

LITTLE_ROOM = 64 * 1024
"""Bytes. The files that SQLite needs beside the database take about half of it."""

_MOVE_IT = (
    "Move the file away, with the -wal and -shm files beside it, and Crow starts a new one; or put back a copy of it."
)

KEPT = "save sessions to"
READ = "read sessions from"
"""What was tried, as a sentence says it."""

_LET_READ = "Let your user read it and its folder, or set CROW_HOME to another folder."
_ONLY_TO_READ = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM})
"""What needs another remedy if nothing was to be written."""

_CAUSES: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_FULL: (
        "the disk is full",
        "Free some space; what could not be saved yet is kept in memory and saved then.",
    ),
    sqlite3.SQLITE_READONLY: (
        "it is read-only",
        "Let your user write to it and to its folder, or set CROW_HOME to another folder.",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "it cannot be opened",
        "Let your user read and write it and its folder, or set CROW_HOME to another folder.",
    ),
    sqlite3.SQLITE_PERM: (
        "the system does not allow it",
        "Let your user read and write it and its folder, or set CROW_HOME to another folder.",
    ),
    sqlite3.SQLITE_BUSY: (
        "another program has locked it",
        "Close the program that uses it, such as a database viewer, and try again.",
    ),
    sqlite3.SQLITE_CORRUPT: ("it is damaged", f"It was left as it is. {_MOVE_IT}"),
    sqlite3.SQLITE_NOTADB: ("it is not a database", f"It was left as it is. {_MOVE_IT}"),
    sqlite3.SQLITE_IOERR: (
        "the disk reports an error",
        "Check the disk; what could not be saved yet is kept in memory and tried again.",
    ),
}


def storage_failed(path: str, error: "sqlite3.Error | OSError", tried: str = KEPT) -> StorageFailed:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _failed(path, *_CAUSES[sqlite3.SQLITE_FULL], tried)
    if isinstance(error, OSError):
        remedy = "Make the folder writable for your user, or set CROW_HOME to another folder."
        return _failed(path, reason(error), _LET_READ if tried == READ else remedy, tried)
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if not code and isinstance(error, sqlite3.OperationalError):
        code = sqlite3.SQLITE_CORRUPT  # text that is no UTF-8: Python's own complaint, which has no number
    if code == sqlite3.SQLITE_IOERR and _is_full(path):
        code = sqlite3.SQLITE_FULL  # SQLite tells a full disk from a broken one only when it writes the database itself
    if code == sqlite3.SQLITE_FULL and not _is_full(path) and _is_damaged(path):
        code = sqlite3.SQLITE_CORRUPT  # a page that is pointed to has a number beyond all that a file may have
    cause, remedy = _CAUSES.get(code, (str(error), "Try again; if this happens again, move the file away."))
    return _failed(path, cause, _LET_READ if tried == READ and code in _ONLY_TO_READ else remedy, tried)


def may_only_be_read(path: str) -> StorageFailed:
    return _failed(path, *_CAUSES[sqlite3.SQLITE_READONLY], KEPT)


def damaged(path: str, tried: str = KEPT) -> StorageFailed:
    return _failed(path, *_CAUSES[sqlite3.SQLITE_CORRUPT], tried)


def no_plain_file(path: str, tried: str = KEPT) -> StorageFailed:
    """SQLite would wait for a pipe's other end."""
    return _failed(path, "it is a folder, a pipe or a device, not a file", f"It was left as it is. {_MOVE_IT}", tried)


def written_by_a_newer_crow(path: str, found: int, known: int, tried: str = KEPT) -> StorageFailed:
    cause = f"a newer Crow wrote it (layout {found}; this one knows up to {known})"
    remedy = "Update Crow, or set CROW_HOME to another folder. The file was left as it is."
    return _failed(path, cause, remedy, tried)


def opened_by_another(path: str) -> StorageFailed:
    return StorageFailed(
        f"Cannot {KEPT} {path}: another Crow has been opening it for a while.",
        remedy="It may be converting the file to a newer version; try again in a minute, or end that process.",
    )


def not_ours(path: str, tried: str = KEPT) -> StorageFailed:
    return _failed(path, "it belongs to another program", f"It was left as it is. {_MOVE_IT}", tried)


def gone(path: str) -> StorageFailed:
    name = os.path.basename(path)
    return StorageFailed(
        f"Cannot {KEPT} {path}: the file was moved, removed or replaced while Crow was using it.",
        remedy=f"Put {name} back if you moved it, and restart Crow.",
    )


def silent(path: str, tried: str = KEPT) -> StoreSilent:
    return StoreSilent(
        f"Cannot {tried} {path}: the file system does not respond.",
        remedy="If it is on another machine or a removable disk, check that it is still connected; "
        "what could not be saved yet is kept in memory and saved once it responds.",
    )


def on_a_network(folder: str, kind: str) -> tuple[str, str]:
    """A warning, not a failure: what is so, and the remedy."""
    return (
        f"{folder} is on a network file system ({kind}): sessions are saved in a slower and safer way.",
        "Use it from one machine at a time, or set CROW_HOME to a folder on this machine's own disk.",
    )


def _is_full(path: str) -> bool:
    try:
        disk = os.statvfs(os.path.dirname(path))
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < LITTLE_ROOM


def _is_damaged(path: str) -> bool:
    """Whether SQLite finds something wrong in the file. All of it is read."""
    try:
        with contextlib.closing(sqlite3.connect(file_address(path, "mode=ro"), uri=True)) as connection:
            return connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",)
    except sqlite3.Error as error:
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def file_address(path: str, options: str) -> str:
    """The file for SQLite, as a `file:` address with these options."""
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file:{quoted}?{options}"


def _failed(path: str, cause: str, remedy: str, tried: str) -> StorageFailed:
    return StorageFailed(f"Cannot {tried} {path}: {cause}.", remedy=remedy)
