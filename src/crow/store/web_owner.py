"""Which process is the `crow web` of this home: one at a time, by a lock; where its page is, and where it is attached
to.

The lock is held by `crow web` alone, for as long as it runs. Whoever looks for it reads a small file instead, and asks
the owner's own lock whether that process lives: so nobody who looks can be in the way of one that starts.
"""

import contextlib
import fcntl
import os

import msgspec

from crow.config.home import create_folder, read_file, reason, write_file
from crow.errors import ConfigError
from crow.store.owners import OWNERS_NAME, lives, process_of, socket_of

LOCK_NAME = "web.lock"
FILE_NAME = "web.json"
LARGEST = 4096


class _Published(msgspec.Struct):
    owner: str
    origin: str


class RunningWeb(msgspec.Struct, frozen=True):
    """A `crow web` that runs."""

    owner: str
    origin: str
    """The address of its page."""
    socket: str
    """Where it is attached to; empty if it cannot be."""

    @property
    def process(self) -> str:
        return process_of(self.owner)


def find_web(home: str) -> RunningWeb | None:
    """The one of this home, if it runs and has said where. Costs next to nothing where none has."""
    try:
        found = msgspec.json.decode(read_file(os.path.join(home, FILE_NAME), LARGEST, links=False), type=_Published)
    except (OSError, msgspec.DecodeError, UnicodeError):
        return None
    folder = os.path.join(home, OWNERS_NAME)
    if not lives(folder, found.owner):
        return None
    return RunningWeb(found.owner, found.origin, socket_of(folder, found.owner))


class WebOwner:
    """This process, as the one `crow web` of its home."""

    def __init__(self, home: str, lock: int) -> None:
        self._path = os.path.join(home, FILE_NAME)
        self._lock = lock

    @classmethod
    def claim(cls, home: str) -> "WebOwner | None":
        """None if there is another. ConfigError if that cannot be known."""
        create_folder(home)
        path = os.path.join(home, LOCK_NAME)
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            remedy = "Make the folder writable for your user, or set CROW_HOME to another folder."
            raise ConfigError(f"{path} cannot be locked: {reason(error)}.", remedy=remedy) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        return cls(home, lock)

    def publish(self, owner: str, origin: str) -> None:
        """Says where this one is. `owner` is its token among the owners of sessions."""
        write_file(self._path, msgspec.json.encode(_Published(owner, origin)))

    def withdraw(self) -> None:
        """It is nowhere to be found any longer, though it still ends."""
        with contextlib.suppress(OSError):
            os.unlink(self._path)

    def close(self) -> None:
        self.withdraw()
        os.close(self._lock)
