"""The text of a PDF, page by page, as far as time and room go. Runs in a process of its own."""

import io

from pypdf import PdfReader
from pypdf.errors import PyPdfError

from crow.web.converted import MOST_TEXT, Converted, OutOfTime, Unreadable


def pdf_to_text(content: bytes) -> Converted:
    try:
        reader = PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("The PDF is protected with a password.")
        title = (reader.metadata.title if reader.metadata is not None else None) or ""
        count = len(reader.pages)
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError, NotImplementedError) as error:
        raise Unreadable("The PDF is damaged or of a kind that cannot be read.") from error
    pages: list[str] = []
    size = 0
    try:
        for number in range(count):
            if size > MOST_TEXT:
                break
            text = _text(reader, number)
            pages.append(f"--- page {number + 1} of {count} ---\n{text}")
            size += len(text)
    except OutOfTime:
        if not pages:
            raise Unreadable("The PDF is too intricate to be read in time.") from None
    note = "" if len(pages) == count else f"only the first {len(pages)} of {count} pages"
    if not size:
        raise Unreadable("The PDF holds no text, perhaps only pictures of it.")
    return Converted("\n\n".join(pages), str(title)[:300], "", note)  # the library has its own kind of `str`


def _text(reader: PdfReader, number: int) -> str:
    try:
        return reader.pages[number].extract_text().strip()
    except Exception:  # noqa: BLE001 -- whatever is wrong with one page, the others may be fine
        return "(this page cannot be read)"
