"""Decides which commands may bring or replace files, and which words of the commands beside and after them may then
name something else than what lies there now.

Paths are judged before a line runs. `git switch x && cat notes/a` reads what the branch has in the place of `notes`, a
link out of the workspace for example: so behind such a command no word that may be opened is covered. Programs are
taken to bring files unless they are known to read only, and words to be opened unless they are known not to be.
"""

import os

from crow.policy.base import names
from crow.policy.programs import GOAL_RUNNERS, SUBCOMMANDS, program
from crow.policy.repositories import common_directory, read_start, repository_of
from crow.policy.submodules import changes_files, git_words
from crow.policy.wildcard import is_same_anywhere, option_table, why_not_listed

_OPENS_NOTHING = GOAL_RUNNERS | names(
    "echo printf true false pwd basename dirname sleep which type whoami id uname nproc seq tr test date curl"
)
"""Programs whose plain words are texts, goals or addresses."""
_FIRST_IS_TEXT = names("grep rg fd sed jq awk")
"""Programs whose first plain word is a pattern or a script, unless an option gives one."""
_GIVES_TEXT = ("--regexp", "--file", "--files", "--extension")
_ALWAYS_THERE = names(". /dev/null")
_ASKS_REPOSITORY = names("fetch pull push remote ls-remote clone worktree submodule")
_FILE_OPTIONS = {"grep": ("f", "--file"), "rg": ("f", "--file"), "git commit": ("F", "--file")}
"""Options whose value is a file, among those that a rule's `*` stands for."""
_VALUED = {"head": "nc", "tail": "nc", "cut": "bcdf", "fold": "w", "tree": "LPI"}
"""Letters of options with a value that the table does not have."""


def may_bring_files(words: tuple[str, ...]) -> bool:
    """Whether a command may create or replace files, so that a path leads elsewhere than before."""
    if program(words[0]) == "git":
        return changes_files(words)
    return not is_same_anywhere(words) or why_not_listed(words, 1) is not None


def opened_word(words: tuple[str, ...], first: int, folder: str) -> str | None:
    """The first of the words from `first` on that the command may open by its name; None if it opens none of them."""
    name = program(words[0]) if "/" not in words[0] else ""
    if name == "git":
        return _opened_by_git(words, first, folder)
    plain, opening = _plain_words(words, 1, _valued(name), _FILE_OPTIONS.get(name, ()))
    if name in _OPENS_NOTHING:
        plain = []
    elif name in SUBCOMMANDS:
        plain = plain[2 if plain and words[plain[0]] in ("run", "run-script") else 1 :]
    elif name in _FIRST_IS_TEXT and not any(_gives_text(word) for word in words[1:]):
        plain = plain[1:]
    elif name == "find":  # behind its tests stand values, and no file is opened
        plain = [at for at in plain if all(word in ("-P", "-E") for word in words[1:at] if word.startswith("-"))]
    return _first_of(words, first, (*plain, *opening))


def _opened_by_git(words: tuple[str, ...], first: int, folder: str) -> str | None:
    """Git follows no links of a repository's own: what it opens is the value of an option, or another repository."""
    order = git_words(words)
    start = len(words) - len(order) + 1
    name = f"git {order[0]}" if order else ""
    plain, opening = _plain_words(words, start, _valued(name), _FILE_OPTIONS.get(name, ()))
    if order and order[0] not in _ASKS_REPOSITORY:
        plain = []
    elif plain and _is_remote(folder, words[plain[0]]):
        plain = []  # what follows are branches
    return _first_of(words, first, (*plain, *opening))


def _valued(name: str) -> str:
    listed = option_table().get(tuple(name.split()))
    return _VALUED.get(name) or (listed.valued if listed is not None else "")


def _first_of(words: tuple[str, ...], first: int, opened: tuple[int, ...]) -> str | None:
    return next((words[at] for at in sorted(opened) if at >= first and words[at] not in _ALWAYS_THERE), None)


def _plain_words(
    words: tuple[str, ...], start: int, valued: str, file_options: tuple[str, ...]
) -> tuple[list[int], list[int]]:
    """Where the plain words stand that are no option's value, and the options that name a file."""
    plain: list[int] = []
    opening: list[int] = []
    is_value = False
    for at in range(start, len(words)):
        word = words[at]
        if is_value:
            is_value = False
        elif not word.startswith("-") or word == "-":
            plain.append(at)
        elif file_options and (word.startswith(file_options[1]) or (word[1] != "-" and file_options[0] in word)):
            opening.append(at)
        else:
            is_value = len(word) == 2 and word[1] in valued
    return plain, opening


def _gives_text(word: str) -> bool:
    if word.startswith("--"):
        return word.startswith(_GIVES_TEXT)
    return word.startswith("-") and not {"e", "f"}.isdisjoint(word)


def _is_remote(folder: str, word: str) -> bool:
    """Whether the configuration of git has an address for the name."""
    found = repository_of(folder)
    config = read_start(os.path.join(common_directory(found[1]), "config"), 256 * 1024) if found else None
    return f'[remote "{word}"]' in os.fsdecode(config or b"")
