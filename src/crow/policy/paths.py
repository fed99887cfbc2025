"""Decides which paths are secret (they may hold credentials) and which are protected (they could make something run):
both ask in every mode.

The names are in `risky_names.toml`, which says how they are written; each group of them has a sentence on what it
triggers or holds. Paths are absolute. Names are compared case-folded, since on many disks `.ENV` is the same file as
`.env`. The caller gives paths with symbolic links resolved; a spelling that is not resolved may be judged beside it,
and then both count. No rule and no "always" lifts what is said here.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import product
from typing import NamedTuple

import msgspec

from crow.paths import is_inside
from crow.policy.repositories import is_in_git_directory, is_obeyed_by_git

_INVISIBLE = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Some disks leave these out when they compare names, so that `.g\\u200cit` is `.git`. That is a fact about disks,
which has nothing to do with what a person can see."""


def what_secret(path: str, private: Sequence[str] = ()) -> str:
    """What reading the path may show that nobody else should see; empty if nothing. `private` names folders that are
    secret as a whole."""
    folded = _folded(path)
    if any(is_inside(folded, _folded(root)) for root in private):
        return "Crow's own keys and sessions"
    secret, harmless = _tables()[1:]
    what = secret.find(folded)
    return "" if what and harmless.find(folded) else what


def what_secret_in(path: str, private: Sequence[str], readable: Sequence[str]) -> str:
    """The same; reading what lies in a `readable` folder within a private one shows no secret."""
    plain = os.path.normpath(path)
    return what_secret(plain, () if any(is_inside(plain, folder) for folder in readable) else private)


def why_protected(path: str, private: Sequence[str] = ()) -> str:
    """Why writing the path could make something run later, or change what Crow may do; secrets count too. Empty if it
    could not."""
    if why := _tables()[0].find(_folded(path)):
        return why
    if what := what_secret(path, private):
        return f"it may contain {what}"
    path = os.path.normpath(path)
    if is_in_git_directory(path) or is_obeyed_by_git(path):
        return "git follows it and runs what it names"
    return ""


def _folded(path: str) -> str:
    return _INVISIBLE.sub("", os.path.normpath(path)).casefold()


# --- links of protected names that lead to an ordinary file of the workspace: who writes that file writes what runs
#
# `.git/hooks/pre-commit` is often a link into `scripts`, and a repository may bring a `.vscode` that is a link to
# `docs`. Looked for in the folders above the file, and in the folders of hooks and settings there; not in the whole
# project.

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


# --- names, as `risky_names.toml` has them

_FILE = os.path.join(os.path.dirname(__file__), "risky_names.toml")
_WILD = re.compile(r"[*?]")


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Names for which one sentence holds: `why` they are protected, or `what` they hold."""

    names: str
    title: str = ""
    why: str = ""
    what: str = ""
    below: str = ""
    """The folders in which each of the names is meant; empty if they lie anywhere."""

    def spelled(self) -> list[str]:
        names = self.names.casefold().split()
        folders = self.below.casefold().split()
        return [f"{folder}/{name}" for folder, name in product(folders, names)] if folders else names


class RiskyNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file, as it is written."""

    protected: tuple[Group, ...]
    secret: tuple[Group, ...]
    harmless: Group


@cache
def risky_names() -> RiskyNames:
    import tomllib  # not before a path is judged

    with open(_FILE, "rb") as file:
        return msgspec.convert(tomllib.load(file), RiskyNames)


@cache
def _tables() -> "tuple[_Table, _Table, _Table]":
    """What a file of a name triggers by itself; what it may hold that nobody else should see; names that do not count
    as such after all."""
    known = risky_names()
    return (
        _Table((name, group.why) for group in known.protected for name in group.spelled()),
        _Table((name, group.what) for group in known.secret for name in group.spelled()),
        _Table((name, "harmless") for name in known.harmless.spelled()),
    )


class _RiskyName(NamedTuple):
    """A name in the file: `text` is what a path is, or ends with; with `is_wild`, a pattern of such ends."""

    text: str
    is_folder: bool
    said: str
    is_wild: bool = False

    def fits(self, path: str) -> bool:
        if self.is_wild:
            return _compiled(self.text).search(path) is not None
        return path == self.text or (not self.text.startswith("/") and path.endswith(f"/{self.text}"))


class _Table:
    """Names with what is said of each; made once, and asked for every word of a command, so that each folder is looked
    at once. Of several names for a path the innermost counts.
    """

    def __init__(self, entries: Iterable[tuple[str, str]]) -> None:
        self._exact: dict[str, list[_RiskyName]] = {}
        """By the last component."""
        self._wild: list[_RiskyName] = []
        for name, said in entries:
            is_folder, text = name.endswith("/"), name.removesuffix("/")
            if _WILD.search(text):
                self._wild.append(_RiskyName(text, is_folder, said, is_wild=True))
            else:
                last = text.rpartition("/")[2]
                self._exact.setdefault(last, []).append(_RiskyName(text, is_folder, said))
        # Most paths are none of these, which one look at their name and one at the whole of them shows.
        self._wild_names, self._wild_ways = (
            re.compile("|".join(_expression(text) for text in texts) or "(?!)")
            for texts in (
                [known.text for known in self._wild if "/" not in known.text],
                [known.text for known in self._wild if "/" in known.text],
            )
        )
        self._around = lru_cache(4096)(self._folder)

    def find(self, path: str) -> str:
        return self._at(path, is_folder=False) or self._around(path)

    def _folder(self, path: str) -> str:
        """What is said of the path as a folder, or of one that it lies in."""
        above = os.path.dirname(path)
        return self._at(path, is_folder=True) or (self._around(above) if above != path else "")

    def _at(self, path: str, *, is_folder: bool) -> str:
        name = path[path.rfind("/") :]
        patterns = self._exact.get(name[1:], ())
        if self._wild_names.match(name) or self._wild_ways.search(path):
            patterns = (*patterns, *self._wild)
        return next((known.said for known in patterns if known.is_folder is is_folder and known.fits(path)), "")


@cache
def _compiled(text: str) -> re.Pattern[str]:
    """The pattern of one name, compiled when a path first comes near it: a hundred of them would delay each session."""
    return re.compile(_expression(text))


def _expression(text: str) -> str:
    """Of the end of a path: what stands for any characters stands for none of another component's."""
    escaped = re.escape(text).replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
    return rf"\A{escaped}\Z" if text.startswith("/") else rf"/{escaped}\Z"
