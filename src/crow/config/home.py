"""Crow's own folder (CROW_HOME) and the files in it: paths, private modes, atomic writes, locks between processes,
versioned JSON. Nothing is created until something is written.
"""

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Generator, Mapping
from typing import TypeVar

import msgspec

from crow.errors import ConfigError, CrowError
from crow.paths import shown
from crow.visible import one_line

CONFIG_NAME = "config.toml"
NO_FILE = "not a regular file"
"""Said of a pipe or a device, which cannot be read or written like a file."""


FRESH = 60
"""Seconds for which a temporary file is left alone: it may be written just now, which takes a moment."""


def home(environ: Mapping[str, str]) -> str:
    """The absolute path of `CROW_HOME`, by default `~/.crow`."""
    chosen = environ.get("CROW_HOME", "")
    user = environ.get("HOME") or os.path.expanduser("~")
    if not chosen:
        return os.path.abspath(os.path.join(user, ".crow"))
    if chosen == "~" or chosen.startswith("~/"):
        chosen = user + chosen[1:]
    return os.path.abspath(chosen)


def config_path(home: str) -> str:
    return os.path.join(home, CONFIG_NAME)


def log_path(home: str) -> str:
    return os.path.join(home, "log", "crow.log")


LOG_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
"""How the log is opened: should a pipe be in its place, we do not wait for its reader."""


def create_folder(path: str) -> None:
    """Makes the folder, and the missing ones above it, readable by their owner only. One that exists stays as it is."""
    if os.path.isdir(path):
        return
    refuse_link_to_nowhere(path)
    try:
        create_folder(os.path.dirname(path))
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
    except OSError as error:
        raise ConfigError(f"The folder {path} cannot be made: {reason(error)}.") from error


def is_there(path: str) -> bool:
    """Whether the file or folder exists. ConfigError if nobody may look: then it is not known."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        refuse_link_to_nowhere(os.path.dirname(path))
        return False
    except OSError as error:
        raise unreadable(path, error) from error
    return True


def refuse_link_to_nowhere(folder: str) -> None:
    """ConfigError if the folder is a link whose target is not there, as that of a disk that is not mounted: nobody
    knows what lies in it, and nothing can be kept."""
    if os.path.islink(folder) and not os.path.exists(folder):
        target = os.path.join(os.path.dirname(folder), os.readlink(folder))
        remedy = "Create that folder, mount its disk, or point the link elsewhere."
        raise ConfigError(f"{folder} is a link to {target}, which does not exist.", remedy=remedy)


def unreadable(path: str, error: OSError) -> ConfigError:
    """That a file of Crow's cannot be read, and what to do about it: the trouble may be its folder's."""
    folder = os.path.dirname(path)
    if isinstance(error, NotADirectoryError):
        remedy = "Move it away, or set CROW_HOME to another folder." if folder == home(os.environ) else ""
        return ConfigError(f"{folder} is not a folder.", remedy=remedy)
    if not isinstance(error, PermissionError):
        return ConfigError(f"{path} cannot be read: {reason(error)}.")
    place, mode = (path, 600) if os.access(folder, os.X_OK) else (folder, 700)
    return ConfigError(f"{place} cannot be read: {reason(error)}.", remedy=f"Make it yours: chmod {mode} {place}")


def tighten(home: str) -> None:
    """Takes from others what they may do with Crow's folder and the files in it. ConfigError if the folder, or anything
    in it, is another user's: whoever owns the configuration decides where the person's keys and prompts go, and in a
    folder that was open to all, another may have put grants, trust or skills.
    """
    _refuse_strangers(home)
    _take_from_others(home)
    with contextlib.suppress(OSError), os.scandir(home) as entries:
        for entry in entries:
            _refuse_strangers(entry.path)
            _take_from_others(entry.path)


def _refuse_strangers(path: str) -> None:
    for look in (os.lstat, os.stat):
        try:
            owner = look(path).st_uid
        except OSError:
            continue  # there is none yet, or whoever reads it says what is wrong
        if owner not in (os.geteuid(), 0):
            remedy = "Set CROW_HOME to a folder of your own, or take this one over with chown."
            raise ConfigError(f"{path} belongs to another user, so Crow does not use it.", remedy=remedy)


def _take_from_others(path: str) -> None:
    with contextlib.suppress(OSError):  # one that is not ours to change, or has gone
        status = os.lstat(path)
        if status.st_mode & 0o077 and not stat.S_ISLNK(status.st_mode) and status.st_uid == os.geteuid():
            os.chmod(path, stat.S_IMODE(status.st_mode) & 0o700)


def read_file(path: str, most: int = -1, *, links: bool = True) -> bytes:
    """Up to so many bytes of a plain file. OSError for anything else: a pipe would make us wait for whoever writes to
    it, a device could go on for ever. `links`: whether a symbolic link is followed."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW)
    descriptor = os.open(path, flags)
    try:
        kind = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(kind):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(kind):
            raise OSError(0, NO_FILE)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(descriptor)


