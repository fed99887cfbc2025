"""What in a file is nearest to a text that was not found in it: looked for in bounded time."""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

MOST_LINES = 50_000
"""Lines of the file that are looked at."""
LONGEST_LINE = 200
"""Characters of a line that are compared, and shown."""
LARGEST_WINDOW = 40
"""Lines of the text that was looked for."""
MOST_SHOWN = 12
LEAST_ALIKE = 55
"""Per cent below which a line is no help."""
LEAST_MARKED = 0.6
"""How much of a line must be the same for marks below the rest to say anything."""


def describe_nearest(lines: Sequence[str], wanted: str) -> str:
    """A sentence for the model and the lines in question, with what differs marked; empty if nothing is like it."""
    looked_for = wanted.strip("\n").split("\n")[:LARGEST_WINDOW]
    found = _nearest(lines, looked_for)
    if found is None:
        return ""
    first, window = found
    shown = [
        part
        for number, (line, other) in enumerate(zip_longest(window, looked_for), first + 1)
        if number <= first + MOST_SHOWN
        for part in _compared(number, line, other)
    ]
    more = "" if len(window) <= MOST_SHOWN else f"\n({len(window) - MOST_SHOWN} more lines)"
    return (
        f"Nearest to it is, from line {first + 1}:\n" + "\n".join(shown) + more + "\n"
        "Copy it from the file, without the numbers, and try again."
    )


def _compared(number: int, line: str | None, other: str | None) -> Iterator[str]:
    """A line of the file and, where it differs, what was looked for, with marks below the difference."""
    if line is None:
        yield f"   old\t{(other or '')[:LONGEST_LINE]}"
        return
    line, other = line[:LONGEST_LINE], None if other is None else other[:LONGEST_LINE]
    if other is None or line == other:
        yield f"{number:>6}\t{line}"
        return
    if "".join(line.split()) == "".join(other.split()):  # only blanks differ: they must be seen
        line, other = _with_visible_blanks(line), _with_visible_blanks(other)
    yield f"{number:>6}\t{line}"
    yield f"   old\t{other}"
    if marks := _marks(line, other):
        yield f"      \t{marks}"


def _with_visible_blanks(line: str) -> str:
    body = line.lstrip(" \t")
    visible = line[: len(line) - len(body)].replace(" ", "·").replace("\t", "→") + body
    bare = visible.rstrip(" \t")
    ends = visible[len(bare) :].replace(" ", "·").replace("\t", "→")
    return re.sub(r" {2,}|\t", lambda run: run[0].replace(" ", "·").replace("\t", "→"), bare) + ends


def _marks(line: str, other: str) -> str:
    """Carets below what was looked for, where it differs from the line; empty if little of it is the same."""
    from rapidfuzz.distance import Indel

    if Indel.normalized_similarity(line, other) < LEAST_MARKED:
        return ""
    marks = [" "] * (len(other) + 1)
    for step in Indel.opcodes(line, other):
        if step.tag != "equal":
            for place in range(step.dest_start, max(step.dest_end, step.dest_start + 1)):
                marks[place] = "^"
    return "".join(marks).rstrip()


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
