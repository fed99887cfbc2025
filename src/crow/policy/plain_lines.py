"""The strict reader of shell lines: plain words, quotes and separators, and a refusal of whatever the shell would
expand or redirect.

This reader knows so little that there is nothing in it to be wrong about. Whatever it does not know, it refuses, and
the line is not covered by any rule. The grammar of `crow.policy.grammar` must read the same words, or the line is
refused as well: two readers that were written apart do not make the same mistake.
"""

import re

import msgspec

from crow.policy.base import names
from crow.visible import code, is_plainly_seen

LONGEST_LINE = 10_000
"""Bytes. No line of this kind that a person wants to approve for ever is longer."""
MOST_WORDS = 300
"""Each may have to be looked up as a path."""

_BLANK = re.compile(r"[ \t]+(?:\\\n[ \t]*)*")
"""A line that goes on needs a blank before its backslash: without one, the shell joins two halves of a word."""
_HARMLESS_REDIRECT = re.compile(r"(?:[12]?>&[12]|(?:[12]|&)?>>?[ \t]*/dev/null|0?<[ \t]*/dev/null)(?=[ \t\n;|&]|\Z)")
_INPUT = re.compile(r"<[ \t]*(?![<>&(\s])")
_SEPARATOR = re.compile(r"&&(?!&)|\|\|(?!\|)|\|(?![&|])|;(?![;&])|\n")
_BARE = re.compile(r"[A-Za-z0-9_@%+=:,./^-]+")
_MARK_INSIDE = re.compile(r"(?<=[A-Za-z0-9_])[#~]|(?<=[,./@%+^-])#")
"""`HEAD~1` and `a#b`: at the beginning of a word, or after `=` and `:`, these two would mean something else."""
_SINGLE = re.compile(r"'([^']*)'")
_DOUBLE = re.compile(r'"((?:[^"\\$`!]|\\[^\n!])*)"')
_ESCAPE = re.compile(r"\\([ -~])")
_IN_DOUBLE = re.compile(r'\\(["\\$`])')
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
"""The same as in `policy/grammar.py`, on purpose: the two readers of a line share nothing, not even a mistake."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\[.*\])?\+?=", re.DOTALL)
_RESERVED = names("! { } [[ ]] case coproc do done elif else esac fi for function if in select then time until while")
_UNKNOWN = {
    "$": "a variable or a substitution",
    "`": "a command substitution",
    "(": "a subshell, a function or an array",
    ")": "a subshell, a function or an array",
    "{": "shell braces",
    "}": "shell braces",
    "*": "a shell wildcard",
    "?": "a shell wildcard",
    "[": "a shell wildcard",
    "]": "a shell wildcard",
    "~": "a `~`",
    "!": "a `!`",
    "&": "a background command",
    "<": "a redirection",
    ">": "a redirection to a file",
    "#": "a comment",
    ";": "an empty command",
    "|": "a pipe to nothing",
    '"': "an expansion in quotes, or an unclosed quote",
    "'": "an unclosed quote",
    "\\": "a backslash before an unusual character",
}


class NotPlain(Exception):
    """Why a line cannot be covered by rules: the message completes "Contains …"."""


class PlainCommand(msgspec.Struct, frozen=True):
    words: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    """Files that it would read as its standard input."""
    is_piped: bool = False
    """Whether it runs at the same time as the next command, which reads what it prints."""


def read_plain(line: str) -> tuple[PlainCommand, ...]:
    """The simple commands of a line, in order; NotPlain if there is anything else in it."""
    _check_characters(line)
    reader = _Reader(line)
    reader.read()
    if not reader.commands:
        raise NotPlain("no command")
    for command in reader.commands:
        _check_name(command.words[0])
    return tuple(reader.commands)


def _check_characters(line: str) -> None:
    if len(line.encode("utf-8", "surrogatepass")) > LONGEST_LINE:
        raise NotPlain(f"more than {LONGEST_LINE:,} bytes")
    if _CONTROL.search(line):
        raise NotPlain("control characters")
    if not is_plainly_seen(line.replace("\n", " ").replace("\t", " ")):
        raise NotPlain("invisible characters")


def _check_name(name: str) -> None:
    if not name.isascii() or not name.isprintable() or not name or " " in name:
        raise NotPlain("a command name that is not plain ASCII")
    if name in _RESERVED:
        raise NotPlain(f"the shell keyword {code(name)}")
    if _ASSIGNMENT.match(name):
        raise NotPlain("a variable assignment")


class _Reader:
    def __init__(self, line: str) -> None:
        self.commands: list[PlainCommand] = []
        self._line = line
        self._at = 0
        self._words: list[str] = []
        self._inputs: list[str] = []
        self._count = 0

    def read(self) -> None:
        wants_more = False
        while self._at < len(self._line):
            if self._take(_BLANK) or self._take(_HARMLESS_REDIRECT):
                continue
            if separator := self._take(_SEPARATOR):
                if self._words or separator[0] != "\n":
                    wants_more = separator[0] not in ("\n", ";")
                    self._end_command(is_piped=separator[0] == "|")
            elif self._take(_INPUT):
                self._inputs.append(self._word())
            else:
                self._words.append(self._word())
                wants_more = False
        if self._words or self._inputs:
            self._end_command()
        elif wants_more:
            raise NotPlain("a separator at the end")

    def _end_command(self, *, is_piped: bool = False) -> None:
        if not self._words:
            raise NotPlain("an empty command")
        self.commands.append(PlainCommand(tuple(self._words), tuple(self._inputs), is_piped))
        self._words, self._inputs = [], []

    def _word(self) -> str:
        self._count += 1
        if self._count > MOST_WORDS:
            raise NotPlain(f"more than {MOST_WORDS} words")
        start, text = self._at, ""
        while (piece := self._piece()) is not None:
            text += piece
        if self._at == start:
            raise NotPlain(self._unknown())
        if text.isdecimal() and self._line[self._at : self._at + 1] in ("<", ">"):
            raise NotPlain("a redirection")  # the number is a descriptor, not a word
        return text

    def _piece(self) -> str | None:
        if match := self._take(_BARE) or self._take(_MARK_INSIDE):
            return match[0]
        if match := self._take(_SINGLE) or self._take(_ESCAPE):
            return match[1]
        if match := self._take(_DOUBLE):
            return _IN_DOUBLE.sub(r"\1", match[1])
        return None

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self._line, self._at)
        if match:
            self._at = match.end()
        return match

    def _unknown(self) -> str:
        if self._at == len(self._line):
            return "a redirection without a file"
        return _UNKNOWN.get(self._line[self._at], "characters other than plain ASCII")
