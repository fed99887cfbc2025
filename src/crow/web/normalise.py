"""Brings parts of a page that HTML has many spellings for into one: code with line numbers, layout tables, callouts,
formulas, tasks.
"""

import re

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString

from crow.web.main_content import CALLOUTS, HEADINGS, Outline, classes_of, outermost

TITLES = frozenset(
    {"admonition-title", "callout-title", "admonition-heading", "alert-title", "markdown-alert-title"},
)
MOST_SPANNED = 50
"""The most rows or columns that a cell is taken to span, whatever it claims."""
_NUMBERS = re.compile(r"[\d\s]*")
_new_tag = BeautifulSoup("", "lxml").new_tag


def normalise(part: Tag) -> None:
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
    """Takes apart a table that only puts things side by side: it has tables in it, or says so."""
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
            rows = span_of(cell, "rowspan")
            for _ in range(span_of(cell, "colspan")):
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
    """Removes emphasis from the signature of a definition, whose own stars it would be confused with. Links stay."""
    for element in term.find_all(["em", "i", "b", "strong"]):
        element.name = "span"


def _cells(table: Tag) -> list[Tag]:
    """The cells of a table, without those of tables within it."""
    found = outermost(table, lambda element: element.name in ("td", "th", "table"))
    return [element for element in found if element.name != "table"]


def span_of(cell: Tag, attribute: str) -> int:
    """How many rows or columns a cell spans."""
    written = str(cell.get(attribute, ""))
    return max(1, min(MOST_SPANNED, int(written))) if re.fullmatch("[0-9]{1,9}", written) else 1


# --- code: its text and its language

_PREFIXES = ("language-", "lang-", "highlight-source-", "highlight-text-", "highlight-", "brush:", "sourcecode-")
_NO_LANGUAGE = frozenset({"none", "default", "text", "plain", "plaintext", "nohighlight"})
_LANGUAGES = frozenset(
    {
        *("bash", "c", "console", "cpp", "csharp", "css", "diff", "dockerfile", "elixir", "erlang", "go", "graphql"),
        *("haskell", "html", "http", "ini", "java", "javascript", "js", "json", "jsx", "kotlin", "lua", "makefile"),
        *("markdown", "nix", "objectivec", "ocaml", "perl", "php", "powershell", "protobuf", "py", "python", "r"),
        *("ruby", "rust", "scala", "scss", "sh", "shell", "sql", "swift", "toml", "ts", "tsx", "typescript", "vim"),
        *("xml", "yaml", "zig"),
    }
)
"""Languages that a class may name without a prefix such as `language-`."""
_LINE_ELEMENTS = frozenset({"div", "p", "li", "ol", "ul", "table", "tbody", "tr", "pre"})
"""What stands on a line of its own, even within code: some pages write each line as one of these."""
_LINE_CLASS = "line"
"""The class of elements that are lines only by the style of the page."""


def code_text(element: Tag) -> str:
    """The text of a piece of code, with its blanks and empty lines."""
    code = _CodeText()
    code.add(element)
    return "".join(code.pieces).strip("\n")


class _CodeText:
    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._at_start = True
        """Whether the next piece begins a line."""
        self._after_element = False
        """Whether an element for a line has just ended."""
        self._in_open_line = False
        """Whether what has just ended is a line by its style only, and has no end of a line in it."""

    def add(self, element: Tag) -> None:
        for node in element.contents:
            if isinstance(node, Tag):
                self._add_tag(node)
            else:
                # Between two elements that are lines already, the end of a line is only the layout of the source.
                self._write(str(node).removeprefix("\n") if self._after_element else str(node))

    def _add_tag(self, element: Tag) -> None:
        if element.name == "br":
            self._write("\n")
        elif element.name in _LINE_ELEMENTS:
            self._write("" if self._at_start else "\n")
            self.add(element)
            self._write("" if self._at_start and element.contents else "\n")
            self._after_element = True
        elif _is_styled_as_line(element):
            self._add_styled_line(element)
        else:
            self.add(element)

    def _add_styled_line(self, element: Tag) -> None:
        """Two styled lines with nothing in between are two lines; most pages write the end of the line as well."""
        if self._in_open_line:
            self._write("\n")
        before = len(self.pieces)
        self.add(element)
        self._in_open_line = len(self.pieces) == before or not self._at_start

    def _write(self, text: str) -> None:
        if text:
            self.pieces.append(text)
            self._at_start = text.endswith("\n")
            self._in_open_line = False
        self._after_element = False


def _is_styled_as_line(element: Tag) -> bool:
    if not element.attrs:
        return False
    style = str(element.get("style", "")).replace(" ", "").lower()
    return "display:block" in style or _LINE_CLASS in element.get_attribute_list("class")


