"""Compares two texts line by line (changes, hunks, statistics, unified diffs): right for any input, and bounded in time
and memory.

How: the common beginning and end are set aside. Lines that occur exactly once on both sides are anchors, as many as
keep their order. Only what lies between two anchors is compared by a search for the longest common subsequence, and
only the lines of it that occur on both sides. Whatever would cost too much is replaced as a whole: a coarser diff,
never a wrong one. Long texts are compared window by window, each beginning where the last one was sure of itself: so
no call takes long, and nothing but a window is ever split into lines.

A line ends with its line feed, and the last one may have none. A carriage return belongs to its line, so a change of
line endings is a change.
"""

import io
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from crow.results import DiffBlock

MOST_CELLS = 400_000_000
"""Pairs of lines that one diff may compare: about 0.1 s and 50 MB, since rapidfuzz keeps a bit for each pair."""

MOST_AT_ONCE = 100_000_000
"""Pairs of lines that one call may compare, during which nothing else goes on: about 30 ms."""

MOST_LINES = 2_000_000
"""Changed lines, both sides together, above which no common ones are looked for."""

LARGEST_AT_ONCE = 1024 * 1024
"""Characters of a text that is compared as a whole."""
WINDOW = 256 * 1024
LARGEST_WINDOW = 2 * 1024 * 1024
"""Characters of a window: where two windows have nothing in common, larger ones are tried, up to this."""
_SLICE = 512 * 1024
"""Characters that are looked at in one call."""
_FEW = 2000
"""Lines that are passed over one by one: more of them by counting the line feeds of a slice."""

LARGEST_WHOLE = 128 * 1024
"""Bytes up to which a text is shown whole."""

CONTEXT = 3


class Change(NamedTuple):
    """`old[old_start:old_end]` was replaced by `new[new_start:new_end]`: lines, counted from 0."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int


class Hunk(NamedTuple):
    """A changed place with its surroundings; the lines at which it begins are counted from 1."""

    old_start: int
    new_start: int
    old_text: str
    new_text: str


class Statistics(NamedTuple):
    added: int
    removed: int

    def __str__(self) -> str:
        return f"+{self.added} −{self.removed}"  # noqa: RUF001 -- a real minus sign, as wide as the plus


def changes(old: str, new: str) -> list[Change]:
    if max(len(old), len(new)) <= LARGEST_AT_ONCE:
        return compare_lines(split_lines(old), split_lines(new))
    return list(_changes_in_windows(old, new))


def hunks(old: str, new: str, context: int = CONTEXT, found: list[Change] | None = None) -> list[Hunk]:
    """`found` are the texts' changes, if they are known already."""
    old_lines, new_lines = _Lines(old), _Lines(new)
    if found is None:
        found = changes(old, new)
    return [_hunk(group, old_lines, new_lines, context) for group in _neighbours(found, context)]


def statistics(old: str, new: str, found: list[Change] | None = None) -> Statistics:
    if found is None:
        found = changes(old, new)
    added = sum(change.new_end - change.new_start for change in found)
    removed = sum(change.old_end - change.old_start for change in found)
    return Statistics(added, removed)


def display(path: str, old: str | None, new: str | None, found: list[Change] | None = None) -> tuple[DiffBlock, ...]:
    """What the person is shown of a change to a file; None stands for a file that is not there."""
    if old is None:
        return (DiffBlock(path, "add", "", new or ""),)
    if new is None:
        return (DiffBlock(path, "delete", old, ""),)
    if old == new:
        return ()
    if _is_small(old) and _is_small(new):
        return (DiffBlock(path, "modify", old, new),)
    return tuple(
        DiffBlock(path, "modify", hunk.old_text, hunk.new_text, hunk.old_start, hunk.new_start)
        for hunk in hunks(old, new, found=found)
    )


def changes_in(block: DiffBlock) -> list[Change]:
    """The changed places of what the person is shown, in lines of the block's own texts. The same for the same block,
    and cheap: of a block that is very large, all that lies between its common beginning and end is one change."""
    old, new = block.old_text, block.new_text
    if max(len(old), len(new)) <= LARGEST_AT_ONCE and old and new:
        return changes(old, new)
    same = _common_lines(old, 0, new, 0)
    if same == len(old) == len(new):
        return []
    lines = _count_feeds(old, 0, same)
    return [_rest(old, same, new, same, lines, lines)]


