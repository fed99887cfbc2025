"""Text from the web as a reader sees it: nothing in it hides, turns the writing round or drives a terminal."""

import re

_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")
_LINE_ENDS = re.compile("\r\n?|[\f\x85\u2028\u2029]")
_WITHOUT_WIDTH = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u2060-\u2064\ufeff\ufff9-\ufffb\U000e0100-\U000e01ef]"
)
"""Nothing is lost without them. Joiners stay: words and emoji are written with them."""
_DECEIVING = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2065-\u206f\U000e0000-\U000e00ff]")
"""Controls, what turns the direction of writing, and tags, which can carry a text that nobody sees."""


def in_plain_sight(text: str) -> str:
    text = _LINE_ENDS.sub("\n", _COLOURS.sub("", text))
    return _DECEIVING.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", _WITHOUT_WIDTH.sub("", text))
