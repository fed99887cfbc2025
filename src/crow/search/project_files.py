"""Finds files and folders of a project by a part of their path, the best matches first, to complete what is typed."""

import asyncio
import os
import time
from typing import NamedTuple

from crow.disk import Disk
from crow.errors import WorkspaceError
from crow.search.listing import find_ripgrep, list_files

MOST_FILES = 50_000
LISTING_TIME = 2.0
"""Seconds in which the project's files are listed; what was not found by then is not offered."""
FRESH = 10.0
"""Seconds for which a list of files is used again."""


class _Known(NamedTuple):
    path: str
    """Relative; that of a folder ends with a slash."""
    folded: str
    name: str
    """The last part of the folded path."""


class ProjectFiles:
    """The files below a folder and the folders they are in, without what git ignores."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._disk = Disk(folder)
        self._listed_at = -FRESH
        self._known: list[_Known] = []
        self._listing: asyncio.Task[list[_Known]] | None = None

    async def matching(self, typed: str, most: int) -> list[str]:
        """Those that may be meant, relative to the folder: what continues the path comes before what contains it."""
        try:
            known = await self._all()
            return await self._disk.run(lambda: _matching(known, typed, most))
        except WorkspaceError:
            return []

    async def _all(self) -> list[_Known]:
        if time.monotonic() - self._listed_at > FRESH:
            listing = self._listing = self._listing or asyncio.ensure_future(self._list())
            try:
                self._known = await asyncio.shield(listing)
            finally:
                if listing.done():
                    self._listing, self._listed_at = None, time.monotonic()
        return self._known

    async def _list(self) -> list[_Known]:
        folder = await self._disk.run(lambda: os.path.realpath(self._folder))
        ripgrep = await self._disk.run(lambda: find_ripgrep([folder]))
        until = asyncio.get_running_loop().time() + LISTING_TIME
        paths = (await list_files(self._disk, folder, ripgrep, until)).paths[:MOST_FILES]
        return await self._disk.run(lambda: _with_folders(folder, paths))


def _with_folders(root: str, paths: list[str]) -> list[_Known]:
    found: dict[str, None] = {}
    for path in paths:
        relative = path[len(root.rstrip("/")) + 1 :]
        for place, character in enumerate(relative):
            if character == "/":
                found[relative[: place + 1]] = None
        found[relative] = None
    return [_Known(path, path.casefold(), _name(path).casefold()) for path in sorted(found)]


def _matching(known: list[_Known], typed: str, most: int) -> list[str]:
    wanted = typed.casefold()
    direct = [each.path for each in known if _is_next(each.folded, wanted)]
    begins = [each.path for each in known if each.name.startswith(wanted)] if typed else []
    contains = [each.path for each in known if wanted in each.folded] if typed else []
    return list(dict.fromkeys([*direct, *begins, *contains]))[:most]


def _is_next(path: str, typed: str) -> bool:
    """Whether a path continues what was typed, in the folder that was typed so far."""
    return path.startswith(typed) and "/" not in path[len(typed) :].rstrip("/") and path != typed


def _name(path: str) -> str:
    return os.path.basename(path.rstrip("/"))
