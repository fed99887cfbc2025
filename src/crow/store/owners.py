"""Who owns sessions: each process that does holds a lock on a file of its own, for as long as it lives.

The system lets go of the lock when the process ends, however it ends. So whoever can take the lock of an owner knows
that the owner is gone.
"""

import contextlib
import fcntl
import os

from crow.config.home import create_folder


class Owner:
    """This process, or rather this store of it. The token names it in the rows of its sessions."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        create_folder(folder)
        sweep(folder)
        self.token, self._descriptor = _new_lock(folder)

    def lives_elsewhere(self, token: str) -> bool:
        """Whether it is somebody else, and still there."""
        return bool(token) and token != self.token and not _is_gone(self._folder, token)

    def close(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self._folder, self.token))
        os.close(self._descriptor)


def process_of(token: str) -> str:
    """The id of the owner's process, for a person to read."""
    return token.partition("-")[0]


def sweep(folder: str) -> None:
    """Removes the files of owners that did not come to do it themselves."""
    for name in os.listdir(folder):
        _is_gone(folder, name)


def _new_lock(folder: str) -> tuple[str, int]:
    while True:
        token = f"{os.getpid()}-{os.urandom(8).hex()}"
        path = os.path.join(folder, token)
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Before the lock was ours, somebody may have taken the file for that of a dead owner.
            if os.fstat(descriptor).st_nlink:
                return token, descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_gone(folder: str, token: str) -> bool:
    """True if nobody holds the lock; its file is removed then."""
    path = os.path.join(folder, os.path.basename(token))
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except PermissionError:
        return False  # another user's: not for us to judge
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return True
    finally:
        os.close(descriptor)
