"""Takes escape sequences out of a command's output, and cuts it to its beginning and end. Pure functions, linear in the
length of the text.
"""

import codecs
import re

from crow.commands.terminal_screen import MOVES, final_state, slices

_UNSEEN = re.compile(
    rf"""\x1b (?!{MOVES}) (?:
        \[ [0-?]*+ [\x20-/]*+ [@-~]?                        # colours, modes
        | [\]PX^_] [^\x07\x1b\n]{{0,4096}}+ (?:\x07|\x1b\\)?  # titles, links and other strings, with their end
        | [\x20-/]*+ [0-~]?                                 # the short ones
    )
    | [\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]        # other controls: all but tab, line feed, return, backspace
    """,
    re.VERBOSE,
)
_SEQUENCE = re.compile(
    rb"\x1b(?:\[[0-?]*+[\x20-/]*+[@-~]?|[\]PX^_][^\x07\x1b\n]{0,4096}+(?:\x07|\x1b\\)?|[\x20-/]*+[0-~]?)"
)
_WHOLE_SEQUENCE = re.compile(
    rb"\x1b(?:\[[0-?]*+[\x20-/]*+[@-~]|[\]PX^_][^\x07\x1b\n]{0,4096}+(?:\x07|\x1b\\)|[\x20-/]*+(?![\[\]PX^_])[0-~])"
)
_LONGEST_SEQUENCE = 4100
_LINE_END = re.compile("(?<!\r)\r++\n")
"""A return at the end of a line is only the way that terminals end lines."""
QUICK = 8 * 1024
"""Characters that are made readable in a few milliseconds at the worst; more of them, in a thread."""
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))

Pieces = tuple[str, str]
"""A beginning and an end, between which something was left out."""


def without_escapes(text: str) -> str:
    """The text without escape sequences and other controls; of what was rewritten, the last state."""
    text = "".join([_UNSEEN.sub("", part) for part in slices(text)])
    return final_state(_LINE_END.sub("\n", text) if "\r" in text else text)


class EscapeFilter:
    """Takes the escape sequences out of output that comes in pieces, and leaves all else as it is."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        data = self._rest + data
        last = data.rfind(b"\x1b")
        if last < 0:
            self._rest = b""
            return data
        is_cut = len(data) - last < _LONGEST_SEQUENCE and not _WHOLE_SEQUENCE.match(data, last)
        data, self._rest = (data[:last], data[last:]) if is_cut else (data, b"")
        return _SEQUENCE.sub(b"", data)


def decode_beginning(data: bytes) -> str:
    """The text of a beginning, without the first half of a character that was cut in two."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data)


def decode_end(data: bytes) -> str:
    """The text of an end, without the second half of a character that was cut in two."""
    start = data[:3]
    return data[len(start) - len(start.lstrip(_CONTINUATION_BYTES)) :].decode("utf-8", "replace")


def first_part(text: str, size: int) -> str:
    """At most so many bytes from the front, cut after a line if there is one to cut after."""
    data = text.encode("utf-8", "replace")
    if len(data) <= size:
        return text
    part = decode_beginning(data[:size])
    cut = part.rfind("\n") + 1
    return part[:cut] if cut > len(part) // 2 else part


def last_part(text: str, size: int) -> str:
    """At most so many bytes from the back, cut before a line if there is one to cut before."""
    data = text.encode("utf-8", "replace")
    if len(data) <= size:
        return text
    part = decode_end(data[-size:])
    if data[-size - 1 : -size] == b"\n":
        return part
    cut = part.find("\n") + 1
    return part[cut:] if 0 < cut < len(part) // 2 else part


def split_to_fit(text: str, limit: int) -> Pieces | None:
    """The beginning and the end of a text that is longer than the limit; None if it fits."""
    if len(text) * 4 <= limit or len(text.encode("utf-8", "replace")) <= limit:
        return None
    return first_part(text, limit // 2), last_part(text, limit // 2)


def joined(pieces: Pieces, note: str) -> str:
    """The two pieces with the note on a line of its own between them."""
    beginning, end = pieces
    newline = "" if not beginning or beginning.endswith("\n") else "\n"
    return f"{beginning}{newline}[… {note} …]\n{end}"


def size_text(size: int) -> str:
    """A number of bytes, as precise as a person wants it."""
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size} bytes"
