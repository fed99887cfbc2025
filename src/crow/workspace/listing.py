"""The files below a folder that are worth looking at: what git ignores is left out, and so is `.git` itself.

Ripgrep lists them if it is installed, else a walk of our own; both give the same. Symbolic links are not followed, so
nothing leads out of the folder or round in a circle, and what is no regular file is not there.
"""

import asyncio
import os
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeVar

from crow.disk import PATIENCE, Disk
from crow.errors import WorkspaceError
from crow.paths import is_inside, shown
from crow.workspace.child import output_of
from crow.workspace.ignore import IgnoreRules
from crow.workspace.place import refuse_link

MOST_FILES = 200_000
_MOST_BYTES = 64 * 1024 * 1024


class Listing(NamedTuple):
    paths: list[str]
    """Absolute, sorted."""
    cut: Literal["", "time", "size"] = ""
    """Why there may be more: the time was up, or there were too many."""


def find_ripgrep(roots: Sequence[str]) -> str | None:
    """The installed `rg`. One that lies in the workspace is a stranger's: it is not run unasked."""
    path = shutil.which("rg")
    if path is None or not os.path.isabs(path):
        return None
    real = os.path.realpath(path)
    return None if any(is_inside(each, root) for root in roots for each in (path, real)) else real


async def list_files(disk: Disk, root: str, ripgrep: str | None, until: float) -> Listing:
    """The files below a folder, or the one file that the root is; at the longest until that moment."""
    if not await disk.run(lambda: _is_open_folder(root)):
        return Listing([root])
    listing = await _ask_ripgrep(root, ripgrep, until) if ripgrep is not None else None
    if listing is None:
        listing = await in_thread(disk, lambda stopped: walk(root, stopped), until)
    await disk.run(lambda: refuse_link(root))
    return listing


def _is_open_folder(root: str) -> bool:
    """Whether it is a folder; WorkspaceError if it may not be read."""
    refuse_link(root)
    is_folder = os.path.isdir(root)
    if not os.access(root, os.R_OK | os.X_OK if is_folder else os.R_OK):
        raise WorkspaceError(f"{shown(root)} may not be read: permission denied.")
    return is_folder


async def _ask_ripgrep(root: str, ripgrep: str, until: float) -> Listing | None:
    """None if this ripgrep cannot be used."""
    options = ["--no-config", "--no-messages", "--hidden", "--no-ignore-global", "--no-ignore-dot", "--glob=!.git"]
    try:
        # Not in the folder itself: starting a program where the disk hangs does not come back.
        output = await output_of(
            [ripgrep, "--files", "--null", *options, "--", root], cwd="/", until=until, most=_MOST_BYTES
        )
    except OSError:
        return None
    if output.status not in (0, 1) and not output.cut and not output.text:
        return None
    names = output.text.split(b"\0")[:-1]
    paths = sorted(map(os.fsdecode, names[:MOST_FILES]))
    return Listing(paths, output.cut or ("size" if len(names) > MOST_FILES else ""))


def walk(root: str, stopped: Callable[[], bool], most: int = MOST_FILES) -> Listing:
    """The same by ourselves. Folders that cannot be read are passed over, as ripgrep does."""
    paths: list[str] = []
    waiting = [(root, IgnoreRules.for_folder(root))]
    while waiting:
        if stopped() or len(paths) > most:
            return Listing(sorted(paths[:most]), "size" if len(paths) > most else "time")
        folder, rules = waiting.pop()
        for entry, is_folder in _entries(folder):
            if rules.ignores(entry.path, is_folder=is_folder):
                continue
            if is_folder:
                waiting.append((entry.path, rules.entering(entry.path)))
            else:
                paths.append(entry.path)
    return Listing(sorted(paths[:most]), "size" if len(paths) > most else "")


def _entries(folder: str) -> list[tuple[os.DirEntry[str], bool]]:
    """The files and folders in a folder, with which of the two they are."""
    found: list[tuple[os.DirEntry[str], bool]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                if entry.name != ".git" and (is_folder or entry.is_file(follow_symlinks=False)):
                    found.append((entry, is_folder))
    except OSError:
        pass
    return found


Result = TypeVar("Result")


async def in_thread(disk: Disk, work: Callable[[Callable[[], bool]], Result], until: float) -> Result:
    """Runs what may take long in a thread of that disk. It is given a function that says when to stop: the time is up,
    or the caller has gone, which does not wait for the thread. FileSystemSilent if it does not stop.
    """
    gone = threading.Event()
    seconds_left = until - asyncio.get_running_loop().time()
    end = time.monotonic() + seconds_left
    try:
        return await disk.run(
            lambda: work(lambda: gone.is_set() or time.monotonic() > end), max(0.0, seconds_left) + PATIENCE
        )
    finally:
        gone.set()
