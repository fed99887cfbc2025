"""Markdown's tables, laid out in columns."""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from crow.cli.render_screen import BOLD, DIM
from crow.cli.render_text import cells, folded

GAP = "  "
NARROWEST = 6
"""Columns of text that are left to a cell, however little room there is."""

_DELIMITER = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*")
_BORDER = re.compile(r"(?<!\\)\|")
_MARKERS = re.compile(r"`+|\*\*")


def is_table(rows: Sequence[str]) -> bool:
    """Whether lines are a table: the second one, made of dashes, says so."""
    return len(rows) > 1 and _DELIMITER.fullmatch(rows[1]) is not None


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
    return [text if keep_markers else _MARKERS.sub("", text) for text in texts]


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
