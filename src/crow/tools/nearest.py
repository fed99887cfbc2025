"""What in a file is nearest to a text that was not found in it: looked for in bounded time."""

from collections.abc import Sequence

MOST_LINES = 50_000
"""Lines of the file that are looked at."""
LONGEST_LINE = 200
"""Characters of a line that are compared, and shown."""
LARGEST_WINDOW = 40
"""Lines of the text that was looked for."""
MOST_SHOWN = 12
LEAST_ALIKE = 55
"""Per cent below which a line is no help."""


def describe_nearest(lines: Sequence[str], wanted: str) -> str:
    """A sentence for the model and the lines in question; empty if nothing is like it."""
    found = _nearest(lines, wanted.strip("\n").split("\n")[:LARGEST_WINDOW])
    if found is None:
        return ""
    first, window = found
    shown = [f"{number:>6}\t{line[:LONGEST_LINE]}" for number, line in enumerate(window[:MOST_SHOWN], first + 1)]
    more = "" if len(window) <= MOST_SHOWN else f"\n({len(window) - MOST_SHOWN} more lines)"
    return f"Nearest to it is, from line {first + 1}:\n" + "\n".join(shown) + more


def _nearest(lines: Sequence[str], wanted: Sequence[str]) -> tuple[int, Sequence[str]] | None:
    """The first line, counted from 0, and the lines of the likeliest place."""
    from rapidfuzz import fuzz, process  # only for texts that were not found

    # The longest line says most about where the text belongs; the whole then decides between the candidates.
    anchor = max(range(len(wanted)), key=lambda number: len(wanted[number].strip()))
    candidates = process.extract(
        wanted[anchor].strip()[:LONGEST_LINE],
        [line.strip()[:LONGEST_LINE] for line in lines[:MOST_LINES]],
        scorer=fuzz.ratio,
        limit=5,
        score_cutoff=LEAST_ALIKE,
    )
    text = _comparable(wanted)
    best: tuple[float, int, Sequence[str]] | None = None
    for _, _, place in candidates:
        first = max(0, place - anchor)
        window = lines[first : first + len(wanted)]
        likeness = fuzz.ratio(text, _comparable(window))
        if best is None or likeness > best[0]:
            best = (likeness, first, window)
    return best[1:] if best is not None else None


def _comparable(lines: Sequence[str]) -> str:
    return "\n".join(line.strip()[:LONGEST_LINE] for line in lines)
