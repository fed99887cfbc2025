"""One writer at a time for the files below Crow's home that several Crows share."""

import contextlib
import fcntl
import os
import time
from collections.abc import Generator

from crow.config.home import create_folder, reason
from crow.errors import ConfigError

PATIENCE = 3.0
"""Seconds to wait for another Crow that is writing: milliseconds, or longer on a busy disk. Never on the event loop."""


@contextlib.contextmanager
def locked(path: str) -> Generator[None]:
    """Held between reading a file and writing it, so that nothing that another Crow adds is lost. ConfigError."""
    create_folder(os.path.dirname(path))
    try:
        lock = os.open(path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise ConfigError(f"{path} cannot be locked: {reason(error)}.") from error
    try:
        if not wait_for_lock(lock, PATIENCE):
            raise ConfigError(f"{path} is being written by another Crow that does not finish.")
        yield
    finally:
        os.close(lock)


def wait_for_lock(descriptor: int, patience: float) -> bool:
    """Takes the lock on an open file; false if somebody else holds it for longer than so many seconds."""
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        else:
            return True
