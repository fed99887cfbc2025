"""Nothing shown for approval can hide: control, bidirectional and invisible characters are made visible."""

import re

_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # controls, escape sequences' beginnings among them
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # zero width, separators, bidirectional overrides
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\ud800-\udfff"  # halves of characters
    "\U000e0000-\U000e0fff]"  # tags and variation selectors
)
_NAMES = {"\n": "⏎", "\t": " "}


def one_line(text: str, longest: int = 300) -> str:
    """A title, a path, a command: on one line, every character in it to be seen, cut if need be."""
    shown = _HIDDEN.sub(_name, text[: longest + 1])
    return shown if len(text) <= longest else shown[:longest] + "…"


def _name(match: re.Match[str]) -> str:
    character = match[0]
    return _NAMES.get(character) or f"⟨U+{ord(character):04X}⟩"
