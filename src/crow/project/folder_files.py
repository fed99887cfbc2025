"""Reads the files that a project or the user's own folder has for Crow, once and within limits; which links are
followed. What is shown, trusted and used is the same text.

In a project no symbolic link is followed: cloning a repository must not make Crow load what lies elsewhere. In the
user's own folder links are fine.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

import msgspec

from crow.config.home import read_file, reason
from crow.project.watching import WatchList

LARGEST_FILE = 64 * 1024
MOST_TO_SHOW = 256 * 1024
"""Bytes that a project may bring in all: the person is shown every one of them before they trust it."""
MOST_FILES = 200
MOST_FOLDERS = 100
MOST_NAMES = 1000
"""In one folder. A look stays quick, whatever a repository holds."""
DEEPEST = 4
"""Folders within folders that are looked at for commands."""
SKILL_FILE = "SKILL.md"
LOOK_PATIENCE = 5.0
"""Seconds for a look at the dates of some files, before the file system is called silent."""

Stamp = tuple[str, int, int, int]
"""A path, and of what lies there when it was changed, its size and its inode."""


class Layout(msgspec.Struct, frozen=True):
    """Where in a folder the files are, relative to it."""

    single: tuple[str, ...]
    commands: str
    skills: str
    links: bool
    """Whether symbolic links are followed."""
    most: int | None = None
    """Bytes of all files together; what comes after them is left out."""


OF_USER = Layout((), "commands", "skills", links=True)
OF_PROJECT = Layout(
    (".crow/config.toml", ".mcp.json"), ".crow/commands", ".crow/skills", links=False, most=MOST_TO_SHOW
)


class Snapshot(msgspec.Struct, frozen=True):
    base: str
    files: dict[str, bytes]
    """The contents by path, relative to the base, in order."""
    left_out: tuple[str, ...] = ()
    """The files that were not taken, each with the reason."""

    @property
    def digest(self) -> str:
        """The digest of every path and every byte."""
        import hashlib  # not before it is needed: most folders bring nothing

        digest = hashlib.sha256()
        for path, content in self.files.items():
            name = os.fsencode(path)
            digest.update(b"%d %d %s %s" % (len(name), len(content), name, content))
        return digest.hexdigest()


class WatchedFolder:
    """A folder's files, read again only when a look at their dates shows a change."""

    def __init__(self, base: str, layout: Layout) -> None:
        self._base = base
        self._layout = layout
        self._stamps: list[Stamp] | None = None
        self._folders: set[str] = set()
        self.now = Snapshot(base, {})

    def refresh(self) -> bool:
        """Whether anything has changed since the last look."""
        walk = _Walk(self._base, self._layout, [], set())
        paths = list(_paths(walk))
        stamps = [stamp_of(self._base, path) for path in paths]
        self._folders = walk.folders
        if stamps == self._stamps:
            return False
        self._stamps = stamps
        self.now = _read(self._base, paths, walk.refused, self._layout)
        return True

    def watch_list(self) -> WatchList:
        """Where the next change can be seen, as of the last look: the folders, and the names in those above them."""
        folders = {*self._folders, self._layout.commands, self._layout.skills}
        names: dict[str, set[str]] = {}
        for path in (*self._layout.single, *folders):
            parts = path.split("/")
            for depth, name in enumerate(parts):
                names.setdefault("/".join(parts[:depth]), set()).add(name)
        # A link's file lies elsewhere, and is watched by itself.
        links = {path for path, *_ in self._stamps or () if os.path.islink(os.path.join(self._base, path))}
        whole = folders | links
        return {
            os.path.join(self._base, path) if path else self._base: None if path in whole else frozenset(names[path])
            for path in sorted({*names, *whole})
        }


class _Walk(NamedTuple):
    """A walk through what a folder brings."""

    base: str
    layout: Layout
    refused: list[str]
    """The files that are not taken, each with the reason."""
    folders: set[str]
    """The folders that were looked into."""


def _paths(walk: _Walk) -> Iterator[str]:
    for path in walk.layout.single:
        if os.path.lexists(os.path.join(walk.base, path)):
            yield from _unlinked(walk, path)
    found = chain(_commands(walk), _skills(walk))
    yield from sorted(islice(found, MOST_FILES))
    if next(found, None) is not None:
        walk.refused.append(f"all files but {MOST_FILES}: more are not read")


def _commands(walk: _Walk) -> Iterator[str]:
    base, layout = walk.base, walk.layout
    folders: list[tuple[str, ...]] = []
    """Each with those that it lies in, links resolved: one that leads back to them is not looked into again."""
    if _is_folder(walk, layout.commands):
        folders.append((layout.commands, os.path.realpath(os.path.join(base, layout.commands))))
    for _ in range(MOST_FOLDERS):
        if not folders:
            return
        folder, *way = folders.pop(0)
        for name in _names(os.path.join(base, folder)):
            path = f"{folder}/{name}"
            if name.endswith(".md"):
                yield from _unlinked(walk, path)
            elif len(way) < DEEPEST and _is_folder(walk, path):
                real = os.path.realpath(os.path.join(base, path))
                if real not in way:
                    folders.append((path, *way, real))


def _skills(walk: _Walk) -> Iterator[str]:
    if not _is_folder(walk, walk.layout.skills):
        return
    for name in _names(os.path.join(walk.base, walk.layout.skills)):
        folder = f"{walk.layout.skills}/{name}"
        path = f"{folder}/{SKILL_FILE}"
        if _is_folder(walk, folder) and os.path.lexists(os.path.join(walk.base, path)):
            yield from _unlinked(walk, path)


def _names(folder: str) -> Sequence[str]:
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))[:MOST_NAMES]
    except OSError:
        return ()


def _is_folder(walk: _Walk, path: str) -> bool:
    if not os.path.isdir(os.path.join(walk.base, path)) or not any(_unlinked(walk, path)):
        return False
    walk.folders.add(path)
    return True


def _unlinked(walk: _Walk, path: str) -> Iterator[str]:
    if walk.layout.links or not _through_link(walk.base, path):
        yield path
    else:
        walk.refused.append(f"{path}: it is a symbolic link")


def _through_link(base: str, path: str) -> bool:
    """Whether a component of the path, below the base, is a symbolic link."""
    while path:
        if os.path.islink(os.path.join(base, path)):
            return True
        path = os.path.dirname(path)
    return False


def stamp_of(base: str, path: str) -> Stamp:
    try:
        status = os.stat(os.path.join(base, path))
    except OSError:
        return path, 0, 0, 0
    return path, status.st_ctime_ns, status.st_size, status.st_ino


def _read(base: str, paths: Sequence[str], refused: list[str], layout: Layout) -> Snapshot:
    files: dict[str, bytes] = {}
    size = 0
    for path in paths:
        try:
            content = _content(os.path.join(base, path), links=layout.links)
        except OSError as error:
            refused.append(f"{path}: {reason(error)}")
            continue
        if layout.most is not None and size + len(content) > layout.most:
            refused.append(f"{path}: with it there would be more than {layout.most // 1024} kB in all")
            continue
        size += len(content)
        files[path] = content
    return Snapshot(base, files, tuple(refused))


def _content(path: str, *, links: bool) -> bytes:
    content = read_file(path, LARGEST_FILE + 1, links=links)
    if len(content) > LARGEST_FILE:
        raise OSError(0, f"it is larger than {LARGEST_FILE // 1024} kB")
    return content
