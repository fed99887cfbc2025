"""Which file a model may have meant by a path where nothing lies: the same name elsewhere, or one that is nearly it."""

import asyncio
import os
import re
from collections.abc import Iterable, Sequence
from itertools import takewhile

from crow.disk import Disk
from crow.errors import CrowError, WorkspaceError
from crow.paths import LONGEST, relative_to, shown
from crow.tools.advice import Advice
from crow.visible import one_line
from crow.workspace.base import FileInfo, Workspace
from crow.workspace.listing import in_thread, walk
from crow.workspace.place import ResolvedPath

SECONDS = 2.0
"""How long the files of the workspace are listed for a suggestion."""
MOST_LISTED = 50_000
MOST_SUGGESTED = 3
LEAST_ALIKE = 80
"""Per cent of a name that must be the same."""

_LINE = re.compile(r":\d+(?:[-:]\d+)?$")
"""The number of a line that was written after a path."""


async def missing(workspace: Workspace, path: ResolvedPath, advice: Advice, otherwise: str = "") -> WorkspaceError:
    """That nothing lies at a path, with the likeliest paths, or what else can be done."""
    likely = await likely_paths(workspace, path.written or path.real)
    names = [one_line(shown(relative_to(each, workspace.roots[0])), 400) for each in likely]
    remedy = f"Did you mean {_either(names)}?" if names else otherwise or advice.look_for_it
    return WorkspaceError(f"{one_line(shown(path.real), LONGEST)} does not exist.", remedy=remedy)


async def stat_or_suggest(workspace: Workspace, path: ResolvedPath, advice: Advice) -> FileInfo:
    """What lies at a path; where there is nothing, a WorkspaceError with the likeliest paths."""
    try:
        return await workspace.stat(path)
    except WorkspaceError as error:
        if path.existed or not error.message.endswith("does not exist."):
            raise
        raise await missing(workspace, path, advice) from None


async def likely_paths(workspace: Workspace, path: str) -> list[str]:
    """The paths in the workspace that are most like one, the likeliest first; what git ignores is not among them."""
    until = asyncio.get_running_loop().time() + SECONDS
    found: list[str] = []
    for root in workspace.roots:
        disk = Disk(root)
        try:
            listing = await in_thread(disk, lambda stopped, root=root: walk(root, stopped, MOST_LISTED), until)
            found += await disk.run(lambda root=root, listing=listing: _ranked(path, root, listing.paths), SECONDS)
        except (CrowError, OSError):
            continue  # it is only a suggestion
    return found[:MOST_SUGGESTED]


def _ranked(path: str, root: str, files: Sequence[str]) -> list[str]:
    """Those that are like the path, the likeliest first, and of several the nearest: none much worse than the best."""
    wanted = _LINE.sub("", path.replace("\\", "/").strip(" \t\n\r`'\"@")).rstrip("/").casefold().split("/")
    scored = [(score, each) for each in (*files, *_folders(root, files)) if (score := _likeness(wanted, each))]
    best = max((score for score, _ in scored), default=0)
    good = [(score, each) for score, each in scored if score > best - 10]
    return [each for _, each in sorted(good, key=lambda pair: (-pair[0], -_shared(wanted, pair[1]), pair[1]))]


def _shared(wanted: Sequence[str], path: str) -> int:
    """How many folders both paths begin with."""
    pairs = zip(wanted, path.casefold().split("/"), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _folders(root: str, files: Iterable[str]) -> set[str]:
    folders: set[str] = set()
    for each in files:
        folder = os.path.dirname(each)
        while len(folder) > len(root) and folder not in folders:
            folders.add(folder)
            folder = os.path.dirname(folder)
    return folders


def _likeness(wanted: Sequence[str], path: str) -> int:
    """More than 0 if a path may be meant: by its name first, then by the folders that it is in."""
    parts = path.casefold().split("/")
    name, other = wanted[-1], parts[-1]
    if not name:
        return 0
    same = 0
    while same < min(len(wanted), len(parts)) and wanted[-1 - same] == parts[-1 - same]:
        same += 1
    if same:
        return 100 + 10 * same
    beside = wanted[-2:-1] == parts[-2:-1]
    if _stem(name) == _stem(other):
        return 80 if beside else 60
    if _letters(name) == _letters(other):
        return 70 if beside else 50
    return 40 if _are_alike(name, other, beside=beside) else 0


def _stem(name: str) -> str:
    return name.rsplit(".", 1)[0] if "." in name[1:] else name


def _letters(name: str) -> str:
    return "".join(character for character in name if character.isalnum())


def _are_alike(name: str, other: str, *, beside: bool) -> bool:
    from rapidfuzz import fuzz  # only for paths that do not exist

    return fuzz.ratio(name, other) >= LEAST_ALIKE + (0 if beside else 10)


def _either(names: Sequence[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