def with_accepted(old: str, new: str, shown: Iterable[DiffBlock], accepted: Collection[int]) -> str:
    """The old text with those of the shown changes that were accepted, which are counted from 0 over all blocks."""
    old_lines, new_lines = split_lines(old), split_lines(new)
    pieces: list[str] = []
    at = number = 0
    for block in shown:
        for change in changes_in(block):
            old_start, old_end = (block.old_line - 1 + line for line in (change.old_start, change.old_end))
            pieces += old_lines[at:old_start]
            if number in accepted:
                pieces += new_lines[block.new_line - 1 + change.new_start : block.new_line - 1 + change.new_end]
            else:
                pieces += old_lines[old_start:old_end]
            at, number = old_end, number + 1
    return "".join((*pieces, *old_lines[at:]))


def split_lines(text: str) -> list[str]:
    """Joined, the lines are the text. `str.splitlines` would also split at form feeds and other separators."""
    return io.StringIO(text, newline="\n").readlines()


def common_beginning(one: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    return _agreeing(min(len(one), len(other)), lambda start, end: one[start:end] == other[start:end])


def _is_small(text: str) -> bool:
    return len(text) <= LARGEST_WHOLE and len(text.encode("utf-8", "surrogatepass")) <= LARGEST_WHOLE


# --- unified diffs


def unified(old: str, new: str, path: str, limit: int = 64 * 1024) -> str:
    """The diff as `diff -u` writes it, cut after about `limit` characters; empty if nothing changed."""
    pieces: list[str] = []
    size = left_out = 0
    for line in _unified_lines(old, new, path):
        size += len(line)
        if size <= limit:
            pieces.append(line)
        else:
            left_out += 1
    if left_out:
        pieces.append(f"({left_out} more lines of the diff left out)\n")
    return "".join(pieces)


def _unified_lines(old: str, new: str, path: str) -> Iterator[str]:
    old_lines, new_lines = _Lines(old), _Lines(new)
    found = changes(old, new)
    if found:
        yield f"--- a/{path}\n"
        yield f"+++ b/{path}\n"
    for group in _neighbours(found, CONTEXT):
        whole = _with_context(group, old_lines.count, CONTEXT)
        yield f"@@ -{_range(whole.old_start, whole.old_end)} +{_range(whole.new_start, whole.new_end)} @@\n"
        position = whole.old_start
        for change in group:
            yield from _marked(" ", old_lines.between(position, change.old_start))
            yield from _marked("-", old_lines.between(change.old_start, change.old_end))
            yield from _marked("+", new_lines.between(change.new_start, change.new_end))
            position = change.old_end
        yield from _marked(" ", old_lines.between(position, whole.old_end))


def _range(start: int, end: int) -> str:
    """Where nothing is left on a side, the format names the line before."""
    return f"{start + 1 if end > start else start},{end - start}"


def _marked(mark: str, text: str) -> Iterator[str]:
    for line in split_lines(text):
        yield f"{mark}{line}" if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"


# --- hunks


def _neighbours(found: list[Change], context: int) -> Iterator[list[Change]]:
    """Groups of changes so close to each other that their surroundings touch."""
    group: list[Change] = []
    for change in found:
        if group and change.old_start - group[-1].old_end > 2 * context:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _with_context(group: list[Change], old_length: int, context: int) -> Change:
    """From the first change to the last, with the lines around them; these are the same on both sides."""
    first, last = group[0], group[-1]
    before = min(context, first.old_start)
    after = min(context, old_length - last.old_end)
    return Change(first.old_start - before, last.old_end + after, first.new_start - before, last.new_end + after)


def _hunk(group: list[Change], old: "_Lines", new: "_Lines", context: int) -> Hunk:
    whole = _with_context(group, old.count, context)
    return Hunk(
        whole.old_start + 1,
        whole.new_start + 1,
        old.between(whole.old_start, whole.old_end),
        new.between(whole.new_start, whole.new_end),
    )


class _Lines:
    """The lines of a text, asked for from the first to the last: the text is gone through once, and never split."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line = 0
        self._place = 0
        """Where the line of that number begins."""
        self.count = _count_feeds(text, 0, len(text)) + (text[-1:] not in ("", "\n"))

    def between(self, start: int, end: int) -> str:
        first = self._go_to(start)
        return self._text[first : self._go_to(end)]

    def _go_to(self, line: int) -> int:
        self._place = _skip_lines(self._text, self._place, line - self._line)
        self._line = line
        return self._place


def _count_feeds(text: str, start: int, end: int) -> int:
    return sum(text.count("\n", place, min(place + _SLICE, end)) for place in range(start, end, _SLICE))


def _skip_lines(text: str, place: int, lines: int) -> int:
    """The place that is so many lines behind another one; the end, if there are fewer."""
    while lines > _FEW:
        feeds = text.count("\n", place, place + _SLICE)
        if feeds > lines:
            break
        lines -= feeds
        place += _SLICE
        if place >= len(text):
            return len(text)
    for _ in range(lines):
        feed = text.find("\n", place)
        if feed < 0:
            return len(text)
        place = feed + 1
    return place


# --- the comparison

Pair = tuple[int, int]
"""The places of a line that is the same in both texts."""


def compare_lines(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """The changes that make the new lines of the old ones, in order, no two of them touching."""
    middle = _trim(old, new, Change(0, len(old), 0, len(new)))
    pairs = _Comparison(old, new).common_lines(middle)
    return list(_between(pairs, middle))


def _changes_in_windows(old: str, new: str) -> Iterator[Change]:
    """The changes between long texts, a little coarser than `compare_lines` where much has moved."""
    old_at = new_at = old_line = new_line = 0
    window = WINDOW
    while True:
        same = _common_lines(old, old_at, new, new_at)
        lines = _count_feeds(old, old_at, old_at + same) + (same > 0 and old[old_at + same - 1] != "\n")
        old_at, new_at, old_line, new_line = old_at + same, new_at + same, old_line + lines, new_line + lines
        if old_at == len(old) and new_at == len(new):
            return
        if window > LARGEST_WINDOW:
            yield _rest(old, old_at, new, new_at, old_line, new_line)
            return
        old_lines = split_lines(old[old_at : _end_of_window(old, old_at + window)])
        new_lines = split_lines(new[new_at : _end_of_window(new, new_at + window)])
        found = compare_lines(old_lines, new_lines)
        old_sure, new_sure = len(old_lines), len(new_lines)
        if old_at + window < len(old) or new_at + window < len(new):
            last = found[-1]
            if last.old_end == old_sure or last.new_end == new_sure:
                # What it goes on with, and so what it is a change of, lies beyond the window.
                old_sure, new_sure = last.old_start, last.new_start
                found.pop()
        for old_start, old_end, new_start, new_end in found:
            yield Change(old_line + old_start, old_line + old_end, new_line + new_start, new_line + new_end)
        window = WINDOW if old_sure and new_sure else window * 4
        old_at += sum(map(len, old_lines[:old_sure]))
        new_at += sum(map(len, new_lines[:new_sure]))
        old_line, new_line = old_line + old_sure, new_line + new_sure


def _end_of_window(text: str, place: int) -> int:
    """Where the line ends that the place lies in: windows end with whole lines."""
    return text.find("\n", place) + 1 or len(text) if place < len(text) else len(text)


def _common_lines(old: str, old_at: int, new: str, new_at: int) -> int:
    """Characters of the whole lines that both texts go on with."""

    def agree(start: int, end: int) -> bool:
        return old[old_at + start : old_at + end] == new[new_at + start : new_at + end]

    same = _agreeing(min(len(old) - old_at, len(new) - new_at), agree)
    if old_at + same == len(old) and new_at + same == len(new):
        return same
    return old.rfind("\n", old_at, old_at + same) + 1 - old_at if same and "\n" in old[old_at : old_at + same] else 0


def _agreeing(most: int, agree: Callable[[int, int], bool]) -> int:
    """How many characters two texts have in common, at most so many: compared in slices, the last of them halved until
    it fits. `agree` says whether those from `start` to `end` are the same.
    """
    same, size = 0, min(_SLICE, most)
    while same < most and size:
        step = min(size, most - same)
        if agree(same, same + step):
            same += step
        else:
            size //= 2
    return same


def _rest(old: str, old_at: int, new: str, new_at: int, old_line: int, new_line: int) -> Change:
    """The change that replaces everything from there on, but for the lines that both texts end with."""

    def agree(start: int, end: int) -> bool:
        return old[len(old) - end : len(old) - start] == new[len(new) - end : len(new) - start]

    same = _agreeing(min(len(old) - old_at, len(new) - new_at), agree)
    old_end, new_end = len(old) - same, len(new) - same
    if (old_end > old_at and old[old_end - 1] != "\n") or (new_end > new_at and new[new_end - 1] != "\n"):
        feed = old.find("\n", old_end)  # the common end begins in the middle of a line
        same = len(old) - feed - 1 if feed >= 0 else 0
    old_end, new_end = _Lines(old[old_at : len(old) - same]).count, _Lines(new[new_at : len(new) - same]).count
    return Change(old_line, old_line + old_end, new_line, new_line + new_end)


def _between(pairs: list[Pair], middle: Change) -> Iterator[Change]:
    """What lies between the common lines."""
    old_at, new_at = middle.old_start, middle.new_start
    for old_place, new_place in (*pairs, (middle.old_end, middle.new_end)):
        if old_place > old_at or new_place > new_at:
            yield Change(old_at, old_place, new_at, new_place)
        old_at, new_at = old_place + 1, new_place + 1


def _trim(old: Sequence[str], new: Sequence[str], block: Change) -> Change:
    """The block without the lines that its two sides begin and end with in common."""
    old_start, old_end, new_start, new_end = block
    while old_start < old_end and new_start < new_end and old[old_start] == new[new_start]:
        old_start += 1
        new_start += 1
    while old_start < old_end and new_start < new_end and old[old_end - 1] == new[new_end - 1]:
        old_end -= 1
        new_end -= 1
    return Change(old_start, old_end, new_start, new_end)


class _Comparison:
    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        self._old = old
        self._new = new
        self._cells_left = MOST_CELLS

    def common_lines(self, block: Change) -> list[Pair]:
        """Places of equal lines, ascending on both sides: as many as can be found at a bounded cost."""
        if block.old_end - block.old_start + block.new_end - block.new_start > MOST_LINES:
            return []
        pairs: list[Pair] = []
        # The line before the block and the one after it serve as anchors too, so that every gap has one at each end.
        before, after = (block.old_start - 1, block.new_start - 1), (block.old_end, block.new_end)
        for (old_start, new_start), (old_end, new_end) in pairwise([before, *self._anchors(block), after]):
            if old_end > old_start + 1 and new_end > new_start + 1:
                pairs += self._common_in_gap(Change(old_start + 1, old_end, new_start + 1, new_end))
            pairs.append((old_end, new_end))
        pairs.pop()
        return pairs

    def _anchors(self, block: Change) -> list[Pair]:
        old_lines = self._old[block.old_start : block.old_end]
        new_lines = self._new[block.new_start : block.new_end]
        old_counts, new_counts = Counter(old_lines), Counter(new_lines)
        new_places = {line: place for place, line in enumerate(new_lines, block.new_start) if new_counts[line] == 1}
        candidates = [
            (place, new_places[line])
            for place, line in enumerate(old_lines, block.old_start)
            if line in new_places and old_counts[line] == 1
        ]
        return _longest_ascending(candidates)

    def _common_in_gap(self, gap: Change) -> Iterator[Pair]:
        inner = _trim(self._old, self._new, gap)
        yield from zip(range(gap.old_start, inner.old_start), range(gap.new_start, inner.new_start), strict=True)
        if inner.old_start < inner.old_end and inner.new_start < inner.new_end:
            yield from self._common_subsequence(inner)
        yield from zip(range(inner.old_end, gap.old_end), range(inner.new_end, gap.new_end), strict=True)

    def _common_subsequence(self, block: Change) -> list[Pair]:
        """The longest one there is, if the budget allows for looking."""
        old_lines = self._old[block.old_start : block.old_end]
        new_lines = self._new[block.new_start : block.new_end]
        # A line that the other side does not have cannot be common: leaving it out changes nothing but the cost.
        numbers = {line: number for number, line in enumerate(set(old_lines).intersection(new_lines))}
        old_places = [place for place, line in enumerate(old_lines, block.old_start) if line in numbers]
        new_places = [place for place, line in enumerate(new_lines, block.new_start) if line in numbers]
        cells = len(old_places) * len(new_places)
        if not cells or cells > min(self._cells_left, MOST_AT_ONCE):
            return []
        self._cells_left -= cells
        from rapidfuzz.distance import Indel

        matching = Indel.opcodes(
            [numbers[self._old[place]] for place in old_places],
            [numbers[self._new[place]] for place in new_places],
        ).as_matching_blocks()
        return [(old_places[run.a + step], new_places[run.b + step]) for run in matching for step in range(run.size)]


def _longest_ascending(pairs: list[Pair]) -> list[Pair]:
    """The longest choice of pairs whose second places ascend; the first ones do already (patience sorting)."""
    ends: list[int] = []
    """For each length, the smallest second place with which a choice of that length can end."""
    last: list[int] = []
    """For each length, the index of the pair that it ends with."""
    previous: list[int] = []
    """For each pair, the index of the one before it in the best choice that ends with it."""
    for index, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        previous.append(last[length - 1] if length else -1)
        if length == len(ends):
            ends.append(place)
            last.append(index)
        else:
            ends[length] = place
            last[length] = index
    chosen: list[Pair] = []
    index = last[-1] if last else -1
    while index >= 0:
        chosen.append(pairs[index])
        index = previous[index]
    chosen.reverse()
    return chosen
