"""Text from the web as a reader sees it: nothing in it hides, turns the writing round or drives a terminal."""

import asyncio
import re
from functools import cache

_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")
_LINE_ENDS = re.compile("\r\n?|[\f\x85\u2028\u2029]")
_WITHOUT_WIDTH = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u2060-\u2064\ufeff\ufff9-\ufffb\U000e0100-\U000e01ef]"
)
"""Nothing is lost without them. Joiners stay: words and emoji are written with them."""
_DECEIVING = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2065-\u206f\U000e0000-\U000e00ff]")
"""Controls, what turns the direction of writing, and tags, which can carry a text that nobody sees."""
_SLICE = 32 * 1024
"""Characters after which everyone else gets their turn: a page can be made of nothing but controls."""


async def in_plain_sight(text: str, most: int) -> str:
    """As much of a text as makes so many characters of what a reader sees, or a few more."""
    pieces: list[str] = []
    start = size = 0
    while start < len(text) and size <= most:
        end = _end_of_slice(text, start)
        pieces.append(_seen(text[start:end]))
        size += len(pieces[-1])
        start = end
        await asyncio.sleep(0)
    return "".join(pieces)


def _end_of_slice(text: str, start: int) -> int:
    """After a line feed, if there is one: no line end and no escape sequence is cut in two there."""
    end = start + _SLICE
    return end if end >= len(text) else text.rfind("\n", start, end) + 1 or end


def _seen(text: str) -> str:
    text = _WITHOUT_WIDTH.sub("", _LINE_ENDS.sub("\n", _COLOURS.sub("", text)))
    return text.translate(_names()) if _DECEIVING.search(text) else text


@cache
def _names() -> dict[int, str]:
    numbers = (*range(0x100), *range(0x2000, 0x2100), *range(0xE0000, 0xE0100))
    return {number: f"⟨U+{number:04X}⟩" for number in numbers if _DECEIVING.match(chr(number))}
