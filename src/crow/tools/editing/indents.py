"""Indents: those of a file for those of a model, which may be shifted or have other steps."""

from collections.abc import Iterable, Mapping
from itertools import pairwise

from crow.tools.editing.forms import STRIPPED, plain_blanks


def split_blanks(line: str) -> tuple[str, str, str]:
    """The blanks that a line begins with, what it says, and the blanks at its end."""
    body = line.strip(STRIPPED)
    indent = line[: len(line) - len(line.lstrip(STRIPPED))] if body else ""
    return indent, body, line[len(indent) + len(body) :]


def indent_of(line: str) -> str:
    return split_blanks(line)[0]


def map_indents(pairs: Iterable[tuple[str, str]]) -> dict[str, str] | None:
    """Which indent in the file each indent of the old lines stands for; None if one would stand for two."""
    indents: dict[str, str] = {}
    for old, actual in pairs:
        theirs = indent_of(actual)
        if indents.setdefault(indent_of(old), theirs) != theirs:
            return None
    return indents


def translate_indent(indent: str, indents: Mapping[str, str]) -> str:
    """The indent that a new line would have in the file."""
    if indent in indents:
        return indents[indent]
    if not indent.isascii() and all(actual.isascii() for actual in indents.values()):
        plain = {plain_blanks(old): actual for old, actual in indents.items()}
        return translate_indent(plain_blanks(indent), plain)
    known = max((old for old in indents if indent.startswith(old)), key=len, default=None)
    if known is not None:
        return indents[known] + _in_units(indent[len(known) :], indents)
    old, actual = min(indents.items(), key=lambda pair: len(pair[0]))
    if actual.endswith(old):
        return actual[: len(actual) - len(old)] + indent
    if old.endswith(actual):
        return indent.removeprefix(old[: len(old) - len(actual)])
    return _in_units(indent, indents)


def _in_units(deeper: str, indents: Mapping[str, str]) -> str:
    """A further indent, where the file has other steps than the model: tabs for its blanks, or four for its two."""
    step = _step(indents)
    if deeper == "  " and step is None and any(_is_doubled(old, actual) for old, actual in indents.items()):
        return "    "
    if not deeper or step is None:
        return deeper
    mine, theirs = step
    count, rest = divmod(len(deeper), len(mine)) if set(deeper) == {mine[0]} else (0, 1)
    return theirs * count if count and not rest else deeper


def _is_doubled(old: str, actual: str) -> bool:
    """Whether the file indents by four blanks what the model indents by two."""
    return bool(old) and set(actual) == {" "} and len(actual) == 2 * len(old) and len(actual) % 4 == 0


def _step(indents: Mapping[str, str]) -> tuple[str, str] | None:
    """By how much the old text indents and by how much the file does, if that can be seen and is not the same."""
    known = sorted(indents.items(), key=lambda pair: len(pair[0]))
    for (old, actual), (deeper, actual_deeper) in pairwise(known):
        if deeper.startswith(old) and actual_deeper.startswith(actual):
            mine, theirs = deeper[len(old) :], actual_deeper[len(actual) :]
            if mine and theirs and mine != theirs:
                return mine, theirs
            if mine and theirs:
                return None
    for old, actual in known:
        if old and actual and set(old) != set(actual) and len(set(old)) == len(set(actual)) == 1:
            blanks, tabs = (old, actual) if "\t" in actual else (actual, old)
            width = " " * max(1, len(blanks) // len(tabs)) if set(blanks) == {" "} and set(tabs) == {"\t"} else ""
            if width:
                return (width, "\t") if tabs == actual else ("\t", width)
    return None
