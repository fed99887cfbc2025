"""Line ends: LF, CR LF, and the lone CR of old. Told apart, counted, never changed behind anyone's back."""

import re

CRLF = "\r\n"
_ANY = re.compile(r"\r\n|\r|\n")


def with_line_feeds(text: str) -> str:
    """The text with each line end as a single line feed, as many editors show it."""
    return text.replace(CRLF, "\n").replace("\r", "\n") if "\r" in text else text


def with_line_ends(text: str, end: str) -> str:
    """A text whose line ends are line feeds, with another one instead."""
    return text if end == "\n" else text.replace("\n", end)


def count_line_ends(text: str) -> dict[str, int]:
    """How often each occurs; those that do not are left out."""
    pairs = text.count(CRLF)
    counts = {"\n": text.count("\n") - pairs, CRLF: pairs, "\r": text.count("\r") - pairs}
    return {end: count for end, count in counts.items() if count}


def usual_line_end(text: str) -> str:
    """The one that most lines have; a line feed if there is none."""
    if "\r" not in text:
        return "\n"
    counts = count_line_ends(text)
    return max(counts, key=lambda end: counts[end], default="\n")


def first_line_end(text: str, start: int = 0) -> str | None:
    found = _ANY.search(text, start)
    return found[0] if found else None
