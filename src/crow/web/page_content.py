"""Decides what a fetched page is (HTML, PDF, text, image, binary) and in which charset, and makes text or an image of
it.
"""

import asyncio
import base64
import codecs
import contextlib
import email.utils
import re

import msgspec

from crow.errors import NoText, WebError
from crow.messages import LARGEST_IMAGE, Image, media_type
from crow.visible import one_line, sanitised
from crow.web.conversion import convert_page
from crow.web.conversion_job import MOST_TEXT, Job
from crow.web.fetching import Page
from crow.web.urls import WebUrl

LONGEST_NOTE = 4096
MOST_HTML = 1024 * 1024
"""Characters of HTML that are converted."""
_SLICE = 32 * 1024
"""Characters after which everyone else gets their turn: a page can be made of nothing but controls."""

_TEXT_TYPE = re.compile(
    r"text/.*|.*[+/](json|xml|yaml|toml|javascript|ecmascript|x-ndjson|x-yaml|x-sh|sql|graphql|rtf)"
    r"|application/(json5|jsonl|ld\+json|x-javascript|x-www-form-urlencoded|mbox)"
)
_BINARY_TYPE = re.compile(
    r"(image|audio|font|model)/.*|video/(?!mp2t$).*"  # a file of TypeScript has the ending of such a video
    r"|application/(x-)?(zip|gzip|tar|gtar|bzip2?|xz|zstd|7z-compressed|rar(-compressed)?|java-archive|wasm|font.*)"
    r"|application/(vnd\.(ms-|openxmlformats|rar|android|sqlite3).*|msword|x-(msdownload|iso9660.*|executable|rpm))"
)
"""What is not even looked into."""
_MOST_CONTROLS = 1 / 50
"""Of the first bytes; more of them than this is no text."""
_CONTROLS = bytes([*range(7), *range(14, 27), *range(28, 32), 127])
_TAG = re.compile(r"<[a-zA-Z/!?]")
_PDF_TYPES = ("application/pdf", "application/x-pdf")
_HTML_TYPES = ("text/html", "application/xhtml+xml")
_HTML_BEGINNING = re.compile(
    r"\s*(?:<!--.{0,500}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_CUTS = {
    "size": "the page was too long: only its beginning was read",
    "time": "the server was too slow: only what came in time was read",
    "broken": "the connection broke off: only what came before was read",
    "damaged": "the page is packed and damaged: only what came before was read",
}


class PageContent(msgspec.Struct, frozen=True):
    url: WebUrl
    title: str
    date: str
    kind: str
    """Such as `text/html`."""
    text: str
    image: Image | None = None
    notes: tuple[str, ...] = ()
    """What is missing, and why."""


async def read_page(page: Page) -> PageContent:
    """WebError if there is nothing in it that can be read."""
    kind = page.content_type.partition(";")[0].strip().lower()
    notes = (_CUTS[page.cut],) if page.cut else ()
    if _is_pdf(page.body, kind):
        return await _pdf(page, notes)
    if (found := media_type(page.body[:16])) is not None and found.startswith("image/"):
        return _image(page, found)
    is_text = _TEXT_TYPE.fullmatch(kind) is not None or kind in _HTML_TYPES
    if (not is_text and _BINARY_TYPE.fullmatch(kind)) or _is_binary(page, is_text):
        raise _no_text(page, kind or "unknown data")
    text = decode_page(page.body, page.content_type)
    if kind in _HTML_TYPES and (found := _only_called_html(text)):
        kind = found
    elif kind in _HTML_TYPES or (not is_text and _HTML_BEGINNING.match(text[:4096])):
        return await _html(page, text, notes)
    text = await _seen_by_reader(text, MOST_TEXT)
    if len(text) > MOST_TEXT:
        notes = (*notes, f"only the first {MOST_TEXT:,} characters")
    return PageContent(page.url, "", _date(page), one_line(kind or "text/plain", 60), text[:MOST_TEXT], notes=notes)


