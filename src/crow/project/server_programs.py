"""Finds the files of a project that the command of an MCP server names, as they run when the server starts.

Trust in the project ends when one of them changes, and a write to one of them is asked about. Found are scripts and
programs among the words of the command and the values of its variables, also in a line for a shell, as a module of
Python, or in a folder that a word names. Files that are not there yet count: they may be made. What such a file imports
is not looked for, nor what `npm run x` runs.
"""

import functools
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal

from crow.config.settings import McpServerSettings
from crow.paths import LONGEST, is_inside
from crow.project.folder_files import Stamp, stamp_of
from crow.project.needs_trust import VARIABLE
from crow.project.watching import WatchList
from crow.visible import code

_MOST_FILES = 300
_MOST_FOLDERS = 8
_LARGEST = 32 * 1024 * 1024
"""Bytes of a file that are looked at whenever it changes; a larger one counts by its date and size."""
_PIECES = re.compile(r"""[^\s"'`;&|()<>{}$,]+""")
_SIGN = re.compile(r"[=:@]")
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


@functools.cache
def _names(kind: Literal["scripts", "run_by_name", "beginnings"]) -> frozenset[str]:
    with open(os.path.join(os.path.dirname(__file__), "program_names.toml"), "rb") as file:
        return frozenset(tomllib.load(file)[kind].split())


def program_files(server: McpServerSettings, root: str) -> list[str]:
    """The files below a resolved root, by their absolute paths, links as they are. Looks at the disk."""
    words = [
        VARIABLE.sub(lambda found: os.environ.get(found[1], "") or found[2] or "", word)
        for word in (server.command, *server.args, *server.env.values())
        if word
    ]
    pieces = [word for word in words if len(word) <= LONGEST]
    pieces += [piece for word in words for piece in _pieces_of(word[: 8 * LONGEST])]
    folders = [root]
    for piece in pieces:
        path = _below(piece, root, root)
        if path and path not in folders and os.path.isdir(path):
            folders.append(path)
    found = _found(dict.fromkeys(pieces), folders[:_MOST_FOLDERS], root, words[0] if words else "")
    return sorted(set(islice(found, _MOST_FILES)))


def _pieces_of(word: str) -> Iterator[str]:
    """What in a word may be a path: the words of a shell line, and what follows a sign or an option's letter."""
    for piece in _PIECES.findall(word):
        yield piece
        yield from _SIGN.split(piece)
        if piece[0] == "-" != piece[1:2]:
            yield piece[2:]


def _below(piece: str, folder: str, root: str) -> str:
    """Where a piece leads to, if that is below the root; as it is written, but without `..`."""
    if "\0" in piece or not piece:
        return ""
    path = os.path.normpath(os.path.join(folder, os.path.expanduser(piece)))
    if is_inside(path, root):
        return path
    real = os.path.realpath(path)  # the root may be named by a link
    return real if is_inside(real, root) else ""


def _found(pieces: Iterable[str], folders: Sequence[str], root: str, command: str) -> Iterator[str]:
    for folder in folders[1:]:
        yield from (path for name in _names("beginnings") if os.path.isfile(path := f"{folder}/{name}"))
    for piece in pieces:
        is_command = piece == command
        paths = [path for folder in folders if (path := _below(piece, folder, root)) and path != root]
        there = [path for path in paths if os.path.lexists(path)]
        yield from (path for path in there if _is_program(path, is_command=is_command))
        is_word = _PIECES.fullmatch(piece) is not None and not piece.startswith("-")
        may_be_made = "/" in piece if is_command else is_word and _ending(piece.casefold()) in _names("scripts")
        if not there and may_be_made:
            yield from paths[:1]
        if _MODULE.fullmatch(piece):
            for folder in (*folders, f"{root}/src"):
                yield from _module_files(f"{folder}/{piece.replace('.', '/')}")


def _is_program(path: str, *, is_command: bool) -> bool:
    name = os.path.basename(path).casefold()
    if os.path.isdir(path):
        return False
    if is_command or name in _names("run_by_name") or os.access(path, os.X_OK):
        return True
    return (ending := _ending(name)) == "" or ending in _names("scripts")


def _ending(name: str) -> str:
    return name.rpartition(".")[2] if "." in os.path.basename(name)[1:] else ""


def _module_files(module: str) -> Iterator[str]:
    """Those of a module of Python, or of all of a package."""
    if os.path.isfile(f"{module}.py"):
        yield f"{module}.py"
    if os.path.isfile(f"{module}/__init__.py") or os.path.isfile(f"{module}/__main__.py"):
        for folder, folders, files in os.walk(module):
            folders[:] = sorted(name for name in folders if name != "__pycache__" and not name.startswith("."))
            yield from (f"{folder}/{name}" for name in sorted(files) if name.endswith(".py"))


def said_of_programs(servers: Mapping[str, McpServerSettings], roots: Sequence[str]) -> dict[str, str]:
    """What is to be said of writing each file that a server runs, by resolved path, case-folded as on some disks."""
    said: dict[str, str] = {}
    for name, server in servers.items():
        for root in roots if server.command else ():
            for path in program_files(server, root):
                for spelling in (path, os.path.realpath(path)):
                    said.setdefault(spelling.casefold(), f"the MCP server {code(name)} runs it when it starts")
    return said


class WatchedPrograms:
    """The programs of a project's servers: digested anew only when a look at their dates shows a change."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._servers: list[McpServerSettings] = []
        self._stamps: list[Stamp] = []
        self.names: tuple[str, ...] = ()
        """Relative to the root."""
        self.digest = ""
        """Of every name and every byte; empty if there are none."""

    def follow(self, servers: Iterable[McpServerSettings]) -> None:
        """Looks at the programs of these servers from the next refresh on."""
        self._servers = [server for server in servers if server.command]

    def refresh(self) -> bool:
        """Whether anything has changed since the last look."""
        real = os.path.realpath(self._root)
        paths = {path: None for server in self._servers for path in program_files(server, real)}
        stamps = [stamp_of(real, path) for path in paths]
        if stamps == self._stamps:
            return False
        self._stamps = stamps
        self.names = tuple(os.path.relpath(path, real) for path in paths)
        before, self.digest = self.digest, _digest(real, stamps)
        return self.digest != before

    def watch_list(self) -> WatchList:
        found: dict[str, set[str]] = {}
        for path, *_ in self._stamps:
            for spelling in {path, os.path.realpath(path)}:
                folder, name = os.path.split(spelling)
                found.setdefault(folder, set()).add(name)
        return {folder: frozenset(found[folder]) for folder in found}


def _digest(root: str, stamps: Sequence[Stamp]) -> str:
    if not stamps:
        return ""
    import hashlib  # not before it is needed: few projects bring servers of their own

    digest = hashlib.sha256()
    for path, changed, size, inode in stamps:
        name = os.fsencode(os.path.relpath(path, root))
        digest.update(b"%d %s " % (len(name), name))
        try:
            if size > _LARGEST:
                digest.update(b"large %d %d %d " % (changed, size, inode))
            elif os.path.isfile(path):
                with open(path, "rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
            else:
                digest.update(b"none ")
        except OSError:
            digest.update(b"unreadable ")
    return digest.hexdigest()
