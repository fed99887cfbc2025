"""From a page's bytes to text: by its mark, by what the server says, by what the page says of itself, else UTF-8."""

import codecs
import re

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_IN_HEADER = re.compile(r"""charset\s*=\s*["']?([A-Za-z0-9_.:-]+)""", re.IGNORECASE)
_IN_PAGE = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?([A-Za-z0-9_.:-]+)|<\?xml[^>]{0,100}?encoding\s*=\s*["']([A-Za-z0-9_.:-]+)""",
    re.IGNORECASE,
)
_LOOKED_THROUGH = 2048
_OF_TEXT = re.compile(
    r"utf-?(8|16)(-?[lb]e)?|(us-)?ascii|iso-?8859-?\d+|latin-?\d+|(windows|cp)-?(125\d|874|932|936|949|950)|ibm-?8\d\d|koi8-?[ru]"
    r"|gb(2312|k|18030)|big5(-?hkscs)?|euc-?(jp|kr)|shift-?jis|sjis|iso-?2022-?jp|macintosh",
)
"""What pages are written in. Python knows more names, and some of them are no text or take a long time."""
_REALLY = {
    "ascii": "cp1252",
    "us-ascii": "cp1252",
    "iso-8859-1": "cp1252",
    "iso8859-1": "cp1252",
    "latin1": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift-jis": "cp932",
    "sjis": "cp932",
    "macintosh": "mac-roman",
}
"""What pages that name the one are written in, as browsers know."""


def decode(body: bytes, content_type: str) -> str:
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body.decode(name, "replace")
    head = body[:_LOOKED_THROUGH]
    in_header, in_page = _IN_HEADER.search(content_type), _IN_PAGE.search(head)
    names = [in_header[1]] if in_header else []
    if in_page:
        names.append((in_page[1] or in_page[2]).decode("ascii"))
    for name in names:
        if (known := _known(name)) is not None:
            return body.decode(known, "replace")
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(body)  # which puts up with a character cut at the end
    except UnicodeDecodeError as error:
        # A stray byte in a page of UTF-8 is one thing, a page in the old Western encoding is another.
        looks_western = b"\xc3" not in head and error.start < len(head)
        return body.decode("cp1252" if looks_western else "utf-8", "replace")


def _known(name: str) -> str | None:
    name = name.lower().replace("_", "-")
    if not _OF_TEXT.fullmatch(name):
        return None
    name = _REALLY.get(name, name)
    try:
        return codecs.lookup(name).name
    except LookupError:
        return None
