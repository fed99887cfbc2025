"""Puts into words for a person what the operating system says of a path that cannot be read or written."""

import errno
import os
import stat

from crow.errors import StaleFile, WorkspaceError
from crow.paths import shown


def unwritable(path: str, error: OSError) -> WorkspaceError:
    """Said only where nothing was changed: a write is whole or did not happen."""
    folder, path = shown(os.path.dirname(path)), shown(path)
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return WorkspaceError(f"{path} was not written: there is no space left on the disk. It is as it was.")
        case errno.EACCES | errno.EPERM:
            return WorkspaceError(f"{path} may not be written: permission denied in {folder}.")
        case errno.ENOTDIR | errno.ELOOP:
            return WorkspaceError(
                f"{path} cannot be written: a part of its path is a file, or has become a symbolic link."
            )
        case _:
            return WorkspaceError(f"{path} was not written: {reason(error)}. It is as it was.")


def led_elsewhere(path: str) -> StaleFile:
    """The error for a resolved path, which had no symbolic link on it when somebody agreed to it, and has one now."""
    return StaleFile(f"{shown(path)} has changed since it was approved: there is a symbolic link on its path now.")


def another_folder(path: str) -> StaleFile:
    """The error for a path whose folder was replaced by another one since somebody agreed to it."""
    return StaleFile(f"{shown(path)} has changed since it was approved: its folder was replaced by another one.")


def folder_gone(path: str) -> StaleFile:
    return StaleFile(f"{shown(path)} has changed since it was approved: its folder is gone.")


def kind(mode: int) -> str:
    """What lies at a path instead of a file."""
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    return "a device"


def reason(error: OSError) -> str:
    """What the system said, in its own words, without number and path."""
    return (error.strerror or type(error).__name__).lower()
