"""HTML as Markdown: the main content of a page, with its links, tables and code. Runs in a process of its own."""

from urllib.parse import urljoin

from bs4 import BeautifulSoup, Comment, Tag
from markdownify import MarkdownConverter

from crow.web.converted import Converted, OutOfTime

NO_CONTENT = (
    "script, style, noscript, template, svg, canvas, iframe, object, embed, audio, video, dialog, "
    "title, meta, link, base"
)
AROUND_IT = (
    "nav, aside, footer, form, button, select, input, textarea, menu, [role=navigation], [role=banner], [role=search]"
)
UNSEEN = "[hidden], [aria-hidden=true]"
MAIN = "main, article, [role=main]"
SHARE_OF_MAIN = 1 / 3
"""A part of the page is its main content only if it has at least this much of the text."""
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
    _clean(soup)
    main = _main(soup)
    _mend_addresses(main, url)
    try:
        markdown = _Markdown().convert_soup(main)
    except (RecursionError, OutOfTime):
        note = "too intricate: given as plain text, without links and headings"
        return Converted(main.get_text("\n", strip=True), title, date, note)
    return Converted(_without_blank_runs(markdown), title, date)


class _Markdown(MarkdownConverter):
    """Its options, and the language of code where the page names it."""

    def __init__(self) -> None:
        super().__init__(
            heading_style="ATX",
            bullets="-",
            escape_asterisks=False,
            escape_underscores=False,
            escape_misc=False,
            code_language_callback=_language,
        )


def _language(element: Tag) -> str:
    """Of a piece of code, from a class such as `language-python` on it, within it or around it."""
    around = element.parent
    for candidate in (element, element.find("code"), around, around.parent if around is not None else None):
        if not isinstance(candidate, Tag):
            continue
        for name in candidate.get_attribute_list("class"):
            for prefix in ("language-", "lang-", "highlight-source-"):
                if name and str(name).startswith(prefix):
                    return str(name).removeprefix(prefix)[:30]
    return ""


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


def _clean(body: Tag) -> None:
    """Takes out what is no content, and what a reader of the page would not see."""
    for comment in body.find_all(string=lambda string: isinstance(string, Comment)):
        comment.extract()
    for element in body.select(f"{NO_CONTENT}, {AROUND_IT}, {UNSEEN}"):
        element.extract()
    for element in body.select("[style]"):
        style = str(element["style"]).replace(" ", "").lower()
        if "display:none" in style or "visibility:hidden" in style:
            element.extract()
    for header in body.select("header"):
        if header.find_parent(("article", "main")) is None and header.find("h1") is None:
            header.extract()


def _main(body: Tag) -> Tag:
    whole = _length(body)
    candidates = [(element, _length(element)) for element in body.select(MAIN)[:50]]
    longest = max(candidates, key=lambda candidate: candidate[1], default=None)
    if longest is None or longest[1] < whole * SHARE_OF_MAIN or not longest[1]:
        return body
    return longest[0]


def _length(element: Tag) -> int:
    return sum(len(text) for text in element.stripped_strings)


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


def _without_blank_runs(text: str) -> str:
    lines: list[str] = []
    for line in text.split("\n"):
        kept = line.rstrip()
        if kept or (lines and lines[-1]):
            lines.append(kept)
    return "\n".join(lines).strip("\n")
