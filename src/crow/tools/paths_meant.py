"""Decides which file a model means by a path with quotes or a line number; suggests near paths; refuses odd
names for new files.

Models put a path into quotes, or add a line's number.
What lies at the path exactly as it is written always comes first. Another reading counts only if it leads to the one
thing that is there. The path is resolved here, once: what is judged is what will be used.
"""

import asyncio
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from crow.disk import Disk
from crow.errors import CrowError, WorkspaceError
from crow.files.base import FileInfo, Workspace
from crow.files.resolved_path import ResolvedPath
from crow.paths import LONGEST, relative_to, shown
from crow.search.listing import in_thread, walk
from crow.tools.base import Advice, BadArguments
from crow.visible import UNSEEN_WHEN_COPIED, capitalised, one_line

_AT_THE_ENDS = "".join(chr(number) for number in range(33)) + "\x7f\u00a0\u3000" + UNSEEN_WHEN_COPIED
_PAIRS = {'"': '"', "'": "'", "`": "`", "<": ">", "“": "”", "‘": "’", "«": "»"}  # noqa: RUF001 -- as they are written
_LINE = re.compile(r"(?::\d+(?:[-:]\d+)?:?|#L\d+(?:-L?\d+)?)$")
_MOST_LAYERS = 4

_CONTROL = re.compile(rf"[\x00-\x1f\x7f-\x9f\u2028\u2029{UNSEEN_WHEN_COPIED}]")
_SCHEME = re.compile(r"[A-Za-z][\w+.-]*://")
_VARIABLE = re.compile(r"\$[A-Z_]+/|\$\{[A-Za-z_]+\}|%[A-Z]+%")
_MARKDOWN_LINK = re.compile(r"\[[^\[\]]*\]\([^()]*\)")
_MARKUP = re.compile(r"</?[A-Za-z][^<>]*>|^<|>$")
_SEVERAL = re.compile(r"\.\w+[,;]\s+\S+\.\w+$")
_REMARK = re.compile(r"\.\w+\s+\([^()]*\)$")


class PathMeant(NamedTuple):
    """Where a path leads, and what the model is told of how it was read."""

    path: ResolvedPath
    note: str = ""


async def path_meant(workspace: Workspace, written: str) -> PathMeant:
    """What lies at a path as it is written, else the one thing that its other readings lead to.

    If there is none, it is the path as it was written.
    """
    exact = await workspace.resolve(written)
    if exact.existed:
        return PathMeant(exact)
    found: dict[str, tuple[str, ResolvedPath]] = {}
    for reading in _readings(written):
        path = await workspace.resolve(reading)
        if path.existed:
            found.setdefault(path.real, (reading, path))
    if len(found) != 1:
        return PathMeant(exact)
    [(reading, path)] = found.values()
    return PathMeant(path, _note(written, reading))


async def path_to_write(workspace: Workspace, written: str) -> PathMeant:
    """The same for a file that may not be there yet: BadArguments if its name is none that a file is given."""
    meant = await path_meant(workspace, written)
    if meant.path.existed:
        if meant.note and _LINE.search(_bare(written)):
            raise _refused(written, "it ends with the number of a line", "to change a part of a file use `edit`")
        return meant
    bare = _bare(written)
    if bare == written and "\\" not in written:
        await _check_new(workspace, written)
        return meant
    slashed = bare.replace("\\", "/")
    if written[:1] == "@" and not await _lies_in_a_folder(workspace, written):
        raise _refused(
            written, "it begins with `@`", f"if {_quoted(slashed)} is meant, give that; else make the folder"
        )
    if written[:1] == "@" and bare == written[1:]:
        return meant
    await _check_new(workspace, slashed)
    path = await workspace.resolve(slashed)
    if os.path.dirname(slashed) and not await _lies_in_a_folder(workspace, slashed):
        raise _refused(written, "it is not a plain path", f"if {_quoted(slashed)} is meant, write it like that")
    return PathMeant(path, _note(written, slashed))


async def _lies_in_a_folder(workspace: Workspace, path: str) -> bool:
    """Whether a path names a folder, and that is there."""
    folder = os.path.dirname(path)
    return bool(folder) and (await workspace.resolve(folder)).existed


def _note(written: str, reading: str) -> str:
    return f"(the path {_quoted(written)} was read as {_quoted(reading)})"


