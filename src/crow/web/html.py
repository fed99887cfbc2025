"""HTML as Markdown: the main content of a page, with its links, tables and code. Runs in a process of its own."""

from urllib.parse import urljoin

from bs4 import BeautifulSoup, Tag

from crow.web.conversion_job import Converted
from crow.web.html_cleaning import clean, main_part
from crow.web.html_markdown import Markdown, without_blank_runs
from crow.web.html_shapes import reshape

DATES = (
    ("meta[property='article:modified_time']", "content"),
    ("meta[property='article:published_time']", "content"),
    ("meta[name=date]", "content"),
    ("time[datetime]", "datetime"),
)


def html_to_markdown(text: str, url: str) -> Converted:
    soup = BeautifulSoup(text, "lxml")
    title, date = _title(soup), _date(soup)
    base = soup.select_one("base[href]")
    if base is not None:
        url = urljoin(url, str(base["href"]))
    # Of the whole document: where a page leaves <body> out, the parser counts what it does not know to <head>.
    clean(soup)
    part = main_part(soup)
    reshape(part)
    _mend_addresses(part, url)
    return Converted(without_blank_runs(Markdown().convert_soup(part)), title, date)


def _title(soup: BeautifulSoup) -> str:
    for selector, attribute in (("title", None), ("meta[property='og:title']", "content"), ("h1", None)):
        found = soup.select_one(selector)
        if found is not None:
            text = str(found.get(attribute, "")) if attribute else found.get_text(" ", strip=True)
            if text := " ".join(text.split()):
                return text[:300]
    return ""


def _date(soup: BeautifulSoup) -> str:
    for selector, attribute in DATES:
        found = soup.select_one(selector)
        if found is not None and (text := str(found.get(attribute, "")).strip()):
            return text[:40]
    return ""


def _mend_addresses(main: Tag, url: str) -> None:
    """Links that lead somewhere from anywhere; others become plain text."""
    for link in main.select("a"):
        address = _absolute(str(link.get("href", "")), url)
        if address:
            link["href"] = address
            link.attrs.pop("title", None)
        else:
            link.unwrap()
    for picture in main.select("img"):
        address = _absolute(str(picture.get("src", "")), url)
        if address:
            picture["src"] = address
        else:
            picture.replace_with(str(picture.get("alt", "")))


def _absolute(reference: str, url: str) -> str:
    """Empty for what cannot be fetched: scripts, data, places in the same page."""
    if not reference.strip() or reference.startswith("#"):
        return ""
    try:
        address = urljoin(url, reference.strip())
    except ValueError:
        return ""
    return address if address.startswith(("http://", "https://", "mailto:")) else ""
