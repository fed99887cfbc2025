"""Text that goes into Markdown without becoming part of it."""

import re

from crow.visible import one_line

_SUFFIX = re.compile(r"\.([A-Za-z0-9_+-]{1,12})$")
_TICKS = re.compile("`{3,}")


def fence(text: str, language: str = "") -> str:
    """The text between two fences that it cannot contain itself, so that nothing in it can pass for the end."""
    ticks = "`" * (max((len(run) for run in _TICKS.findall(text)), default=2) + 1)
    newline = "" if text.endswith("\n") or not text else "\n"
    return f"{ticks}{language}\n{text}{newline}{ticks}"


def language_of(path: str) -> str:
    """What the fence of a file's text is marked with: its suffix, which editors and highlighters know languages by."""
    suffix = _SUFFIX.search(path)
    return suffix[1].lower() if suffix else ""


def code(text: str) -> str:
    """One line of a path, a command or a name, between ticks that it does not contain."""
    shown = one_line(text, 1000)
    ticks = "``" if "`" in shown else "`"
    return f"{ticks}{shown}{ticks}"
