"""Finds git submodules that may have been planted, whose configuration git would obey. `git status`, `git diff` and
others look into each folder that the index calls a submodule, and obey the configuration of the repository that lies
there, which names programs to run.

A true submodule keeps its configuration in the `.git` of the repository that it belongs to, where nothing is written
unasked. So the index is searched for those that do not; it is read once for each of its states. A command that changes
the index may make a submodule of any repository that lies in the project, in folders that git ignores too: a commit may
have an entry of any name. Before one, the folders are searched.
"""

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache

from crow.paths import is_inside
from crow.policy.base import names
from crow.policy.programs import program
from crow.policy.repositories import common_directory, read_start, repository_of, target_of_git_file
from crow.visible import code

_GITLINK = b"\x00\x00\xe0\x00"
"""An entry's mode, 24 bytes behind its beginning."""
_BEFORE_NAME = tuple(4 + 12 + digest + 2 + more for digest in (20, 32) for more in (0, 2))
"""Between the mode and the name: owner, group and size, a SHA-1 or SHA-256, flags, possibly more flags."""
_LONGEST_NAME = 4096
_LARGEST = 32 * 1024 * 1024
_MOST_FOUND = 500
_DEEPEST = 5
_MOST_FOLDERS = 4_000
_MOST_ENTRIES = 40_000
_LARGEST_IGNORE = 20_000
_DEPENDENCIES = names("node_modules .venv venv target __pycache__ .tox .nox .mypy_cache .next dist build")
"""Folders with many others in them, not searched where git ignores them and adds nothing but what lies there."""
_PATTERN = frozenset("*?[:\\")


def why_submodule_untrusted(folder: str) -> str | None:
    """Why git, run there, would obey a repository that may have been planted below its own; None if it would not."""
    found = repository_of(folder)
    return _planted(*found, _DEEPEST) if found is not None else None


class RepositorySearch:
    """The searches for one judgement: together they keep within the limits, and none is made twice."""

    def __init__(self) -> None:
        self._left = [_MOST_FOLDERS, _MOST_ENTRIES]
        self._found: dict[tuple[str, bool], str | None] = {}

    def why_untracked_repository(self, folder: str, words: Sequence[str]) -> str | None:
        """Why a command that changes the index, run there, may make git obey another repository; None if it cannot."""
        found = repository_of(folder)
        if found is None:
            return None
        top, git = found
        deep = takes_ignored(words)
        for start in _added(folder, top, git_words(words)):
            if (start, deep) not in self._found:
                self._found[start, deep] = _search(start, top, common_directory(git), self._left, deep=deep)
            if reason := self._found[start, deep]:
                return reason
        return None


def _added(folder: str, top: str, order: Sequence[str]) -> list[str]:
    """The folders from which on `git add` takes something; all of the repository if that cannot be told."""
    paths = [word for word in order[1:] if not word.startswith("-")]
    if order[:1] != ("add",) or not paths or any(not _PATTERN.isdisjoint(path) for path in paths):
        return [top]
    starts = [os.path.normpath(os.path.join(folder, path)) for path in paths]
    return starts if all(os.path.lexists(start) for start in starts) else [top]


def _search(start: str, top: str, common: str, left: list[int], *, deep: bool) -> str | None:
    """`deep`: also in the folders of dependencies that git ignores."""
    skipped = frozenset[str]() if deep else _ignored(top, start)
    waiting = [(start, skipped)] if os.path.isdir(start) and not os.path.islink(start) else []
    while waiting:
        folder, skipped = waiting.pop()
        left[0] -= 1
        try:
            with os.scandir(folder) as entries:
                inside = list(entries)
        except OSError:
            return f"{code(folder)} cannot be searched for nested repositories"
        left[1] -= len(inside)
        if min(left) < 0:
            return f"{code(top)} is too large to be searched for nested repositories"
        git = next((entry for entry in inside if entry.name.casefold() == ".git"), None)
        if git is not None and folder != top:
            target = target_of_git_file(folder, git.path) if git.is_file(follow_symlinks=False) else None
            if target is None or not is_inside(target, common):
                return f"{code(folder)} is a repository of its own, whose configuration git would follow"
        if skipped and any(entry.name.casefold() == ".gitignore" for entry in inside):
            skipped &= _not_brought_back(folder)
        waiting += [
            (entry.path, skipped)
            for entry in inside
            if entry is not git and entry.name not in skipped and entry.is_dir(follow_symlinks=False)
        ]
    return None


def _ignored(top: str, start: str) -> frozenset[str]:
    """Those folders of dependencies that the repository ignores wherever they lie, from a folder of it on."""
    ignored = _not_brought_back(top) & frozenset(line.removesuffix("/") for line in _ignore_lines(top) or ())
    folder = top
    for part in os.path.relpath(start, top).split("/"):
        ignored &= _not_brought_back(folder)
        folder = os.path.join(folder, part)
    return ignored


def _not_brought_back(folder: str) -> frozenset[str]:
    """The same, as far as the folder's own `.gitignore` decides: it may bring back what one above it ignores."""
    lines = _ignore_lines(folder)
    return frozenset() if lines is None or any(line.startswith("!") for line in lines) else _DEPENDENCIES


def _ignore_lines(folder: str) -> list[str] | None:
    """None if there are too many."""
    text = read_start(os.path.join(folder, ".gitignore"), _LARGEST_IGNORE + 1) or b""
    return None if len(text) > _LARGEST_IGNORE else [line.strip() for line in os.fsdecode(text).splitlines()]


