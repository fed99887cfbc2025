"""What `crow chat` prints above its input line: its screen, the past of a session, and folded output in full."""

import asyncio
import io
import re
from collections.abc import Callable, Sequence
from typing import TextIO

from msgspec.structs import replace

from crow.acp import wire
from crow.cli.chat.inline import FRAME
from crow.cli.chat.shown import Shown
from crow.cli.render import UNFOLD, Fold, Renderer
from crow.cli.render_screen import BOLD, DIM, Screen, cells, counted, cut, folded

MOST_REPLAYED = 30
"""Prompts of a stored conversation that are drawn again, with what followed them."""
RESET = "\x1b[0m"
_STYLE = re.compile(r"\x1b\[[0-9;]*m")

Row = tuple[str, str]
"""A style and a text."""


# --- the screen


class LineBuffer(io.StringIO):
    """What a `Screen` writes to: lines are taken from it when they are whole."""

    def __init__(self, terminal: TextIO) -> None:
        super().__init__()
        self._terminal = terminal

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride, reportIncompatibleMethodOverride] -- an attribute there
        return self._terminal.encoding

    def fileno(self) -> int:
        """Of the terminal, to be measured."""
        return self._terminal.fileno()

    @property
    def rest(self) -> str:
        """The line that is still being written, with its styles."""
        lines, _, rest = self.getvalue().rpartition("\n")
        return _last_style(lines) + rest

    def take_lines(self) -> str:
        """Takes the whole lines out of the buffer. The rest keeps its style, and what is taken ends without one."""
        lines, newline, rest = self.getvalue().rpartition("\n")
        if not newline:
            return ""
        style = _last_style(lines)
        self.seek(0)
        self.truncate()
        self.write(style + rest)
        return lines + (RESET if style else "") + newline


def _last_style(text: str) -> str:
    """The style that the text leaves behind; empty if it is none."""
    style = next(reversed(_STYLE.findall(text)), RESET)
    return "" if style == RESET else style


class ChatScreen(Screen):
    """Whole lines go to `print_above`; the line that is being written is shown with the input until it is whole."""

    def __init__(
        self, terminal: TextIO, print_above: Callable[[str], None], changed: Callable[[], None], *, colours: bool
    ) -> None:
        self._lines = LineBuffer(terminal)
        super().__init__(self._lines, width=80, colours=colours, live=True)
        self.activity: list[str] = []
        """What is being waited for, and the last words of what runs; nothing while no turn runs."""
        self._print_above = print_above
        self._changed = changed
        self._frame: asyncio.TimerHandle | None = None
        self.measure()

    @property
    def rest(self) -> str:
        """The line that is still being written."""
        return self._lines.rest

    def flush(self) -> None:
        super().flush()
        if self._frame is None:
            self._frame = asyncio.get_running_loop().call_later(FRAME, self.draw)

    def draw(self) -> None:
        """Prints the lines that are whole by now."""
        if self._frame is not None:
            self._frame.cancel()
            self._frame = None
        if lines := self._lines.take_lines():
            self._print_above(lines)
        self._changed()

    def show_live(self, text: str, below: Sequence[str] = ()) -> None:
        """What is being waited for has rows of its own here, which are drawn anew."""
        self.activity = [text, *below]

    def end_live(self) -> None:
        self.activity = []


# --- the past


