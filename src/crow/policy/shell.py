"""Judges a shell line: whether allow rules cover each of its commands, whether a rule refuses one, and which rule an
"always" would make.

A rule that refuses or asks is compared generously: other spellings of the same command are found, and what may come
down to it is asked about.
"""

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Literal

from crow.policy.brought_files import may_bring_files
from crow.policy.commands import (
    SCRIPT_WORDS,
    CommandContext,
    CommandPattern,
    takes_text,
    telling_words,
    why_not_covered,
)
from crow.policy.grammar import Word, Words, read_all
from crow.policy.nested_commands import FoundCommands
from crow.policy.path_words import Budget, ExecutionContext, is_untouchable
from crow.policy.plain_lines import NotPlain, PlainCommand, read_plain
from crow.policy.programs import (
    ALIASES,
    CHOOSERS,
    EXACT_ONLY,
    EXACT_PHRASES,
    GOAL_RUNNERS,
    SUBCOMMANDS,
    TO_THE_LETTER,
    program,
)
from crow.policy.submodules import is_git_alone
from crow.policy.wildcard import is_known
from crow.visible import capitalised, code


class NotCovered(Exception):
    """Why no rule covers a line, as a sentence."""


def read_line(line: str) -> tuple[PlainCommand, ...]:
    """The simple commands of a line in which nothing else is going on; NotCovered says what else."""
    try:
        commands = read_plain(line)
    except NotPlain as found:
        raise NotCovered(f"Contains {found}, so it can only be allowed once.") from None
    reading = read_all(line)
    words = [tuple(word.text for word in command) for command in reading.commands]
    if not reading.plain or words != [command.words for command in commands]:
        raise NotCovered("Can be read in more than one way, so it can only be allowed once.")
    return commands


def coverage(line: str, patterns: Sequence[CommandPattern], execution: ExecutionContext) -> list[int]:
    """For each command of the line the number of the pattern that covers it; NotCovered if there is one without."""
    if not execution.contains(execution.cwd):
        raise NotCovered("Would run outside the workspace.")
    commands = read_line(line)
    covering = _coverage(commands, patterns, execution, execution.beside)
    if execution.beside and any(may_bring_files(command.words) for command in commands):
        _check_beside(line, patterns, execution)
    return covering


def _coverage(
    commands: Sequence[PlainCommand],
    patterns: Sequence[CommandPattern],
    execution: ExecutionContext,
    beside: Sequence[str],
) -> list[int]:
    """`beside` are the lines that may bring files meanwhile."""
    context = CommandContext(execution, [execution.cwd], Budget())
    for other in beside:
        _bring(context, _words_of(other))
    context.brings_repository = False  # a server that runs in the background would stop every `git add`
    covering: list[int] = []
    for pipeline in _pipelines(commands):
        before = context.brings_files, context.brings_repository
        for command in pipeline:
            context.brings_files, context.brings_repository = before
            _bring(context, [other.words for other in pipeline if other is not command])
            covering.append(_covering(command, patterns, context, is_fed=command is not pipeline[0]))
            context.folders = _folders_after(command, context.folders)
        _bring(context, [command.words for command in pipeline])
    return covering


def _bring(context: CommandContext, commands: Sequence[tuple[str, ...]]) -> None:
    """Notes what the commands may bring to those that run beside and after them."""
    for words in commands:
        if may_bring_files(words):
            context.brings_files = context.brings_files or shlex.join(words[:2])
            context.brings_repository = context.brings_repository or not is_git_alone(words)


def _words_of(line: str) -> list[tuple[str, ...]]:
    try:
        return [command.words for command in read_line(line)]
    except NotCovered:
        return [(line,)]  # what it runs is not known, and so may bring anything


def _check_beside(line: str, patterns: Sequence[CommandPattern], execution: ExecutionContext) -> None:
    """NotCovered if a line that runs already, and that rules covered, would not be covered beside this one."""
    for other in execution.beside:
        try:
            commands = read_line(other)
            _coverage(commands, patterns, execution, ())
        except NotCovered:
            continue  # the person allowed it as it is
        try:
            _coverage(commands, patterns, execution, (line,))
        except NotCovered as found:
            raise NotCovered(f"{code(other)} is still running. {found}") from None