def _quoted(path: str) -> str:
    return f"`{one_line(shown(path), 300)}`"


def _readings(written: str) -> Iterator[str]:
    """Other ways to read a path, by what may have been added to it."""
    bare = _bare(written)
    for each in dict.fromkeys((bare, bare.replace("\\", "/"))):
        for without_line in dict.fromkeys((each, _LINE.sub("", each))):
            for reading in (without_line, *(unicodedata.normalize(form, without_line) for form in ("NFC", "NFD"))):
                if reading and reading != written:
                    yield reading


def _bare(written: str) -> str:
    """A path without blanks and quotes around it."""
    path = written
    for _ in range(_MOST_LAYERS):
        before = path
        path = path.strip(_AT_THE_ENDS)
        if len(path) > 2 and _PAIRS.get(path[0]) == path[-1]:
            path = path[1:-1]
        elif len(path) > 1 and path[0] == "@":
            path = path[1:]
        if path == before:
            break
    return path or written


async def _check_new(workspace: Workspace, path: str) -> None:
    """That a new file is given a name that somebody may mean."""
    for fault, remedy in _faults(path):
        raise _refused(path, fault, remedy)
    await _check_first_folder(workspace, path)


def _faults(path: str) -> Iterator[tuple[str, str]]:
    plain = "give the plain path of one file"
    if path.endswith("/"):
        yield "it ends with a slash, as a folder does", "`write` makes files, and the folders above them: name the file"
    if _CONTROL.search(path):
        yield "it contains invisible characters", "leave them out; a backslash is written as `\\\\` in JSON"
    if _SCHEME.match(path):
        yield "it is a URL", "give a path, absolute or relative to the working directory"
    if _VARIABLE.match(path):
        yield "variables are not expanded", "write out what it stands for, or begin with `~/` for the home folder"
    if _MARKDOWN_LINK.search(path) or _MARKUP.search(path):
        yield "it contains markup", plain
    if _SEVERAL.search(path):
        yield "it looks like several paths", "make a call for each file"
    if _REMARK.search(path):
        yield "it ends with a comment", plain


async def _check_first_folder(workspace: Workspace, path: str) -> None:
    """That a path does not begin with what is no folder: a placeholder, a prefix of diffs, or the name of the working
    directory itself, before a path that goes on in it."""
    first, _, rest = path.partition("/")
    second = rest.partition("/")[0]
    is_placeholder = path.startswith("path/to/")
    if not is_placeholder and (first not in ("a", "b", os.path.basename(workspace.roots[0])) or second == rest):
        return
    if (await workspace.resolve(first)).existed:
        return
    if is_placeholder:
        raise _refused(path, "it is a placeholder", "give the path that is meant")
    if (await workspace.resolve(second)).existed:
        fault = f"there is no folder {_quoted(first)}, but there is {_quoted(second)}"
        raise _refused(path, fault, f"if {_quoted(rest)} is meant, give that; else make the folder first")


def _refused(path: str, fault: str, remedy: str) -> BadArguments:
    return BadArguments(
        f"{_quoted(path)} is not a valid path to write: {fault}. Nothing was written.", advice=f"{capitalised(remedy)}."
    )


# --- which file may be meant where nothing lies: the same name elsewhere, or one that is nearly it

SECONDS = 2.0
"""How long the files of the workspace are listed for a suggestion."""
MOST_LISTED = 50_000
MOST_SUGGESTED = 3
LEAST_ALIKE = 80
"""Per cent of a name that must be the same."""

_LINE_BEHIND = re.compile(r":\d+(?:[-:]\d+)?$")
"""The number of a line that was written after a path."""


async def missing(workspace: Workspace, path: ResolvedPath, advice: Advice, otherwise: str = "") -> WorkspaceError:
    """That nothing lies at a path, with the likeliest paths, or what else can be done."""
    likely = await likely_paths(workspace, path.written or path.real)
    names = [one_line(shown(relative_to(each, workspace.roots[0])), 400) for each in likely]
    remedy = f"Did you mean {_either(names)}?" if names else otherwise or advice.look_for_it
    return WorkspaceError(f"{one_line(shown(path.real), LONGEST)} does not exist.", advice=remedy)


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
    wanted = _LINE_BEHIND.sub("", path.replace("\\", "/").strip(" \t\n\r`'\"@")).rstrip("/").casefold().split("/")
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
