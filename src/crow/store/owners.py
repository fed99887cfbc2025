"""Which process owns a session, whether that process still lives (a lock on a file of its own), its socket, and
requests to stop a turn. Each process that owns sessions holds the lock for as long as it lives.

The system lets go of the lock when the process ends, however it ends. So whoever can take the lock of an owner knows
that the owner is gone.

The file is also where an owner that is stoppable gets requests to stop a turn. Its first line names the machine; each
further one is the id of a session. A signal tells the owner to read them, so that nobody has to poll; and to look
whether its socket is still there.

An owner that can be attached to adds a line with the machine and the path of its socket, from the beginning: whoever
finds one of its sessions before it listens there has to wait a moment. A Crow that knows of no sockets never reads that
far.
"""

import contextlib
import fcntl
import os
import signal
import stat

from crow.config.home import create_folder

OWNERS_NAME = "owners"
"""The folder of the locks, below Crow's home."""

_MOST_REQUESTS = 64 * 1024
STOP = signal.SIGUSR1
"""The signal that tells a stoppable owner of a request."""
_SOCKET = b"socket "
"""How the line begins that names the owner's socket; no id of a session has a blank in it."""


class Owner:
    """This process, or rather this store of it. The token names it in the rows of its sessions.

    `stoppable`: it has a handler for the signal, which reads its requests. `attachable`: it will listen at `socket`.
    """

    def __init__(self, folder: str, *, stoppable: bool = False, attachable: bool = False) -> None:
        self._folder = folder
        create_folder(folder)
        sweep(folder)
        self.token, self._descriptor = _new_lock(folder)
        if stoppable:
            os.write(self._descriptor, _machine() + b"\n")
        self.socket = socket_path(self.token, os.path.dirname(folder)) if attachable else ""
        """Where this process can be attached to; empty if it cannot, or there is no place for a socket."""
        if self.socket:
            os.write(self._descriptor, _socket_line(self.socket))
        self._seen = os.lseek(self._descriptor, 0, os.SEEK_CUR)

    def lives_elsewhere(self, token: str) -> bool:
        """Whether it is somebody else, and still there."""
        return bool(token) and token != self.token and not _is_gone(self._folder, token)

    def requests(self) -> list[str]:
        """The ids of the sessions that it has been asked to stop since the last time."""
        new = os.pread(self._descriptor, _MOST_REQUESTS, self._seen)
        whole = new[: new.rfind(b"\n") + 1]
        self._seen += len(whole)
        lines = whole.decode("utf-8", "replace").splitlines()
        return [line for line in lines if line and not line.startswith(_SOCKET.decode())]

    def renew_socket(self) -> str:
        """Where to listen from now on if the socket was removed, such as with the folder that a login has for its own;
        empty if it is still there, or if there never was one."""
        if not self.socket or os.path.lexists(self.socket):
            return ""
        self._publish(socket_path(self.token, os.path.dirname(self._folder)))
        return self.socket

    def withdraw_socket(self) -> None:
        """Nobody will listen at the socket: others do as if there were none."""
        self._publish("")

    def _publish(self, path: str) -> None:
        self.socket = path
        descriptor = os.open(os.path.join(self._folder, self.token), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            os.write(descriptor, _socket_line(path))
        finally:
            os.close(descriptor)

    def close(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self._folder, self.token))
        os.close(self._descriptor)


def ask_to_stop(folder: str, token: str, session_id: str) -> bool:
    """False if the owner cannot be asked: it is on another machine, another user's, or not stoppable."""
    return _signal(folder, token, session_id.encode() + b"\n")


def report_missing_socket(folder: str, token: str) -> None:
    """Lets the owner look whether its socket is still there, if the owner can be asked."""
    _signal(folder, token, b"")