def _pipelines(commands: Sequence[PlainCommand]) -> Iterator[list[PlainCommand]]:
    """The commands that run at the same time."""
    together: list[PlainCommand] = []
    for command in commands:
        together.append(command)
        if not command.is_piped:
            yield together
            together = []


def _covering(
    command: PlainCommand, patterns: Sequence[CommandPattern], context: CommandContext, *, is_fed: bool
) -> int:
    name = code(shlex.join(command.words[:2]))
    reason = f"no rule allows {name}"
    for number, pattern in enumerate(patterns):
        if not (found := why_not_covered(pattern, command.words, context)):
            _check_inputs(command, context)
            if not (is_fed or command.inputs) or takes_text(command.words, context):
                return number
            found = f"{name} may run what it reads, which no rule can check"
        if pattern.begins(command.words):
            reason = found
    raise NotCovered(f"{capitalised(reason)}.")


def _check_inputs(command: PlainCommand, context: CommandContext) -> None:
    if command.inputs:
        # Only the spelling of a word is judged, so `cat < x` is `cat x`.
        reading = CommandPattern(("cat",), open=True)
        if reason := why_not_covered(reading, ("cat", *command.inputs), context):
            raise NotCovered(f"{capitalised(reason)}.")


def _folders_after(command: PlainCommand, folders: list[str]) -> list[str]:
    """A `cd` may have worked or not, so that what follows is judged from both folders."""
    if program(command.words[0]) not in ("cd", "pushd", "popd"):
        return folders
    target = command.words[1] if len(command.words) == 2 else "-"
    if len(folders) > 1 or target.startswith("-") or ".." in target.split("/") or command.words[0] != "cd":
        raise NotCovered("Changes to a folder that cannot be checked, so it can only be allowed once.")
    return list(dict.fromkeys([*folders, os.path.realpath(os.path.join(folders[0], target))]))


# --- rules that tighten


def first_hit(revealed: FoundCommands, patterns: Sequence[CommandPattern]) -> tuple[int, bool] | None:
    """The number of the first pattern that is about a command of the line, and whether that is certain; one that is
    before one that is not."""
    unsure: tuple[int, bool] | None = None
    for number, pattern in enumerate(patterns):
        found = {applies_to(pattern, words, revealed.assigned) for words in revealed.commands}
        if "yes" in found:
            return number, True
        if unsure is None and ("maybe" in found or any(mentions(pattern, words) for words in revealed.mentioned)):
            unsure = number, False
    return unsure


# --- what could be remembered


def suggest(line: str, execution: ExecutionContext) -> tuple[str, ...] | None:
    """Commands of rules that would cover the line from now on, sensibly general; None if each time must be asked."""
    try:
        commands = read_line(line)
    except NotCovered:
        return None
    budget = Budget()
    if any(
        is_untouchable(word, execution, budget) for command in commands for word in (*command.words, *command.inputs)
    ):
        return None
    suggested = tuple(dict.fromkeys(_suggestion(command.words, execution) for command in commands))
    try:
        coverage(line, [CommandPattern.parse(command, first_root_only=True) for command in suggested], execution)
    except NotCovered:
        return None
    return suggested


def _suggestion(words: tuple[str, ...], execution: ExecutionContext) -> str:
    general = CommandPattern(words[: telling_words(words)], open=True, first_root_only=True)
    exact = shlex.join(words) if words[-1] != "*" else f"{shlex.join(words[:-1])} '*'"
    if _is_to_the_letter(words):
        return exact
    context = CommandContext(execution, [execution.cwd], Budget())
    return exact if why_not_covered(general, words, context) else f"{shlex.join(general.words)} *"


def _is_to_the_letter(words: tuple[str, ...]) -> bool:
    name = program(words[0])
    named = (name, *words[1:2])
    if name in SUBCOMMANDS and (len(words) == 1 or words[1].startswith("-")):
        return True  # `git`, `git --no-pager log`: what is done is not said or hidden, and `git *` would be too much
    if name in SUBCOMMANDS and words[1] in SCRIPT_WORDS and telling_words(words) < 3:
        return True  # `npm run`, `npm run -s build`: the same of the script
    if not is_known(words):
        return True
    literal = CHOOSERS | TO_THE_LETTER | EXACT_PHRASES
    return name in EXACT_ONLY or (name,) in literal or named in literal


Certainty = Literal["yes", "maybe", "no"]

