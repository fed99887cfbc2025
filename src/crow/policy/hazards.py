"""Finding the words that a rule's `*` does not stand for; a rule that spells one out covers it."""

import os
import re
from functools import lru_cache

import msgspec

from crow.policy.hazard_table import TABLE, Hazards
from crow.policy.programs import GIT_KNOWN, HARMLESS, program
from crow.policy.tables import names

_SED_SCRIPT = re.compile(
    r"(?:(?:\d+|\$|/[^/\\\n]*/)(?:,(?:\+?\d+|\$|/[^/\\\n]*/))?)?"
    r"(?:[pdq=]|s(?P<mark>[/|,#@])(?:(?!(?P=mark))[^\\\n]|\\[^\n]){0,500}(?P=mark)"
    r"(?:(?!(?P=mark))[^\\\n]|\\[^\n]){0,500}(?P=mark)[gIip0-9]*)"
)
"""The `sed` scripts of one command that can only change what is printed."""


class _Compiled(msgspec.Struct, frozen=True):
    short: frozenset[str]
    long: frozenset[str]
    words: frozenset[str]
    pattern: re.Pattern[str] | None
    front_short: frozenset[str]
    front_long: frozenset[str]
    bundle: bool


@lru_cache(maxsize=64)
def _known(name: str) -> _Compiled | None:
    entry = _BY_PROGRAM.get(name)
    return _compile(entry) if entry is not None else None


def _compile(entry: Hazards) -> _Compiled:
    return _Compiled(
        frozenset(entry.short),
        frozenset(entry.long.split()),
        frozenset(entry.words.split()),
        re.compile(entry.pattern, re.DOTALL) if entry.pattern else None,
        frozenset(entry.front_short),
        frozenset(entry.front_long.split()),
        entry.bundle,
    )


_BY_PROGRAM = {entry.program: entry for entry in TABLE}


_NUMBERED = names("python pip gcc clang perl ruby node")
_SYSTEM = ("/bin/", "/usr/bin/", "/usr/local/bin/")
_SETTING = re.compile(r"[-+@]|[\w.-]+[+:?]?=|[A-Za-z][\w.-]*:(?!//)")
"""An option, a file of options, a variable (`SHELL=x`), a goal (`exec:java`)."""


def is_known(words: tuple[str, ...]) -> bool:
    """Whether it is known which options of the program, and of its sub-command, are dangerous."""
    if "/" in words[0] and not words[0].startswith(_SYSTEM):
        return False
    name = program(words[0])
    if name == "git":
        return next((word for word in words[1:] if not word.startswith("-")), "status") in GIT_KNOWN
    base = os.path.basename(words[0])
    is_itself = base in (name, f"g{name}") or name in _NUMBERED  # `diff3` is not `diff`
    return is_itself and (name in _BY_PROGRAM or name in HARMLESS)


def is_dangerous_subcommand(name: str, word: str) -> bool:
    entry = _known(name)
    return entry is not None and word in entry.words


def setting(words: tuple[str, ...], first: int) -> str | None:
    """The first word from `first` on that a program which is not known may take for an order."""
    return next((word for word in words[max(first, 1) :] if _SETTING.match(word)), None)


def hazard(words: tuple[str, ...], first: int) -> str | None:
    """The first of the words from `first` on that makes the program write or run something else."""
    name = program(words[0])
    plain = [number for number, word in enumerate(words) if number and not word.startswith("-")]
    front_end = plain[0] if plain else len(words)
    known = [_known(name)]
    known += [_known(f"{name} {words[number]}") for number in plain[:1]]
    for entry in known:
        if entry is not None:
            for number in range(max(first, 1), len(words)):
                if _is_hazard(entry, words[number], number, front_end):
                    return words[number]
    return _hidden_script(words, first, plain) if name == "sed" else None


def _is_hazard(entry: _Compiled, word: str, number: int, front_end: int) -> bool:
    if word in entry.words or (entry.pattern is not None and entry.pattern.match(word)):
        return True
    if entry.bundle and number == 1 and not word.startswith("-"):
        return not entry.short.isdisjoint(word)
    if _is_option(word, entry.short, entry.long):
        return True
    return number < front_end and _is_option(word, entry.front_short, entry.front_long)


def _is_option(word: str, short: frozenset[str], long: frozenset[str]) -> bool:
    if word in long:
        return True
    if word.startswith("--"):
        name = word.partition("=")[0]
        return len(name) > 2 and any(option.startswith(name) for option in long)
    return word.startswith("-") and not short.isdisjoint(word[1:])


def _hidden_script(words: tuple[str, ...], first: int, plain: list[int]) -> str | None:
    """`sed` takes its first plain word for a script, and scripts can write files and run commands."""
    script = next((number for number in plain if number >= first), None)
    if script is None or _SED_SCRIPT.fullmatch(words[script]) or (plain and plain[0] < first):
        return None
    return words[script]
