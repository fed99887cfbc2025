"""Fitting a new text into the place of an old one: what did not change keeps its characters, to the line's end.

A model writes line feeds and often straight quotes, forgets blanks at the end of a line, or shifts a whole block.
Where such a text was found all the same, only what it changes must change.
"""

import io
from collections.abc import Mapping, Sequence

from crow.diff import compare_lines, split_lines
from crow.workspace.endings import CRLF, first_line_end, usual_line_end, with_line_ends, with_line_feeds

MOST_CELLS = 25_000_000
"""Pairs of characters that may be compared: about 10 ms and 3 MB."""


def with_ends_of(actual: str, new: str, default: str) -> str:
    """A new text for the place of the actual one: unchanged lines keep their ends, a changed one that of the old."""
    if ("\r" not in actual and default == "\n") or ("\n" not in new and "\r" not in new):
        return new
    new = with_line_feeds(new)
    old_lines, new_lines = split_lines(with_line_feeds(actual)), split_lines(new)
    actual_lines = split_lines_of_any_end(actual)
    usual = usual_line_end(actual) if first_line_end(actual) else default
    fitted: list[str] = []
    position = 0
    for change in compare_lines(old_lines, new_lines):
        fitted += actual_lines[position : change.old_start]
        ends = [first_line_end(line) or usual for line in actual_lines[change.old_start : change.old_end]] or [usual]
        for number, line in enumerate(new_lines[change.new_start : change.new_end]):
            fitted.append(with_line_ends(line, ends[min(number, len(ends) - 1)]))
        position = change.old_end
    return "".join(fitted + actual_lines[position:])


def without_foreign_ends(file: str, new: str) -> str:
    """A new text with no CR LF in it, for a file all of whose lines end in a line feed: its ends stay of one kind."""
    if CRLF not in new or "\n" not in file or "\r" in file:
        return new
    return new.replace(CRLF, "\n")


def split_lines_of_any_end(text: str) -> list[str]:
    """Joined, the lines are the text; a lone carriage return ends a line too."""
    return io.StringIO(text, newline="").readlines()


def with_characters_of(actual: str, old: str, new: str) -> str:
    """For an old text that stands for the actual one character by character: what `new` has of it becomes actual."""
    if len(old) * len(new) > MOST_CELLS:
        return new
    from rapidfuzz.distance import Indel

    pieces: list[str] = []
    for step in Indel.opcodes(old, new):
        if step.tag == "equal":
            pieces.append(actual[step.src_start : step.src_end])
        elif step.tag != "delete":
            pieces.append(new[step.dest_start : step.dest_end])
    return "".join(pieces)


def with_lines_of(
    actual: Sequence[str], old: Sequence[str], new: Sequence[str], indents: Mapping[str, str]
) -> list[str]:
    """For an old text that stands for the actual one line by line: what `new` has of it becomes actual."""
    fitted: list[str] = []
    position = 0
    for change in compare_lines(old, new):
        fitted += actual[position : change.old_start]
        fitted += [reindent(line, indents) for line in new[change.new_start : change.new_end]]
        position = change.old_end
    return fitted + list(actual[position:])


# --- indentation


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def map_indents(old: Sequence[str], actual: Sequence[str]) -> dict[str, str] | None:
    """Which indent in the file each indent of the old text stands for; None if one would stand for two."""
    indents: dict[str, str] = {}
    for old_line, actual_line in zip(old, actual, strict=True):
        if old_line.strip():
            theirs = indent_of(actual_line)
            if indents.setdefault(indent_of(old_line), theirs) != theirs:
                return None
    return indents


def reindent(line: str, indents: Mapping[str, str]) -> str:
    """A new line with the indent that it would have in the file."""
    indent = indent_of(line)
    if not line.strip() or not indents:
        return line
    return _translate(indent, indents) + line[len(indent) :]


def _translate(indent: str, indents: Mapping[str, str]) -> str:
    if indent in indents:
        return indents[indent]
    known = max((old for old in indents if indent.startswith(old)), key=len, default=None)
    if known is not None:
        return indents[known] + _in_units(indent[len(known) :], indents)
    old, actual = next(iter(indents.items()))
    if actual.endswith(old):
        return actual[: len(actual) - len(old)] + indent
    return indent.removeprefix(old[: len(old) - len(actual)]) if old.endswith(actual) else indent


def _in_units(deeper: str, indents: Mapping[str, str]) -> str:
    """A further indent, where the file has tabs for the model's blanks or the other way round."""
    for old, actual in indents.items():
        blanks, tabs = (old, actual) if "\t" in actual else (actual, old)
        if not blanks or not tabs or set(blanks) != {" "} or set(tabs) != {"\t"}:
            continue
        width = max(1, len(blanks) // len(tabs))
        if tabs == actual:
            return deeper.replace(" " * width, "\t")
        return deeper.replace("\t", " " * width)
    return deeper
