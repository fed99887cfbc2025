"""The files that a folder brings for Crow, read once and kept: what is shown, trusted and used is the same text.

In a project no symbolic link is followed: cloning a repository must not make Crow load what lies elsewhere. In the
user's own folder links are fine.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from itertools import chain, islice

import msgspec

from crow.config.home import reason

LARGEST_FILE = 64 * 1024
MOST_FILES = 200
MOST_FOLDERS = 100
MOST_NAMES = 1000
"""In one folder. A look stays quick, whatever a repository holds."""
DEEPEST = 4
"""Folders within folders that are looked at for commands."""
SKILL_FILE = "SKILL.md"

_Stamp = tuple[str, int, int, int]


class Layout(msgspec.Struct, frozen=True):
    """Where in a folder the files are, relative to it."""

    single: tuple[str, ...]
    commands: str
    skills: str
    links: bool
    """Whether symbolic links are followed."""


OF_USER = Layout((), "commands", "skills", links=True)
OF_PROJECT = Layout((".crow/config.toml", ".mcp.json"), ".crow/commands", ".crow/skills", links=False)


class Snapshot(msgspec.Struct, frozen=True):
    base: str
    files: dict[str, bytes]
    """By path, relative to the base, in order."""
    left_out: tuple[str, ...] = ()
    """What is there and was not taken, with why."""

    @property
    def digest(self) -> str:
        """Of every path and every byte."""
        import hashlib  # not before it is needed: most folders bring nothing

        digest = hashlib.sha256()
        for path, content in self.files.items():
            name = os.fsencode(path)
            digest.update(b"%d %d %s %s" % (len(name), len(content), name, content))
        return digest.hexdigest()


class Watched:
    """A folder's files, read again only when a look at their dates shows a change."""

    def __init__(self, base: str, layout: Layout) -> None:
        self._base = base
        self._layout = layout
        self._stamps: list[_Stamp] | None = None
        self.now = Snapshot(base, {})

    def look(self) -> bool:
        """Whether anything has changed since the last look."""
        refused: list[str] = []
        paths = list(_paths(self._base, self._layout, refused))
        stamps = [_stamp(self._base, path) for path in paths]
        if stamps == self._stamps:
            return False
        self._stamps = stamps
        self.now = _read(self._base, paths, refused, links=self._layout.links)
        return True


def _paths(base: str, layout: Layout, refused: list[str]) -> Iterator[str]:
    for path in layout.single:
        if os.path.lexists(os.path.join(base, path)):
            yield from _unlinked(base, path, layout, refused)
    found = chain(_commands(base, layout, refused), _skills(base, layout, refused))
    yield from sorted(islice(found, MOST_FILES))
    if next(found, None) is not None:
        refused.append(f"all files but {MOST_FILES}: more are not read")


def _commands(base: str, layout: Layout, refused: list[str]) -> Iterator[str]:
    folders = [(layout.commands, 1)] if _is_folder(base, layout.commands, layout, refused) else []
    for _ in range(MOST_FOLDERS):
        if not folders:
            return
        folder, depth = folders.pop(0)
        for name in _names(os.path.join(base, folder)):
            path = f"{folder}/{name}"
            if name.endswith(".md"):
                yield from _unlinked(base, path, layout, refused)
            elif depth < DEEPEST and _is_folder(base, path, layout, refused):
                folders.append((path, depth + 1))


def _skills(base: str, layout: Layout, refused: list[str]) -> Iterator[str]:
    if not _is_folder(base, layout.skills, layout, refused):
        return
    for name in _names(os.path.join(base, layout.skills)):
        folder = f"{layout.skills}/{name}"
        path = f"{folder}/{SKILL_FILE}"
        if _is_folder(base, folder, layout, refused) and os.path.lexists(os.path.join(base, path)):
            yield from _unlinked(base, path, layout, refused)


def _names(folder: str) -> Sequence[str]:
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))[:MOST_NAMES]
    except OSError:
        return ()


def _is_folder(base: str, path: str, layout: Layout, refused: list[str]) -> bool:
    return os.path.isdir(os.path.join(base, path)) and any(_unlinked(base, path, layout, refused))


def _unlinked(base: str, path: str, layout: Layout, refused: list[str]) -> Iterator[str]:
    if layout.links or not _through_link(base, path):
        yield path
    else:
        refused.append(f"{path}: it is a symbolic link")


def _through_link(base: str, path: str) -> bool:
    """Whether a component of the path, below the base, is a symbolic link."""
    while path:
        if os.path.islink(os.path.join(base, path)):
            return True
        path = os.path.dirname(path)
    return False


def _stamp(base: str, path: str) -> _Stamp:
    try:
        status = os.stat(os.path.join(base, path))
    except OSError:
        return path, 0, 0, 0
    return path, status.st_ctime_ns, status.st_size, status.st_ino


def _read(base: str, paths: Sequence[str], refused: list[str], *, links: bool) -> Snapshot:
    files: dict[str, bytes] = {}
    for path in paths:
        try:
            files[path] = _content(os.path.join(base, path), links=links)
        except OSError as error:
            refused.append(f"{path}: {reason(error)}")
    return Snapshot(base, files, tuple(refused))


def _content(path: str, *, links: bool) -> bytes:
    nofollow = 0 if links else os.O_NOFOLLOW
    # A pipe would make us wait for whoever writes to it.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | nofollow), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "it is no file")
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise OSError(0, f"it is larger than {LARGEST_FILE // 1024} kB")
    return content
