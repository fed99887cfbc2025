"""Arithmetic on resolved, absolute paths: whether one lies inside another, and how one is shown from a folder."""

import os

LONGEST = 4096
"""Characters of a path that a system takes. Resolving a longer one costs the square of its length."""


def is_inside(path: str, folder: str) -> bool:
    """Whether one path lies in (or is) a folder: by whole components, never by the prefix of a name."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def shown(path: str) -> str:
    """A path as text: bytes in a name that are no UTF-8 cannot be sent to anyone and are replaced."""
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "replace")


def spelled(path: str, folder: str) -> str:
    """An absolute path as it was written, seen from a folder: links in it are not followed."""
    return os.path.normpath(os.path.join(folder, os.path.expanduser(path) if path.startswith("~") else path))


def relative_to(path: str, folder: str) -> str:
    """As short as it can be said from the folder: relative if it lies inside, else as it is."""
    return os.path.relpath(path, folder) if is_inside(path, folder) else path
