"""Prints lines above the input line of `crow chat` and draws the last rows anew, also when the window is resized.

No alternate screen: whole lines go to the terminal's own scrollback, and the input line is drawn below them. What is
erased, printed and drawn in one moment is sent in one piece, so that nothing flickers.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from typing import TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.vt100 import Vt100_Output

FRAME = 0.04
"""Seconds between two pictures, at the least: a fast stream is drawn at this pace."""
SETTLED = 0.35
"""Seconds without another change of the terminal's size after which it is drawn anew. tmux tells of a second change up
to a quarter of a second after it was made."""
SYNCHRONISED, END_SYNCHRONISED = "\x1b[?2026h", "\x1b[?2026l"
"""Terminals that know these draw what is between them at once; others take no notice."""


class InlineOutput(Vt100_Output):
    """What is written while it is held is sent together with the next picture."""

    def __init__(self, terminal: TextIO) -> None:
        super().__init__(terminal, lambda: _size_of(terminal), term=os.environ.get("TERM"), enable_cpr=False)
        self.is_held = False

    def flush(self) -> None:
        if not self.is_held:
            with contextlib.suppress(OSError):  # the terminal is gone, which is noticed where it is read
                super().flush()

    def erase_down(self) -> None:
        """In two steps in tmux, which adds what is erased to its scrollback if that is the whole screen."""
        if os.environ.get("TMUX"):
            self.erase_end_of_line()
            self.write_raw("\x1b7")
            self.cursor_down(1)
            super().erase_down()
            self.write_raw("\x1b8")
        else:
            super().erase_down()

    def disable_bracketed_paste(self) -> None:
        """Not between two pictures: a paste that comes in that moment would be taken for typing."""
        if not self.is_held:
            super().disable_bracketed_paste()


class InlineApplication(Application[None]):
    """The rows at the end, and what is printed above them.

    `shape` says how many rows each part has. When that changes, all rows are erased before they are drawn: a terminal
    that breaks lines anew remembers how long a row once was.
    """

    shape: Callable[[], object] = staticmethod(lambda: None)
    output: InlineOutput  # pyright: ignore[reportIncompatibleVariableOverride] -- the one that we give
    _drawn_shape: object = None
    _lines = ""
    """To be printed with the next picture."""
    _drawn_columns = 0
    """How wide the terminal was when the last picture was drawn."""
    _resizing: asyncio.TimerHandle | None = None

    def print_above(self, text: str) -> None:
        """Prints whole lines above the rows that are drawn; they are the terminal's from now on."""
        self._lines += text
        if self.is_running:
            self.invalidate()
        else:
            self._write_lines()
            self.output.flush()

    def _redraw(self, render_as_done: bool = False) -> None:
        if self._running_in_terminal or not self._has_its_size(at_once=render_as_done):
            return
        shape = self.shape()
        if not self._lines and shape == self._drawn_shape:
            super()._redraw(render_as_done)
            return
        self.output.is_held = True
        self.output.write_raw(SYNCHRONISED)
        self.renderer.erase()
        self._write_lines()
        self.output.is_held = False
        super()._redraw(render_as_done)
        self._drawn_shape = shape
        self.output.write_raw(END_SYNCHRONISED)
        self.output.flush()

    def _write_lines(self) -> None:
        self.output.write_raw(self._lines.replace("\n", "\r\n"))
        self._lines = ""

    # --- another size

    def _on_resize(self) -> None:
        """Nothing is drawn while the size is still changing: where our rows are then, nobody can know."""
        if self._resizing is not None:
            self._resizing.cancel()
        self._resizing = asyncio.get_running_loop().call_later(SETTLED, self._draw_anew)

    def _draw_anew(self) -> None:
        self._resizing = None
        self._go_to_first_row()
        super()._on_resize()

    def _has_its_size(self, *, at_once: bool) -> bool:
        """Whether the terminal is as wide as it was for the last picture, or its new width is known to last."""
        columns = self.output.get_size().columns
        is_same = self._resizing is None and self._drawn_columns in (0, columns)
        if not is_same and self._resizing is None and self.renderer.last_rendered_screen is not None:
            self._on_resize()  # the signal has not come yet
        if at_once and self._resizing is not None:
            self._resizing.cancel()
            self._resizing = None
            self._go_to_first_row()
        if self._resizing is None:
            self._drawn_columns = columns
        return self._resizing is None

    def _go_to_first_row(self) -> None:
        """Terminals break lines anew when they get narrower: then there are more rows above the cursor than we drew."""
        screen = self.renderer.last_rendered_screen
        self._drawn_columns = width = max(self.output.get_size().columns, 1)
        if screen is None or not breaks_lines_anew(os.environ):
            return
        cursor = screen.get_cursor_position(self.layout.current_window)
        drawn = [screen.data_buffer[y] for y in range(cursor.y)]
        ends = [max((x for x, cell in row.items() if cell.char != " "), default=0) for row in drawn]
        self.output.cursor_up(sum(end // width for end in (*ends, cursor.x)))


def breaks_lines_anew(environment: Mapping[str, str]) -> bool:
    """Whether the terminal breaks long lines anew when it gets narrower, as all but old kinds do."""
    term = environment.get("TERM", "")
    if environment.get("TMUX"):
        return True
    return not (environment.get("XTERM_VERSION") or term.startswith(("linux", "screen", "vt")))


def _size_of(terminal: TextIO) -> Size:
    try:
        columns, rows = os.get_terminal_size(terminal.fileno())
    except OSError:
        columns, rows = 0, 0
    return Size(rows=rows or 24, columns=columns or 80)  # some do not know: 0
