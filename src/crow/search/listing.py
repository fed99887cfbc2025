"""Lists the files below a folder without what git ignores: ripgrep does it, or a walk of our own that reads .gitignore
files.

Ripgrep lists them if it is installed, else a walk of our own; both give the same. Symbolic links are not followed, so
nothing leads out of the folder or round in a circle, and what is no regular file is not there.
"""

import asyncio
import os
import re
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, Self, TypeVar

from crow.disk import FILE_WORK_TIMEOUT, Disk
from crow.errors import WorkspaceError
from crow.files.resolved_path import refuse_link
from crow.paths import is_inside, shown
from crow.search.child import output_of
from crow.search.globs import PathPattern, name_expression

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
        raise WorkspaceError(f"{shown(root)} cannot be read: permission denied.")
    return is_folder


async def _ask_ripgrep(root: str, ripgrep: str, until: float) -> Listing | None:
    """The files as ripgrep lists them; None if this ripgrep cannot be used."""
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
    """Lists the files without ripgrep. Folders that cannot be read are passed over, as ripgrep does."""
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
            lambda: work(lambda: gone.is_set() or time.monotonic() > end), max(0.0, seconds_left) + FILE_WORK_TIMEOUT
        )
    finally:
        gone.set()


# --- what git ignores below a folder: .gitignore files and .git/info/exclude, as the repository has them
#
# Only a folder inside a repository has rules, as with git and ripgrep. The rules for a path look at that path alone:
# whoever walks a tree does not enter an ignored folder, and so never asks about what is inside it.

LARGEST_RULES = 1024 * 1024
"""Bytes of one file of rules; what comes after is not read."""


class Rule(NamedTuple):
    pattern: PathPattern
    ignores: bool
    """False for a line that begins with `!`."""
    folders_only: bool


class RuleFile:
    """The rules of one file, for paths below its folder. The last rule that fits decides, so that one comes first."""

    def __init__(self, folder: str, text: str) -> None:
        self.folder = folder
        written = [meaning for line in reversed(text.split("\n")) if (meaning := _meaning(line))]
        self._rules = [rule for rule, _ in written]
        self._path_rules = [rule for rule in self._rules if not rule.pattern.only_name]
        # Most names fit no rule at all, and one expression is enough to see that.
        expressions = [name_expression(pattern) for rule, pattern in written if rule.pattern.only_name]
        self._any_name = re.compile("|".join(expressions) or "(?!)")

    def verdict(self, path: str, *, is_folder: bool) -> bool | None:
        """Whether a path below the folder is ignored; None if no rule speaks of it."""
        name = path[path.rfind("/") + 1 :]
        rules = self._rules if self._any_name.match(name) else self._path_rules
        if not rules:
            return None
        names = path[len(self.folder.rstrip("/")) + 1 :].split("/")
        for rule in rules:
            if (is_folder or not rule.folders_only) and rule.pattern.fits(names):
                return rule.ignores
        return None


class IgnoreRules:
    """The rules that hold in one folder: those of its repository, from the top down to it."""

    def __init__(
        self, files: Sequence[RuleFile] = (), exclude: RuleFile | None = None, *, inside: bool = False
    ) -> None:
        self._files = files
        self._exclude = exclude
        self._inside = inside

    @classmethod
    def for_folder(cls, folder: str) -> Self:
        """The rules for a folder that a walk begins with, its parents' included."""
        above = list(_up_to_repository(folder))
        rules = cls()
        for each in reversed(above):
            rules = rules.entering(each)
        return rules

    def entering(self, folder: str) -> Self:
        """The rules one folder further down. A repository inside a repository has only its own."""
        if os.path.lexists(os.path.join(folder, ".git")):
            own = _load(folder, os.path.join(folder, ".gitignore"))
            return type(self)(own, next(iter(_load(folder, _exclude_file(folder))), None), inside=True)
        if not self._inside:
            return self
        own = _load(folder, os.path.join(folder, ".gitignore"))
        return type(self)((*own, *self._files), self._exclude, inside=True) if own else self

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        for file in self._files:
            verdict = file.verdict(path, is_folder=is_folder)
            if verdict is not None:
                return verdict
        return bool(self._exclude and self._exclude.verdict(path, is_folder=is_folder))


def _up_to_repository(folder: str) -> Iterator[str]:
    """The folder and those above it, up to the top of the repository; none above if it is in no repository."""
    above: list[str] = []
    current = folder
    while True:
        above.append(current)
        if os.path.lexists(os.path.join(current, ".git")):
            yield from above
            return
        parent = os.path.dirname(current)
        if parent == current:
            return
        current = parent


def _meaning(line: str) -> tuple[Rule, str] | None:
    """A line of a .gitignore file; its pattern as written comes along."""
    line = line.removesuffix("\r")
    if line.startswith("#"):
        return None
    while line.endswith(" ") and not line.endswith("\\ "):
        line = line[:-1]
    negated = line.startswith("!")
    if negated:
        line = line[1:]
    folders_only = line.endswith("/")
    pattern = line.rstrip("/") if folders_only else line
    if not pattern or _ends_in_open_quote(pattern) or "." in pattern.split("/"):
        return None  # to git a path has no `.` in it, so that such a pattern fits none
    return Rule(PathPattern(pattern), not negated, folders_only), pattern


def _ends_in_open_quote(pattern: str) -> bool:
    """A backslash that quotes nothing: git takes such a pattern for invalid."""
    return (len(pattern) - len(pattern.rstrip("\\"))) % 2 == 1


def _exclude_file(folder: str) -> str:
    """`.git/info/exclude`; in a linked work tree `.git` is a file that says where the repository is."""
    git = os.path.join(folder, ".git")
    link = _read_small(git)
    if link.startswith("gitdir:"):
        git = os.path.join(folder, link.removeprefix("gitdir:").strip())
        common = _read_small(os.path.join(git, "commondir")).strip()
        git = os.path.join(git, common) if common else git
    return os.path.join(git, "info", "exclude")


def _load(folder: str, path: str) -> tuple[RuleFile, ...]:
    text = _read_small(path)
    return (RuleFile(folder, text),) if text else ()


def _read_small(path: str) -> str:
    """The text of a small file; empty if there is none. O_NONBLOCK: a pipe of that name must not make us wait."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ""
        return os.fsdecode(os.read(fd, LARGEST_RULES).removeprefix(b"\xef\xbb\xbf"))
    except OSError:
        return ""
    finally:
        os.close(fd)


# --- finding files by a part of their path, to complete what is typed

MOST_KNOWN = 50_000
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
        paths = (await list_files(self._disk, folder, ripgrep, until)).paths[:MOST_KNOWN]
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
