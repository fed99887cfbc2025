"""Decides from the words of a command what git is told to do: whether that may add a repository to git's index, change
files, or bring a repository.

What is known to do none of these is listed; whatever else git is told, such as an alias, may do any.
"""

from collections.abc import Sequence

from crow.policy.base import names
from crow.policy.programs import program

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
