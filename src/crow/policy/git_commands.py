"""Decides from the words of a command whether it is git, and whether it may add a repository to git's index."""

from collections.abc import Sequence

from crow.policy.base import names
from crow.policy.programs import program

_INDEXING = names(
    "add stage checkout switch restore reset merge rebase cherry-pick revert pull stash am apply read-tree mv"
)
"""Sub-commands of git that may put a repository into the index which was none of its entries."""
_COMMIT_TAKES = names("--all --include --only --patch --interactive --pathspec-from-file")


def changes_index(words: Sequence[str]) -> bool:
    """Whether a command may add a repository to git's index, as far as its words can tell."""
    order = git_words(words)
    if order is None:
        return False
    if order[0].startswith("-"):  # which word is the sub-command cannot be told
        return not _INDEXING.isdisjoint(order) or "commit" in order
    return order[0] in _INDEXING or (order[0] == "commit" and _commit_adds(order[1:]))


def is_git_alone(words: Sequence[str]) -> bool:
    """Whether a command is git, and brings no further repository."""
    return program(words[0]) == "git" and "clone" not in words and "worktree" not in words


def git_words(words: Sequence[str]) -> Sequence[str] | None:
    """What git is told to do, also behind a runner; None if the command is not git, or nothing is said."""
    at = next((at for at, word in enumerate(words) if program(word) == "git"), len(words))
    return words[at + 1 :] or None


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
