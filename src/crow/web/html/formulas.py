"""Formulas: what a page writes several times over, for eyes and for machines, is kept once, as TeX."""

import re

from bs4 import BeautifulSoup, Tag

from crow.web.html.outline import outermost

_AROUND = frozenset({"mwe-math-element", "katex", "mathjax"})
"""Classes of what holds a formula in all its spellings."""
_MOST_STEPS = 4
"""From a formula up to what holds it."""
_PICTURES = frozenset({"mwe-math-fallback-image-inline", "mwe-math-fallback-image-display", "tex", "latex"})
_STYLE = re.compile(r"\{\\(?:displaystyle|textstyle)\s+(.*)\}", re.DOTALL)


def keep_formulas_once(soup: BeautifulSoup) -> None:
    """Before what cannot be seen is taken out: the spelling for machines usually is hidden."""
    for formula in outermost(soup, lambda element: element.name == "math"):
        if tex := str(formula.get("alttext", "")) or _annotation(formula):
            _write(_holder(formula), tex)
    for picture in soup.find_all("img"):
        if _classes(picture) & _PICTURES and (tex := str(picture.get("alt", ""))):
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
    for _ in range(_MOST_STEPS):
        candidate = candidate.parent
        if candidate is None:
            break
        if _classes(candidate) & _AROUND or candidate.name == "mjx-container":
            return candidate
    return formula


def _forget_drawing_before(script: Tag) -> None:
    before = script.find_previous_sibling()
    if isinstance(before, Tag) and (before.name == "mjx-container" or _classes(before) & _AROUND):
        before.clear()


def _write(element: Tag, tex: str) -> None:
    """In its place, so that no list of neighbours has to be searched."""
    styled = _STYLE.fullmatch(tex.strip())
    element.name, element.attrs = "span", {}
    element.string = f"${' '.join((styled[1] if styled else tex).split())}$"


def _classes(element: Tag) -> set[str]:
    return {str(name).lower() for name in element.get_attribute_list("class") if name}
