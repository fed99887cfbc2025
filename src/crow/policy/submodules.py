"""Submodules that may have been planted. `git status`, `git diff` and others look into each folder that the index calls
a submodule, and obey the configuration of the repository that lies there, which names programs to run.

A true submodule keeps its configuration in the `.git` of the repository that it belongs to, where nothing is written
unasked. So the index is searched for those that do not; it is read once for each of its states.
"""

import os
from collections.abc import Iterator
from functools import lru_cache

from crow.paths import is_inside
from crow.policy.repositories import repository_of, target_of_git_file

_GITLINK = b"\x00\x00\xe0\x00"
"""An entry's mode, 24 bytes behind its beginning."""
_BEFORE_NAME = tuple(4 + 12 + digest + 2 + more for digest in (20, 32) for more in (0, 2))
"""Between the mode and the name: owner, group and size, a SHA-1 or SHA-256, flags, and perhaps more flags."""
_LONGEST_NAME = 4096
_LARGEST = 32 * 1024 * 1024
_MOST_FOUND = 500
_DEEPEST = 5


def planted_submodule(folder: str) -> str | None:
    """Why git, run there, would obey a repository that may have been planted below its own; None if it would not."""
    found = repository_of(folder)
    return _planted(*found, _DEEPEST) if found is not None else None


def _planted(top: str, git: str, depth: int) -> str | None:
    unread = f"the index of `{top}` cannot be searched for submodules"
    names = _submodules(git)
    if names is None or not depth:
        return unread
    for name in names:
        path = os.path.join(top, name)
        inner = os.path.join(path, ".git")
        if not os.path.lexists(inner):
            continue  # nothing lies there, or this is no entry
        target = target_of_git_file(path, inner) if os.path.isfile(inner) else None
        if target is None or not is_inside(target, _common(git)):
            return f"`{path}` is a repository of its own, and git would obey its configuration"
        if reason := _planted(path, target, depth - 1):
            return reason
    return None


def _common(git: str) -> str:
    """The `.git` that a worktree's shares with others."""
    try:
        with open(os.path.join(git, "commondir"), "rb") as file:
            return os.path.realpath(os.path.join(git, os.fsdecode(file.read(_LONGEST_NAME)).strip()))
    except OSError:
        return os.path.realpath(git)


def _submodules(git: str) -> tuple[str, ...] | None:
    """What may be the names of submodules in an index; None if that cannot be told."""
    names: list[str] = []
    try:
        shared = (entry.path for entry in os.scandir(git) if entry.name.startswith("sharedindex."))
        for path in (os.path.join(git, "index"), *shared):
            if not os.path.lexists(path):
                continue
            status = os.stat(path)
            found = _names_in(path, status.st_mtime_ns, status.st_size, status.st_ino)
            if found is None:
                return None
            names += found
    except OSError:
        return None
    return tuple(names)


@lru_cache(maxsize=64)
def _names_in(path: str, changed: int, size: int, inode: int) -> tuple[str, ...] | None:
    """`changed` and `inode` tell the file's states apart."""
    if size > _LARGEST:
        return None
    with open(path, "rb") as file:
        index = file.read(_LARGEST)
    found = list(_places(index))
    if len(found) > _MOST_FOUND or (found and int.from_bytes(index[4:8]) > 3):  # from 4 on, names are not whole
        return None
    names: dict[str, None] = {}
    for at in found:
        for distance in _BEFORE_NAME:
            name, end, _ = index[at + distance : at + distance + _LONGEST_NAME].partition(b"\0")
            if name and end:
                names[os.fsdecode(name)] = None
    return tuple(names)


def _places(index: bytes) -> Iterator[int]:
    at = index.find(_GITLINK)
    while at >= 0:
        yield at
        at = index.find(_GITLINK, at + 1)
