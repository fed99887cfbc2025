"""Decides whether an allow rule's `command` covers a command, to the letter: its words, its folder, and what its `*`
stands for. `shell` is for rules that tighten.
"""

import os
import re
import shlex
from collections.abc import Sequence

import msgspec

from crow.policy.brought_files import opened_word
from crow.policy.path_words import Budget, ExecutionContext, why_path_forbidden
from crow.policy.programs import (
    CHOOSERS,
    EXACT_ONLY,
    EXACT_PHRASES,
    FILE_RUNNERS,
    MODULE_RUNNERS,
    PASS_WORDS_ON,
    RUNNERS,
    SUBCOMMANDS,
    TAKES_TEXT,
    program,
)
from crow.policy.repositories import obeyed_in_worktree, why_repository_untrusted
from crow.policy.submodules import changes_index, takes_ignored, why_submodule_untrusted
from crow.policy.wildcard import is_known, is_same_anywhere, why_not_inert, why_not_listed, why_not_plain
from crow.visible import code


class CommandPattern(msgspec.Struct, frozen=True):
    words: tuple[str, ...]
    open: bool
    """It ends in `*`: further words may follow."""
    first_root_only: bool = False
    """It is about the workspace's first root alone: an answer of the person, who had no other in mind."""

    @classmethod
    def parse(cls, command: str, *, first_root_only: bool = False) -> "CommandPattern":
        text = command.strip()
        is_open = text == "*" or re.search(r"\s\*\Z", text) is not None
        fixed = text[:-1] if is_open else text
        try:
            words = shlex.split(fixed)
        except ValueError:  # a quote without its partner: a rule that refuses must not vanish because of it
            words = fixed.split()
        return cls(tuple(words), is_open, first_root_only)

    def begins(self, words: Sequence[str]) -> bool:
        return tuple(words[: len(self.words)]) == self.words and (self.open or len(words) == len(self.words))


class CommandContext(msgspec.Struct):
    """What a command's words are judged by, besides the words."""

    execution: ExecutionContext
    folders: list[str]
    """Where it may be running: where the line began, and where a `cd` may have led."""
    budget: Budget
    brings_files: str = ""
    """A command that runs before it or at the same time, and may create or replace files; empty if there is none."""
    brings_repository: bool = False
    """Whether one of those commands may bring a repository."""


def why_not_covered(pattern: CommandPattern, words: tuple[str, ...], context: CommandContext) -> str | None:
    """None if the pattern covers the command; else why it does not, as the beginning of a sentence."""
    if not pattern.begins(words):
        return "no rule allows it"
    obeyed = None if is_same_anywhere(words) else context.execution.roots[: 1 if pattern.first_root_only else None]
    if obeyed is not None and (reason := _obeys_another_folder(words, obeyed, context)):
        return reason
    if context.folders != [context.execution.roots[0]] and (word := _means_another(pattern, context.folders)):
        return f"{code(word)} would be another file in another folder"
    if not pattern.open:
        return None
    first = len(pattern.words)
    if reason := _leaves_program_open(words, first) or _why_star_does_not_cover(words, first, context.folders):
        return reason
    if context.brings_files and (word := opened_word(words, max(first, 1), context.folders[0])):
        return f"{code(context.brings_files)} may replace {code(word)} before it is used"
    for word in words[max(first, 1) :]:
        if reason := why_path_forbidden(word, context.execution, context.folders, context.budget, obeyed):
            return reason
    return None


def takes_text(words: tuple[str, ...], context: CommandContext) -> bool:
    """Whether what a command is given to read, by a pipe or from a file, is no more than text to it.

    A rule is about words, and what is read may be anything: a shell runs it, `xargs` takes further words from it. So
    the words are judged as if a `*` stood for all but those that say what is run, also where a rule spells them out.
    """
    start = 0
    while length := _chooses(words[start:]):
        name, chosen = program(words[start]), words[start + length :]
        if not _spells_choice(chosen, name):
            return False
        if _runs_script(words[start:], length):
            return name in FILE_RUNNERS and _is_file_of_workspace(chosen[0], context)
        start += length + (chosen[0] == "-m")
    words = words[start:]
    if "/" in words[0]:
        return _is_file_of_workspace(words[0], context)
    general = CommandPattern(words[: telling_words(words)], open=True)
    return words[0] in TAKES_TEXT or (is_known(words) and not why_not_covered(general, words, context))


def _is_file_of_workspace(word: str, context: CommandContext) -> bool:
    is_file = os.path.isfile(os.path.join(context.folders[0], word))
    return is_file and why_path_forbidden(word, context.execution, context.folders, context.budget) is None


SCRIPT_WORDS = ("run", "run-script")
"""Sub-commands behind which the name of a script stands."""


