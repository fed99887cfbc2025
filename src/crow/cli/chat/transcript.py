"""What `crow chat` prints above the input line: prompts, messages and calls as `crow run` shows them, with long outputs
folded.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TextIO

from crow.acp import wire
from crow.cli.chat.inline import FRAME, LineBuffer
from crow.cli.render import HOW_TO_UNFOLD, SPINNER, Renderer
from crow.cli.render_calls import live_lines
from crow.cli.render_screen import DIM, PLAIN, Screen, cells, clean_prose, cut
from crow.visible import one_line

MOST_FOLDED = 50
"""Outputs that can still be unfolded: the last ones."""
PROMPT_LINES = 10
"""Rows that are shown of a long prompt, such as one that was pasted."""


class ChatScreen(Screen):
    """Whole lines go to `print_above`; the line that is being written is shown with the input until it is whole."""

    def __init__(
        self, terminal: TextIO, print_above: Callable[[str], None], changed: Callable[[], None], *, colours: bool
    ) -> None:
        self._lines = LineBuffer(terminal)
        super().__init__(self._lines, width=80, colours=colours, live=True)
        self._print_above = print_above
        self._changed = changed
        self._frame: asyncio.TimerHandle | None = None
        self.measure()

    @property
    def rest(self) -> str:
        """The line that is still being written."""
        return self._lines.rest

    def shown(self, text: str) -> str:
        """Our own signs as this terminal can show them."""
        return self._shown(text)

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

    def hide_live(self) -> None:
        """What is being waited for has its own row here, which is drawn anew."""


class Fold(NamedTuple):
    """A long text of which only a part was shown."""

    title: str
    lines: Sequence[tuple[str, str]]
    """Each with its style."""


class ChatRenderer(Renderer):
    """Shows prompts too, whoever sent them, and keeps what it folds."""

    shows_prompts = True
    unfolds = True

    def __init__(self, screen: ChatScreen, *, folder: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(screen, folder=folder, clock=clock)
        self.screen = screen
        self.folds: list[Fold] = []
        self._prompt_text = ""
        self._sent = 0
        self.activity: list[str] = []
        """What is being waited for, and the last words of what runs; nothing while no turn runs."""

    def update(self, update: wire.Update) -> None:
        if isinstance(update, wire.UserMessageChunk):
            self._show_prompt(update)
            self._screen.flush()
        else:
            super().update(update)

    def prompt(self, text: str) -> None:
        """What the person sends here, as it is shown when the conversation is loaded again."""
        self._sent += 1
        self.update(wire.UserMessageChunk(content=wire.TextContent(text=text), message_id=f"sent {self._sent}"))
        self.pause()

    def _show_prompt(self, chunk: wire.UserMessageChunk) -> None:
        if isinstance(chunk.content, wire.TextContent):
            self._prompt_text = chunk.content.text
            self._show_prompt_text(chunk)
        elif isinstance(chunk.content, wire.ResourceLink):
            if chunk.content.name not in self._prompt_text:
                self._say("prompt", wire.TextContent(text=f" [{one_line(chunk.content.name)}]"), chunk.message_id)
        else:
            self._say("prompt", chunk.content, chunk.message_id)

    def _show_prompt_text(self, chunk: wire.UserMessageChunk) -> None:
        lines = self._prompt_text.split("\n")
        shown = self._first_rows(lines)
        self._say("prompt", wire.TextContent(text="\n".join(shown)), chunk.message_id)
        if shown != lines:
            self.pause()
            whole = [(f"  {line}", PLAIN) for line in clean_prose(self._prompt_text).split("\n")]
            self._more("What you said", len(shown), whole, is_cut=shown != lines[: len(shown)])

    def _first_rows(self, lines: list[str]) -> list[str]:
        """The lines of a prompt that are shown: all, unless they fill too many rows; the last one may be cut."""
        width = max((self._screen.width or 80) - 2, 1)
        rows = [-(-max(cells(line), 1) // width) for line in lines]
        if sum(rows) <= 2 * PROMPT_LINES:
            return lines
        shown: list[str] = []
        left = PROMPT_LINES
        for line, its_rows in zip(lines, rows, strict=True):
            if left <= 0:
                break
            shown.append(line if its_rows <= left else cut(line, left * width))
            left -= its_rows
        return shown

    def ask(self, request: wire.RequestPermissionRequest, choices: Sequence[tuple[str, str]] | None = None) -> None:
        """The choices are shown in the place of the input, until one is made."""
        super().ask(request, None)

    def stop(self, reason: str, left_open: str = "") -> None:
        self._usage = None  # the status line has it
        super().stop(reason, left_open)

    @property
    def partial_line(self) -> str:
        """The line that is being written, with its styles, and what may still turn out to be a part of something."""
        held = self._prose.held if self._prose is not None else ""
        return self.screen.rest + (self.screen.shown(held) if held.strip() else "")

    def tick(self) -> None:
        if self._asking or not self._waiting:
            self.clear_activity()
            return
        self._screen.measure()
        now = self._clock()
        label, elapsed = self._live_label(now)
        words = label + (f" {elapsed:.0f} s" if elapsed >= 1 else "")
        self.activity = [f"{SPINNER[int(now * 10) % len(SPINNER)]} {words}", *live_lines(self._calls.values(), label)]

    def clear_activity(self) -> None:
        """Nothing is being waited for."""
        self.activity = []

    def print_fold(self, fold: Fold) -> None:
        """Prints all of what was folded, to stay."""
        self.mark("▾", fold.title, DIM)
        for text, style in fold.lines:
            self._code("", text, style)
        self._screen.flush()

    def _close_turn(self) -> None:
        super()._close_turn()
        self.clear_activity()

    def _left_out(self, words: str, title: str, lines: Sequence[tuple[str, str]]) -> None:
        self.folds = [*self.folds[1 - MOST_FOLDED :], Fold(title, lines)]
        super()._left_out(words + HOW_TO_UNFOLD, title, lines)
