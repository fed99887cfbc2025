"""Checks of the store: whether it can be opened, read from end to end, and written."""

import os
from collections.abc import Iterable

from crow.cli.health import Check, failed, fine, warn
from crow.cli.render_text import counted
from crow.errors import StorageFailed
from crow.file_system import network_file_system
from crow.store.base import FILE_NAME
from crow.store.database import Database
from crow.store.failures import on_a_network

MEND = (
    "Move it away, with the -wal and -shm files beside it, and put back a copy. Without one Crow starts a new one; "
    "`crow sessions export` may still save what can be read."
)


def check_store(place: str) -> Iterable[Check]:
    path = os.path.join(place, FILE_NAME)
    if not os.path.lexists(path):
        yield fine("no sessions are stored yet")
        return
    if network := network_file_system(place):
        yield warn(*on_a_network(place, network))
    try:
        yield _look_at(path)
    except StorageFailed as error:
        yield failed(error.message, error.remedy)


def _look_at(path: str) -> Check:
    database = Database(path)
    try:
        with database.writing():
            pass  # it was possible: that is all we want to know
        with database.reading() as connection:
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if found != "ok":
                return failed(f"{path} is damaged ({' '.join(found.split())[:200]})", MEND)
            count = connection.execute("SELECT count(*) FROM sessions WHERE listed = 1").fetchone()[0]
    finally:
        database.close()
    return fine(f"the store {path} is sound: {counted(count, 'session')}")