async def _seen_by_reader(text: str, most: int) -> str:
    """The beginning of a text that makes so many characters of what a reader sees, or a few more."""
    pieces: list[str] = []
    start = size = 0
    while start < len(text) and size <= most:
        end = _end_of_slice(text, start)
        pieces.append(sanitised(text[start:end]))
        size += len(pieces[-1])
        start = end
        await asyncio.sleep(0)
    return "".join(pieces)


def _end_of_slice(text: str, start: int) -> int:
    """A slice ends after a line feed, if there is one: no line end and no escape sequence is cut in two there."""
    end = start + _SLICE
    return end if end >= len(text) else text.rfind("\n", start, end) + 1 or end


async def _html(page: Page, text: str, notes: tuple[str, ...]) -> PageContent:
    if len(text) > MOST_HTML:
        notes = (*notes, f"only the first {MOST_HTML:,} characters of the page's source")
    content = text[:MOST_HTML].encode("utf-8", "replace")
    done = await convert_page(Job("html", len(content), page.url.text), content)
    notes = (*notes, one_line(done.note, LONGEST_NOTE)) if done.note else notes
    text = await _seen_by_reader(done.text, MOST_TEXT)
    return PageContent(page.url, done.title, done.date or _date(page), "text/html", text, notes=notes)


async def _pdf(page: Page, notes: tuple[str, ...]) -> PageContent:
    done = await convert_page(Job("pdf", len(page.body), page.url.text), page.body)
    notes = (*notes, done.note) if done.note else notes
    text = await _seen_by_reader(done.text, MOST_TEXT)
    return PageContent(page.url, done.title, _date(page), "application/pdf", text, notes=notes)


def _image(page: Page, kind: str) -> PageContent:
    size = len(page.body)
    if page.cut or size > LARGEST_IMAGE:
        raise WebError(f"{page.url.text} is an image that is too large, or did not arrive whole.")
    image = Image(base64.b64encode(page.body).decode(), kind)
    return PageContent(page.url, "", _date(page), kind, f"{kind}, {size:,} bytes", image)


def _date(page: Page) -> str:
    try:
        return email.utils.parsedate_to_datetime(page.modified).date().isoformat() if page.modified else ""
    except (ValueError, OverflowError):
        return ""


def _is_pdf(body: bytes, kind: str) -> bool:
    """Readers of PDF put up with something before its mark; a text may well have the mark in it."""
    if kind in _PDF_TYPES:
        return b"%PDF-" in body[:1024]
    return body[:1024].removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"%PDF-")


def _is_binary(page: Page, is_text: bool) -> bool:
    """UTF-16 has zero bytes too, but begins with a mark, or the server names it."""
    head = page.body[:4096]
    if (charset(page.body, page.content_type) or "").startswith("utf-16"):
        return False
    controls = len(head) - len(head.translate(None, _CONTROLS))
    return b"\x00" in head or (not is_text and controls > len(head) * _MOST_CONTROLS)


def _only_called_html(text: str) -> str:
    """Some servers call everything HTML: what it is instead, or nothing if it may be HTML."""
    if _TAG.search(text) is None and text.strip():
        return "text/plain"
    if text[:4096].lstrip()[:1] in ("{", "["):
        if len(text) > MOST_HTML:  # to read it all would take long: what begins so and has no tags soon is no HTML
            return "" if _TAG.search(text[:4096]) else "application/json"
        with contextlib.suppress(msgspec.DecodeError, RecursionError, UnicodeError):
            msgspec.json.decode(text)
            return "application/json"
    return ""


def _no_text(page: Page, kind: str) -> NoText:
    return NoText(
        f"{one_line(page.url.text, 200)} is no text ({one_line(kind, 60)}, {len(page.body):,} bytes): it is not shown."
    )


