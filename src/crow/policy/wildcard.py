"""Decides which words of a command a rule's `*` does not stand for, by the option table; a rule that spells one out
covers it.

The table is `option_table.toml`, which says what its entries mean. What is not known is not covered: of a program in
the table the options and sub-commands that the table does not list, of any other program every option.
"""

import os
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import msgspec

from crow.policy.base import names
from crow.policy.programs import EXACT_PHRASES, HARMLESS, SUBCOMMANDS, program
from crow.visible import code

_SED_SCRIPT = re.compile(
    r"(?:(?:\d+|\$)(?:,(?:\+?\d+|\$))?)?"
    r"(?:[pdq=]|s(?P<mark>[/|,#@])(?:(?!(?P=mark))[^\\\n]|\\[^\n]){0,500}(?P=mark)"
    r"(?:(?!(?P=mark))[^\\\n]|\\[^\n]){0,500}(?P=mark)[gIip0-9]*)"
)
"""The `sed` scripts of one command that can only change what is printed. An expression before it (`/x/p`) looks like a
path, and may end elsewhere than it seems to (`/a[/s/b]/w x/p`)."""
_JQ_TOKEN = re.compile(
    r'"[^"\\]*"|\.{1,2}[A-Za-z_]\w*|(?P<name>[A-Za-z_]\w*)|\d+(?:\.\d+)?|[\s.\[\](){},:|?=!<>+*/%-]', re.ASCII
)
_JQ_NAMES = names(
    """
    and or not if then elif else end null true false empty length keys keys_unsorted values map map_values select has in
    contains inside index startswith endswith ltrimstr rtrimstr ascii_downcase ascii_upcase split join test tostring
    tonumber type sort sort_by group_by unique unique_by min max min_by max_by add any all flatten range floor reverse
    first last nth limit to_entries from_entries with_entries paths leaf_paths tojson fromjson arrays objects iterables
    booleans numbers strings nulls scalars isvalid transpose del
    """
)
"""What a filter of `jq` may name: neither the environment, nor modules, nor other files."""
_AWK_TOKEN = re.compile(
    r"""
    "(?:[^"\\\n]|\\[nt"/.])*"
    | (?P<regex>/(?:[^/\\\[\n]|\\[^\n]|\[\^?+(?:\[:[a-z]+:\]|[^]/\\[\n])+\])+/)
    | (?P<name>[A-Za-z_]\w*) | \d+(?:\.\d+)? | (?P<brace>[{}]) | (?P<more>>)(?!>)
    | \|\|(?![|&]) | [ \t] | (?P<operand>[\n(,;!~]|&&) | [][)$+\-*%=<?:.]
    """,
    re.VERBOSE | re.ASCII,
)
_AWK_NAMES = names(
    """
    BEGIN END NR NF FNR FS OFS RS ORS FILENAME SUBSEP print printf if else for in while do next exit delete length
    substr index split sub gsub match toupper tolower sprintf int sqrt a b c d e f g h i j k l m n o p q r s t u v w x y
    z sum total count seen max min avg line lines name names key keys val value values col cols row rows prev last first
    """
)
"""What a script of `awk` may name: nothing that runs, reads or writes another file, nor the environment."""


_FILE = os.path.join(os.path.dirname(__file__), "option_table.toml")


