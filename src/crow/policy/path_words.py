"""Decides whether a word of a command names a path that needs permission: outside the workspace, a secret, a protected
one.
"""

import os
import re
from collections.abc import Iterator, Sequence

import msgspec

from crow.paths import is_inside
from crow.policy.paths import what_secret, why_protected
from crow.policy.repositories import is_in_another_repository
from crow.policy.submodules import RepositorySearch
from crow.visible import code

_URL = re.compile(r"(?:--?[A-Za-z-]+=)?(?P<folder>(?:https?|wss?):)//[^\s]*")
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
"""As `python -m unittest` takes it: `vendor.x` lies in `vendor/x`."""
_DELIMITER = re.compile(r"[=:,@]")
_LONGEST_PATH = 4096
MOST_GUESSES = 600
"""Paths that one line may make us look up, so that deciding stays quick; a long one counts as several."""


class ExecutionContext(msgspec.Struct, frozen=True):
    """Where a line would run, and what is not to be touched from there."""

    roots: tuple[str, ...]
    private: tuple[str, ...]
    cwd: str
    beside: tuple[str, ...] = ()
    """Lines that run at the same time."""
    search: RepositorySearch = msgspec.field(default_factory=RepositorySearch)

    def contains(self, path: str) -> bool:
        return any(is_inside(path, root) for root in self.roots)


class Budget:
    def __init__(self, guesses: int = MOST_GUESSES) -> None:
        self._left = guesses

    def allows(self, guess: str) -> bool:
        self._left -= 1 + len(guess) // 100 + guess.count("/") // 3  # each folder on the way is looked at
        return self._left >= 0


def why_path_forbidden(
    word: str, execution: ExecutionContext, folders: Sequence[str], budget: Budget, obeyed: Sequence[str] | None = None
) -> str | None:
    """Why a word may not be used unasked, if it could name such a path from one of the folders.

    `obeyed`, for a program that does what files say beside those that its words name: the roots whose files may say it.
    """
    if len(word) > _LONGEST_PATH:
        return "a word is too long to be checked"
    module = [word.replace(".", "/")] if obeyed is not None and _MODULE.fullmatch(word) else []
    for guess in (*_guesses(word, folders), *module):
        if guess.startswith("~"):
            return f"{code(guess)} may be outside the workspace"
        for folder in folders:
            if not budget.allows(guess):
                return "there are too many words to check"
            if reason := _judge(guess, folder, execution, obeyed):
                return reason
    return None


def is_untouchable(word: str, execution: ExecutionContext, budget: Budget) -> bool:
    """Whether a word could name a secret or a protected path: these are asked about each time."""
    if len(word) > _LONGEST_PATH:
        return True
    for guess in _guesses(word, [execution.cwd]):
        if not budget.allows(guess):
            return True
        spelled, real = _spellings(guess, execution.cwd)
        if any(why_protected(path, execution.private) for path in {spelled, real}):
            return True
    return False


def _judge(guess: str, folder: str, execution: ExecutionContext, obeyed: Sequence[str] | None) -> str | None:
    spelled, real = _spellings(guess, folder)
    for path in {spelled, real}:
        if what := what_secret(path, execution.private):
            return f"{code(guess)} may contain {what}"
        if why := why_protected(path, execution.private):
            return f"{code(guess)} is protected ({why})"
    if not execution.contains(real):
        return f"{code(guess)} is outside the workspace"
    if obeyed is not None and any(_leads_elsewhere(path, execution.roots, obeyed) for path in {spelled, real}):
        return f"{code(guess)} is in another repository or folder, whose settings the program would follow"
    return None


def _leads_elsewhere(path: str, roots: Sequence[str], obeyed: Sequence[str]) -> bool:
    """Whether files in another repository, or in a root that is not obeyed, are the nearest to a path."""
    root = max((root for root in roots if is_inside(path, root)), key=len, default="")
    return bool(root) and (root not in obeyed or is_in_another_repository(path, root))


def _spellings(guess: str, folder: str) -> tuple[str, str]:
    """The path as it is written, and with symbolic links resolved. The folder has none in it."""
    spelled = os.path.join(folder, guess)
    if "/" not in guess and guess not in (".", "..") and not os.path.lexists(spelled):
        return spelled, spelled  # most words are no paths at all: this is the quick way
    return spelled, os.path.realpath(spelled)


def _guesses(word: str, folders: Sequence[str]) -> Iterator[str]:
    """What in a word could be a path: all of it, what follows a delimiter, what is glued to an option's letters."""
    if not word or _is_address(word, folders):
        return
    yield word
    for delimiter in _DELIMITER.finditer(word):
        if rest := word[delimiter.end() :]:
            yield rest
    if word[0] == "-" and word[1:2] != "-":
        for start in range(2, len(word)):
            yield word[start:]


def _is_address(word: str, folders: Sequence[str]) -> bool:
    """A URL that is no path: `http://x` also names something in a folder `http:`, and its `..` may lead anywhere."""
    match = _URL.fullmatch(word)
    if match is None or ".." in word:
        return False
    return not any(os.path.lexists(os.path.join(folder, match["folder"])) for folder in folders)
