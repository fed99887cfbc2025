"""The separate process that converts a page or a PDF, with limits for processor time and memory: a hostile page harms
nothing but this.

It ends when whoever started it is gone.
"""

import contextlib
import io
import os
import resource
import signal
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING, BinaryIO, Literal

import msgspec

if TYPE_CHECKING:
    from pypdf import PdfReader

MOST_TEXT = 1_000_000
"""Characters that are kept of a page."""
MOST_CPU = {"html": 8, "plain": 4, "pdf": 12}
"""Seconds, after which the process is ended. HTML is then given to another one, as plain text."""
CPU_FOR_PAGES = 5.0
"""Seconds, after which a PDF is given as far as it was read."""
MOST_MEMORY = 1024 * 1024 * 1024
_SET_PARENT_DEATH_SIGNAL = 1
DEEPEST = 8000
"""Frames: pages nest deeper than Python's thousand."""
TOO_INTRICATE = "The PDF is damaged, or too complex to read within the time and memory limits."
UNREADABLE = "(this page cannot be read)"


class Job(msgspec.Struct, frozen=True):
    """The first line that the process is sent; the content follows, in as many bytes as it says."""

    kind: Literal["html", "plain", "pdf"]
    """HTML as Markdown, HTML as plain text, or a PDF."""
    size: int
    url: str


class Converted(msgspec.Struct, frozen=True):
    text: str
    title: str = ""
    date: str = ""
    note: str = ""
    """What is missing."""
    problem: str = ""
    """Why there is no text, in words for a person."""


class Unreadable(Exception):
    """The content cannot be converted; the message says why."""


class OutOfTime(BaseException):
    """The processor time for reading a PDF is used up; what is left is for handing over what was read.

    No `Exception`: the library that is interrupted by it catches those, and would go on.
    """


def main() -> None:
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=Job)
    content = sys.stdin.buffer.read(job.size)
    _limit(MOST_CPU[job.kind])
    _die_with_parent()
    threading.Thread(target=_end_with_parent, args=(sys.stdin.buffer,), daemon=True).start()
    sys.setrecursionlimit(DEEPEST)
    status = 1
    try:
        sys.stdout.buffer.write(msgspec.json.encode(_capped(_convert(job, content))))
        sys.stdout.buffer.flush()
        status = 0
    finally:
        os._exit(status)  # the watching thread is in the middle of a read


def _convert(job: Job, content: bytes) -> Converted:
    match job.kind:
        case "html":
            from crow.web.markdown import html_to_markdown

            return html_to_markdown(content.decode("utf-8", "replace"), job.url)
        case "plain":
            from crow.web.plain_text import html_to_plain_text

            return html_to_plain_text(content.decode("utf-8", "replace"))
        case "pdf":
            signal.signal(signal.SIGVTALRM, _out_of_time)
            signal.setitimer(signal.ITIMER_VIRTUAL, CPU_FOR_PAGES)
            try:
                return pdf_to_text(content)
            except Unreadable as error:
                return Converted("", problem=str(error))


def _capped(converted: Converted) -> Converted:
    text = converted.text.encode("utf-8", "replace").decode()  # halves of characters cannot be written
    if len(text) > MOST_TEXT:
        return msgspec.structs.replace(
            converted, text=text[:MOST_TEXT], note=f"only the first {MOST_TEXT:,} characters"
        )
    return msgspec.structs.replace(converted, text=text)


def _limit(seconds: int) -> None:
    with contextlib.suppress(ValueError, OSError):  # not every system has every limit
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def _out_of_time(number: int, frame: FrameType | None) -> None:
    raise OutOfTime


def _die_with_parent() -> None:
    """The system sees to it where it can: our thread below has to wait while a library holds the interpreter."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)


def _end_with_parent(stdin: BinaryIO) -> None:
    """The other end stays open as long as somebody waits for us."""
    stdin.read(1)
    os._exit(1)


# --- PDF


def pdf_to_text(content: bytes) -> Converted:
    """The text of a PDF, page by page, as far as time and room go."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("The PDF is protected with a password.")
        title = (reader.metadata.title if reader.metadata is not None else None) or ""
        count = len(reader.pages)
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError, NotImplementedError) as error:
        raise Unreadable("The PDF is damaged or of an unsupported kind.") from error
    except (OutOfTime, MemoryError):
        raise Unreadable(TOO_INTRICATE) from None
    texts = _texts(reader, count)
    if not any(texts):
        if count and all(text is None for text in texts):
            raise Unreadable(TOO_INTRICATE)
        raise Unreadable("The PDF contains no text. It may be a scan.")
    pages = [
        f"--- page {number} of {count} ---\n{UNREADABLE if text is None else text}"
        for number, text in enumerate(texts, 1)
    ]
    note = "" if len(pages) == count else f"only the first {len(pages)} of {count} pages"
    return Converted("\n\n".join(pages), str(title)[:300], "", note)  # the library has its own kind of `str`


def _texts(reader: "PdfReader", count: int) -> list[str | None]:
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


def _text(reader: "PdfReader", number: int) -> str | None:
    """The text of a page; None if it cannot be read: whatever is wrong with it, the others may be fine."""
    try:
        return reader.pages[number].extract_text().strip()
    except Exception:  # noqa: BLE001 -- the library raises all sorts of things, and MemoryError is one of them
        return None


if __name__ == "__main__":
    main()
