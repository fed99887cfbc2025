"""A rule's `command`, compared with commands generously, where it refuses or asks: other spellings of the same thing
are found, and what may come down to it is asked about.
"""

import os
import re
from collections.abc import Sequence
from typing import Literal

from crow.policy.commands import CommandPattern
from crow.policy.grammar import Word, Words
from crow.policy.programs import ALIASES, GOAL_RUNNERS, program

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


def strikes(pattern: CommandPattern, words: Words, assigned: Sequence[str] = ()) -> Certainty:
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
