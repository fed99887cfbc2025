"""A terminal with a screen: what a program writes is drawn by an emulator, and tests look at the picture."""

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import pyte

from tests.config.support import environment
from tests.support import warm
from tests.support.patience import DEADLINE
from tests.support.warm import CROW


class Window:
    """`crow` in a window, or a program like it. When it gets narrower, no lines are broken anew: it is a terminal like
    Linux's own, and says so."""

    def __init__(
        self, user: Path, *arguments: str, columns: int = 80, lines: int = 24, program: str = CROW, **extra: str
    ) -> None:
        self.screen = pyte.HistoryScreen(columns, lines, history=20_000, ratio=0.5)
        self._stream = pyte.ByteStream(self.screen)
        self._master, slave = pty.openpty()
        self._measure(columns, lines)
        self._before = termios.tcgetattr(slave)
        variables = environment(user, **{"TERM": "linux", **extra})
        self.process = warm.in_terminal([program, *arguments], slave, env=variables)
        os.close(slave)
        self._is_open = True
        self.written = b""
        """Everything that came, to the byte."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self._is_open:
            os.close(self._master)

    # --- what is seen

    @property
    def picture(self) -> list[str]:
        """The rows of the screen, without blanks and empty rows at their ends."""
        rows = [row.rstrip() for row in self.screen.display]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    @property
    def text(self) -> str:
        return "\n".join(self.picture)

    @property
    def scrollback(self) -> list[str]:
        """The rows that have left the screen at its top, and those that are on it."""
        above = ["".join(row[x].data for x in range(self.screen.columns)).rstrip() for row in self.screen.history.top]
        return [*above, *self.picture]

    def wait_until(self, wanted: str | Callable[[], object]) -> None:
        """Until the text is to be seen on the screen, or the condition holds."""
        is_there = (lambda: wanted in self.text) if isinstance(wanted, str) else wanted
        deadline = time.monotonic() + DEADLINE
        while not is_there():
            assert self._read(deadline), f"{wanted!r} did not come; the window shows:\n{self.text}"

    def wait_for_rows(self, *rows: str) -> None:
        """Until these are the last rows of the picture, whatever time things took."""
        deadline = time.monotonic() + DEADLINE
        while self._last(len(rows)) != list(rows) and self._read(deadline):
            pass
        assert self._last(len(rows)) == list(rows), "the rows did not come; the window shows:\n" + self.text

    def _last(self, count: int) -> list[str]:
        return [re.sub(r" · [\d.]+ s(?= ·|$)", "", row) for row in self.picture[-count:]]

    # --- what is done

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def press(self, *keys: str) -> None:
        for key in keys:
            self.type(KEYS.get(key, key))

    def paste(self, text: str, *, marked: bool = True) -> None:
        """As terminals do it, with signs around the text, but for old ones; in pieces, as a terminal holds only so
        much."""
        content = (f"\x1b[200~{text}\x1b[201~" if marked else text).encode()
        while content:
            _, ready, _ = select.select([], [self._master], [], 0)
            if ready:
                content = content[os.write(self._master, content[:1024]) :]
            self._read(time.monotonic())

    def resize(self, columns: int, lines: int) -> None:
        self.screen.resize(lines, columns)
        self._measure(columns, lines)

    def close(self) -> None:
        """The window is closed while the program still runs in it."""
        os.close(self._master)
        self._is_open = False

    def ended(self) -> int:
        """Waits for the end of the program: its exit code."""
        deadline = time.monotonic() + DEADLINE
        while self._read(deadline):
            pass
        assert time.monotonic() < deadline, f"it did not end; the window shows:\n{self.text}"
        return self.process.wait(DEADLINE)

    def ended_by(self, key: str) -> int:
        """Presses a key until the program has ended: it counts as the second one for a moment only."""
        for _ in range(int(DEADLINE)):
            self.press(key)
            deadline = time.monotonic() + 1
            while self._read(deadline):
                pass
            if time.monotonic() < deadline:
                break
        return self.ended()

    @property
    def is_restored(self) -> bool:
        """Whether the terminal is set as it was before the program: the shell behind it needs that."""
        return termios.tcgetattr(self._master) == self._before

    def _measure(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(0, deadline - time.monotonic()))
        piece = b""
        if ready:
            with contextlib.suppress(OSError):  # how Linux says that the other side has closed
                piece = os.read(self._master, 65536)
        self.written += piece
        self._stream.feed(piece)
        return bool(piece)


KEYS = {
    "enter": "\r",
    "tab": "\t",
    "shift-tab": "\x1b[Z",
    "escape": "\x1b",
    "alt-enter": "\x1b\r",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "page-down": "\x1b[6~",
    "page-up": "\x1b[5~",
    "backspace": "\x7f",
    "ctrl-c": "\x03",
    "ctrl-d": "\x04",
    "ctrl-j": "\n",
    "ctrl-o": "\x0f",
    "ctrl-u": "\x15",
    "ctrl-z": "\x1a",
}