def _signal(folder: str, token: str, request: bytes) -> bool:
    """Adds a request to the owner's file, and lets the owner know. False if the owner cannot be asked."""
    try:
        descriptor = os.open(os.path.join(folder, os.path.basename(token)), os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if os.pread(descriptor, _MOST_REQUESTS, 0).partition(b"\n")[0] != _machine():
            return False
        os.write(descriptor, request)
        # The lock was held a moment ago: the number is still that of the process that made the file.
        os.kill(int(process_of(token)), STOP)
    except (OSError, ValueError):
        return False
    finally:
        os.close(descriptor)
    return True


def lives(folder: str, token: str) -> bool:
    return bool(token) and not _is_gone(folder, token)


def socket_of(folder: str, token: str) -> str:
    """Where the owner can be attached to; empty if it has no socket, or lives on another machine."""
    try:
        descriptor = os.open(os.path.join(folder, os.path.basename(token)), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        machine, path = _published(descriptor)
    finally:
        os.close(descriptor)
    return path if machine == _machine() else ""


def owners_in(folder: str) -> list[tuple[str, str, str]]:
    """Every other process that lives and has a lock there: its token, its number, and its socket if it has one."""
    try:
        tokens = os.listdir(folder)
    except OSError:
        return []
    others = (token for token in tokens if process_of(token) != str(os.getpid()))
    return [(token, process_of(token), socket_of(folder, token)) for token in others if lives(folder, token)]


def process_of(token: str) -> str:
    """The id of the owner's process, for a person to read."""
    return token.partition("-")[0]


def sweep(folder: str) -> None:
    """Removes the files of owners that did not come to do it themselves."""
    for name in os.listdir(folder):
        _is_gone(folder, name)


def _machine() -> bytes:
    """This machine, since it was started: a process's number means nothing elsewhere, or later."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read().strip()
    except OSError:
        return os.uname().nodename.encode()


def _socket_line(path: str) -> bytes:
    return _SOCKET + _machine() + b" " + os.fsencode(path) + b"\n"


def _published(descriptor: int) -> tuple[bytes, str]:
    """The machine and the path of the socket that a lock's file names last; both empty if it names none."""
    for line in reversed(os.pread(descriptor, _MOST_REQUESTS, 0).split(b"\n")):
        if line.startswith(_SOCKET):
            machine, _, path = line.removeprefix(_SOCKET).partition(b" ")
            return machine, os.fsdecode(path)
    return b"", ""


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
    """True if nobody holds the lock; its file is removed then, and the socket that it names."""
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
        _remove_socket(_published(descriptor)[1], token)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        return True
    finally:
        os.close(descriptor)


def _remove_socket(path: str, token: str) -> None:
    """Removes what a killed owner has left. Nothing else has its token as its name, on whichever machine."""
    with contextlib.suppress(OSError):
        if os.path.basename(path) == os.path.basename(token) and stat.S_ISSOCK(os.lstat(path).st_mode):
            os.unlink(path)


# --- where sockets lie

LONGEST_PATH = 107
"""Bytes that the path of a unix socket may have."""


SOCKETS_NAME = "sockets"
"""The folder of sockets below Crow's home: the last choice, as a home's path may be too long."""


def socket_path(token: str, home: str) -> str:
    """The path for an owner's socket, in a folder that only this user can enter; empty if there is no such folder."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    folders = [os.path.join(runtime, "crow")] if os.path.isabs(runtime) and _is_private(runtime) else []
    for folder in (*folders, shared_folder(), os.path.join(home, SOCKETS_NAME)):
        path = os.path.join(folder, token)
        if len(os.fsencode(path)) > LONGEST_PATH:
            continue
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder, 0o700)
            if _is_private(folder):
                return path
    return ""


def can_be_attached_to(home: str) -> bool:
    """Whether there is a place for the sockets of owners with that home."""
    return bool(socket_path(f"{os.getpid()}-{bytes(8).hex()}", home))


def shared_folder() -> str:
    return f"/tmp/crow-{os.geteuid()}"  # noqa: S108 -- TMPDIR may be too long a path; whose this one is, is looked at


def _is_private(folder: str) -> bool:
    """Whether it is a folder, not a link to one, of this user's, that nobody else can enter."""
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
