"""From a page's bytes to text: by its mark, by what the server says, by what the page says of itself, else UTF-8."""

import codecs
import re

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


def decode(body: bytes, content_type: str) -> str:
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
