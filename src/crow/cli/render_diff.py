"""A change to a file as lines with `+` and `-`, three lines around each change, and how much it is in all."""

import re
from typing import NamedTuple

from crow.acp.wire import DiffToolContent
from crow.cli.render_text import clean_prose
from crow.diff import Statistics, split_lines, unified
from crow.visible import one_line

LONGEST_LINE = 400
"""Characters of a line that are shown: some files have all their text in one."""
APART = "⋮"
"""Stands between two places of a file."""


class DiffLine(NamedTuple):
    mark: str
    """`+`, `-`, a space for what stays, or `APART`."""
    text: str
    """Safe to print."""


class ShownDiff(NamedTuple):
    size: Statistics
    lines: list[DiffLine]


def shown_diff(change: DiffToolContent) -> ShownDiff:
    marked = split_lines(unified(change.old_text or "", change.new_text, "", limit=2**62))[2:]
    size = Statistics(sum(line[0] == "+" for line in marked), sum(line[0] == "-" for line in marked))
    reveal = _is_hard_to_see(marked)
    lines: list[DiffLine] = []
    for line in marked:
        mark, text = line[0], line[1:].removesuffix("\n")
        if mark == "@":
            lines.append(DiffLine(APART, ""))
        elif mark == "\\":
            lines.append(DiffLine(" ", "(no line end here)"))
        elif mark == " ":
            lines.append(DiffLine(mark, clean_prose(text[:LONGEST_LINE])))
        else:
            lines.append(DiffLine(mark, _changed(text, reveal=reveal)))
    return ShownDiff(size, lines[1:])


def _changed(text: str, *, reveal: bool) -> str:
    """What is new, or goes, is what the person decides on: not even a joiner may hide in it."""
    if reveal:
        text = re.sub(r" +(?=\r?$)", lambda blanks: "·" * len(blanks[0]), text)
        text = text.replace("\t", "→   ").replace("\r", "␍")
    return one_line(text.removesuffix("\r").replace("\t", "    "), LONGEST_LINE)


def _is_hard_to_see(marked: list[str]) -> bool:
    """Whether a line only changed in its tabs, its last blanks or its line end: then these are shown, too."""
    removed = {_without_blanks(line) for line in marked if line[0] == "-"}
    added = {_without_blanks(line) for line in marked if line[0] == "+"}
    return not removed.isdisjoint(added)


def _without_blanks(line: str) -> str:
    return line[1:].rstrip().replace("\t", "    ")
