"""Nothing shown for approval can hide: control, bidirectional and invisible characters are made visible."""

import re

_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # controls, escape sequences' beginnings among them
    "\u00a0\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # zero width, separators, bidirectional overrides
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\ud800-\udfff"  # halves of characters
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"  # tags and variation selectors
)
"""Every character of the categories Cc, Cf, Cs, Zl and Zp, and those that are drawn as a blank or not at all."""
_DECEIVING = re.compile(
    "[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f"
    "\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufff9-\ufffb"
    "\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff]"
    "|(?<!^)\ufeff"  # at the very beginning it is a byte order mark
)
JOINERS = "\u200c\u200d"
"""They belong to the writing of some languages, and to some pictures."""
HIDES_SOMETHING = "Careful: the new text holds characters that cannot be seen or that change the order of what is seen."
"""Said beside a text that is shown as it is, if `hidden_in` it."""
_NAMES = {"\n": "⏎", "\t": " "}


def one_line(text: str, longest: int = 300) -> str:
    """A title, a path, a command: on one line, every character in it to be seen, cut if need be."""
    shown = _HIDDEN.sub(_name, text[: longest + 1])
    return shown if len(text) <= longest else shown[:longest] + "…"


def hidden_in(text: str) -> bool:
    """Whether a text that is shown as it is, such as a diff, holds what could make it look like another.

    Controls but line ends, tabs and form feeds; what has no width; tags; what turns the direction of writing.
    """
    return _DECEIVING.search(text) is not None


def hidden_characters(text: str) -> list[str]:
    """Those in a text that a reader does not see and that are no part of anyone's writing, each once."""
    if text.isascii() and text.isprintable():  # as nearly all texts are
        return []
    return [character for character in dict.fromkeys(text) if character not in JOINERS and hidden_in(character)]


def made_visible(text: str) -> str:
    """Prose, with its line ends, and everything else in it to be seen."""
    return text.translate({ord(character): one_line(character) for character in hidden_characters(text)})


def _name(match: re.Match[str]) -> str:
    character = match[0]
    return _NAMES.get(character) or f"⟨U+{ord(character):04X}⟩"
