"""Fits an edit's new lines to the file's own indents, quotes and blanks: what did not change keeps its characters.

A model often writes straight quotes, forgets blanks at the end of a line, or shifts a whole block. Where such a text
was found all the same, only what it changes must change.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from crow.diff import Change, compare_lines
from crow.tools.editing.forms import STRIPPED, always_meant, look_alike_kind, plain_blanks, plain_form, with_style_of


class LineFit:
    """Fits new lines into the place of actual ones, for old lines that stand for these.

    The lines that are not blank stand for each other one by one; which lines between them are blank may differ. None of
    this holds, and `fits` is false, if an indent of the old lines would stand for two different ones.
    """

    def __init__(self, actual: Sequence[str], old: Sequence[str], code: str = "") -> None:
        """`code` is the whole of the file, if it is one of code: look-alikes that it has nowhere, and that the old
        lines have by mistake, are taken for a mistake in the new ones too."""
        self._actual, self._old = actual, old
        self._counterparts = dict(zip(_with_content(old), _with_content(actual), strict=True))
        pairs = [(old[mine], actual[theirs]) for mine, theirs in self._counterparts.items()]
        self._ends = always_meant((split_blanks(mine)[2], split_blanks(theirs)[2]) for mine, theirs in pairs)
        """Which blanks at the ends of the file's lines those of the old lines always stand for."""
        self._foreign = _foreign_kinds(pairs, code) if code else frozenset[str]()
        self._gaps_fitted: set[int] = set()
        self._indents = map_indents(pairs)

    @property
    def fits(self) -> bool:
        return self._indents is not None

    def fit(self, new: Sequence[str]) -> list[str]:
        self._gaps_fitted.clear()
        changes = compare_lines([_bare(line) for line in self._old], [_bare(line) for line in new])
        fitted: list[str] = []
        position = 0
        for change in changes:
            for number in range(position, change.old_start):
                fitted += self._kept(number)
            fitted += self._changed(change, new)
            position = change.old_end
        for number in range(position, len(self._old)):
            fitted += self._kept(number)
        return [self._without_foreign(line) for line in fitted] if self._foreign else fitted

    def _without_foreign(self, line: str) -> str:
        if line.isascii():
            return line
        return "".join(plain_form(one) if look_alike_kind(one) in self._foreign else one for one in line)

    def _next(self, number: int) -> int:
        """The next old line after a number that is not blank; -1 if there is none."""
        return next((other for other in range(number + 1, len(self._old)) if other in self._counterparts), -1)

    def _kept(self, number: int) -> list[str]:
        """The actual line that an old one stands for, with the blank lines before it."""
        if number in self._counterparts:
            return [*self._gap(number), self._actual[self._counterparts[number]]]
        return self._gap(self._next(number))

    def _gap(self, number: int) -> list[str]:
        """The blank lines before the actual line that an old one stands for, once."""
        if number < 0 or number in self._gaps_fitted:
            return []
        self._gaps_fitted.add(number)
        first = end = self._counterparts[number]
        while first > 0 and not self._actual[first - 1].strip(STRIPPED):
            first -= 1
        return list(self._actual[first:end]) if first > 0 else []

    def _changed(self, change: Change, new: Sequence[str]) -> list[str]:
        mine = [number for number in range(change.old_start, change.old_end) if number in self._counterparts]
        added = range(change.new_start, change.new_end)
        pairs = self._paired(mine, added, new)
        fitted: list[str] = []
        for number in added:
            old = pairs.get(number, mine[0] if mine and number == change.new_start else None)
            if old is not None and new[number].strip(STRIPPED):
                fitted += self._gap(old)
            if number in pairs:
                fitted.append(self._line_like(pairs[number], new[number]))
            else:
                fitted.append(self._reindented(new[number]))
        return fitted

    def _paired(self, old: Sequence[int], new: Sequence[int], lines: Sequence[str]) -> dict[int, int]:
        """Which new line is a changed old one, in order, if they are as many."""
        worded = [number for number in new if lines[number].strip(STRIPPED)]
        return dict(zip(worded, old, strict=True)) if len(worded) == len(old) else {}

    def _line_like(self, number: int, new: str) -> str:
        """A changed line: what did not change in it is as in the file."""
        old, actual = self._old[number], self._actual[self._counterparts[number]]
        (old_indent, old_body, old_end), (indent, body, end) = split_blanks(old), split_blanks(actual)
        new_indent, new_body, new_end = split_blanks(new)
        if new_indent != old_indent:
            indent = self._translated(new_indent)
        return indent + with_style_of(body, old_body, new_body) + (end if new_end == old_end else new_end)

    def _reindented(self, line: str) -> str:
        indent, body, end = split_blanks(line)
        ending = self._ends.get(end, end)
        return self._translated(indent) + body + ending if body else ending

    def _translated(self, indent: str) -> str:
        return translate_indent(indent, self._indents) if self._indents else indent


def _foreign_kinds(pairs: Sequence[tuple[str, str]], code: str) -> frozenset[str]:
    """The kinds of look-alikes that old lines have, and nothing in the file."""
    mine = {look_alike_kind(one) for old, _ in pairs if not old.isascii() for one in old}
    return frozenset(mine - {look_alike_kind(one) for one in set(code)} - {""}) if mine else frozenset()


def _bare(line: str) -> str:
    return line.rstrip(STRIPPED)


def _with_content(lines: Sequence[str]) -> list[int]:
    return [number for number, line in enumerate(lines) if line.strip(STRIPPED)]


# --- the file's indents for those of a model, which may be shifted or have other steps


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