def telling_words(words: Sequence[str]) -> int:
    """How many words say what kind of thing is done: `npm run build`, `git commit`, `pytest`."""
    if program(words[0]) not in SUBCOMMANDS or len(words) == 1 or words[1].startswith("-"):
        return 1
    return 3 if words[1] in SCRIPT_WORDS and len(words) > 2 and not words[2].startswith("-") else 2


def _obeys_another_folder(words: tuple[str, ...], roots: Sequence[str], context: CommandContext) -> str | None:
    """Git, npm, make and most programs do what files say that they find from their folder on.

    A rule is about them in the workspace's own folders: what lies elsewhere in it may have been planted there.
    """
    for folder in context.folders:
        if folder not in roots:
            return (
                f"{code(program(words[0]))} obeys files in the folder it runs in, which is not a root of the workspace"
            )
        if why := why_repository_untrusted(folder, context.execution.roots):
            return why
        if (program(words[0]) == "git" or "git" in words) and (why := _obeys_submodule(words, folder, context)):
            return why
    return None


def _obeys_submodule(words: tuple[str, ...], folder: str, context: CommandContext) -> str | None:
    if why := why_submodule_untrusted(folder):
        return why
    if not changes_index(words):
        return None
    if takes_ignored(words) and (obeyed := obeyed_in_worktree(folder)):
        return f"it could change {code(obeyed)}, which git's configuration names"
    if context.brings_repository:
        return "an earlier command may add a repository whose configuration git would use"
    return context.execution.search.why_untracked_repository(folder, words)


def _means_another(pattern: CommandPattern, folders: Sequence[str]) -> str | None:
    """A rule's own word that names a file, in a line that does not run where the rule's files lie."""
    if not pattern.words:
        return None
    runs_files = program(pattern.words[0]) in EXACT_ONLY or (program(pattern.words[0]),) in CHOOSERS
    for number, word in enumerate(pattern.words):
        if word.startswith("/"):
            continue
        if "/" in word or (number and "." in word):
            return word
        if number and runs_files and any(os.path.lexists(os.path.join(folder, word)) for folder in folders):
            return word
    return None


def _leaves_program_open(words: tuple[str, ...], first: int) -> str | None:
    """The rule spells out the first words. They have to say what is run, also behind `uv run` and `python -m`."""
    start = 0
    while start < len(words):
        name = program(words[start])
        is_phrase = (name, *words[start + 1 : start + 2]) in EXACT_PHRASES or _runs_later_words(words[start:])
        if name in EXACT_ONLY or is_phrase:
            return f"only exact commands can be allowed for {code(name)}, and no rule with `*`"
        length = _chooses(words[start:])
        if length and not _spells_choice(words[start + length : max(first, start + length)], name):
            chooser = " ".join(words[start : start + length])
            return f"{code(chooser)} runs what the next word names, so a rule has to name it too"
        if not length or _runs_script(words[start:], length):
            return None
        start += length + (words[start + length] == "-m")
    return None


def _runs_later_words(words: tuple[str, ...]) -> bool:
    """`docker compose exec app rm x`: a sub-command that runs words behind it, wherever it stands."""
    name = program(words[0])
    for phrase in RUNNERS:
        if phrase[0] == name and phrase not in CHOOSERS:
            rest = iter(words[1:])
            if all(word in rest for word in phrase[1:]):
                return True
    return False


def _chooses(words: tuple[str, ...]) -> int:
    """How many words say that the next one is what is run; 0 if the program is no such."""
    chosen = (program(words[0]), *words[1:])
    return next((length for length in (2, 1) if chosen[:length] in CHOOSERS), 0)


def _runs_script(words: tuple[str, ...], length: int) -> bool:
    """`bash x`, unlike `uv run x` and `python -m x`: a file, of which nothing is known whatever its name."""
    return length == 1 and words[1:2] != ("-m",)


def _spells_choice(fixed: tuple[str, ...], name: str) -> bool:
    if name in MODULE_RUNNERS and fixed[:1] == ("-m",):
        return len(fixed) > 1
    return bool(fixed) and not fixed[0].startswith("-")


def _why_star_does_not_cover(words: tuple[str, ...], first: int, folders: Sequence[str]) -> str | None:
    """Why the rule's `*` does not stand for one of the words, judged as one of the program that is run in the end."""
    start, scripted = 0, False
    while length := _chooses(words[start:]):
        scripted = _runs_script(words[start:], length)
        if (
            not scripted
            and (program(words[start]), *words[start + 1 : start + length]) not in PASS_WORDS_ON
            and (reason := why_not_inert(words, first))
        ):
            return reason
        start += length + (words[start + length : start + length + 1] == ("-m",))
        if scripted or start >= len(words) - 1:
            break
    # `hatch run test` is a script of that name, more likely than a program that is the same in any folder.
    if start < len(words) and not scripted and not (start and is_same_anywhere(words[start:])):
        return why_not_listed(words[start:], first - start, folders)
    return why_not_plain(words, first)
