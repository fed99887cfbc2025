"""Extracts the text of a PDF, page by page, as far as time and room go. Runs in a process of its own."""

import contextlib
import io

from pypdf import PdfReader
from pypdf.errors import PyPdfError

from crow.web.conversion_job import MOST_TEXT, Converted, OutOfTime, Unreadable

TOO_INTRICATE = "The PDF cannot be read with the time and memory that a page gets: it is too intricate, or damaged."
UNREADABLE = "(this page cannot be read)"


def pdf_to_text(content: bytes) -> Converted:
    try:
        reader = PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("The PDF is protected with a password.")
        title = (reader.metadata.title if reader.metadata is not None else None) or ""
        count = len(reader.pages)
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError, NotImplementedError) as error:
        raise Unreadable("The PDF is damaged or of a kind that cannot be read.") from error
    except (OutOfTime, MemoryError):
        raise Unreadable(TOO_INTRICATE) from None
    texts = _texts(reader, count)
    if not any(texts):
        if count and all(text is None for text in texts):
            raise Unreadable(TOO_INTRICATE)
        raise Unreadable("The PDF holds no text, perhaps only pictures of it.")
    pages = [
        f"--- page {number} of {count} ---\n{UNREADABLE if text is None else text}"
        for number, text in enumerate(texts, 1)
    ]
    note = "" if len(pages) == count else f"only the first {len(pages)} of {count} pages"
    return Converted("\n\n".join(pages), str(title)[:300], "", note)  # the library has its own kind of `str`


def _texts(reader: PdfReader, count: int) -> list[str | None]:
    """The texts of the first pages, as far as time and room go."""
    texts: list[str | None] = []
    size = 0
    with contextlib.suppress(OutOfTime):  # what was read by then is worth having
        for number in range(count):
            if size > MOST_TEXT:
                break
            texts.append(_text(reader, number))
            size += len(texts[-1] or "")
    return texts


def _text(reader: PdfReader, number: int) -> str | None:
    """The text of a page; None if it cannot be read: whatever is wrong with it, the others may be fine."""
    try:
        return reader.pages[number].extract_text().strip()
    except Exception:  # noqa: BLE001 -- the library raises all sorts of things, and MemoryError is one of them
        return None
