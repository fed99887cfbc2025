"""HTML as Markdown: the main content of a page, with its links, tables and code. Runs in a process of its own."""

from bs4 import BeautifulSoup

from crow.web.conversion_job import Converted
from crow.web.html.about import about
from crow.web.html.cleaning import clean, main_part
from crow.web.html.formulas import keep_formulas_once
from crow.web.html.instead import instead
from crow.web.html.links import absolute
from crow.web.html.markdown import Markdown, without_blank_runs
from crow.web.html.outline import check_depth
from crow.web.html.shapes import reshape

_MAY_HOLD_CODE = frozenset({"pre", "textarea", "div"})
"""Where the parser must not make one blank of many, as it is code only by its class."""


def html_to_markdown(text: str, url: str) -> Converted:
    """RecursionError if it is nested too deeply."""
    soup = BeautifulSoup(text, "lxml", preserve_whitespace_tags=_MAY_HOLD_CODE)
    check_depth(soup)
    page = about(soup)
    # Of the whole document: where a page leaves <body> out, the parser counts what it does not know to <head>.
    keep_formulas_once(soup)
    clean(soup)
    part = main_part(soup)
    reshape(part)
    base = absolute(page.base, url) or url
    found, note = instead(page, without_blank_runs(Markdown(base).convert_soup(part)), base)
    return Converted(found, page.title, page.date, note)
