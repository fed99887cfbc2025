"""Decides whether an editor's text that differs from the disk is unsaved work or a stale buffer, and whether writing
through that editor keeps every byte.

The editor gives no more than its text. It does not say whether the buffer is modified, how it will save it, nor
whether it has noticed that the file changed. All of that is inferred here, and in doubt nothing may be overwritten.
"""

import enum

from crow.files.base import Document
from crow.files.local import bytes_of
from crow.files.text import CRLF, could_be_shown_as, count_line_ends
from crow.visible import BYTE_ORDER_MARK


class BufferState(enum.Enum):
    SAVED = enum.auto()
    """It shows what is on disk."""
    BEHIND = enum.auto()
    """It shows what was on disk: the editor has not reloaded the file yet. The disk is right."""
    UNSAVED = enum.auto()
    """The person has changed it, and not saved it yet. The buffer is right."""
    BOTH_CHANGED = enum.auto()
    """The person has changed it, and so has somebody on disk. Writing either would lose the other."""


class BufferWatch:
    """Remembers of each file how buffer and disk were when they last agreed, as hashes of the two.

    What Crow itself has written to disk since then counts as any other change of the disk: a person may have typed into
    a buffer that had not taken it in yet, and writing that buffer would take it back.
    """

    def __init__(self) -> None:
        self._agreed: dict[str, tuple[int | None, int]] = {}

    def judge(self, saved: Document, buffer: str) -> BufferState:
        content = bytes_of(saved)
        if could_be_shown_as(content, buffer):
            self._agreed[saved.path] = (hash(buffer), hash(content))
            return BufferState.SAVED
        # A buffer that was already modified when we first looked is taken for a change of the file beneath it.
        old_buffer, old_content = self._agreed.setdefault(saved.path, (None, hash(content)))
        if hash(buffer) == old_buffer:
            return BufferState.BEHIND
        return BufferState.UNSAVED if hash(content) == old_content else BufferState.BOTH_CHANGED


def keeps_bytes(saved: Document, buffer: str, text: str) -> bool:
    """Whether a text can be written through an editor that shows the saved file as this buffer, byte for byte."""
    return buffer.encode() == bytes_of(saved) and _is_known_to_keep(saved.text, text)


def may_keep_bytes(saved: Document | None, text: str) -> bool:
    """The same, where the editor does not show its buffer, or has none yet: plain text goes through every editor."""
    if saved is None:
        return _is_known_to_keep("", text)
    return saved.encoding == "utf-8" and not saved.mark and "\r" not in saved.text + text


def _is_known_to_keep(kept: str, text: str) -> bool:
    """Editors that restore line ends on saving make all of them alike: a carriage return must have been kept before."""
    return not text.startswith(BYTE_ORDER_MARK) and ("\r" not in text or "\r" in kept)


def what_saving_would_change(saved: Document, buffer: str) -> str:
    """What an editor might not restore when it saves a modified buffer; empty if it shows that it would."""
    if saved.encoding != "utf-8":
        return "encoding"
    if saved.mark != buffer.startswith(BYTE_ORDER_MARK):
        return "byte order mark"
    if "\r" in saved.text and not (_is_all_crlf(saved.text) and _is_all_crlf(buffer)):
        return "line endings"
    return ""


def _is_all_crlf(text: str) -> bool:
    return set(count_line_ends(text)) == {CRLF}
