"""Judging a shell line: do rules cover every part of it, does one refuse any part, what could be remembered of it."""

import os
import shlex
from collections.abc import Sequence

import msgspec

from crow.policy.commands import CommandContext, CommandPattern, why_not_covered
from crow.policy.grammar import read_all
from crow.policy.hazards import is_known
from crow.policy.places import Budget, Place, is_untouchable
from crow.policy.plain import NotPlain, PlainCommand, read_plain
from crow.policy.programs import CHOOSERS, EXACT_ONLY, EXACT_PHRASES, SUBCOMMANDS, TO_THE_LETTER, program
from crow.policy.refusing import mentions, strikes
from crow.policy.reveal import Revealed
from crow.policy.submodules import is_git_alone


class NotCovered(Exception):
    """Why no rule covers a line, as a sentence."""


def read_line(line: str) -> tuple[PlainCommand, ...]:
    """The simple commands of a line in which nothing else is going on; NotCovered says what else."""
    try:
        commands = read_plain(line)
    except NotPlain as found:
        raise NotCovered(f"The line has {found}.") from None
    reading = read_all(line)
    words = [tuple(word.text for word in command) for command in reading.commands]
    if not reading.plain or words != [command.words for command in commands]:
        raise NotCovered("The line can be read in more than one way.")
    return commands


def coverage(line: str, patterns: Sequence[CommandPattern], place: Place) -> list[int]:
    """For each command of the line the number of the pattern that covers it; NotCovered if there is one without."""
    if not place.contains(place.cwd):
        raise NotCovered("It would run outside the workspace.")
    context = CommandContext(place, [place.cwd], Budget())
    covering: list[int] = []
    for command in read_line(line):
        covering.append(_covering(command, patterns, context))
        context.folders = _folders_after(command, context.folders)
        context.after_others = context.after_others or not is_git_alone(command.words)
    return covering


def _covering(command: PlainCommand, patterns: Sequence[CommandPattern], context: CommandContext) -> int:
    reason = "no rule is about it"
    name = shlex.join(command.words[:2])
    for number, pattern in enumerate(patterns):
        if not (found := why_not_covered(pattern, command.words, context)):
            _check_inputs(command, context)
            return number
        if pattern.begins(command.words):
            reason = found
    raise NotCovered(f"`{name}` is not covered: {reason}.")


def _check_inputs(command: PlainCommand, context: CommandContext) -> None:
    if command.inputs:
        # Only the spelling of a word is judged, so `cat < x` is `cat x`.
        reading = CommandPattern(("cat",), open=True)
        if reason := why_not_covered(reading, ("cat", *command.inputs), context):
            raise NotCovered(f"Its input is not covered: {reason}.")


def _folders_after(command: PlainCommand, folders: list[str]) -> list[str]:
    """A `cd` may have worked or not, so that what follows is judged from both folders."""
    if program(command.words[0]) not in ("cd", "pushd", "popd"):
        return folders
    target = command.words[1] if len(command.words) == 2 else "-"
    if len(folders) > 1 or target.startswith("-") or ".." in target.split("/") or command.words[0] != "cd":
        raise NotCovered("The line changes its folder in a way that is not followed.")
    return list(dict.fromkeys([*folders, os.path.realpath(os.path.join(folders[0], target))]))


# --- rules that tighten


class Strike(msgspec.Struct, frozen=True):
    number: int
    """Of the pattern."""
    certain: bool


def first_strike(revealed: Revealed, patterns: Sequence[CommandPattern]) -> Strike | None:
    """The first pattern that is about a command of the line; one that is certain before one that is not."""
    unsure: Strike | None = None
    for number, pattern in enumerate(patterns):
        found = {strikes(pattern, words, revealed.assigned) for words in revealed.commands}
        if "yes" in found:
            return Strike(number, certain=True)
        if unsure is None and ("maybe" in found or any(mentions(pattern, words) for words in revealed.mentioned)):
            unsure = Strike(number, certain=False)
    return unsure


# --- what could be remembered


def suggest(line: str, place: Place) -> tuple[str, ...] | None:
    """Commands of rules that would cover the line from now on, sensibly general; None if each time must be asked."""
    try:
        commands = read_line(line)
    except NotCovered:
        return None
    budget = Budget()
    if any(is_untouchable(word, place, budget) for command in commands for word in (*command.words, *command.inputs)):
        return None
    suggested = tuple(dict.fromkeys(_suggestion(command.words, place) for command in commands))
    try:
        coverage(line, [CommandPattern.parse(command, first_root_only=True) for command in suggested], place)
    except NotCovered:
        return None
    return suggested


def _suggestion(words: tuple[str, ...], place: Place) -> str:
    general = CommandPattern(words[: _telling_words(words)], open=True, first_root_only=True)
    exact = shlex.join(words) if words[-1] != "*" else f"{shlex.join(words[:-1])} '*'"
    if _is_to_the_letter(words):
        return exact
    context = CommandContext(place, [place.cwd], Budget())
    return exact if why_not_covered(general, words, context) else f"{shlex.join(general.words)} *"


def _telling_words(words: tuple[str, ...]) -> int:
    """How many words say what kind of thing is done: `npm run build`, `git commit`, `pytest`."""
    if program(words[0]) not in SUBCOMMANDS or len(words) == 1:
        return 1
    return 3 if words[1] in ("run", "run-script") and len(words) > 2 and not words[2].startswith("-") else 2


def _is_to_the_letter(words: tuple[str, ...]) -> bool:
    name = program(words[0])
    named = (name, *words[1:2])
    if name in SUBCOMMANDS and (len(words) == 1 or words[1].startswith("-")):
        return True  # `git`, `git --no-pager log`: what is done is not said or hidden, and `git *` would be too much
    if not is_known(words):
        return True
    literal = CHOOSERS | TO_THE_LETTER | EXACT_PHRASES
    return name in EXACT_ONLY or (name,) in literal or named in literal
