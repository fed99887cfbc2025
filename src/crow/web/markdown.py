"""Converts an HTML page to Markdown (links, tables, code), with its title and date, or says why it is empty. Runs in a
process of its own.
"""

import re
from urllib.parse import quote, urljoin

import msgspec
from bs4 import BeautifulSoup, Tag
from markdownify import MarkdownConverter

from crow.visible import fence
from crow.web.conversion_process import Converted
from crow.web.main_content import check_depth, main_part, take_out_surroundings, take_out_unseen
from crow.web.normalise import code_text, keep_controls, keep_formulas_once, language, normalise, span_of

_MAY_HOLD_CODE = frozenset({"pre", "textarea", "div"})
"""Where the parser must not make one blank of many, as it is code only by its class."""


def html_to_markdown(text: str, url: str) -> Converted:
    """Converts an HTML page to Markdown with its title and date. Raises RecursionError if it is nested too deeply."""
    soup = BeautifulSoup(text, "lxml", preserve_whitespace_tags=_MAY_HOLD_CODE)
    check_depth(soup)
    page = read_metadata(soup)
    # Of the whole document: where a page leaves <body> out, the parser counts what it does not know to <head>.
    keep_formulas_once(soup)
    take_out_unseen(soup)
    keep_controls(soup)
    take_out_surroundings(soup)
    part = main_part(soup)
    normalise(part)
    base = absolute_url(page.base, url) or url
    found, note = explain_empty_page(page, _without_blank_runs(_Converter(base).convert_soup(part)), base)
    return Converted(found, page.title, page.date, note)


# --- what a page says of itself

_DATES = ("article:modified_time", "article:published_time", "date", "time")
_DESCRIPTIONS = ("description", "og:description", "twitter:description")
_PLACES_OF_TITLES = frozenset({"head", "body", "html", "[document]"})
"""The elements in which a <title> is the page's: pictures in a page have titles of their own."""
_REFRESH = re.compile(r"\s*(?:[\d.]+\s*)?(?:[;,]\s*)?url\s*=\s*[\"']?\s*([^\"']+)", re.IGNORECASE)
_MOST_FRAMES = 10


class PageMetadata(msgspec.Struct, frozen=True):
    """What a page says of itself."""

    title: str
    date: str
    base: str
    """The address that the page's links are relative to, where that is not the page's own."""
    description: str
    without_scripts: str
    """The text of the page for browsers that run no scripts."""
    has_scripts: bool
    refresh: str
    """The address that the page sends its readers on to, by a refresh."""
    frames: tuple[str, ...]
    """The addresses of the pages in this page's frames."""


def read_metadata(soup: BeautifulSoup) -> PageMetadata:
    found: dict[str, str] = {}
    """The text of the first element of each kind."""
    frames: list[str] = []
    has_scripts = False
    for element in soup.descendants:
        if not isinstance(element, Tag):
            continue
        has_scripts = has_scripts or element.name == "script"
        if element.name == "frame" and (source := str(element.get("src", ""))):
            frames.append(source)
        if (kind := _kind(element)) and kind not in found:
            text = " ".join(_text(element).split())
            if text:
                found[kind] = text
    title = found.get("title") or found.get("og:title") or found.get("h1") or ""
    date = next((found[kind] for kind in _DATES if kind in found), "")
    refresh = _REFRESH.match(found.get("refresh", ""))
    return PageMetadata(
        title[:300],
        date[:40],
        found.get("base", ""),
        next((found[kind] for kind in _DESCRIPTIONS if kind in found), "")[:2000],
        found.get("noscript", "")[:2000],
        has_scripts,
        refresh[1] if refresh else "",
        tuple(frames[:_MOST_FRAMES]),
    )


def _kind(element: Tag) -> str:
    match element.name:
        case "meta" if str(element.get("http-equiv", "")).lower() == "refresh":
            return "refresh"
        case "meta":
            return str(element.get("property", "") or element.get("name", ""))
        case "title":
            return "title" if element.parent is None or element.parent.name in _PLACES_OF_TITLES else ""
        case "h1" | "time" | "base" | "noscript":
            return element.name
        case _:
            return ""


def _text(element: Tag) -> str:
    match element.name:
        case "meta":
            return str(element.get("content", ""))
        case "time":
            return str(element.get("datetime", ""))
        case "base":
            return str(element.get("href", ""))
        case _:
            return element.get_text(" ", strip=True)


NEARLY_EMPTY = 200
"""Characters of text below which a page counts as empty."""


