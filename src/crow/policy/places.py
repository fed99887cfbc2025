"""Whether a word of a command names a path that needs permission: outside the workspace, a secret, a protected one."""

import os
import re
from collections.abc import Iterator, Sequence

import msgspec

from crow.paths import is_inside
from crow.policy.paths import is_protected, is_secret

_URL = re.compile(r"(?:--?[A-Za-z-]+=)?(?P<folder>(?:https?|wss?):)//[^\s]*")
_DELIMITER = re.compile(r"[=:,@]")
_LONGEST_PATH = 4096
MOST_GUESSES = 600
"""Paths that one line may make us look up, so that deciding stays quick; a long one counts as several."""


class Place(msgspec.Struct, frozen=True):
    """Where a line would run, and what is not to be touched from there."""

    roots: tuple[str, ...]
    private: tuple[str, ...]
    cwd: str

    def contains(self, path: str) -> bool:
        return any(is_inside(path, root) for root in self.roots)


class Budget:
    def __init__(self, guesses: int = MOST_GUESSES) -> None:
        self._left = guesses

    def allows(self, guess: str) -> bool:
        self._left -= 1 + len(guess) // 100 + guess.count("/") // 3  # each folder on the way is looked at
        return self._left >= 0


def forbidden_path(word: str, place: Place, folders: Sequence[str], budget: Budget) -> str | None:
    """Why a word may not be used unasked, if it could name such a path from one of the folders."""
    if len(word) > _LONGEST_PATH:
        return "a word is too long to look at"
    for guess in _guesses(word, folders):
        if guess.startswith("~"):
            return f"`{guess}` may lie outside the workspace"
        for folder in folders:
            if not budget.allows(guess):
                return "it has too many words to look at"
            if reason := _judge(guess, folder, place):
                return reason
    return None


def is_untouchable(word: str, place: Place, budget: Budget) -> bool:
    """Whether a word could name a secret or a protected path: these are asked about each time."""
    if len(word) > _LONGEST_PATH:
        return True
    for guess in _guesses(word, [place.cwd]):
        if not budget.allows(guess):
            return True
        spelled, real = _spellings(guess, place.cwd)
        if is_protected(spelled, place.private) or (real != spelled and is_protected(real, place.private)):
            return True
    return False


def _judge(guess: str, folder: str, place: Place) -> str | None:
    spelled, real = _spellings(guess, folder)
    for path in {spelled, real}:
        if is_protected(path, place.private):
            secret = is_secret(path, place.private)
            return f"`{guess}` may hold keys or passwords" if secret else f"`{guess}` is a protected path"
    return None if place.contains(real) else f"`{guess}` lies outside the workspace"


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
