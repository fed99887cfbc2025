"""The one folder that is Crow's own: configuration, data and log. Nothing is created until something is written."""

import contextlib
import os
from collections.abc import Mapping

from crow.errors import ConfigError

CONFIG_NAME = "config.toml"


def home(environ: Mapping[str, str]) -> str:
    """The absolute path of `CROW_HOME`, by default `~/.crow`."""
    chosen = environ.get("CROW_HOME", "")
    user = environ.get("HOME") or os.path.expanduser("~")
    if not chosen:
        return os.path.join(user, ".crow")
    if chosen == "~" or chosen.startswith("~/"):
        chosen = user + chosen[1:]
    return os.path.abspath(chosen)


def config_path(home: str) -> str:
    return os.path.join(home, CONFIG_NAME)


def log_path(home: str) -> str:
    return os.path.join(home, "log", "crow.log")


def create_folder(path: str) -> None:
    """Makes the folder, and the missing ones above it, readable by their owner only. One that exists stays as it is."""
    if os.path.isdir(path):
        return
    try:
        create_folder(os.path.dirname(path))
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
    except OSError as error:
        raise ConfigError(f"The folder {path} cannot be made: {reason(error)}.") from error


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


def _write_new(path: str, content: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(content)
        file.flush()
        os.fsync(descriptor)


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
    return (error.strerror or type(error).__name__).lower()
