"""The stream that a rendering writes to: knows its column, its colours, and the live lines that may be rewritten."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import TextIO

from crow.cli.render_text import PLAIN_SIGNS, cells, cut
from crow.cli.terminal import speaks_utf8

PLAIN = "0"
BOLD = "1"
DIM = "2"
THOUGHT = "2;3"
CODE = "36"
HEADING = "1;36"
GOOD = "32"
WARNING = "33"
BAD = "31"
QUESTION = "1;35"

WIDEST = 100
"""Longer lines are hard to read, however wide the window is."""


class Screen:
    """Writes styled text. What was written is never touched again; only the live lines below it come and go."""

    def __init__(self, stream: TextIO, *, width: int | None = None, colours: bool = False, live: bool = False) -> None:
        self.width = width
        """Columns to fill; None for a file or a pipe, where lines are as long as they are."""
        self.height = 24
        self.colours = colours
        self.live = live
        """Whether there is a person in front of it, and the cursor can be moved."""
        self.column = 0
        self.beside: Screen | None = None
        """Another one that leads to the same place, such as one log: its line is ended before something comes here."""
        self._stream = stream
        # Without an encoding it is no file but a text in memory, which takes everything.
        self._plain = bool(stream.encoding) and not speaks_utf8(stream)
        self._style = ""
        self._live_shown = False

    @classmethod
    def of(cls, stream: TextIO, environment: Mapping[str, str]) -> "Screen":
        """What this stream can do, with the usual variables honoured."""
        if not stream.isatty() or environment.get("TERM", "") in ("", "dumb"):
            return cls(stream)
        screen = cls(stream, width=80, colours=not environment.get("NO_COLOR"), live=True)
        screen.measure()
        return screen

    def measure(self) -> None:
        """Windows are resized while we write."""
        if self.live:
            with contextlib.suppress(OSError):
                columns, lines = os.get_terminal_size(self._stream.fileno())
                self.width = min(max(columns or 80, 20), WIDEST)  # some do not know: 0
                self.height = lines or 24

    def write(self, text: str, style: str = "") -> None:
        """Text that is safe already, see `render_text`."""
        self.hide_live()
        if text and self.beside is not None and self.beside.column:
            self.beside.end_line()
            self.beside.flush()
        text = self._shown(text)
        if text and not text.isspace():  # a space looks the same in every style
            self._set_style(style)
        self._stream.write(text)
        _, newline, last = text.rpartition("\n")
        self.column = cells(last) if newline else self.column + cells(text)

    def _shown(self, text: str) -> str:
        return text.translate(PLAIN_SIGNS) if self._plain and not text.isascii() else text

    def line(self, text: str = "", style: str = "") -> None:
        self.end_line()
        self.write(text, style)
        self.write("\n")

    def end_line(self) -> None:
        if self.column:
            self.write("\n")

    def flush(self) -> None:
        self._set_style("")
        self._stream.flush()

    def _set_style(self, style: str) -> None:
        if self.colours and style != self._style:
            self._stream.write(f"\x1b[0;{style}m" if style else "\x1b[0m")
            self._style = style

    # --- the live lines

    def show_live(self, text: str, below: Sequence[str] = ()) -> None:
        """Shows text behind what was written, and lines below it, until the next write. The cursor stays."""
        if not self.live or self.width is None:
            return
        room = self.width - self.column - 1
        if room < 4:
            return
        text = cut(self._shown(text), room)
        self._set_style(DIM)
        lines = [cut(self._shown(line), self.width - 1) for line in below[: self.height - 2]] if not self.column else []
        back = f"\x1b[{len(lines)}A\r" if lines else f"\x1b[{cells(text)}D"
        # Each line is erased behind its text, and at last what is left below: nothing flickers.
        self._stream.write("\x1b[K\n".join([text, *lines]) + f"\x1b[J{back}")
        self._live_shown = True
        self.flush()

    def hide_live(self) -> None:
        if self._live_shown:
            self._live_shown = False
            self._stream.write("\x1b[J")
