"""Wraps a model's streaming text at words and styles its Markdown for a terminal: headings, bold, code, tables.

Nothing is printed twice, so what is not decided yet is held back: the word that may still grow, the `**` whose end
may still come. Everything is shown in the end; markers whose other half never came are shown as they are.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Protocol

from crow.cli.render_inline import pieces, span_length
from crow.cli.render_screen import BOLD, DIM, HEADING, Screen, cells, clean_prose, folded, is_wide

LONGEST_SPAN = 400
"""Characters after which the start of something, such as an opened `**`, is taken for plain text."""

PIECE = 2048
CODE_INDENT = "  "
MOST_ROWS = 500
"""Rows of a table that are laid out together."""


class Prose(Protocol):
    """Takes text in any pieces; `end` shows what was held back."""

    @property
    def held(self) -> str:
        """What was held back of what is being written: safe to print, with the blanks or line ends before it."""
        ...

    def feed(self, text: str) -> None: ...

    def end(self) -> None: ...


def prose(screen: Screen, *, first: str = "", rest: str = "", style: str = "", markdown: bool = True) -> Prose:
    """How text is best shown on this screen, with `first` before it and `rest` before each further line."""
    wrapped = Wrapped(screen, first, rest, style)
    if not markdown or screen.width is None:  # a file gets the text as it was written
        return wrapped
    # Without colours the markers are all that is left of the emphasis.
    return Markdown(wrapped, keep_markers=not screen.colours)


class Wrapped:
    """Breaks lines between words where the screen ends. Keeps every line break of the text; drops outer blank lines."""

    def __init__(self, screen: Screen, first: str = "", rest: str = "", style: str = "") -> None:
        self._screen = screen
        self._prefix = first
        self._indent = rest
        self._style = style
        self.hanging = ""
        """What further lines of a list item begin with, after the indent."""
        self._word: list[tuple[str, str]] = []
        self._spaces = ""
        self._breaks = 0
        self._begun = False

    @property
    def width(self) -> int:
        """Columns that there are for text."""
        return (self._screen.width or 100) - cells(self._indent)

    @property
    def held(self) -> str:
        return self.held_with("")

    def held_with(self, text: str) -> str:
        """What is held here and text that will follow it, with the line ends that wait for something to follow."""
        words = self._spaces + "".join(piece for piece, _ in self._word) + text
        return "\n" * self._breaks + self._indent + words if self._begun and self._breaks and words.strip() else words

    def feed(self, text: str) -> None:
        self.add(clean_prose(text))

    def add(self, text: str, style: str = "", *, wrap: bool = True) -> None:
        """Text that is clean already, in a style of its own."""
        for piece in re.findall(r"\n|[^\S\n]+|\S+", text):
            if piece == "\n":
                self.break_line()
            elif piece.isspace():
                self._finish_word(wrap=wrap)
                self._spaces += piece
            elif wrap and not piece.isascii():
                self._add_unspaced(piece, style)
            else:
                self._word.append((piece, style))
        if not wrap:
            self._finish_word(wrap=False)

    def break_line(self) -> None:
        self._finish_word()
        self._spaces = ""
        self._breaks += 1
        self.hanging = ""

    def end(self) -> None:
        self._finish_word()

    def _add_unspaced(self, piece: str, style: str) -> None:
        """Chinese and Japanese have no spaces: a line may end after each of their characters."""
        run = ""
        for character in piece:
            run += character
            if is_wide(character):
                self._word.append((run, style))
                self._finish_word()
                run = ""
        if run:
            self._word.append((run, style))

    def _finish_word(self, *, wrap: bool = True) -> None:
        if not self._word:
            return
        self._begin_line()
        size = sum(cells(text) for text, _ in self._word)
        width = self._screen.width
        at_start = self._screen.column <= cells(self._indent + self.hanging)
        if wrap and width and not at_start and self._screen.column + len(self._spaces) + size > width:
            self._screen.write("\n" + self._indent + self.hanging)
        else:
            self._screen.write(self._spaces)
        for text, style in self._word:
            self._screen.write(text, style or self._style)
        self._word.clear()
        self._spaces = ""

    def _begin_line(self) -> None:
        if not self._begun:
            self._begun = True
            self._screen.end_line()
            self._screen.write(self._prefix, self._style)
        elif self._breaks:
            self._screen.write("\n" * self._breaks + self._indent)
        self._breaks = 0


class Markdown:
    """Headings, bold, inline code, fenced code, bullets, tables. Everything else passes through as it is."""

    _UNDECIDED_START = re.compile(r" *(#{1,6}|`{1,2}|~{1,2}|([-*+]|\d{1,3}\.) *|\d{1,3})?| {0,3}(`{3,}|~{3,})[^\n]*")
    _FENCE = re.compile(r" {0,3}(`{3,}+|~{3,}+)[^`\n]*\n")
    _HEADING = re.compile(r" {0,3}#{1,6} +")
    _ITEM = re.compile(r"( *)([-*+]|\d{1,3}\.) ++(?=\S)")
    _ROW = re.compile(r" {0,3}\|")
    _PLAIN = re.compile(r"[^`*\n]+")
    _MARKER = re.compile(r"`+|\*+")

    def __init__(self, out: Wrapped, *, keep_markers: bool = False) -> None:
        self._out = out
        self._keep_markers = keep_markers
        self._held = ""
        self._before = ""
        """The character before what is held, on its line."""
        self._fence = ""
        """The marker that ends the fenced code we are in."""
        self._rows: list[str] = []
        """The lines of the table that we are in, which is laid out when it is complete."""
        self._line_style = ""
        self._at_start = True

    @property
    def held(self) -> str:
        line = self._held.rpartition("\n")[2]
        return self._out.held_with(CODE_INDENT + line if line and self._fence else line)

    def feed(self, text: str) -> None:
        for start in range(0, len(text), PIECE):  # what is held stays short, so that taking from its front stays cheap
            self._held += clean_prose(text[start : start + PIECE])
            self._advance(final=False)

    def end(self) -> None:
        self._advance(final=True)
        self._end_table()
        self._out.end()

    def _advance(self, *, final: bool) -> None:
        decided = True
        while self._held and decided:
            if self._fence:
                decided = self._code_line(final=final)
            elif self._rows or (self._at_start and self._ROW.match(self._held)):
                decided = self._row(final=final)
            elif self._at_start:
                decided = self._line_start(final=final)
            else:
                decided = self._inline(final=final)

    # Each of these takes something from the front of what is held, or says that it has to wait for more.

    def _code_line(self, *, final: bool) -> bool:
        end = self._held.find("\n")
        if end < 0 and not final:
            return False
        line = self._take(end + 1 if end >= 0 else len(self._held)).removesuffix("\n")
        ends = line.strip().startswith(self._fence) and not line.strip(f" {self._fence[0]}")
        if ends:
            self._fence = ""
        if not ends or self._keep_markers:
            self._code(line)
        return True

    def _row(self, *, final: bool) -> bool:
        if not self._ROW.match(self._held):
            if not final and not self._held.strip(" "):
                return False
            self._end_table()
            return True
        end = self._held.find("\n")
        if end < 0 and not final:
            return False
        self._rows.append(self._take(end + 1 if end >= 0 else len(self._held)).removesuffix("\n"))
        if len(self._rows) == MOST_ROWS or (len(self._rows) == 2 and not is_table(self._rows)):
            self._end_table()
        return True

    def _end_table(self) -> None:
        """Lays out what was held back, or passes it through if it is no table."""
        rows, self._rows = self._rows, []
        if not is_table(rows):
            for row in rows:
                self._out.add(row)
                self._out.break_line()
            return
        for line, style in laid_out(rows, self._out.width, keep_markers=self._keep_markers):
            self._out.add(line, style, wrap=False)
            self._out.break_line()

    def _line_start(self, *, final: bool) -> bool:
        if not final and len(self._held) < LONGEST_SPAN and self._UNDECIDED_START.fullmatch(self._held):
            return False
        if fence := self._FENCE.match(self._held + "\n" if final else self._held):
            self._fence = fence[1]
            line = self._take(fence.end())
            if self._keep_markers:
                self._code(line.removesuffix("\n"))
            return True
        self._at_start = False
        if heading := self._HEADING.match(self._held):
            self._line_style = HEADING
            marker = self._take(heading.end())
            if self._keep_markers:
                self._out.add(marker, HEADING)
        elif item := self._ITEM.match(self._held):
            self._take(item.end())
            mark = item[2] if item[2][0].isdigit() or self._keep_markers else "•"
            self._out.add(f"{item[1]}{mark} ")
            self._out.hanging = " " * (len(item[1]) + len(mark) + 1)
        return True

    def _inline(self, *, final: bool) -> bool:
        if self._held[0] == "\n":
            self._take(1)
            self._out.break_line()
            self._line_style = ""
            self._at_start = True
            return True
        if plain := self._PLAIN.match(self._held):
            self._out.add(self._take(plain.end()), self._line_style)
            return True
        return self._span(final=final)

    def _span(self, *, final: bool) -> bool:
        marker = self._MARKER.match(self._held)
        length = marker.end() if marker else 1
        if length == len(self._held) and not final:
            return False  # more of the same may follow
        line, ended, _ = self._held[:LONGEST_SPAN].partition("\n")
        is_code = line[0] == "`"
        span = span_length(line, self._before)
        if span and (final or span < len(self._held)):
            for piece in pieces(self._take(span), self._line_style, keep_markers=self._keep_markers):
                self._out.add(*piece)
            return True
        may_be_span = is_code or (length == 2 and not line[2:3].isspace())
        if may_be_span and not final and not ended and len(self._held) < LONGEST_SPAN:
            return False
        self._out.add(self._take(length), self._line_style)
        return True

    def _code(self, line: str) -> None:
        self._out.add(CODE_INDENT + line, DIM, wrap=False)
        self._out.break_line()

    def _take(self, length: int) -> str:
        taken, self._held = self._held[:length], self._held[length:]
        self._before = taken[-1:].strip("\n")
        return taken


# --- tables, laid out in columns

GAP = "  "
NARROWEST = 6
"""Columns of text that are left to a cell, however little room there is."""

_DASHES = re.compile(r":?-+:?")
_BORDER = re.compile(r"(?<!\\)\|")


def is_table(rows: Sequence[str]) -> bool:
    """Whether lines are a table: the second one, made of dashes, says so."""
    if len(rows) < 2:
        return False
    cells = rows[1].strip().removeprefix("|").removesuffix("|").split("|")
    return all(_DASHES.fullmatch(cell.strip()) for cell in cells)


def laid_out(rows: Sequence[str], width: int, *, keep_markers: bool) -> Iterator[tuple[str, str]]:
    """Lines with their styles: the headings, a rule, the rows. What does not fit into its column goes on below."""
    head, delimiter, *body = (_split(row, keep_markers=keep_markers) for row in rows)
    columns = max(map(len, (head, delimiter, *body)))
    table = [[*row, *[""] * (columns - len(row))] for row in (head, *body)]
    right = [len(cell) > 1 and cell.endswith(":") and not cell.startswith(":") for cell in delimiter]
    right += [False] * (columns - len(right))
    widths = _fitting([max(cells(row[column]) for row in table) for column in range(columns)], width)
    for number, row in enumerate(table):
        for line in zip_longest(*(_wrapped(cell, size) for cell, size in zip(row, widths, strict=True)), fillvalue=""):
            padded = (_padded(*place) for place in zip(line, widths, right, strict=True))
            yield GAP.join(padded).rstrip(), BOLD if number == 0 else ""
        if number == 0:
            yield GAP.join("─" * size for size in widths), DIM


def _split(row: str, *, keep_markers: bool) -> list[str]:
    parts = _BORDER.split(row.strip())
    inner = parts[1 if not parts[0].strip() else 0 : -1 if len(parts) > 1 and not parts[-1].strip() else None]
    texts = (part.strip().replace("\\|", "|") for part in inner)
    return ["".join(piece for piece, _ in pieces(text, keep_markers=keep_markers)) for text in texts]


def _fitting(widths: list[int], room: int) -> list[int]:
    """The widest columns give way until all of them fit."""
    widths = list(widths)
    room -= len(GAP) * (len(widths) - 1)
    while (excess := sum(widths) - room) > 0:
        widest = max(widths)
        if widest <= NARROWEST:
            break
        second = max((width for width in widths if width < widest), default=NARROWEST)
        wide = [column for column, width in enumerate(widths) if width == widest]
        less = min(widest - max(second, NARROWEST), -(-excess // len(wide))) or 1
        for column in wide:
            widths[column] -= less
    return widths


def _wrapped(cell: str, width: int) -> list[str]:
    """Lines of at most so many columns, broken between words where there are any."""
    if cells(cell) <= width:
        return [cell]
    lines = [""]
    for word in cell.split():
        if cells(lines[-1]) + 1 + cells(word) <= width and lines[-1]:
            lines[-1] += f" {word}"
            continue
        first, *rest = folded(word, width)
        lines += [first, *rest]
    return [line for line in lines if line] or [""]


def _padded(text: str, width: int, to_the_right: bool) -> str:
    padding = " " * (width - cells(text))
    return padding + text if to_the_right else text + padding
