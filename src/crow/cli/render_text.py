"""Text of strangers made fit for a terminal: nothing in it can move the cursor, hide, or pose as something else.

Models, file names and error messages are written by others. A terminal obeys the escape sequences in them, and
bidirectional overrides let one thing look like another; here all of that becomes visible characters. Titles and paths
are stricter, see `crow.visible`: in prose, joiners belong to the spelling of many languages and to emoji.
"""

import re
import unicodedata

from crow.visible import BIDI, CONTROLS, SEPARATORS, SURROGATES, TAGS

_UNSAFE = re.compile(f"[\f\r{CONTROLS}{SEPARATORS}{BIDI}{SURROGATES}{TAGS}]")
"""What a terminal obeys, or draws in another order or not at all."""

_PLAIN_SIGNS = """
✓ ok    ✗ FAIL   ■ #   █ #   ▸ >    ☐ [ ]   ◐ [~]   ☑ [x]   ─ -   · -   … ...   → ->   • *   ⏎ \\n   ␛ ^[
“ "   ” "   ‘ '   ’ '   – -   — -   × x   ⟨ <   ⟩ >   − -   │ |   ⋮ :   ␍ ^M
⠋ |   ⠙ /   ⠹ -   ⠸ \\   ⠼ |   ⠴ /   ⠦ -   ⠧ \\   ⠇ |   ⠏ /
"""  # noqa: RUF001 -- these are the signs that look like others
PLAIN_SIGNS = {ord(pair[0]): pair[2:] for pair in re.split(r"\s{2,}|\n", _PLAIN_SIGNS.strip())}
"""Our own signs, and the commonest of a model's, for a terminal or a file that is not UTF-8."""


def clean_prose(text: str) -> str:
    """Text of any number of lines, safe to print. Carriage returns are dropped, tabs become spaces."""
    text = text.replace("\r", "").replace("\t", "    ")
    return text if text.isascii() and text.isprintable() else _UNSAFE.sub(_reveal, text)


def clean_answer(text: str) -> str:
    """Text for a file or a program: as it was written, tabs included, but for what could harm a terminal later."""
    text = text.replace("\r", "")
    return text if text.isascii() and text.isprintable() else _UNSAFE.sub(_reveal, text)


def _reveal(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)  # Unicode's pictures of control characters: ␛ for escape
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return f"⟨U+{code:04X}⟩"


def cells(text: str) -> int:
    """How many columns the text takes. Good for nearly all text; nobody knows for every emoji and every font."""
    if text.isascii():
        return len(text)
    return sum(_cells(character) for character in text)


def is_wide(character: str) -> bool:
    return not character.isascii() and unicodedata.east_asian_width(character) in "WF"


def _cells(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if is_wide(character) else 1


def cut(text: str, width: int) -> str:
    """The beginning of the text that fits, with an ellipsis if something is missing."""
    if cells(text) <= width:
        return text
    room = width - 1
    kept = ""
    for character in text:
        room -= _cells(character)
        if room < 0:
            break
        kept += character
    return kept.rstrip() + "…"


def folded(text: str, width: int) -> list[str]:
    """The text in pieces that fit, cut behind a blank, or where the line is full if it has none but near its start.

    Nothing is lost: the pieces make up the text.
    """
    pieces, room = [""], width
    for character in text:
        size = _cells(character)
        if size > room and pieces[-1]:
            blank = pieces[-1].rfind(" ") + 1
            is_within = blank > len(pieces[-1]) // 4 and character != " " and not pieces[-1][:blank].isspace()
            end = blank if is_within else len(pieces[-1])
            pieces[-1:] = pieces[-1][:end], pieces[-1][end:]
            room = width - cells(pieces[-1])
        pieces[-1] += character
        room -= size
    return pieces


def counted(number: int, thing: str) -> str:
    """`1 line`, `2 lines`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def duration(seconds: float) -> str:
    """`0.4 s`, `12 s`, `3 min 5 s`; nothing for what nobody notices."""
    if seconds < 0.1:
        return ""
    if seconds < 0.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"