def write_file(path: str, content: bytes, *, mode: int = 0o600) -> None:
    """Replaces the file as a whole or not at all; a symbolic link stays one, its target is replaced."""
    target = os.path.realpath(path)
    create_folder(os.path.dirname(target))
    temporary = f"{target}.{os.urandom(4).hex()}.tmp"
    try:
        try:
            _write_new(temporary, content, mode)
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
        _sync_folder(os.path.dirname(target))
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {reason(error)}.") from error


def check_writable(home: str) -> None:
    """ConfigError if nothing could be stored in Crow's folder. It is tried, as rights alone do not tell."""
    is_new = not is_there(home)
    create_folder(home)
    attempt = os.path.join(home, f"{CONFIG_NAME}.{os.urandom(4).hex()}.tmp")
    try:
        _write_new(attempt, b"", 0o600)
        os.unlink(attempt)
    except OSError as error:
        remedy = "Make it yours, or set CROW_HOME to another folder."
        raise ConfigError(f"Nothing can be stored in {home}: {reason(error)}.", remedy=remedy) from error
    if is_new:
        with contextlib.suppress(OSError):
            os.rmdir(home)


def remove_temporaries(home: str) -> None:
    """Removes what writes that were killed have left in the folder, and in those in it. Never fails."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(home):
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    for inner in os.scandir(entry):
                        _remove_temporary(inner)
                else:
                    _remove_temporary(entry)


def _remove_temporary(entry: "os.DirEntry[str]") -> None:
    *name, digits, extension = entry.name.rsplit(".", 2) if entry.name.count(".") > 1 else ("", "")
    if not name or extension != "tmp" or len(digits) != 8 or set(digits) - set("0123456789abcdef"):
        return  # none of ours
    with contextlib.suppress(OSError):
        if time.time() - entry.stat(follow_symlinks=False).st_mtime > FRESH:
            os.unlink(entry.path)


def write_new_file(path: str, content: bytes) -> None:
    """For its owner's eyes only, like what it is made of. Overwrites nothing; a CrowError if it cannot be written."""
    name = one_line(shown(path), 1000)
    try:
        _write_new(path, content, 0o600)
    except FileExistsError:
        remedy = "Choose another name, or move it away."
        raise CrowError(f"{name} already exists.", remedy=remedy) from None
    except OSError as error:
        raise CrowError(f"{name} cannot be written: {reason(error)}.") from error


def _write_new(path: str, content: bytes, mode: int) -> None:
    """Leaves nothing behind that is not whole."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(content)
            file.flush()
            os.fsync(descriptor)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        raise


def _sync_folder(path: str) -> None:
    """Makes the rename itself last; some file systems do not offer it, and the file is whole without it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def reason(error: OSError) -> str:
    """What the system said, in its own words, without number and path."""
    said = error.strerror or type(error).__name__
    return said[:1].lower() + said[1:]


# --- files that several Crows share: one writer at a time

LOCK_TIMEOUT = 3.0
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
        if not wait_for_lock(lock, LOCK_TIMEOUT):
            raise ConfigError(f"{path} is locked by another Crow process.")
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


# --- small JSON files that carry their version: a person or another Crow may have written them, and they are replaced
# as a whole

LARGEST_JSON = 4 * 1024 * 1024


class Versioned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int


Content = TypeVar("Content", bound=Versioned)


def read_versioned(path: str, empty: Content, consequence: str) -> Content:
    """What is in the file; `empty`, which has the version that is wanted, if there is none.

    ConfigError if it cannot be read or is not of that version. `consequence` says what that means for the person.
    """
    try:
        content = read_file(path, LARGEST_JSON + 1)
    except FileNotFoundError:
        return empty
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {reason(error)}.", remedy=f"Until it can, {consequence}.") from error
    try:
        found = msgspec.json.decode(content[:LARGEST_JSON], type=type(empty))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        remedy = f"Fix or delete it; until then {consequence}."
        raise ConfigError(f"{path} is damaged: {error}.", remedy=remedy) from error
    if found.version != empty.version:
        remedy = f"Update Crow, or move the file away; until then {consequence}."
        raise ConfigError(f"{path} was written by another version of Crow.", remedy=remedy)
    return found


def write_versioned(path: str, content: Versioned) -> None:
    """ConfigError if it cannot be kept."""
    try:
        encoded = msgspec.json.encode(content, order="sorted")
    except UnicodeEncodeError:
        raise ConfigError("A path that is not UTF-8 cannot be stored.") from None
    write_file(path, msgspec.json.format(encoded, indent=1) + b"\n")