def language(element: Tag) -> str:
    """The language of a piece of code, from a class such as `language-python` on it, within it or around it."""
    around = element.parent
    for candidate in (element.find("code"), element, around, around.parent if around is not None else None):
        if isinstance(candidate, Tag) and (found := _named_by(candidate)):
            return "" if found in _NO_LANGUAGE else found
    return ""


def _named_by(element: Tag) -> str:
    for attribute in ("data-lang", "data-language"):
        if found := str(element.get(attribute, "")):
            return _identifier(found)
    names = [str(name).lower() for name in element.get_attribute_list("class") if name]
    for name in names:
        for prefix in _PREFIXES:
            if name.startswith(prefix) and (found := _identifier(name.removeprefix(prefix))):
                return found
    if element.name in ("code", "pre") or "highlight" in names:
        return next((name for name in names if name in _LANGUAGES), "")
    return ""


def _identifier(name: str) -> str:
    return name.strip().lower()[:30] if re.fullmatch(r"\s*[\w+#.-]+\s*", name) else ""


# --- formulas: what a page writes several times over, for eyes and for machines, is kept once, as TeX

_AROUND = frozenset({"mwe-math-element", "katex", "mathjax"})
"""Classes of what holds a formula in all its spellings."""
_MOST_STEPS_TO_HOLDER = 4
"""The most elements between a formula and the one that holds all its spellings."""
_PICTURES = frozenset({"mwe-math-fallback-image-inline", "mwe-math-fallback-image-display"})
_STYLE = re.compile(r"\{\\(?:displaystyle|textstyle)\s++(.*)\}", re.DOTALL)


def keep_formulas_once(soup: BeautifulSoup) -> None:
    """Writes each formula once, as TeX. Unseen elements are taken out afterwards: the TeX is usually hidden."""
    for formula in outermost(soup, lambda element: element.name == "math"):
        if tex := str(formula.get("alttext", "")) or _annotation(formula):
            _write(_holder(formula), tex)
    for picture in soup.find_all("img"):
        if classes_of(picture) & _PICTURES and (tex := str(picture.get("alt", ""))):
            _write(picture, tex)
    for script in soup.find_all("script"):
        if str(script.get("type", "")).startswith("math/tex") and (tex := script.get_text()):
            _forget_drawing_before(script)
            _write(script, tex)


def _annotation(formula: Tag) -> str:
    found = formula.find("annotation", attrs={"encoding": "application/x-tex"})
    return found.get_text() if isinstance(found, Tag) else ""


def _holder(formula: Tag) -> Tag:
    candidate: Tag | None = formula
    for _ in range(_MOST_STEPS_TO_HOLDER):
        candidate = candidate.parent
        if candidate is None:
            break
        if classes_of(candidate) & _AROUND:
            return candidate
    return formula


def _forget_drawing_before(script: Tag) -> None:
    before = script.find_previous_sibling()
    if isinstance(before, Tag) and classes_of(before) & _AROUND:
        before.clear()


def _write(element: Tag, tex: str) -> None:
    """Writes TeX in the place of an element, so that no list of neighbours has to be searched."""
    styled = _STYLE.fullmatch(tex.strip())
    element.name, element.attrs = "span", {}
    element.string = f"${' '.join((styled[1] if styled else tex).split())}$"


# --- buttons and boxes that are content: they are made what they stand for, before all others are taken out

_MOST_STEPS_TO_ENTRY = 3
"""The most elements between a checkbox and the list entry that it belongs to."""


def keep_controls(soup: BeautifulSoup) -> None:
    outline = Outline(soup)
    for button in soup.find_all("button"):
        if outline.length_of_headings(button):
            button.name = "div"
        elif _is_all_of_a_heading(button, outline):
            button.name = "span"
    for box in soup.find_all("input"):
        if box.get("type") == "checkbox" and _is_of_a_task(box):
            mark = "[x]" if "checked" in box.attrs else "[ ]"
            after = box.next_sibling
            has_gap = isinstance(after, NavigableString) and after[:1].isspace()
            box.name, box.attrs = "span", {}
            box.string = mark if has_gap else f"{mark} "


def _is_all_of_a_heading(button: Tag, outline: Outline) -> bool:
    """Whether a control is all that a heading or a cell holds: then its text is content, as in a section that folds."""
    around = button.parent
    while around is not None and outline.length(around) == outline.length(button) > 0:
        if around.name in HEADINGS or around.name in ("td", "th", "dt", "summary"):
            return True
        if around.name not in ("span", "div", "strong", "b"):
            return False
        around = around.parent
    return False


def _is_of_a_task(box: Tag) -> bool:
    """Whether a box marks a task as done or not, and is no choice that a reader may make."""
    around = box.parent
    for _ in range(_MOST_STEPS_TO_ENTRY):
        if around is None:
            return False
        if around.name == "li":
            names = [*around.get_attribute_list("class"), *(around.parent or around).get_attribute_list("class")]
            return "disabled" in box.attrs or any("task" in str(name) for name in names)
        around = around.parent
    return False
