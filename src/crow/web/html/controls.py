"""Buttons and boxes that are content: they are made what they stand for, before all others are taken out."""

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString

from crow.web.html.outline import HEADINGS, Outline

_MOST_STEPS = 3
"""From a box up to the entry of the list that it belongs to."""


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
    """What folds a section is its heading, and a cell may be a button as a whole."""
    around = button.parent
    while around is not None and outline.length(around) == outline.length(button) > 0:
        if around.name in HEADINGS or around.name in ("td", "th", "dt", "summary"):
            return True
        if around.name not in ("span", "div", "strong", "b"):
            return False
        around = around.parent
    return False


def _is_of_a_task(box: Tag) -> bool:
    """And no choice that a reader may make."""
    around = box.parent
    for _ in range(_MOST_STEPS):
        if around is None:
            return False
        if around.name == "li":
            names = [*around.get_attribute_list("class"), *(around.parent or around).get_attribute_list("class")]
            return "disabled" in box.attrs or any("task" in str(name) for name in names)
        around = around.parent
    return False