def explain_empty_page(page: PageMetadata, text: str, url: str) -> tuple[str, str]:
    """The text with what the page says of itself, and a remark of our own; both are for the model."""
    if len(text) >= NEARLY_EMPTY:
        return text, ""
    if (target := absolute_url(page.refresh, url)) and target != url:
        return text, f"the page redirects to {target}: fetch that"
    if frames := [frame for frame in (absolute_url(source, url) for source in page.frames) if frame]:
        return text, f"the page is made of frames: fetch {' or '.join(frames)}"
    if not page.has_scripts or (text and not (page.without_scripts and page.description)):
        return text, ""  # a short page may well be meant to be short
    pieces = [text]
    if page.description:
        pieces.append(f"Its description says: {page.description}")
    if page.without_scripts:
        pieces.append(f"Without JavaScript it says: {page.without_scripts}")
    return "\n\n".join(piece for piece in pieces if piece), "the page needs JavaScript, which Crow does not run"


# --- links, written so that they lead there from anywhere

_TO_ENCODE = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029\\<>\"]")
"""What ends an address in Markdown, or what `web_fetch` refuses in one."""


def absolute_url(reference: str, url: str) -> str:
    """The whole address of a link; empty for what cannot be fetched: scripts, data, places in the same page."""
    reference = reference.strip()
    if not reference or reference.startswith("#"):
        return ""
    try:
        address = urljoin(url, reference)
    except ValueError:
        return ""
    if not address.startswith(("http://", "https://", "mailto:")):
        return ""
    return _TO_ENCODE.sub(lambda character: quote(character[0]), address)


# --- from a cleaned part of a page to Markdown

_FENCE = re.compile(r"[\s>:-]*(?:\d+\.\s+)?(`{3,})")
_BLANKS = re.compile(r"\s+")


class _Converter(MarkdownConverter):
    """Converts elements to Markdown: code in fences that it cannot end, with its language; cells within their row."""

    def __init__(self, url: str) -> None:
        """The address that links start from."""
        super().__init__(
            heading_style="ATX",
            bullets="-",
            escape_asterisks=False,
            escape_underscores=False,
            escape_misc=False,
        )
        self._url = url

    def convert_a(self, element: Tag, text: str, parent_tags: set[str]) -> str:
        """A link as Markdown, or as its text alone where its address cannot be fetched."""
        address = absolute_url(str(element.get("href", "")), self._url)
        if not address or not text.strip() or "_noformat" in parent_tags:
            return text
        words = text.strip()
        before, after = _gap(text[: len(text) - len(text.lstrip())]), _gap(text[len(text.rstrip()) :])
        if "\n\n" in words:  # headings and paragraphs, which no brackets can hold
            return f"{before}{words}\n\n<{address}>\n\n"
        return f"{before}<{address}>{after}" if words == address else f"{before}[{words}]({address}){after}"

    def convert_img(self, element: Tag, text: str, parent_tags: set[str]) -> str:
        address = absolute_url(str(element.get("src", "")), self._url)
        alternative = str(element.get("alt", ""))
        return f"![{alternative}]({address})" if address and "_inline" not in parent_tags else alternative

    def convert_pre(self, element: Tag, text: str, parent_tags: set[str]) -> str:
        code = code_text(element)
        if not code.strip():
            return ""
        if parent_tags & {"td", "th"}:
            return f" `{' '.join(code.split())}` "
        return f"\n\n{fence(code, language(element))}\n\n"

    def convert_td(self, element: Tag, text: str, parent_tags: set[str]) -> str:
        return _cell(element, text)

    def convert_th(self, element: Tag, text: str, parent_tags: set[str]) -> str:
        return _cell(element, text)

    def convert_sup(self, element: Tag, text: str, parent_tags: set[str]) -> str:
        """Superscript with a caret before it: `x^2` is another number than `x2`."""
        text = text.strip()
        if not text or parent_tags & {"pre", "code"}:
            return text
        return f"^{text}" if text.isalnum() or text.startswith("[") else f"^({text})"


def _without_blank_runs(text: str) -> str:
    """Markdown with at most one empty line in a row and no blanks at the end of a line; code stays as it is."""
    lines: list[str] = []
    marks = ""
    for line in text.split("\n"):
        opening = _FENCE.match(line)
        if opening is not None and not marks:
            marks = opening[1]
        elif marks and line.strip(" >\t") == marks:
            marks = ""
        elif marks:
            lines.append(line)
            continue
        kept = line.rstrip()
        if kept or (lines and lines[-1].strip(" >")):
            lines.append(kept)
    return "\n".join(lines).strip("\n")


def _gap(blanks: str) -> str:
    return "\n\n" if blanks.count("\n") > 1 else " " if blanks else ""


def _cell(element: Tag, text: str) -> str:
    """A cell in one line, and with no bar that would end it; one that spans columns takes as many."""
    line = _BLANKS.sub(" ", text.strip()).replace("|", "\\|")
    return f" {line} |" + " |" * (span_of(element, "colspan") - 1)
