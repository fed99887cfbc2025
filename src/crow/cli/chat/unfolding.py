"""Shows a folded output of `crow chat` in full, in rows of its own that can be scrolled, until it is folded again."""

from collections.abc import Sequence

from crow.cli.chat.transcript import Fold
from crow.cli.render import UNFOLD
from crow.cli.render_screen import BOLD, DIM, cells, cut, folded

Row = tuple[str, str]
"""A style and a text."""


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
        return [(BOLD, cut(self.current.title, width)), (DIM, self._keys(width, len(lines))), *shown]

    def _keys(self, width: int, count: int) -> str:
        """Which lines are shown, and as many of the keys as there is room for."""
        place = f"{self._top + 1}-{self._top + self._page} of {count}"
        others = f" · ←→ {self._number + 1} of {len(self._folds)}" if len(self._folds) > 1 else ""
        forms = (
            f"{place} · ↑↓ PgUp PgDn{others} · Enter prints it · {UNFOLD} folds",
            f"{place}{others} · Enter prints it · {UNFOLD} folds",
            f"{place}{others} · {UNFOLD} folds",
        )
        return next((form for form in forms if cells(form) <= width), cut(forms[-1], width))

    def _lines(self, width: int) -> list[Row]:
        number, at_width, lines = self._laid_out
        if (number, at_width) != (self._number, width):
            lines = [(style, piece) for text, style in self.current.lines for piece in folded(text, width)]
            self._laid_out = (self._number, width, lines)
        return lines
