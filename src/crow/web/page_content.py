"""Decides what a fetched page is (HTML, PDF, text, image, binary) and in which charset, and makes text or an image of
it.
"""

import asyncio
import base64
import codecs
import contextlib
import email.utils
import os
import re
import signal
import sys

import msgspec

from crow.errors import NoText, WebError
from crow.messages import LARGEST_IMAGE, Image, media_type
from crow.threads import MAKE_ROOM, NO_MORE
from crow.timeouts import timeout
from crow.visible import one_line, sanitised
from crow.web.addresses import WebUrl
from crow.web.conversion_process import MOST_TEXT, Converted, Job
from crow.web.fetching import Page

CONVERSION_TIMEOUT = 30.0
"""Seconds for one process. It has much less time on the processor: this is for a busy machine."""
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
    "time": "the server was too slow: only the part that arrived was read",
    "broken": "the connection was lost: only the part that arrived before was read",
    "damaged": "the page's compression is damaged: only the part before the damage was read",
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
        raise WebError(f"{page.url.text} is an image that is too large or incomplete.")
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
    what = f"{one_line(kind, 60)}, {len(page.body):,} bytes"
    return NoText(f"{one_line(page.url.text, 200)} is not text ({what}), so it is not shown.")


# --- the process that converts a page


async def convert_page(job: Job, content: bytes, seconds: float = CONVERSION_TIMEOUT) -> Converted:
    """WebError if it cannot be done, or not in time."""
    done = await _ask(job, content, seconds)
    if done is None and job.kind == "html":
        # Whatever it failed at, time, memory, depth or a fault in a library: the plain way needs next to nothing of
        # each, and has a process of its own, where nothing is used up yet.
        done = await _ask(msgspec.structs.replace(job, kind="plain"), content, seconds)
    if done is None:
        raise WebError("The page could not be converted: it takes too much time or memory, or is damaged.")
    if done.problem:
        raise WebError(done.problem)
    return done


async def _ask(job: Job, content: bytes, seconds: float) -> Converted | None:
    """The answer of the process; None if there is none in time, or none that makes sense."""
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-m", "crow.web.conversion_process"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd="/",
            env={},
            limit=2**16,
        )
    except (BlockingIOError, RuntimeError):  # the second: Python 3.11 waits for each child on a thread
        raise WebError(f"The page could not be converted: {NO_MORE}.", remedy=MAKE_ROOM) from None
    assert process.stdin  # noqa: S101 -- asked for above
    assert process.stdout  # noqa: S101 -- the same
    try:
        async with timeout(seconds):
            with contextlib.suppress(ConnectionError):
                process.stdin.write(msgspec.json.encode(job) + b"\n" + content)
                await process.stdin.drain()
            answer = await process.stdout.read()
            await process.wait()
            return msgspec.json.decode(answer, type=Converted)
    except (TimeoutError, msgspec.DecodeError):
        return None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)  # `process.kill` might take the exit status from the event loop
            await process.stdout.read()  # asyncio does not see the end of a process behind a full pipe
            await process.wait()
        process.stdin.close()


# --- from bytes to text: by its mark, by what the server says, by what the page says of itself, else UTF-8

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_IN_HEADER = re.compile(r"""charset\s*=\s*["']?([A-Za-z0-9_.:-]+)""", re.IGNORECASE)
_IN_PAGE = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?([A-Za-z0-9_.:-]+)|<\?xml[^>]{0,100}?encoding\s*=\s*["']([A-Za-z0-9_.:-]+)""",
    re.IGNORECASE,
)
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
_LOOKED_THROUGH = 2048
_CODECS = frozenset(
    {
        *("utf-8", "utf-16-le", "utf-16-be", "cp1252", "cp1254", "cp874", "cp866", "cp850", "cp852"),
        *(f"cp{number}" for number in (1250, 1251, 1253, *range(1255, 1259))),
        *(f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
        *("koi8-r", "koi8-u", "mac-roman", "mac-cyrillic", "gb18030", "big5hkscs"),
        *("euc_jp", "iso2022_jp", "cp932", "cp949"),
    }
)
"""What pages are really written in. Python knows more codecs, but some are no text or take a long time."""
_MEANT = {
    **dict.fromkeys(("ascii", "iso8859-1", "latin-1"), "cp1252"),
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "utf-16": "utf-16-le",
    "ucs-2": "utf-16-le",
    "gb2312": "gb18030",
    "gb_2312-80": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "cp950": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "windows-949": "cp949",
    "koi8": "koi8-r",
}
"""What browsers read in place of a codec that a page names."""


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
    name = name.lower().removeprefix("x-")
    with contextlib.suppress(LookupError):
        name = codecs.lookup(_MEANT.get(name, name)).name
    name = _MEANT.get(name, name)
    return name if name in _CODECS else None
