"""What a file's command is called, and what is said of it where commands are listed."""

import re

from crow.visible import one_line

LONGEST_NAME = 64
LONGEST_DESCRIPTION = 200

_NOT_IN_NAMES = re.compile(r"[^\w-]+")


def clean_name(*parts: str) -> str:
    """Letters, digits, `-` and `_`, the parts joined by colons; empty if nothing is left of it."""
    cleaned = [_NOT_IN_NAMES.sub("-", part).strip("-") for part in parts]
    return ":".join(part for part in cleaned if part)[:LONGEST_NAME]


def description_in(head: dict[str, str], body: str) -> str:
    """As the head says, else the first line of the text."""
    first = next((line.strip("# \t") for line in body.splitlines() if line.strip("# \t")), "")
    return one_line(head.get("description", "") or first, LONGEST_DESCRIPTION)
