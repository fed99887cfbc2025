"""The separate process that converts one page, with limits for processor time and memory: a hostile page can harm
nothing but this.

It takes at most so much processor time and memory, and it ends when whoever started it is gone.
"""

import contextlib
import os
import resource
import signal
import sys
import threading
from types import FrameType
from typing import BinaryIO

import msgspec

from crow.web.conversion_job import MOST_TEXT, Converted, Job, OutOfTime, Unreadable

MOST_CPU = {"html": 8, "plain": 4, "pdf": 12}
"""Seconds, after which the process is ended. HTML is then given to another one, as plain text."""
CPU_FOR_PAGES = 5.0
"""Seconds, after which a PDF is given as far as it was read."""
MOST_MEMORY = 1024 * 1024 * 1024
_SET_PARENT_DEATH_SIGNAL = 1
DEEPEST = 8000
"""Frames: pages nest deeper than Python's thousand."""


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
            from crow.web.html.markdown import html_to_markdown

            return html_to_markdown(content.decode("utf-8", "replace"), job.url)
        case "plain":
            from crow.web.html.plain_text import html_to_plain_text

            return html_to_plain_text(content.decode("utf-8", "replace"))
        case "pdf":
            from crow.web.pdf import pdf_to_text

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


if __name__ == "__main__":
    main()