def _planted(top: str, git: str, depth: int) -> str | None:
    unread = f"the submodules of {code(top)} cannot be listed"
    names = _submodules(git)
    if names is None or not depth:
        return unread
    for name in names:
        path = os.path.join(top, name)
        inner = os.path.join(path, ".git")
        if not os.path.lexists(inner):
            continue  # nothing lies there, or this is no entry
        target = target_of_git_file(path, inner) if os.path.isfile(inner) else None
        if target is None or not is_inside(target, common_directory(git)):
            return f"{code(path)} is a repository of its own, whose configuration git would follow"
        if reason := _planted(path, target, depth - 1):
            return reason
    return None


def _submodules(git: str) -> tuple[str, ...] | None:
    """What may be the names of submodules in an index; None if that cannot be told."""
    names: list[str] = []
    try:
        shared = (entry.path for entry in os.scandir(git) if entry.name.startswith("sharedindex."))
        for path in (os.path.join(git, "index"), *shared):
            if not os.path.lexists(path):
                continue
            status = os.stat(path)
            found = _names_in(path, status.st_mtime_ns, status.st_size, status.st_ino)
            if found is None:
                return None
            names += found
    except OSError:
        return None
    return tuple(names)


@lru_cache(maxsize=64)
def _names_in(path: str, changed: int, size: int, inode: int) -> tuple[str, ...] | None:
    """`changed` and `inode` tell the file's states apart."""
    if size > _LARGEST:
        return None
    index = read_start(path, _LARGEST)
    if index is None:
        return None
    found = list(_places(index))
    if len(found) > _MOST_FOUND or (found and int.from_bytes(index[4:8]) > 3):  # from 4 on, names are not whole
        return None
    names: dict[str, None] = {}
    for at in found:
        for distance in _BEFORE_NAME:
            name, end, _ = index[at + distance : at + distance + _LONGEST_NAME].partition(b"\0")
            if name and end:
                names[os.fsdecode(name)] = None
    return tuple(names)


def _places(index: bytes) -> Iterator[int]:
    at = index.find(_GITLINK)
    while at >= 0:
        yield at
        at = index.find(_GITLINK, at + 1)


# --- what the words of a command tell git to do: add a repository to its index, change files, bring a repository
#
# What is known to do none of these is listed; whatever else git is told, such as an alias, may do any.

_KEEPS_INDEX = names(
    """
    status log show diff rev-list shortlog reflog blame annotate grep ls-files ls-tree ls-remote cat-file rev-parse
    merge-base describe show-ref for-each-ref name-rev cherry range-diff whatchanged diff-tree diff-index diff-files
    check-ignore check-attr count-objects remote branch tag rm archive format-patch fetch push clone config help version
    """
)
"""Sub-commands that add nothing to the index. Git lets no alias take the name of one."""
_ADDS_FILES = names("add stage commit")
"""Those that add what lies there: they change no file, and take nothing from a folder that is ignored."""
_BRINGS_REPOSITORY = names("clone worktree submodule subtree init")
_PLAIN_OPTIONS = names("-P -p --no-pager --paginate --no-optional-locks --literal-pathspecs --no-replace-objects")
_COMMIT_TAKES = names("--all --include --only --patch --interactive --pathspec-from-file")


def changes_index(words: Sequence[str]) -> bool:
    """Whether a command may add a repository to git's index, as far as its words can tell."""
    order = git_words(words)
    if not order or order[0] in _KEEPS_INDEX or order[:2] == ("worktree", "list"):
        return False
    return order[0] != "commit" or _commit_adds(order[1:])


def takes_ignored(words: Sequence[str]) -> bool:
    """Whether what it adds may lie in a folder that is ignored, as an entry of another commit may."""
    order = git_words(words)
    return not order or order[0] not in _ADDS_FILES or any(map(_is_force, order[1:]))


def changes_files(words: Sequence[str]) -> bool:
    """Whether a command that is git may create or replace files."""
    order = git_words(words)
    if not order or order[:2] == ("worktree", "list"):
        return False
    return order[0] == "clone" or order[0] not in _KEEPS_INDEX | _ADDS_FILES


def is_git_alone(words: Sequence[str]) -> bool:
    """Whether a command is git, and brings no further repository."""
    return program(words[0]) == "git" and _BRINGS_REPOSITORY.isdisjoint(words)


def git_words(words: Sequence[str]) -> tuple[str, ...]:
    """What git is told to do, also behind a runner; nothing if the command is not git, or nothing is said."""
    at = next((at for at, word in enumerate(words) if program(word) == "git"), len(words)) + 1
    while at < len(words) and words[at] in _PLAIN_OPTIONS:
        at += 1
    return tuple(words[at:])


def _is_force(word: str) -> bool:
    """`-f`, `-Af`, `--force`, and whatever looks like one of them."""
    return word.startswith("--f") or (word.startswith("-") and not word.startswith("--") and "f" in word)


def _commit_adds(words: Sequence[str]) -> bool:
    """Whether `git commit` takes more than what was added before."""
    is_value = False
    for word in words:
        if is_value:
            is_value = False
        elif word.startswith("--"):
            option, equals, _ = word.partition("=")
            if any(known.startswith(option) for known in _COMMIT_TAKES):
                return True
            is_value = not equals and option in ("--message", "--file", "--author", "--date", "--reuse-message")
        elif word.startswith("-"):
            letters = word[1:]
            end = next((at for at, letter in enumerate(letters) if letter in "mCFct"), len(letters))
            if not set("aiop").isdisjoint(letters[:end]):
                return True
            is_value = end == len(letters) - 1
        else:
            return True
    return False
