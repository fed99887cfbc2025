"""Finds links of protected names that lead to an ordinary file of the workspace: who writes that file writes what runs.

`.git/hooks/pre-commit` is often a link into `scripts`, and a repository may bring a `.vscode` that is a link to `docs`.
Looked for in the folders above the file, and in the folders of hooks and settings there; not in the whole project.
"""

import os
from collections.abc import Iterator, Sequence

from crow.paths import is_inside
from crow.policy.paths import why_protected

_MOST_LOOKED_AT = 10_000
"""Entries of folders: deciding stays quick, whatever lies there."""


def why_linked(path: str, roots: Sequence[str]) -> str:
    """Why writing a resolved path writes something protected; empty if no link that is found leads there."""
    root = max((root for root in roots if is_inside(path, root)), key=len, default="")
    folder, folded = os.path.dirname(path), path.casefold()  # as on disks that do not tell upper from lower case
    left = iter(range(_MOST_LOOKED_AT))
    while root and is_inside(folder, root):
        for link in _links_in(folder, left):
            if is_inside(folded, os.path.realpath(link).casefold()) and (why := why_protected(link)):
                return why
        if folder == root:
            break
        folder = os.path.dirname(folder)
    return ""


def _links_in(folder: str, left: Iterator[int]) -> Iterator[str]:
    """The links in a folder, and in the folders of hidden names in it: of `.git` those among its hooks."""
    for entry in _entries(folder, left):
        if entry.is_symlink():
            yield entry.path
        elif entry.name == ".git":
            yield from _links_below(f"{entry.path}/hooks", 0, left)
        elif entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
            yield from _links_below(entry.path, 1, left)


def _links_below(folder: str, depth: int, left: Iterator[int]) -> Iterator[str]:
    for entry in _entries(folder, left):
        if entry.is_symlink():
            yield entry.path
        elif depth and entry.is_dir(follow_symlinks=False):
            yield from _links_below(entry.path, depth - 1, left)


def _entries(folder: str, left: Iterator[int]) -> list["os.DirEntry[str]"]:
    """Those that there are, or as many of them as may still be looked at."""
    try:
        with os.scandir(folder) as entries:
            return [entry for entry, _ in zip(entries, left, strict=False)]
    except OSError:
        return []
