"""Explains to the model why an edit has no place in a file, or several: the nearest lines, the candidates, or what was
left over in its text.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import NamedTuple

from crow.errors import WorkspaceError
from crow.files.text import with_line_feeds
from crow.tools.base import Advice
from crow.tools.editing import TextEdit
from crow.tools.editing.interpretations import AS_READ, inside_fence, numbered_rests, numbers_of
from crow.tools.editing.omissions import left_out
from crow.tools.editing.replacements import Source, only_place
from crow.tools.editing.soundness import ending_of, is_code
from crow.tools.editing.tolerant import MOST_PLACES, TolerantMatches

MOST_PLACES_NAMED = 20
MOST_PLACES_SHOWN = 3
"""Places of an ambiguous text that are quoted with their surroundings."""
LARGEST_TOLERANT = 4 * 1024 * 1024
"""Characters of a file in which anything is overlooked, or the nearest place looked for: that takes many times its size
in memory, and calls during which nothing else goes on."""
SURELY_MEANT = 12
"""Characters of a new text that is taken for an edit that was made already, if the file has it."""
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


class MatchOptions(NamedTuple):
    """How edits are looked for, and how a failure is put into words."""

    exactly: bool
    reveal: bool
    advice: Advice
    path: str
    alone: bool
    """Whether there is but one edit: others could make more of what one of them makes."""


def number_of(places: Sequence[int]) -> str:
    return str(len(places)) if len(places) < MOST_PLACES else f"{MOST_PLACES} or more"


def said_lines(source: Source, places: Sequence[int]) -> str:
    lines = [str(source.line_of(place)) for place in places[:MOST_PLACES_NAMED]]
    more = f" and {len(places) - MOST_PLACES_NAMED} more" if len(places) > MOST_PLACES_NAMED else ""
    return ", ".join(lines) + more


def ambiguous(source: Source, places: Sequence[int], name: str, manner: MatchOptions) -> tuple[str, str]:
    told = f"{name} is ambiguous: its old text occurs {number_of(places)} times, at lines {said_lines(source, places)}."
    return told, f"{manner.advice.make_it_unique}{_surroundings(source, places, manner)}"


def unclear(source: Source, found: TolerantMatches, name: str, manner: MatchOptions) -> tuple[str, str]:
    places = [match.start for match in found.matches]
    told = (
        f"{name} is ambiguous: its old text is not there exactly, and by overlooking {found.what} it could be "
        f"meant at lines {said_lines(source, places)}."
    )
    return told, f"Copy it exactly, with enough around it to be unique.{_surroundings(source, places, manner)}"


def _surroundings(source: Source, places: Sequence[int], manner: MatchOptions) -> str:
    """The first places with the lines around them, by which they can be told apart."""
    if not manner.reveal or len(source.text) > LARGEST_TOLERANT:
        return ""
    numbers = dict.fromkeys(source.line_of(place) for place in places[:MOST_PLACES_SHOWN])
    if len(numbers) < 2:
        return ""
    lines = source.text.removesuffix("\n").split("\n")
    around = sorted({at for number in numbers for at in range(number - 1, number + 2) if 0 < at <= len(lines)})
    told = ""
    for one, at in zip([0, *around], around, strict=False):
        told += "\n   ..." if 0 < one < at - 1 else ""
        told += f"\n{at:>6}\t{lines[at - 1][:LONGEST_LINE].rstrip()}"
    return told


def not_found(source: Source, edit: TextEdit, name: str, manner: MatchOptions) -> tuple[str, str]:
    """What is told, and advice for the model."""
    told = f"{name} does not apply: its old text is not in the file."
    advice = manner.advice
    if (place := left_out(manner.path, source.text, edit.old)) is not None:
        return told, (
            f"Line {place[0]} of it, `{place[1][:100]}`, stands for something that was left out: an old text "
            "must be in the file as it is. Copy all of it, or make one edit for each part that changes."
        )
    if not manner.reveal:
        return told, advice.read_first
    if (place := _made_place(source, edit)) is not None:
        told += f" It seems to be done already: its new text is at line {source.line_of(place)}. Nothing was changed."
        return told, (f"Go on, or look again if something else is meant: {advice.read_again}")
    if numbers_of(edit.old):
        told += " It seems to contain line numbers: leave them out."
    if len(source.text) > LARGEST_TOLERANT:
        return told, f"In a file of this size it must be copied exactly. {advice.read_again}"
    lines = [line.removesuffix("\r") for line in source.text.split("\n")]
    nearest = _describe_nearest(lines, edit.old)
    return (told, nearest) if nearest else (f"{told} Nothing similar was found.", advice.read_again)


def _made_place(source: Source, edit: TextEdit) -> int | None:
    new = with_line_feeds(edit.new)
    return only_place(source.plain, new) if len(new.strip()) >= SURELY_MEANT else None


# --- what is nearest to a text that was not found, looked for in bounded time


def _describe_nearest(lines: Sequence[str], wanted: str) -> str:
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
        f"The nearest match starts at line {first + 1}:\n" + "\n".join(shown) + more + "\n"
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


_MARKUP = ("md", "markdown", "mdx", "rmd", "qmd", "rst", "html", "htm", "xml", "svg", "vue", "diff", "patch", "txt", "")
_FOOTER = re.compile(r"\n\(\d[\d,]* more lines?\b[^\n]*\)\s*\Z|\n\(?\[?\d+ more lines?[:.,][^\n]*offset[^\n]*\Z")
_FENCE = re.compile(r"(?m)^(?:`{3,}|~{3,})[\w+.#-]*[ \t]*$")
_DIFF = re.compile(r"\A\s*(?:diff --git |--- [^\n]*\n\+\+\+ |@@ -\d|\*\*\* Begin Patch)")
_MARKERS = re.compile(r"(?m)^(?:<{5,9} ?(?:SEARCH|ORIGINAL)|>{5,9} ?(?:REPLACE|UPDATED))\s*$")
_TAG = re.compile(
    r"(</(?:parameter|invoke|function|function_calls?|tool_calls?|tool_use|arguments|antml:\w+)>|<\|[\w\u2581|-]+\|>)\s*\Z"
)
_ENTITIES = re.compile(r"&amp;&amp;|\w &[lg]t;=? \w|=&gt;")


def check_no_leftovers(path: str, before: str, text: str, name: str, part: str, *, old: str = "") -> None:
    """WorkspaceError, in words for the model, if something was copied into a text that is no part of it."""
    if (found := _leftover(path, before + "\n" + old, text, old)) is not None:
        what, remedy = found
        raise WorkspaceError(f"{name} has {what} in its {part}. Nothing was changed.", advice=remedy)


def _leftover(path: str, known: str, text: str, old: str) -> tuple[str, str] | None:
    """What is left over, and the remedy; None if there is nothing. What the old text has too is taken from both."""
    found = _MARKERS.search(text)
    if found and not _MARKERS.search(known) and ending_of(path) not in ("md", "markdown", "rst"):
        return f"the marker `{found[0].strip()}`", "Write only the text that belongs in the file."
    if ending_of(path) in _MARKUP:
        return None
    if (found := _TAG.search(text)) and found[1] not in known:
        return f"`{found[1]}`, the end of a call,", "Leave it out: the text ends before it."
    if _DIFF.match(text) and not _DIFF.match(known) and not _DIFF.match(old):
        return "a diff", "Write the final lines, without the removed ones and without the marks."
    if (found := _FOOTER.search(text)) and found[0].strip() not in known:
        return f"`{found[0].strip()[:60]}`, which `read` says below a part of a file,", "Leave it out."
    if not is_code(path):
        return None
    return _leftover_of_code(known, text, old)


def _leftover_of_code(known: str, text: str, old: str) -> tuple[str, str] | None:
    if not numbers_of(old) and _has_numbers(known, text):
        return "line numbers", "Leave out the numbers and what stands between them and the text."
    if "```" not in known and "~~~" not in known and _has_loose_fence(text, is_edit=bool(old)):
        return "a code fence", "Leave out the line with the fence, and what is said around the code."
    if text.startswith("<![CDATA[") and "<![CDATA[" not in known:
        return "`<![CDATA[`", "Leave out `<![CDATA[` and `]]>`."
    if _ENTITIES.search(text) and "<" not in text and "&&" not in text and not _ENTITIES.search(known):
        return "entities of HTML (`&lt;`, `&amp;`)", "Write the characters themselves."
    return None


def _has_numbers(known: str, text: str) -> bool:
    if AS_READ.search(known):
        return False
    as_read = [int(number) for number in AS_READ.findall(text)]
    if any(other - one == 1 for one, other in pairwise(as_read)):
        return True
    numbers = numbers_of(text)
    if len(numbers) < 2 or any(other - one > 3 for one, other in pairwise(numbers)):
        return False
    lines = {line.strip() for line in known.split("\n")} - {""}
    rests = [rest.strip() for rest in numbered_rests(text)]
    return any(rest in lines for rest in rests) or (numbers[0] == 1 and len(numbers) > 2 and "|" in text[:12])


def _has_loose_fence(text: str, *, is_edit: bool) -> bool:
    """Whether a fence begins or ends a text, and not both with nothing else: that is what `inside_fence` is for."""
    fences = _FENCE.findall(text)
    if not fences or inside_fence(text) is not None:
        return False
    lines = text.strip().split("\n")
    at_edge = _FENCE.fullmatch(lines[0]) or _FENCE.fullmatch(lines[-1])
    return bool(at_edge) and (len(fences) % 2 == 1 or not is_edit)