class Replay:
    """Collects the updates that a load brings, until all are there."""

    def __init__(self) -> None:
        self._updates: list[wire.Update] = []
        self._prompts: list[int] = []
        """Where each prompt begins among the updates."""
        self._last_prompt: str | None = None

    def take(self, update: wire.Update) -> None:
        if isinstance(update, wire.UserMessageChunk) and (
            update.message_id is None or update.message_id != self._last_prompt
        ):
            self._last_prompt = update.message_id
            self._prompts.append(len(self._updates))
        before = self._updates[-1] if self._updates else None
        if (
            isinstance(before, wire.ToolCall)
            and isinstance(update, wire.ToolCallUpdate)
            and (before.tool_call_id == update.tool_call_id)
        ):
            self._updates[-1] = _completed(before, update)
        else:
            self._updates.append(update)

    def draw(self, renderer: Renderer, session: str) -> None:
        left_out = self._prompts[:-MOST_REPLAYED]
        first = self._prompts[len(left_out)] if left_out else 0
        if left_out:
            renderer.mark(
                "i",
                f"{counted(len(left_out), 'earlier message')} not shown. To see all: crow sessions show {session}",
                DIM,
            )
        for update in self._updates[first:]:
            renderer.update(update)

    def draw_rest(self, renderer: Renderer, shown: Shown) -> None:
        """Draws what the person was not shown."""
        for update in shown.rest_of(self._updates):
            renderer.update(update)

    def has(self, message_id: str) -> bool:
        """Whether a message of the person's is part of the conversation."""
        return any(isinstance(one, wire.UserMessageChunk) and one.message_id == message_id for one in self._updates)


def _completed(call: wire.ToolCall, update: wire.ToolCallUpdate) -> wire.ToolCall:
    """A past call with what came of it, which is told in a second update."""
    return replace(
        call,
        status=update.status or call.status,
        content=update.content or call.content,
        raw_output=update.raw_output,
    )


# --- what was folded


class Unfolding:
    """What is unfolded, and which rows of it are shown."""

    def __init__(self) -> None:
        self._folds: Sequence[Fold] = ()
        self._number = 0
        self._top = 0
        self._page = 1
        self._laid_out: tuple[int, int, list[Row]] = (-1, 0, [])

    @property
    def is_open(self) -> bool:
        return bool(self._folds)

    def open(self, folds: Sequence[Fold]) -> None:
        """Shows the newest of them."""
        self._folds = tuple(folds)
        self._number = len(folds) - 1
        self._top = 0
        self._laid_out = (-1, 0, [])

    def close(self) -> None:
        self._folds = ()

    @property
    def current(self) -> Fold:
        return self._folds[self._number]

    def turn(self, step: int) -> None:
        """To an older or newer output."""
        self._number = min(max(self._number + step, 0), len(self._folds) - 1)
        self._top = 0

    def scroll(self, rows: int) -> None:
        self._top = max(min(self._top + rows, len(self._laid_out[2]) - self._page), 0)

    def scroll_pages(self, pages: int) -> None:
        self.scroll(pages * max(self._page - 1, 1))

    def scroll_to_start(self) -> None:
        self._top = 0

    def scroll_to_end(self) -> None:
        self._top = len(self._laid_out[2])

    def rows(self, width: int, height: int) -> list[Row]:
        """A title, and as much of the text as there is room for."""
        lines = self._lines(width)
        self._page = max(min(height - 2, len(lines)), 1)
        self._top = max(min(self._top, len(lines) - self._page), 0)
        shown = lines[self._top : self._top + self._page]
        return [(BOLD, cut(self.current[0], width)), (DIM, self._keys(width, len(lines))), *shown]

    def _keys(self, width: int, count: int) -> str:
        """Which lines are shown, and as many of the keys as there is room for."""
        place = f"{self._top + 1}-{self._top + self._page} of {count}"
        others = f" · ←→ {self._number + 1} of {len(self._folds)}" if len(self._folds) > 1 else ""
        forms = (
            f"{place} · ↑↓ PgUp PgDn{others} · Enter: print · {UNFOLD}: close",
            f"{place}{others} · Enter: print · {UNFOLD}: close",
            f"{place}{others} · {UNFOLD}: close",
        )
        return next((form for form in forms if cells(form) <= width), cut(forms[-1], width))

    def _lines(self, width: int) -> list[Row]:
        number, at_width, lines = self._laid_out
        if (number, at_width) != (self._number, width):
            lines = [(style, piece) for text, style in self.current[1] for piece in folded(text, width)]
            self._laid_out = (self._number, width, lines)
        return lines
