"""Text that goes into Markdown without becoming part of it."""

import re

_TICKS = re.compile("`{3,}")


def fence(text: str, language: str = "") -> str:
    """The text between two fences that it cannot contain itself, so that nothing in it can pass for the end."""
    ticks = "`" * (max((len(run) for run in _TICKS.findall(text)), default=2) + 1)
    newline = "" if text.endswith("\n") or not text else "\n"
    return f"{ticks}{language}\n{text}{newline}{ticks}"