class Covered(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of the table, for one program; the file says what each field means."""

    program: str
    """The program, or the program and its sub-command."""
    flags: str = ""
    valued: str = ""
    long: str = ""
    shapes: str = ""
    refused: str = ""
    first: str = ""
    operands: int = -1
    no_folders: bool = False
    no_repositories: bool = False
    after: str = ""
    passes_on: bool = False
    shell_words: bool = False
    spelled: bool = False
    anywhere: bool = False
    examples: str = ""
    counterexamples: str = ""

    def has_option(self, word: str) -> bool:
        """Whether a word that begins with a dash is listed."""
        if word.partition("=")[0] in self.long.split() or (self.shapes and re.fullmatch(self.shapes, word)):
            return True
        if word.startswith("--"):
            return False
        for letter in word[1:]:
            if letter in self.valued:
                return True  # what follows is its value
            if letter not in self.flags:
                return False
        return True


@cache
def option_table() -> dict[tuple[str, ...], Covered]:
    """The entries by the words of their programs."""
    import tomllib  # not before a command is judged

    with open(_FILE, "rb") as file:
        written = tomllib.load(file)
    table: dict[tuple[str, ...], Covered] = {}
    for entry in written["covered"]:
        shared: list[dict[str, str]] = [written["shared"][name] for name in entry.pop("shared", "").split()]
        fields: dict[str, Any] = {
            **entry,
            **{kind: "".join(part.get(kind, "") for part in (*shared, entry)) for kind in ("flags", "valued")},
            "long": " ".join(part.get("long", "") for part in (*shared, entry)),
        }
        for program_name in fields.pop("programs").split(","):
            words = program_name.split()
            table[tuple(words)] = msgspec.convert({**fields, "program": " ".join(words)}, Covered)
    return table


@cache
def _with_subcommands() -> frozenset[str]:
    listed = {phrase[0] for phrase in option_table() if len(phrase) > 1}
    return (SUBCOMMANDS | listed | names("docker podman nerdctl kubectl oc")) - {"make"}


_NUMBERED = names("python pip perl ruby node")
_SYSTEM = ("/bin/", "/usr/bin/", "/usr/local/bin/")
_SETTING = re.compile(r"[-+@]|[\w.-]+[+:?]?=|[A-Za-z][\w.-]*:(?!//)")
"""An option, a file of options, a variable (`SHELL=x`), a goal (`exec:java`)."""
_INERT = re.compile(r"(?!=)[\w./:@%+=,-]+")
"""A word that stays one word and means nothing more in any shell, quoted or not. A blank is no part of one: it would
make two words, of which the second may be an option."""


def _name(words: Sequence[str]) -> str:
    """The program's name in the tables; empty if it is another program, such as a file of this name or `diff3`."""
    if "/" in words[0] and not words[0].startswith(_SYSTEM):
        return ""
    name, base = program(words[0]), os.path.basename(words[0])
    return name if base in (name, f"g{name}") or name in _NUMBERED else ""


def _subcommand(words: Sequence[str]) -> int:
    """Where the first plain word stands."""
    return next((number for number, word in enumerate(words) if number and not word.startswith("-")), len(words))


def is_known(words: tuple[str, ...]) -> bool:
    """Whether the table lists the options of the program, or of its sub-command."""
    name = _name(words)
    if name in _with_subcommands():
        return (name, *words[(at := _subcommand(words)) : at + 1]) in option_table()
    return name in HARMLESS or (name,) in option_table()


def is_same_anywhere(words: tuple[str, ...]) -> bool:
    """Whether the program does the same in any folder, since no file that it finds there tells it what to do."""
    name = _name(words)
    found = option_table().get((name,))
    return name in HARMLESS or (found is not None and found.anywhere)


def why_not_inert(words: tuple[str, ...], first: int) -> str | None:
    """Why a program that may put the words from `first` on into a shell line is not given them unasked."""
    word = next((word for word in words[max(first, 1) :] if not _INERT.fullmatch(word)), None)
    return f"{code(word)} has characters that a shell may interpret" if word is not None else None


def why_not_plain(words: tuple[str, ...], first: int) -> str | None:
    """Why a program of which nothing is known, a script perhaps, is not given the words from `first` on unasked."""
    word = next((word for word in words[max(first, 1) :] if _SETTING.match(word)), None)
    if word is not None:
        return f"the options of {code(program(words[0]))} are unknown, so `*` does not allow {code(word)}"
    return why_not_inert(words, first)


def why_not_listed(words: tuple[str, ...], first: int, folders: Sequence[str] = ()) -> str | None:
    """Why a rule that spells out the words before `first` does not cover the others; None if it does."""
    name = _name(words)
    if not name or (name not in _with_subcommands() and not is_known(words)):
        return why_not_plain(words, first)
    if name in HARMLESS:
        return None
    start, entry = 1, option_table().get((name,)) or Covered(name)
    if name in _with_subcommands():
        at = _subcommand(words)
        if word := next((word for word in words[1:at] if not entry.has_option(word)), None):
            return f"only a rule without `*` can allow {code(word)} before the subcommand of {code(name)}"
        if at == len(words):
            return None
        listed = option_table().get((name, words[at]))
        if (name, words[at]) in EXACT_PHRASES:
            return f"only a rule without `*` can allow {code(f'{name} {words[at]}')}"
        if at >= first and (listed is None or listed.spelled):
            return f"{code(f'{name} *')} does not allow {code(f'{name} {words[at]}')}"
        if listed is None:
            return why_not_plain(words, first)
        start, entry = at + 1, listed
    if entry.shell_words and (reason := why_not_inert(words, first)):
        return reason
    word = _unlisted(entry, words, max(first, start), start, folders)
    return f"{code(f'{entry.program} *')} does not allow {code(word)}" if word is not None else None


def _unlisted(entry: Covered, words: tuple[str, ...], first: int, start: int, folders: Sequence[str]) -> str | None:
    """The first of the words from `first` on that the entry does not list. Those of the program begin at `start`."""
    end = words.index("--", start) if "--" in words[start:] else len(words)
    plain = [at for at in range(start, len(words)) if not _is_option(words[at], at, end)]
    for at in range(first, len(words)):
        word = words[at]
        if at > end and entry.passes_on and _SETTING.match(word):
            if word.partition("=")[0] not in entry.after.split():
                return word
        elif at in plain:
            if word.startswith("-") and word != "-":
                return word  # behind a `--`
            if not _is_covered_operand(entry, words, at, plain, folders):
                return word
        elif at != end and not entry.has_option(word):
            return word
    return _hidden_script(entry, words, first, start)


def _is_option(word: str, at: int, end: int) -> bool:
    return at == end or (at < end and word.startswith("-") and word != "-")


def _is_covered_operand(
    entry: Covered, words: tuple[str, ...], at: int, plain: list[int], folders: Sequence[str]
) -> bool:
    word = words[at]
    if entry.refused and re.match(entry.refused, word, re.DOTALL):
        return False
    if entry.first and at == plain[0] and word not in entry.first.split():
        return False
    if entry.no_folders and any(os.path.isdir(os.path.join(folder, word)) for folder in folders):
        return False
    if entry.no_repositories and any(_may_be_repository(os.path.join(folder, word)) for folder in folders):
        return False
    return entry.operands < 0 or len(plain) <= entry.operands


def _may_be_repository(path: str) -> bool:
    """Whether git would find something there: a folder, a file that leads to one, or a folder with `.git` behind it."""
    return os.path.lexists(path) or os.path.lexists(f"{path.rstrip('/')}.git")


def _hidden_script(entry: Covered, words: tuple[str, ...], first: int, start: int) -> str | None:
    """Some take their first plain word that is no option's value for a script, which can write, run and read things."""
    reads = _SCRIPTS.get(entry.program)
    if reads is None:
        return None
    at = start
    while at < len(words) and _is_option(words[at], at, len(words)):
        at += 2 if words[at][1:] in tuple(entry.valued) else 1
    return words[at] if first <= at < len(words) and not reads(words[at]) else None


def _is_plain_jq(script: str) -> bool:
    at = 0
    while at < len(script):
        token = _JQ_TOKEN.match(script, at)
        if token is None or (token["name"] is not None and token["name"] not in _JQ_NAMES):
            return False
        at = token.end()
    return True


def _is_plain_awk(script: str) -> bool:
    at = depth = 0
    wants_operand = True
    while at < len(script):
        token = _AWK_TOKEN.match(script, at)
        if token is None or (token["name"] is not None and token["name"] not in _AWK_NAMES):
            return False
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if (token["regex"] and not wants_operand) or (token["more"] and depth) or depth < 0:
            return False  # a division; where something is printed, the name of a file
        wants_operand = bool(token["operand"] or token["brace"]) or (wants_operand and token[0] in " \t")
        at = token.end()
    return True


_SCRIPTS: dict[str, Callable[[str], object]] = {"sed": _SED_SCRIPT.fullmatch, "jq": _is_plain_jq, "awk": _is_plain_awk}
