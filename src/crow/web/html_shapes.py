"""Parts of a page that HTML has many spellings for, brought into the one that becomes good Markdown."""

import re

from bs4 import BeautifulSoup, Tag

from crow.web.html_cleaning import CALLOUTS, classes_of, length

TITLES = ".admonition-title, .callout-title, .admonition-heading, .alert-title, .markdown-alert-title"
MOST_SPANNED = 50
"""Rows or columns of a cell that are believed."""


def reshape(part: Tag) -> None:
    _code_beside_line_numbers(part)
    _layout_tables(part)
    _spanning_cells(part)
    _callouts(part)
    _signatures(part)


def _code_beside_line_numbers(part: Tag) -> None:
    """A table with the numbers in one cell and the code in another is that code."""
    for table in part.select("table"):
        codes = table.select("pre")
        if len(codes) == 1 and length(table) == length(codes[0]):
            table.replace_with(codes[0])


def _layout_tables(part: Tag) -> None:
    """Tables that only put things side by side: those with tables in them, and those that say so."""
    for table in part.select("table"):
        if table.get("role") in ("presentation", "none") or table.find("table") is not None:
            for element in table.find_all(["tr", "td", "th", "tbody", "thead", "tfoot"]):
                if element.find_parent("table") is table:
                    element.name = "div"
            table.name = "div"


def _spanning_cells(part: Tag) -> None:
    """A cell that spans rows leaves a place in each of them: it is filled, so that the columns stay in line."""
    for table in part.select("table:has([rowspan])"):
        carried: dict[int, int] = {}
        for row in table.select("tr"):
            cells = row.find_all(["td", "th"], recursive=False)
            column = 0
            while cells or carried.get(column):
                if carried.get(column):
                    carried[column] -= 1
                    empty = BeautifulSoup("", "lxml").new_tag("td")
                    cells[0].insert_before(empty) if cells else row.append(empty)
                    column += 1
                    continue
                cell = cells.pop(0)
                rows = number(cell, "rowspan")
                for _ in range(number(cell, "colspan")):
                    carried[column] = rows - 1
                    column += 1


def _callouts(part: Tag) -> None:
    """Notes and warnings as quotations, with their title in bold."""
    for element in part.select("div, aside"):
        title = element.select_one(TITLES) if classes_of(element) & CALLOUTS else None
        if title is None:
            continue
        element.name = "blockquote"
        text = title.get_text(" ", strip=True)
        title.clear()
        title.name = "p"
        bold = BeautifulSoup("", "lxml").new_tag("strong")
        bold.string = text
        title.append(bold)


def _signatures(part: Tag) -> None:
    """What is defined is written with stars of its own: no further ones for emphasis. Links stay."""
    for element in part.select("dt.sig em, dt.sig i, dt.sig b, dt.sig strong"):
        element.unwrap()


def number(cell: Tag, attribute: str) -> int:
    """How many rows or columns a cell spans."""
    written = str(cell.get(attribute, ""))
    return max(1, min(MOST_SPANNED, int(written))) if re.fullmatch("[0-9]{1,9}", written) else 1
