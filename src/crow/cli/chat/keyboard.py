"""What is typed and pasted in `crow chat`: finds pastes that the terminal does not mark, and reads what was typed
ahead.
"""

import codecs
import os
import re
import select
import sys
from typing import TextIO

from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.posix_utils import PosixStdinReader
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from crow.cli.chat.messages import clean_lines

LARGEST_READ = 64 * 1024
LONGEST_TYPED = 64
"""Characters that come at once and are still taken for keys, one by one."""
CTRL_C = "\x03"
START_OF_PASTE, END_OF_PASTE = "\x1b[200~", "\x1b[201~"
TAB, ENTER, ESCAPE, BACKSPACE = 9, 13, 27, 127
MODIFIED_ENTER = ("\x1b[27;2;13~", "\x1b[27;5;13~", "\x1b[27;6;13~")
"""Enter with Shift or Ctrl, as xterm tells it: like Alt-Enter it begins a new line."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_INNER_LINE_END = re.compile(r"\S[^\S\r\n]*[\r\n]\s*\S")
KEY = re.compile(r"\x1b?\x1b\[(?:\[[A-E]|([0-9;:?<=>]*)[ -/]*([@-~]))")
"""A key that is more than one character, with its numbers and its last letter."""
_ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O.|.)?", re.DOTALL)


class ChatInput(Vt100Input):
    """The keys of a terminal. Lines that come in one piece were pasted, also where the terminal does not say so: an
    Enter between two of them sends nothing. Such a paste ends when nothing more comes (see `flush_keys`)."""

    def __init__(self, terminal: TextIO) -> None:
        super().__init__(terminal)
        # No text may hold a byte that is no UTF-8: it could neither be stored nor sent.
        self.stdin_reader = PosixStdinReader(self._fileno, errors="replace", encoding=_encoding_of(terminal))
        self._pasted = ""

    def read_keys(self) -> list[KeyPress]:
        typed = self._read()
        if self._is_in_marked_paste or _CONTROL.search(typed):
            self._end_paste()
            self._parse(typed)
        else:
            self._take(typed)
        return self._take_keys()

    def flush_keys(self) -> list[KeyPress]:
        """Called a moment after the last key, whatever it was."""
        self._end_paste()
        return super().flush_keys()

    def _read(self) -> str:
        """All that is there by now."""
        typed = ""
        while len(typed) < LARGEST_READ and (piece := self.stdin_reader.read(LARGEST_READ)):
            typed += piece
        return typed

    @property
    def _is_in_marked_paste(self) -> bool:
        return self.vt100_parser._in_bracketed_paste  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] -- nothing else says it

    def _parse(self, typed: str) -> None:
        if END_OF_PASTE in typed:
            typed = without_false_ends(typed, in_paste=self._is_in_marked_paste)
        if not self._is_in_marked_paste and START_OF_PASTE not in typed:
            typed = KEY.sub(known_key, typed)
        self.vt100_parser.feed(typed.removesuffix(CTRL_C))
        if typed.endswith(CTRL_C):
            # A paste whose end was lost ends here: every key from now on would be a part of it.
            self.vt100_parser.feed(END_OF_PASTE + CTRL_C if self._is_in_marked_paste else CTRL_C)

    def _take(self, typed: str) -> None:
        if self._pasted or _INNER_LINE_END.search(typed):
            self._pasted += typed
            return
        text = typed.rstrip("\r\n")
        if len(text) > LONGEST_TYPED:
            self._pasted = text
            self._end_paste()
            typed = typed[len(text) :]
        self.vt100_parser.feed(typed.replace("\r\n", "\r"))

    def _end_paste(self) -> None:
        if self._pasted:
            self.vt100_parser.flush()
            self._buffer.append(KeyPress(Keys.BracketedPaste, self._pasted))
            self._pasted = ""

    def _take_keys(self) -> list[KeyPress]:
        keys, self._buffer = self._buffer, []
        return keys


def without_false_ends(typed: str, *, in_paste: bool) -> str:
    """What came from the terminal, without ends of pastes that are part of a pasted text: from such an end on, the text
    would be typed, Enter included. The true end of a paste is its last one."""
    before, *pastes = typed.split(START_OF_PASTE)
    return START_OF_PASTE.join([_with_last_end(before) if in_paste else before, *map(_with_last_end, pastes)])


def _with_last_end(paste: str) -> str:
    text, end, rest = paste.rpartition(END_OF_PASTE)
    return text.replace(END_OF_PASTE, "") + end + rest


def _encoding_of(terminal: TextIO) -> str:
    """How its keys are encoded. Where the locale knows but ASCII (`LC_ALL=C`), whatever else comes is UTF-8."""
    return "utf-8" if codecs.lookup(terminal.encoding).name == "ascii" else terminal.encoding


def known_key(key: re.Match[str]) -> str:
    """A key as it is known here; nothing for one that is not, which would be taken for Esc and some letters."""
    if key[0] in MODIFIED_ENTER:
        return "\x1b\r"
    if key[0] in ANSI_SEQUENCES or key[0][1:] in ANSI_SEQUENCES:
        return key[0]
    numbers = re.fullmatch(r"(\d{1,7})(?::\d*)*(?:;(\d{1,3}))?", key[1] or "")
    return _of_code(int(numbers[1]), int(numbers[2] or 1) - 1) if key[2] == "u" and numbers else ""


def _of_code(code: int, modifiers: int) -> str:
    """The usual form of a key that a terminal tells by the code of its character (`CSI u`)."""
    is_shifted, has_alt, has_ctrl = (modifiers & bit for bit in (1, 2, 4))
    if code == ENTER and modifiers:
        return "\x1b\r"
    if code == TAB and is_shifted:
        return "\x1b[Z"
    if code > sys.maxunicode or not (chr(code).isprintable() or code in (TAB, ENTER, ESCAPE, BACKSPACE)):
        return ""
    character = chr(code & 0x1F) if has_ctrl and 0x40 <= code < 0x7F else chr(code)
    return f"\x1b{character}" if has_alt else character


def typed_ahead(terminal: int) -> str:
    """What was typed before there was an input line; the terminal has shown it already. The shell may have left it with
    the carriage returns of the Enter key. Arrows and the like are left out."""
    typed = b""
    while len(typed) < LARGEST_READ and select.select([terminal], [], [], 0)[0]:
        piece = os.read(terminal, LARGEST_READ)  # a terminal of whole lines gives one at a time
        typed += piece
        if not piece:
            break
    text = _ESCAPE_SEQUENCE.sub("", typed.decode("utf-8", "replace"))
    return _CONTROL.sub("", clean_lines(text))