# --- from bytes to text: by its mark, by what the server says, by what the page says of itself, else UTF-8

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_IN_HEADER = re.compile(r"""charset\s*=\s*["']?([A-Za-z0-9_.:-]+)""", re.IGNORECASE)
_IN_PAGE = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?([A-Za-z0-9_.:-]+)|<\?xml[^>]{0,100}?encoding\s*=\s*["']([A-Za-z0-9_.:-]+)""",
    re.IGNORECASE,
)
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_LOOKED_THROUGH = 2048
_NAMES = {
    **{f"cp{number}": f"windows-{number} cp{number} x-cp{number}" for number in (1250, 1251, 1253, *range(1255, 1259))},
    **{f"iso8859-{part}": f"iso-8859-{part} iso8859-{part} iso8859{part}" for part in (5, 6, 7, 8, 13, 14, 16)},
    **{
        f"iso8859-{part}": f"iso-8859-{part} iso8859-{part} iso8859{part} latin{number} latin-{number} l{number}"
        for part, number in ((2, 2), (3, 3), (4, 4), (10, 6), (15, 9))
    },
    "utf-8": "utf-8 utf8 unicode-1-1-utf-8",
    "utf-16-le": "utf-16 utf-16le utf16 utf16le ucs-2 iso-10646-ucs-2 unicode",
    "utf-16-be": "utf-16be utf16be",
    "cp1252": "windows-1252 cp1252 x-cp1252 ascii us-ascii ansi-x3.4-1968 iso-8859-1 iso8859-1 iso88591 "
    "iso-8859-1:1987 iso-ir-100 latin1 latin-1 l1 cp819 ibm819",
    "cp1254": "windows-1254 cp1254 x-cp1254 iso-8859-9 iso8859-9 iso88599 iso-8859-9:1989 iso-ir-148 latin5 latin-5 l5",
    "cp874": "windows-874 cp874 dos-874 iso-8859-11 iso8859-11 iso885911 tis-620",
    "cp866": "ibm866 cp866 866",
    "cp850": "ibm850 cp850",
    "cp852": "ibm852 cp852",
    "koi8-r": "koi8-r koi8r koi8 koi",
    "koi8-u": "koi8-u koi8u koi8-ru",
    "mac-roman": "macintosh mac x-mac-roman",
    "mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "gb18030": "gb18030 gbk x-gbk gb2312 gb-2312 gb-2312-80 chinese iso-ir-58 cp936 windows-936",
    "big5hkscs": "big5 big5-hkscs cn-big5 x-x-big5 cp950 windows-950",
    "euc-jp": "euc-jp eucjp x-euc-jp",
    "iso2022-jp": "iso-2022-jp iso2022-jp csiso2022jp",
    "cp932": "shift-jis sjis x-sjis shiftjis ms932 ms-kanji windows-31j windows-932 cp932",
    "cp949": "euc-kr euckr ks-c-5601-1987 ks-c-5601-1989 ksc5601 ksc-5601 korean iso-ir-149 windows-949 cp949",
}
"""What pages are really written in, and the names they give for it, as browsers know them.

Python knows more codecs, but some are no text or take a long time.
"""
_CODECS = {name: codec for codec, names in _NAMES.items() for name in names.split()}


def decode_page(body: bytes, content_type: str) -> str:
    if (known := charset(body, content_type)) is not None:
        return body.decode(known, "replace")
    head = body[:_LOOKED_THROUGH]
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(body)  # which puts up with a character cut at the end
    except UnicodeDecodeError as error:
        # A stray byte in a page of UTF-8 is one thing, a page in the old Western encoding is another.
        looks_western = b"\xc3" not in head and error.start < len(head)
        return body.decode("cp1252" if looks_western else "utf-8", "replace")


def charset(body: bytes, content_type: str) -> str | None:
    """The codec that is named, if it is one that pages are written in."""
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return codec
    in_header = _IN_HEADER.search(content_type)
    if in_header and (codec := _codec(in_header[1])) is not None:
        return codec
    in_page = _IN_PAGE.search(_COMMENT.sub(b"", body[:_LOOKED_THROUGH]))
    codec = _codec((in_page[1] or in_page[2]).decode("ascii")) if in_page else None
    # The name could be read as ASCII, so the page is not written in what takes two bytes for each letter.
    return "utf-8" if codec is not None and codec.startswith("utf-16") else codec


def _codec(name: str) -> str | None:
    return _CODECS.get(name.lower().replace("_", "-"))