_LONGEST_MENTION = 100
_TOKEN = re.compile(r"[\w-]+")
_REDEFINES = {
    "make": re.compile(r"\s(?:--ev|-\w*E|(?:--(?:fi|ma)[a-z]*[= ]|-\w*f ?)(?:-(?!\S)|/dev/|/proc/))"),
    "git": re.compile(r"\s(?:--config-env|\S*alias\.)"),
    "cargo": re.compile(r"\s\S*alias\b"),
}
"""Options by which a line gives a program orders of its own, whatever their names: a makefile's text, an alias."""
_GROUPS = frozenset({("docker", "container"), ("podman", "container")})
"""`docker container run` is `docker run`."""


def applies_to(pattern: CommandPattern, words: Words, assigned: Sequence[str] = ()) -> Certainty:
    """Whether a rule that refuses or asks is about a command; "maybe" if that is known only when it runs.

    `assigned` are the values that the line gives to variables: some programs take orders from them.
    """
    if not pattern.words:
        return "yes"
    if not words[0].known:
        return "maybe"
    if not _is_program(words[0].text, pattern):
        words = _spelled_as_two(words, pattern)
    if not words:
        return "no"
    found = _follows(pattern, words)
    return "maybe" if found == "no" and len(pattern.words) > 1 and _may_mean(pattern, words, assigned) else found


def mentions(pattern: CommandPattern, words: Sequence[str]) -> bool:
    """Whether the command that a rule is about may begin at any of the words: some wrappers are not known."""
    if not pattern.words:
        return True
    found = [at for at, word in enumerate(words) if _is_program(word, pattern)]
    if len(found) > 20:
        return True
    for at in found:
        rest = words[at : at + _LONGEST_MENTION]
        if len(rest) == _LONGEST_MENTION or _follows(pattern, tuple(Word(word) for word in rest)) != "no":
            return True
    return False


def _base(name: str) -> str:
    return os.path.basename(name).casefold()


def _is_program(name: str, pattern: CommandPattern) -> bool:
    """A rule for `pip` is about `pip3` and `pip3.11` too, one for `pip3` about that alone; `gmake` is `make`."""
    wanted = _base(pattern.words[0])
    return _base(name) == wanted or program(name) == wanted


def _spelled_as_two(words: Words, pattern: CommandPattern) -> Words:
    """`git-push` as `git push`, `docker-compose` as `docker compose`; nothing if it is another program."""
    first, dash, second = _base(words[0].text).partition("-")
    if not dash or len(pattern.words) < 2 or first != _base(pattern.words[0]):
        return ()
    return (Word(first), Word(second), *words[1:])


def _follows(pattern: CommandPattern, words: Words) -> Certainty:
    """The rest of the pattern in order, options in between stepped over, with or without a value: `git -C x push`."""
    name = _base(pattern.words[0])
    seen: set[tuple[int, int]] = set()
    waiting = [(1, 1)]
    best: Certainty = "no"
    while waiting:
        state = waiting.pop()
        wanted, at = state
        if state in seen or at > len(words):
            continue
        seen.add(state)
        if wanted == len(pattern.words) and (pattern.open or at == len(words)):
            return "yes"
        if at == len(words):
            continue
        word = words[at]
        if not word.known:
            best = "maybe"
        elif wanted < len(pattern.words) and _means(name, word.text, pattern.words[wanted]):
            waiting.append((wanted + 1, at + 1))
        if word.known and (word.text.startswith(("-", "+")) or (name, word.text) in _GROUPS):
            waiting += [(wanted, at + 1), (wanted, at + 2)]
    return best


def _means(name: str, word: str, wanted: str) -> bool:
    return word == wanted or any(word in group and wanted in group for group in ALIASES.get(name, ()))


def _may_mean(pattern: CommandPattern, words: Words, assigned: Sequence[str]) -> bool:
    """Whether the line gives the program orders of its own, or names the goals of the rule in another way."""
    name = program(words[0].text)
    texts = [word.text for word in words[1:] if word.known] + [value.strip("'\"") for value in assigned]
    redefines = _REDEFINES.get(name)
    if redefines is not None and redefines.search("".join(f" {text}" for text in texts)):
        return True
    tokens = {token for text in texts for token in (text, *_TOKEN.findall(text))}
    return name in GOAL_RUNNERS and tokens.issuperset(pattern.words[1:])
