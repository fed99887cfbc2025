"""Makes text of models and files harmless to a terminal (escape sequences, bidirectional overrides), and writes it in
columns and colours, with live lines.

Models, file names and error messages are written by others. A terminal obeys the escape sequences in them, and
bidirectional overrides let one thing look like another; here all of that becomes visible characters. Titles and paths
are stricter, see `crow.visible`: in prose, joiners belong to the spelling of many languages and to emoji.
"""

import contextlib
import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TextIO

from crow.cli.terminal import only_prints_lines, speaks_utf8
from crow.paths import is_inside
from crow.visible import BIDI, CONTROLS, SEPARATORS, SURROGATES, TAGS, one_line

_UNSAFE = re.compile(f"[\f\r{CONTROLS}{SEPARATORS}{BIDI}{SURROGATES}{TAGS}]")
"""What a terminal obeys, or draws in another order or not at all."""

_PLAIN_SIGNS = """
✓ ok    ✗ FAIL   ■ #   █ #   ▸ >    ☐ [ ]   ◐ [~]   ☑ [x]   ─ -   · -   … ...   → ->   • *   ⏎ \\n   ␛ ^[
“ "   ” "   ‘ '   ’ '   – -   — -   × x   ⟨ <   ⟩ >   − -   │ |   ⋮ :   ␍ ^M
⠋ |   ⠙ /   ⠹ -   ⠸ \\   ⠼ |   ⠴ /   ⠦ -   ⠧ \\   ⠇ |   ⠏ /
"""  # noqa: RUF001 -- these are the signs that look like others
PLAIN_SIGNS = {ord(pair[0]): pair[2:] for pair in re.split(r"\s{2,}|\n", _PLAIN_SIGNS.strip())}
"""Our own signs, and the commonest of a model's, for a terminal or a file that is not UTF-8."""


def clean_prose(text: str) -> str:
    """Text of any number of lines, safe to print. Carriage returns are dropped, tabs become spaces."""
    text = text.replace("\r", "").replace("\t", "    ")
    return text if text.isascii() and text.isprintable() else _UNSAFE.sub(_reveal, text)


def clean_answer(text: str) -> str:
    """Text for a file or a program: as it was written, tabs included, but for what could harm a terminal later."""
    text = text.replace("\r", "")
    return text if text.isascii() and text.isprintable() else _UNSAFE.sub(_reveal, text)


def clean_json(text: str) -> str:
    """JSON that means the same, in which whatever a terminal would obey is written as an escape."""
    return text if text.isascii() and "\x7f" not in text else _UNSAFE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    if found[0] in "\f\r":
        return found[0]  # a blank between values: within one it is written as an escape anyway
    halves = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{halves[at : at + 2].hex()}" for at in range(0, len(halves), 2))


def _reveal(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)  # Unicode's pictures of control characters: ␛ for escape
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return f"⟨U+{code:04X}⟩"


def cells(text: str) -> int:
    """How many columns the text takes. Good for nearly all text; nobody knows for every emoji and every font."""
    if text.isascii():
        return len(text)
    return sum(_cells(character) for character in text)


def is_wide(character: str) -> bool:
    return not character.isascii() and unicodedata.east_asian_width(character) in "WF"


def _cells(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if is_wide(character) else 1


def cut(text: str, width: int) -> str:
    """The beginning of the text that fits, with an ellipsis if something is missing."""
    if cells(text) <= width:
        return text
    room = width - 1
    kept = ""
    for character in text:
        room -= _cells(character)
        if room < 0:
            break
        kept += character
    return kept.rstrip() + "…"


def cut_start(text: str, width: int) -> str:
    """The end of the text that fits, with an ellipsis if something is missing: paths differ in their ends."""
    if cells(text) <= width:
        return text
    room, start = width - 1, len(text)
    while start and (room := room - _cells(text[start - 1])) >= 0:
        start -= 1
    return f"…{text[start:]}"


def folded(text: str, width: int) -> list[str]:
    """The text in pieces that fit, cut behind a blank, or where the line is full if it has none but near its start.

    Nothing is lost: the pieces make up the text.
    """
    pieces, room = [""], width
    for character in text:
        size = _cells(character)
        if size > room and pieces[-1]:
            blank = pieces[-1].rfind(" ") + 1
            is_within = blank > len(pieces[-1]) // 4 and character != " " and not pieces[-1][:blank].isspace()
            end = blank if is_within else len(pieces[-1])
            pieces[-1:] = pieces[-1][:end], pieces[-1][end:]
            room = width - cells(pieces[-1])
        pieces[-1] += character
        room -= size
    return pieces


def counted(number: int, thing: str) -> str:
    """`1 line`, `2 lines`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def duration(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min 5 s`; nothing for what nobody notices."""
    if seconds < 0.1:
        return ""
    if seconds < 0.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def short_folder(path: str) -> str:
    """A folder's path for people: that of the person's own folder is `~`."""
    user = os.path.expanduser("~")
    return one_line("~" + path[len(user) :] if user != "/" and is_inside(path, user) else path)


# --- the screen

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
        if not stream.isatty() or only_prints_lines(environment):
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
        """Text that is safe already, see `clean_prose`."""
        self.hide_live()
        if text and self.beside is not None and self.beside.column:
            self.beside.end_line()
            self.beside.flush()
        text = self.shown(text)
        if text and not text.isspace():  # a space looks the same in every style
            self._set_style(style)
        self._stream.write(text)
        _, newline, last = text.rpartition("\n")
        self.column = cells(last) if newline else self.column + cells(text)

    def shown(self, text: str) -> str:
        """Our own signs as this stream can show them."""
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
        text = cut(self.shown(text), room)
        self._set_style(DIM)
        lines = [cut(self.shown(line), self.width - 1) for line in below[: self.height - 2]] if not self.column else []
        back = f"\x1b[{len(lines)}A\r" if lines else f"\x1b[{cells(text)}D"
        # Each line is erased behind its text, and at last what is left below: nothing flickers.
        self._stream.write("\x1b[K\n".join([text, *lines]) + f"\x1b[J{back}")
        self._live_shown = True
        self.flush()

    def end_live(self) -> None:
        """Nothing is being waited for any more."""
        self.hide_live()

    def hide_live(self) -> None:
        if self._live_shown:
            self._live_shown = False
            self._stream.write("\x1b[J")
