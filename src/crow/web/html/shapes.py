"""Parts of a page that HTML has many spellings for, brought into the one that becomes good Markdown."""

import re

from bs4 import BeautifulSoup, Tag

from crow.web.html.cleaning import CALLOUTS, classes_of
from crow.web.html.code import code_text
from crow.web.html.outline import outermost

TITLES = frozenset(
    {"admonition-title", "callout-title", "admonition-heading", "alert-title", "markdown-alert-title"},
)
MOST_SPANNED = 50
"""Rows or columns of a cell that are believed."""
_NUMBERS = re.compile(r"[\d\s]*")
_new_tag = BeautifulSoup("", "lxml").new_tag


def reshape(part: Tag) -> None:
    for element in part.find_all("div", class_="fragment"):
        _lines_of_code(element)
    for table in part.find_all("table"):
        if table.find_parent("pre") is None:
            _code_beside_line_numbers(table)
    for table in part.find_all("table"):
        _layout_table(table)
    for table in part.find_all("table"):
        _spanning_cells(table)
    for element in part.find_all(["div", "aside"]):
        _callout(element)
    for term in part.find_all("dt", class_="sig"):
        _signature(term)


def _lines_of_code(element: Tag) -> None:
    """Doxygen writes code as nothing but lines, each in an element of its own."""
    children = [child for child in element.contents if isinstance(child, Tag)]
    if children and all("line" in classes_of(child) for child in children):
        element.name = "pre"


def _code_beside_line_numbers(table: Tag) -> None:
    """A table of numbers and code is that code: all of it in one cell, or each line in its own."""
    cells = _cells(table)
    codes = [cell for cell in cells if not _NUMBERS.fullmatch(cell.get_text())]
    if len(codes) == 1:
        code = codes[0].find("pre")
        if isinstance(code, Tag) and code.get_text(strip=True) == codes[0].get_text(strip=True):
            table.replace_with(code)
        return
    rows = [_cells(row) for row in outermost(table, lambda element: element.name in ("tr", "table"))]
    if len(rows) > 1 and all(len(row) == 2 and _is_numbered_line(row[0], row[1]) for row in rows):
        code = _new_tag("pre")
        code.string = "\n".join(code_text(line) for _, line in rows)
        table.replace_with(code)


def _is_numbered_line(number: Tag, line: Tag) -> bool:
    written = str(number.get("data-line-number", "")) or number.get_text(strip=True)
    is_code = line.find("pre") is not None or any("code" in name for name in classes_of(line))
    return is_code and written.isdecimal()


def _layout_table(table: Tag) -> None:
    """One that only puts things side by side: it has tables in it, or says so."""
    if table.get("role") in ("presentation", "none") or table.find("table") is not None:
        for name in ("tr", "td", "th", "tbody", "thead", "tfoot"):
            for element in outermost(table, lambda element, name=name: element.name in (name, "table")):
                if element.name == name:
                    element.name = "div"
        table.name = "div"


def _spanning_cells(table: Tag) -> None:
    """A cell that spans rows leaves a place in each of them: it is filled, so that the columns stay in line."""
    if not any("rowspan" in cell.attrs for cell in _cells(table)):
        return
    carried: dict[int, int] = {}
    for row in table.find_all("tr"):
        cells = row.find_all(["td", "th"], recursive=False)
        column = 0
        while cells or carried.get(column):
            if carried.get(column):
                carried[column] -= 1
                empty = _new_tag("td")
                cells[0].insert_before(empty) if cells else row.append(empty)
                column += 1
                continue
            cell = cells.pop(0)
            rows = number(cell, "rowspan")
            for _ in range(number(cell, "colspan")):
                carried[column] = rows - 1
                column += 1


def _callout(element: Tag) -> None:
    """Notes and warnings are quotations, with their title in bold."""
    if not classes_of(element) & CALLOUTS:
        return
    title = element.find(lambda within: bool(classes_of(within) & TITLES))
    if isinstance(title, Tag):
        text = title.extract().get_text(" ", strip=True)
    elif element.name == "aside":
        text = " ".join(str(element.get("aria-label", "")).split())
    else:
        return
    element.name = "blockquote"
    if text:
        paragraph, bold = _new_tag("p"), _new_tag("strong")
        bold.string = text
        paragraph.append(bold)
        element.insert(0, paragraph)


def _signature(term: Tag) -> None:
    """What is defined is written with stars of its own: no further ones for emphasis. Links stay."""
    for element in term.find_all(["em", "i", "b", "strong"]):
        element.name = "span"


def _cells(table: Tag) -> list[Tag]:
    """But not those of tables within it."""
    found = outermost(table, lambda element: element.name in ("td", "th", "table"))
    return [element for element in found if element.name != "table"]


def number(cell: Tag, attribute: str) -> int:
    """How many rows or columns a cell spans."""
    written = str(cell.get(attribute, ""))
    return max(1, min(MOST_SPANNED, int(written))) if re.fullmatch("[0-9]{1,9}", written) else 1
