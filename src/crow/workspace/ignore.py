"""What git ignores below a folder: .gitignore files and .git/info/exclude, as the repository has them.

Only a folder inside a repository has rules, as with git and ripgrep. The rules for a path look at that path alone:
who walks a tree does not enter an ignored folder, and so never asks about what is inside it.
"""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

from crow.workspace.globs import PathPattern, name_expression

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
    link = _read(git)
    if link.startswith("gitdir:"):
        git = os.path.join(folder, link.removeprefix("gitdir:").strip())
        common = _read(os.path.join(git, "commondir")).strip()
        git = os.path.join(git, common) if common else git
    return os.path.join(git, "info", "exclude")


def _load(folder: str, path: str) -> tuple[RuleFile, ...]:
    text = _read(path)
    return (RuleFile(folder, text),) if text else ()


def _read(path: str) -> str:
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
