"""The line ends of a new text: those of the text whose place it takes."""

import io

from crow.diff import compare_lines, split_lines
from crow.workspace.text import CRLF, first_line_end, usual_line_end, with_line_ends, with_line_feeds


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
