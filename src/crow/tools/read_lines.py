"""Remembers which lines of a file the model has been shown, and what the file held then: what it has not seen, it may
not overwrite.
"""

from collections.abc import Iterable
from typing import NamedTuple

from crow import diff
from crow.paths import shown

MOST_REMEMBERED = 16 * 2**20
"""Characters that are kept; beyond that the files that were not looked at for the longest time are forgotten."""

UNREAD, CUT, READ = range(3)
"""Of a line: never shown, shown only in part because it is so long, shown."""


class _Known(NamedTuple):
    text: str
    lines: bytearray
    """For each line one of the three."""


class ReadTracker:
    def __init__(self) -> None:
        self._files: dict[str, _Known] = {}
        self._size = 0
        self._opened: set[str] = set()

    def note_read(self, path: str, text: str | None, first: int, last: int, cut: Iterable[int] = ()) -> None:
        """The model was shown these lines of a text, counted from 1; some of them not in full.

        None stands for a text that is too long to be remembered.
        """
        self._opened.add(path)
        if text is None:
            self._forget(path)
            return
        known = self._files.get(path)
        lines = known.lines if known is not None and known.text == text else bytearray(count_lines(text))
        in_part = [line for line in cut if lines[line - 1] != READ]
        lines[first - 1 : last] = bytes([READ]) * (last - first + 1)
        for line in in_part:
            lines[line - 1] = CUT
        self._remember(path, _Known(text, lines))

    def note_written(self, path: str, text: str) -> None:
        """All of the text is the model's own."""
        self._opened.add(path)
        self._remember(path, _Known(text, bytearray([READ]) * count_lines(text)))

    def note_changed(self, path: str, before: str, after: str) -> None:
        """A text that the model knew in part, or not at all, was changed by it."""
        known = self._files.get(path)
        lines = bytearray(count_lines(after))
        if not before:
            lines = bytearray([READ]) * len(lines)  # there was nothing that it could not have known
        elif known is not None and known.text == before:
            lines = _lines_known_after(known.lines, before, after)
        self._remember(path, _Known(after, lines))

    def note_replaced(self, path: str, text: str) -> None:
        """Somebody else made something of what the model wrote: what is there now it has not seen."""
        self._remember(path, _Known(text, bytearray(count_lines(text))))

    def has_read(self, path: str) -> bool:
        """Whether the model was ever shown anything of the file."""
        return path in self._opened

    def text(self, path: str) -> str | None:
        """What the file held when the model last had to do with it; None if it had not, or long ago."""
        known = self._files.get(path)
        return known.text if known is not None else None

    def gap(self, path: str, text: str) -> str:
        """What the model does not know of a text that it wants to replace, in a sentence; empty if it knows all."""
        known = self._files.get(path)
        if not text:
            return ""
        if known is None:
            return f"{shown(path)} exists and has not been read."
        if known.text != text:
            return f"{shown(path)} has changed since it was last read or written."
        if UNREAD in known.lines:
            return f"{shown(path)} was read only in part: line {known.lines.index(UNREAD) + 1} was not."
        if CUT in known.lines:
            return f"{shown(path)} cannot be read in full: line {known.lines.index(CUT) + 1} is too long."
        return ""

    def _remember(self, path: str, known: _Known) -> None:
        self._forget(path)
        self._files[path] = known
        self._size += len(known.text)
        while self._size > MOST_REMEMBERED:
            self._forget(next(iter(self._files)))

    def _forget(self, path: str) -> None:
        known = self._files.pop(path, None)
        if known is not None:
            self._size -= len(known.text)


def count_lines(text: str) -> int:
    return text.count("\n") + (bool(text) and not text.endswith("\n"))


def _lines_known_after(lines: bytearray, before: str, after: str) -> bytearray:
    """Unchanged lines are as well known as they were; a changed one is known if what it replaced was."""
    if lines.count(READ) == len(lines):
        return bytearray([READ]) * count_lines(after)
    carried = bytearray()
    position = 0
    for change in diff.changes(before, after):
        carried += lines[position : change.old_start]
        replaced = lines[change.old_start : change.old_end]
        state = READ if replaced.count(READ) == len(replaced) else UNREAD
        carried += bytes([state]) * (change.new_end - change.new_start)
        position = change.old_end
    return carried + lines[position:]
