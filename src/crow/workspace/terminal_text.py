"""What a terminal was sent, made into text for reading: pure functions, linear in the length of the text."""

import codecs
import re
from collections.abc import Iterator

_ESCAPES = re.compile(
    r"""\x1b(?:
        \[ [0-?]*+ [\x20-/]*+ [@-~]?                        # colours, cursor movements
        | [\]PX^_] [^\x07\x1b\n]{0,4096}+ (?:\x07|\x1b\\)?  # titles, links and other strings, with their end
        | [\x20-/]*+ [0-~]?                                 # the short ones
    )
    | [\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]                 # other controls: all but tab, line feed and return
    """,
    re.VERBOSE,
)
_LONGEST_TAKEN_BACK = 16
"""Characters that a spinner takes back at once, to write others in their place."""
_OVERSTRUCK = re.compile("[^\n\b]\b")
SLICE = 32 * 1024
"""Characters that are looked at in one call, which nothing else can interrupt: a few milliseconds at the worst. What is
longer is better made readable in a thread."""
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))

Pieces = tuple[str, str]
"""A beginning and an end, between which something was left out."""


def without_escapes(text: str) -> str:
    """The text without escape sequences and other controls; of a line that was rewritten, the last state."""
    text = "".join(map(_without_controls, _slices(text)))
    if "\r" not in text:
        return text
    return "\n".join(_last_state(line) for line in text.split("\n"))


def _slices(text: str) -> Iterator[str]:
    """Cut after a line, else before an escape sequence: what is taken out of a text does not reach across either."""
    start = 0
    while len(text) - start > SLICE:
        middle, end = start + SLICE // 2, start + SLICE
        cut = text.rfind("\n", middle, end) + 1 or text.rfind("\x1b", middle, end)
        cut = cut if cut > 0 else end
        yield text[start:cut]
        start = cut
    yield text[start:]


def _without_controls(text: str) -> str:
    for _ in range(_LONGEST_TAKEN_BACK):
        if "\b" not in text:
            break
        text = _OVERSTRUCK.sub("", text)
    return _ESCAPES.sub("", text)


def _last_state(line: str) -> str:
    """What a progress bar shows at the end. A return at the end of a line is only the way that terminals end lines."""
    return line.rstrip("\r").rpartition("\r")[2]


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
