"""What `crow doctor` checks of the store: whether it is sound, and whether other programs can join its sessions."""

import contextlib
import os
import sqlite3
import threading
from collections.abc import Generator, Iterable

from crow.cli.doctor_connections import Check, failed, fine, warn
from crow.cli.render_screen import counted
from crow.disk import network_file_system
from crow.errors import StorageFailed
from crow.store.base import FILE_NAME
from crow.store.database import Database
from crow.store.failures import on_a_network
from crow.store.owners import can_be_attached_to, shared_folder
from crow.threads import start_thread

MEND_STORE = (
    "Move it away, with the -wal and -shm files beside it, and put back a copy. Without one Crow starts a new one; "
    "`crow sessions export` may still save what can be read."
)
LONGEST_LOOK = 1.5
"""Seconds for which the store is checked if nothing else is said: a large one may take minutes."""
AGAIN = 0.05
"""Seconds after which that is ended once more: it may have been between two statements."""


def check_store(place: str, *, whole: bool = False) -> Iterable[Check]:
    path = os.path.join(place, FILE_NAME)
    if not os.path.lexists(path):
        yield fine("no sessions are stored yet")
        return
    if network := network_file_system(place):
        yield warn(*on_a_network(place, network))
    try:
        yield _look_at(path, None if whole else LONGEST_LOOK)
    except StorageFailed as error:
        yield failed(error.message, error.remedy)


def check_attaching(place: str) -> Iterable[Check]:
    """Tells only of what is wrong."""
    if os.path.isdir(place) and not can_be_attached_to(place):
        yield warn(
            f"no other program can join your sessions: {shared_folder()} is not yours alone",
            f"Have it removed, or set XDG_RUNTIME_DIR to a folder of yours with mode 700: {place} is too long a path.",
        )


def _look_at(path: str, longest: float | None) -> Check:
    database = Database(path)
    try:
        with database.writing():
            pass  # it was possible: that is all we want to know
        with database.reading() as connection:
            found = _trouble_in(connection, longest)
            if found:
                return failed(f"{path} is damaged ({' '.join(found.split())[:200]})", MEND_STORE)
            count = connection.execute("SELECT count(*) FROM sessions WHERE listed = 1").fetchone()[0]
    finally:
        database.close()
    sessions = counted(count, "session")
    if found is None:
        size = f"{os.path.getsize(path) / 1e9:.1f} GB"
        text = f"the store {path} is sound as far as it was read in {longest:g} s: {sessions}, {size}"
        return fine(text, "To have all of it read: crow doctor --whole-store")
    return fine(f"the store {path} is sound: {sessions}")


def _trouble_in(connection: sqlite3.Connection, longest: float | None) -> str | None:
    """What is wrong with the file; empty if nothing is, None if nothing was found in so many seconds."""
    with _interrupted_after(connection, longest):
        try:
            # The list first: without it nothing is found.
            answers = [connection.execute(f"PRAGMA quick_check({what})").fetchone()[0] for what in ("sessions", 1)]
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                raise
            return None
    return next((answer for answer in answers if answer != "ok"), "")


@contextlib.contextmanager
def _interrupted_after(connection: sqlite3.Connection, seconds: float | None) -> Generator[None]:
    """Interrupts what the connection does inside."""
    done = threading.Event()

    def interrupt() -> None:
        left = seconds
        while not done.wait(left):
            connection.interrupt()
            left = AGAIN

    thread = start_thread(interrupt, "crow-doctor") if seconds is not None else None
    try:
        yield
    finally:
        done.set()
        if thread is not None:
            thread.join()
